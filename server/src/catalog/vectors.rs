//! Spaces, vectors, and the log of changes that the index follows.

use uuid::Uuid;

use super::database::{Database, Row, Sql, Tx, Value, values};
use super::rows::{self, level_name, span_columns, unit, unit_bytes};
use super::types::*;
use super::{CatalogError, jobs, postgres};
use crate::terms::{KeySet, Level, SpanKey, UnitVector};

/// Held from the first appended change to the commit: a seq becomes visible only after all smaller ones.
const CHANGES_LOCK: i64 = 0x7265_7072_6973_6501;

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// A vector is there now.
    Insert,
    /// It no longer is.
    Delete,
}

/// Where a vector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct At {
    pub(super) span: SpanKey,
    pub(super) space: u32,
    pub(super) level: Level,
}

pub(super) fn at(row: &Row) -> Result<At, CatalogError> {
    Ok(At { span: row.key("span")?, space: row.space("space")?, level: rows::level(row)? })
}

pub(super) async fn register(database: &Database, space: &NewSpace) -> Result<SpaceRow, CatalogError> {
    let dim = i64::try_from(space.dim).unwrap_or(i64::MAX);
    let mut tx = database.begin().await?;
    let now = tx.now_ms().await?;
    let sql = "UPDATE spaces SET name = $2, model = $3 WHERE id = $1";
    let values = values![space.id.as_str(), space.name.as_str(), space.model.as_str()];
    if tx.execute(sql, values.clone()).await? == 0 {
        // Another process may register it in this moment.
        let insert = "INSERT INTO spaces (id, name, model, dim, created_at_ms) VALUES ($1, $2, $3, $4, $5) \
                      ON CONFLICT (id) DO UPDATE SET name = excluded.name, model = excluded.model";
        let mut values = values;
        values.extend(values![dim, now]);
        tx.execute(insert, values).await?;
    }
    let row = tx.row(SPACE_BY_ID, values![space.id.as_str()]).await?;
    let found = row.as_ref().map(space_from).transpose()?;
    tx.commit().await?;
    match found {
        Some(found) if found.space.dim == space.dim => Ok(found),
        Some(found) => Err(CatalogError::Conflict(format!(
            "space {} is stored with {} values a vector, not {}",
            space.id, found.space.dim, space.dim
        ))),
        None => Err(CatalogError::Damaged(format!("space {} was stored and is not there", space.id))),
    }
}

macro_rules! select_spaces {
    ($tail:literal) => {
        concat!(
            "SELECT p.key, p.id, p.name, p.model, p.dim, p.added, \
             (SELECT count(*) FROM embeddings e WHERE e.space = p.key) AS vectors FROM spaces p ",
            $tail
        )
    };
}

const SPACE_BY_ID: &str = select_spaces!("WHERE p.id = $1");

pub(super) async fn spaces(database: &Database) -> Result<Vec<SpaceRow>, CatalogError> {
    database.rows(select_spaces!("ORDER BY p.key"), values![]).await?.iter().map(space_from).collect()
}

fn space_from(row: &Row) -> Result<SpaceRow, CatalogError> {
    let dim: i64 = row.get("dim")?;
    let dim = usize::try_from(dim).map_err(|_| CatalogError::Damaged(format!("a space of {dim} values")))?;
    Ok(SpaceRow {
        key: row.space("key")?,
        space: NewSpace { id: row.get("id")?, name: row.get("name")?, model: row.get("model")?, dim },
        vectors: row.get("vectors")?,
        added: row.get("added")?,
    })
}

pub(super) async fn raw(
    database: &Database,
    span: SpanKey,
    space: u32,
) -> Result<Option<Vec<f32>>, CatalogError> {
    let sql = "SELECT unit, norm FROM embeddings WHERE space = $1 AND span = $2";
    let Some(row) = database.row(sql, values![space, span]).await? else { return Ok(None) };
    let norm = row.get::<f64>("norm")? as f32;
    let unit = unit(&row.get::<Vec<u8>>("unit")?, span)?;
    Ok(Some(unit.values().iter().map(|value| value * norm).collect()))
}

pub(super) async fn keys(database: &Database, space: u32, level: Level) -> Result<KeySet, CatalogError> {
    let sql = "SELECT e.span FROM embeddings e JOIN spans s ON s.key = e.span \
               WHERE e.space = $1 AND s.level = $2";
    database.keys(sql, values![space, level_name(level)]).await
}

macro_rules! of_spans {
    ($condition:literal) => {
        concat!(
            "SELECT e.span, s.level, v.number, e.unit FROM embeddings e JOIN spans s ON s.key = e.span \
             JOIN videos v ON v.id = s.video WHERE e.space = $1 AND e.span ",
            $condition,
            " ORDER BY e.span"
        )
    };
}

pub(super) async fn of_spans(
    database: &Database,
    space: u32,
    spans: &[SpanKey],
) -> Result<Vec<StoredVector>, CatalogError> {
    let sqlite = of_spans!("IN (SELECT value FROM json_each($2))");
    let sql = Sql::Each { sqlite, postgres: of_spans!("= ANY($2)") };
    let rows = database.rows(sql, vec![space.into(), rows::keys(spans)]).await?;
    rows.iter().map(|row| stored(row, &row.get::<Vec<u8>>("unit")?)).collect()
}

fn stored(row: &Row, bytes: &[u8]) -> Result<StoredVector, CatalogError> {
    let span = row.key("span")?;
    let (level, video) = (rows::level(row)?, row.video_number("number")?);
    Ok(StoredVector { span, level, video, unit: unit(bytes, span)? })
}

pub(super) async fn changes(
    database: &Database,
    after: i64,
    limit: u32,
) -> Result<Vec<Change>, CatalogError> {
    let sql = "SELECT c.seq, c.span, c.space, c.level, v.number, e.unit FROM changes c \
               LEFT JOIN embeddings e ON c.op = 'insert' AND e.space = c.space AND e.span = c.span \
               LEFT JOIN spans s ON s.key = e.span LEFT JOIN videos v ON v.id = s.video \
               WHERE c.seq > $1 ORDER BY c.seq LIMIT $2";
    let rows = database.rows(sql, values![after, limit]).await?;
    let change = |row: &Row| {
        let At { span, space, level } = at(row)?;
        let bytes: Option<Vec<u8>> = row.get("unit")?;
        let vector = bytes.map(|bytes| stored(row, &bytes)).transpose()?;
        Ok(Change { seq: row.get("seq")?, span, space, level, vector })
    };
    rows.iter().map(change).collect()
}

pub(super) async fn last_seq(database: &Database) -> Result<i64, CatalogError> {
    let row = database.row("SELECT COALESCE(max(seq), 0) AS seq FROM changes", values![]).await?;
    row.map_or(Ok(0), |row| row.get("seq"))
}

pub(super) async fn enqueue_fills(database: &Database, spaces: &[u32]) -> Result<u64, CatalogError> {
    // Moments are left out: only some spaces have them, and which is not known here. So are clips given after
    // the video's end: they hold no frame.
    let lacking = "SELECT v.id FROM videos v WHERE v.state = 'ready' \
                   AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.video = v.id AND j.state IN ('queued', 'running')) \
                   AND EXISTS (SELECT 1 FROM spans s WHERE s.video = v.id AND s.level NOT IN ('moment', 'passage') \
                   AND s.start_ms < v.duration_ms \
                   AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.space = $1 AND e.span = s.key)) ORDER BY v.id";
    let mut tx = database.begin().await?;
    let now = tx.now_ms().await?;
    let mut count = 0;
    for space in spaces {
        for row in tx.rows(lacking, values![*space]).await? {
            jobs::enqueue(&mut tx, JobKind::Fill, row.get("id")?, now).await?;
            count += 1;
        }
    }
    postgres::notify_jobs(&mut tx).await?;
    tx.commit().await?;
    Ok(count)
}

pub(super) async fn spans_without(
    database: &Database,
    video: Uuid,
    space: u32,
) -> Result<Vec<Span>, CatalogError> {
    let sql = concat!(
        "SELECT ",
        span_columns!(),
        " FROM spans s WHERE s.video = $1 AND s.level <> 'passage' AND NOT EXISTS \
         (SELECT 1 FROM embeddings e WHERE e.space = $2 AND e.span = s.key) ORDER BY s.key"
    );
    database.rows(sql, values![video, space]).await?.iter().map(rows::span).collect()
}

/// Where a video's vectors are.
pub(super) async fn of_video(tx: &mut Tx, video: Uuid) -> Result<Vec<At>, CatalogError> {
    let sql = "SELECT e.span, e.space, s.level FROM embeddings e JOIN spans s ON s.key = e.span \
               WHERE s.video = $1 ORDER BY e.space, e.span";
    tx.rows(sql, values![video]).await?.iter().map(at).collect()
}

/// Where a span's vectors are.
pub(super) async fn of_span(tx: &mut Tx, span: SpanKey) -> Result<Vec<At>, CatalogError> {
    let sql = "SELECT e.span, e.space, s.level FROM embeddings e JOIN spans s ON s.key = e.span \
               WHERE s.key = $1 ORDER BY e.space";
    tx.rows(sql, values![span]).await?.iter().map(at).collect()
}

/// Inserts vectors; answers (space, span) of those that were not there.
pub(super) async fn insert(tx: &mut Tx, vectors: &[NewVector]) -> Result<Vec<(u32, SpanKey)>, CatalogError> {
    check_dimensions(tx, vectors).await?;
    let row = |vector: &NewVector| -> Vec<Value> {
        values![vector.space, vector.span, unit_bytes(&vector.unit), f64::from(vector.norm)]
    };
    let head = "INSERT INTO embeddings (space, span, unit, norm)";
    let tail = "ON CONFLICT (space, span) DO NOTHING RETURNING space, span";
    let rows = tx.insert(head, vectors.iter().map(row).collect(), tail).await?;
    rows.iter().map(|row| Ok((row.space("space")?, row.key("span")?))).collect()
}

/// A vector of the wrong length would only be noticed by the index, after the commit.
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
            return Err(CatalogError::Invalid(text));
        }
    }
    Ok(())
}

fn values_of(unit: &UnitVector) -> i64 {
    i64::try_from(unit.values().len()).unwrap_or(i64::MAX)
}

/// Appends to the log: always the last thing a transaction does, because on Postgres it holds a lock that
/// everyone who changes vectors waits for.
pub(super) async fn append_changes(tx: &mut Tx, changes: Vec<(Op, At)>) -> Result<(), CatalogError> {
    if changes.is_empty() {
        return Ok(());
    }
    if let Tx::Postgres(_) = tx {
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
    postgres::notify_changes(tx).await
}
