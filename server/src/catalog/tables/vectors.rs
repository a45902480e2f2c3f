//! Rows of `embeddings` and `changes`: reading and inserting vectors, and the change log.

use uuid::Uuid;

use super::stored::{level, level_name};
use crate::catalog::database::{Row, Tx, Value, values};
use crate::catalog::error::CatalogError;
use crate::catalog::types::*;
use crate::catalog::wake::News;
use crate::terms::{Level, SpanKey, UnitVector};

/// Held from the first appended change to the commit, so that changes become visible in order of seq.
const CHANGES_LOCK: i64 = 0x7265_7072_6973_6501;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::catalog) enum Op {
    /// The vector was inserted or replaced.
    Insert,
    /// The vector was deleted.
    Delete,
}

/// Position of a vector: its span, space and level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::catalog) struct At {
    pub(in crate::catalog) span: SpanKey,
    pub(in crate::catalog) space: u32,
    pub(in crate::catalog) level: Level,
}

pub(in crate::catalog) fn at(row: &Row) -> Result<At, CatalogError> {
    Ok(At { span: row.key("span")?, space: row.space("space")?, level: level(row)? })
}

/// Positions of a video's vectors.
pub(in crate::catalog) async fn of_video(tx: &mut Tx, video: Uuid) -> Result<Vec<At>, CatalogError> {
    let sql = "SELECT e.span, e.space, s.level FROM embeddings e JOIN spans s ON s.key = e.span \
               WHERE s.video = $1 ORDER BY e.space, e.span";
    tx.rows(sql, values![video]).await?.iter().map(at).collect()
}

/// Positions of a span's vectors.
pub(in crate::catalog) async fn of_span(tx: &mut Tx, span: SpanKey) -> Result<Vec<At>, CatalogError> {
    let sql = "SELECT e.span, e.space, s.level FROM embeddings e JOIN spans s ON s.key = e.span \
               WHERE s.key = $1 ORDER BY e.space";
    tx.rows(sql, values![span]).await?.iter().map(at).collect()
}

/// Inserts vectors; returns (space, span) of the new ones.
pub(in crate::catalog) async fn insert(
    tx: &mut Tx,
    vectors: &[NewVector],
) -> Result<Vec<(u32, SpanKey)>, CatalogError> {
    check_dimensions(tx, vectors).await?;
    let row = |vector: &NewVector| -> Vec<Value> {
        values![vector.space, vector.span, unit_bytes(&vector.unit), f64::from(vector.norm)]
    };
    let head = "INSERT INTO embeddings (space, span, unit, norm)";
    let tail = "ON CONFLICT (space, span) DO NOTHING RETURNING space, span";
    let rows = tx.insert(head, vectors.iter().map(row).collect(), tail).await?;
    rows.iter().map(|row| Ok((row.space("space")?, row.key("span")?))).collect()
}

/// Refuses vectors of a wrong length. Otherwise only the index would find the mistake, after the commit.
async fn check_dimensions(tx: &mut Tx, vectors: &[NewVector]) -> Result<(), CatalogError> {
    if vectors.is_empty() {
        return Ok(());
    }
    let spaces = tx.rows("SELECT key, dim FROM spaces", values![]).await?;
    let dims: Vec<(u32, i64)> = spaces
        .iter()
        .map(|row| Ok((row.space("key")?, row.get("dim")?)))
        .collect::<Result<_, CatalogError>>()?;
    for vector in vectors {
        let dim = dims.iter().find(|(key, _)| *key == vector.space).map(|(_, dim)| *dim);
        let got = values_of(&vector.unit);
        if dim != Some(got) {
            let expected = dim.map_or("is not registered".to_owned(), |dim| format!("has {dim}"));
            let text = format!("a vector of {got} values for space {}, which {expected}", vector.space);
            return Err(CatalogError::Invalid(text.into()));
        }
    }
    Ok(())
}

fn values_of(unit: &UnitVector) -> i64 {
    i64::try_from(unit.values().len()).unwrap_or(i64::MAX)
}

/// Appends to the change log. Call last in a transaction: on Postgres it holds a lock for which all other writers of
/// vectors wait.
pub(in crate::catalog) async fn append_changes(
    tx: &mut Tx,
    changes: Vec<(Op, At)>,
) -> Result<(), CatalogError> {
    if changes.is_empty() {
        return Ok(());
    }
    if tx.is_postgres() {
        tx.execute("SELECT pg_advisory_xact_lock($1)", values![CHANGES_LOCK]).await?;
    }
    let row = |(op, at): (Op, At)| -> Vec<Value> {
        let op = match op {
            Op::Insert => "insert",
            Op::Delete => "delete",
        };
        values![op, at.span, at.space, level_name(at.level)]
    };
    let rows = changes.into_iter().map(row).collect();
    tx.insert("INSERT INTO changes (op, span, space, level)", rows, "").await?;
    tx.announce(News::Changes).await
}

/// Encodes a unit vector as little-endian f32.
pub(in crate::catalog) fn unit_bytes(unit: &UnitVector) -> Vec<u8> {
    unit.values().iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Decodes the bytes of [`unit_bytes`] of a span.
pub(in crate::catalog) fn unit(bytes: &[u8], span: SpanKey) -> Result<UnitVector, CatalogError> {
    let values = bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let whole = bytes.len().is_multiple_of(4);
    UnitVector::from_unit(values.collect()).filter(|_| whole).ok_or_else(|| {
        CatalogError::Damaged(
            format!("the vector of span {span} is not of norm 1; ingest its video again").into(),
        )
    })
}
