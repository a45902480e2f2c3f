//! Rows of `spans`: reading and inserting.

use std::collections::HashMap;

use uuid::Uuid;

use super::stored::{level, parse_json};
use crate::catalog::database::{Row, Tx, Value, values};
use crate::catalog::error::CatalogError;
use crate::catalog::types::*;
use crate::terms::SpanKey;

/// The columns that [`from_row`] reads, of `spans s`.
macro_rules! span_columns {
    () => {
        "s.key, s.id, s.video, s.level, s.given, s.start_ms, s.end_ms, s.metadata"
    };
}

pub(in crate::catalog) use span_columns;

pub(in crate::catalog) fn from_row(row: &Row) -> Result<Span, CatalogError> {
    Ok(Span {
        key: row.key("key")?,
        id: row.get("id")?,
        video: row.get("video")?,
        level: level(row)?,
        given: row.get("given")?,
        start_ms: row.get("start_ms")?,
        end_ms: row.get("end_ms")?,
        metadata: parse_json(&row.get::<String>("metadata")?)?,
    })
}

/// The given spans of a video, in order of key.
pub(in crate::catalog) async fn given(tx: &mut Tx, video: Uuid) -> Result<Vec<Span>, CatalogError> {
    let sql =
        concat!("SELECT ", span_columns!(), " FROM spans s WHERE s.video = $1 AND s.given ORDER BY s.key");
    tx.rows(sql, values![video]).await?.iter().map(from_row).collect()
}

/// Inserts rows of (id, video, level, given, start_ms, end_ms, metadata); returns the new key of each id.
pub(in crate::catalog) async fn insert(
    tx: &mut Tx,
    rows: Vec<Vec<Value>>,
) -> Result<HashMap<Uuid, SpanKey>, CatalogError> {
    let head = "INSERT INTO spans (id, video, level, given, start_ms, end_ms, metadata)";
    let rows = tx.insert(head, rows, "RETURNING key, id").await?;
    rows.iter().map(|row| Ok((row.get("id")?, row.key("key")?))).collect()
}
