//! Spaces, vectors, and the change log that indexes follow.

use uuid::Uuid;

use super::database::{Row, Sql, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::tables::spans::{self, span_columns};
use super::tables::stored::{self, level_name};
use super::tables::vectors::{At, at, unit};
use super::types::*;
use super::view::View;
use crate::terms::{KeySet, Level, SpanKey};

macro_rules! select_spaces {
    ($tail:literal) => {
        concat!(
            "SELECT p.key, p.id, p.name, p.model, p.dim, p.added, \
             (SELECT count(*) FROM embeddings e WHERE e.space = p.key) \
             - (SELECT count(*) FROM videos d JOIN spans s ON s.video = d.id JOIN embeddings e ON e.span = s.key \
             WHERE d.deleted_at_ms IS NOT NULL AND e.space = p.key) AS vectors FROM spaces p ",
            $tail
        )
    };
}

macro_rules! of_spans {
    ($condition:literal) => {
        concat!(
            "SELECT e.span, s.level, v.number, e.unit FROM embeddings e JOIN spans s ON s.key = e.span \
             JOIN videos v ON v.id = s.video WHERE v.deleted_at_ms IS NULL AND e.space = $1 AND e.span ",
            $condition,
            " ORDER BY e.span"
        )
    };
}

impl Catalog {
    /// Registers a space, or returns the one with its id.
    pub async fn register_space(&self, space: &NewSpace) -> Result<SpaceRow, CatalogError> {
        let dim = i64::try_from(space.dim).unwrap_or(i64::MAX);
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "UPDATE spaces SET name = $2, model = $3 WHERE id = $1";
        let values = values![space.id.as_str(), space.name.as_str(), space.model.as_str()];
        if tx.execute(sql, values.clone()).await? == 0 {
            // Another process may register it at the same moment.
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
            None => {
                Err(CatalogError::Damaged(format!("space {} was stored and is not there", space.id).into()))
            }
        }
    }

    /// All registered spaces.
    pub async fn spaces(&self) -> Result<Vec<SpaceRow>, CatalogError> {
        self.database
            .rows(select_spaces!("ORDER BY p.key"), values![])
            .await?
            .iter()
            .map(space_from)
            .collect()
    }

    /// Keys of the spans of `level` that have a vector in a space.
    pub async fn vector_keys(&self, space: u32, level: Level) -> Result<KeySet, CatalogError> {
        let sql = "SELECT e.span FROM embeddings e JOIN spans s ON s.key = e.span \
                   WHERE e.space = $1 AND s.level = $2 \
                   AND s.video NOT IN (SELECT id FROM videos WHERE deleted_at_ms IS NOT NULL)";
        self.database.keys(sql, values![space, level_name(level)]).await
    }

    /// Vectors of these spans in a space, in order of span key. Spans without a vector are left out.
    pub async fn vectors_of(&self, space: u32, spans: &[SpanKey]) -> Result<Vec<StoredVector>, CatalogError> {
        let sqlite = of_spans!("IN (SELECT value FROM json_each($2))");
        let sql = Sql::Each { sqlite, postgres: of_spans!("= ANY($2)") };
        let rows = self.database.rows(sql, vec![space.into(), stored::keys(spans)]).await?;
        rows.iter().map(|row| stored_vector(row, &row.get::<Vec<u8>>("unit")?)).collect()
    }

    /// Inserts and deletes of vectors with a seq above `after`, in order. On Postgres a seq becomes visible only after
    /// all smaller ones.
    pub async fn changes(&self, after: i64, limit: u32) -> Result<Vec<Change>, CatalogError> {
        let sql = "SELECT c.seq, c.span, c.space, c.level, v.number, e.unit FROM changes c \
                   LEFT JOIN embeddings e ON c.op = 'insert' AND e.space = c.space AND e.span = c.span \
                   LEFT JOIN spans s ON s.key = e.span LEFT JOIN videos v ON v.id = s.video \
                   WHERE c.seq > $1 ORDER BY c.seq LIMIT $2";
        let rows = self.database.rows(sql, values![after, limit]).await?;
        let change = |row: &Row| {
            let At { span, space, level } = at(row)?;
            let bytes: Option<Vec<u8>> = row.get("unit")?;
            let vector = bytes.map(|bytes| stored_vector(row, &bytes)).transpose()?;
            Ok(Change { seq: row.get("seq")?, span, space, level, vector })
        };
        rows.iter().map(change).collect()
    }

    /// The highest key of a span; 0 without spans.
    pub async fn newest_key(&self) -> Result<SpanKey, CatalogError> {
        let row = self.database.row("SELECT COALESCE(max(key), 0) AS key FROM spans", values![]).await?;
        row.map_or(Ok(SpanKey::new(0)), |row| row.key("key"))
    }

    /// The newest seq; 0 without changes.
    pub async fn last_seq(&self) -> Result<i64, CatalogError> {
        let row = self.database.row("SELECT COALESCE(max(seq), 0) AS seq FROM changes", values![]).await?;
        row.map_or(Ok(0), |row| row.get("seq"))
    }

    /// Spans of a video (all levels but passages) that lack a vector in `space`.
    pub async fn spans_without_vector(&self, video: Uuid, space: u32) -> Result<Vec<Span>, CatalogError> {
        let sql = concat!(
            "SELECT ",
            span_columns!(),
            " FROM spans s WHERE s.video = $1 AND s.level <> 'passage' AND NOT EXISTS \
             (SELECT 1 FROM embeddings e WHERE e.space = $2 AND e.span = s.key) ORDER BY s.key"
        );
        self.database.rows(sql, values![video, space]).await?.iter().map(spans::from_row).collect()
    }
}

impl View<'_> {
    /// The raw vector (norm * unit) of a span in a space.
    pub async fn raw_vector(&self, span: SpanKey, space: u32) -> Result<Option<Vec<f32>>, CatalogError> {
        let sql = "SELECT e.unit, e.norm FROM embeddings e JOIN spans s ON s.key = e.span \
                   JOIN visible_videos v ON v.id = s.video WHERE e.space = $1 AND e.span = $2";
        let Some(row) = self.row(sql, values![space, span]).await? else { return Ok(None) };
        let norm = row.get::<f64>("norm")? as f32;
        let unit = unit(&row.get::<Vec<u8>>("unit")?, span)?;
        Ok(Some(unit.values().iter().map(|value| value * norm).collect()))
    }
}

const SPACE_BY_ID: &str = select_spaces!("WHERE p.id = $1");

fn space_from(row: &Row) -> Result<SpaceRow, CatalogError> {
    let dim: i64 = row.get("dim")?;
    let dim =
        usize::try_from(dim).map_err(|_| CatalogError::Damaged(format!("a space of {dim} values").into()))?;
    Ok(SpaceRow {
        key: row.space("key")?,
        space: NewSpace { id: row.get("id")?, name: row.get("name")?, model: row.get("model")?, dim },
        vectors: row.get("vectors")?,
        added: row.get("added")?,
    })
}

fn stored_vector(row: &Row, bytes: &[u8]) -> Result<StoredVector, CatalogError> {
    let span = row.key("span")?;
    let (level, video) = (stored::level(row)?, row.video_number("number")?);
    Ok(StoredVector { span, level, video, unit: unit(bytes, span)? })
}
