//! Finds vectors that do not fit their spans, deletes them, and marks videos whose file is lost.

use uuid::Uuid;

use super::archive::Snapshot;
use super::database::values;
use super::error::CatalogError;
use super::store::Catalog;
use super::tables::stored::level;
use super::tables::vectors::{self, At, Op, unit};
use super::tables::{jobs, videos};
use crate::terms::{Level, SpanKey};

/// Spans of one video without a vector in a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LackingVectors {
    /// The video.
    pub video: Uuid,
    /// Key of the space; `None` if the video has no vector in any space.
    pub space: Option<u32>,
    /// Number of spans.
    pub spans: i64,
}

/// A vector that no search can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadVector {
    /// Key of its space.
    pub space: u32,
    /// Key of its span.
    pub span: SpanKey,
    /// The span's video; `None` if there is no such span.
    pub video: Option<Uuid>,
    /// What is wrong with it.
    pub why: String,
}

/// Ready videos without an unfinished job: an unfinished one may be about to add vectors.
macro_rules! settled {
    () => {
        "v.state = 'ready' AND v.deleted_at_ms IS NULL AND NOT EXISTS \
         (SELECT 1 FROM jobs j WHERE j.video = v.id AND j.state IN ('queued', 'running'))"
    };
}

/// Levels that get their vectors together: the video with its clips, its moments, its passages.
macro_rules! together {
    ($span:literal) => {
        concat!("CASE ", $span, ".level WHEN 'clip' THEN 'video' ELSE ", $span, ".level END")
    };
}

/// A space that holds some vectors of a video holds those of all its spans of these levels.
const LACKING: &str = concat!(
    "WITH held AS (SELECT DISTINCT s.video, e.space, ",
    together!("s"),
    " AS together FROM embeddings e JOIN spans s ON s.key = e.span) \
     SELECT h.video, h.space, count(*) AS spans FROM held h JOIN videos v ON v.id = h.video \
     JOIN spans s ON s.video = h.video AND ",
    together!("s"),
    " = h.together LEFT JOIN embeddings e ON e.space = h.space AND e.span = s.key \
     WHERE e.span IS NULL AND s.start_ms < v.duration_ms AND ",
    settled!(),
    " GROUP BY h.video, h.space ORDER BY h.video, h.space"
);

const WITHOUT_ANY: &str = concat!(
    "SELECT v.id, (SELECT count(*) FROM spans s WHERE s.video = v.id) AS spans FROM videos v WHERE ",
    settled!(),
    " AND EXISTS (SELECT 1 FROM spans s WHERE s.video = v.id AND s.level = 'clip') AND NOT EXISTS \
     (SELECT 1 FROM spans s JOIN embeddings e ON e.span = s.key WHERE s.video = v.id) ORDER BY v.id"
);

const VECTORS: &str = "SELECT e.space, e.span, e.unit, p.dim, s.key, s.video FROM embeddings e \
                       JOIN spaces p ON p.key = e.space LEFT JOIN spans s ON s.key = e.span ORDER BY e.space, e.span";

impl Snapshot {
    /// Spans that lack a vector which other spans of their video have.
    ///
    /// A space that holds no vector of a video is taken for one that no server loads any more.
    pub async fn lacking_vectors(&mut self) -> Result<Vec<LackingVectors>, CatalogError> {
        let mut found = Vec::new();
        for row in self.tx.rows(LACKING, values![]).await? {
            let (video, space) = (row.get("video")?, Some(row.space("space")?));
            found.push(LackingVectors { video, space, spans: row.get("spans")? });
        }
        for row in self.tx.rows(WITHOUT_ANY, values![]).await? {
            found.push(LackingVectors { video: row.get("id")?, space: None, spans: row.get("spans")? });
        }
        Ok(found)
    }

    /// Reads all vectors, one at a time, and returns those without a span, of a wrong dimension, or not of norm 1.
    pub async fn bad_vectors(&mut self) -> Result<Vec<BadVector>, CatalogError> {
        let mut bad = Vec::new();
        self.tx
            .each(VECTORS, values![], |row| {
                let (space, span, dim) = (row.space("space")?, row.key("span")?, row.get::<i64>("dim")?);
                let bytes: Vec<u8> = row.get("unit")?;
                let why = if row.get::<Option<i64>>("key")?.is_none() {
                    Some("it has no span".to_owned())
                } else {
                    fault_of(&bytes, dim, span)
                };
                bad.extend(why.map(|why| BadVector {
                    space,
                    span,
                    video: row.get("video").ok().flatten(),
                    why,
                }));
                Ok::<(), CatalogError>(())
            })
            .await?;
        Ok(bad)
    }
}

/// What is wrong with the bytes of a vector of `dim` values.
fn fault_of(bytes: &[u8], dim: i64, span: SpanKey) -> Option<String> {
    let values = i64::try_from(bytes.len() / 4).unwrap_or(i64::MAX);
    if values != dim || !bytes.len().is_multiple_of(4) {
        return Some(format!("it has {} bytes, and its space {dim} values", bytes.len()));
    }
    let is_finite = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]).is_finite();
    if !bytes.chunks_exact(4).all(is_finite) {
        return Some("it holds a value that is not finite".to_owned());
    }
    unit(bytes, span).err().map(|_| "it is not of norm 1".to_owned())
}

impl Catalog {
    /// Deletes vectors, and tells the engines.
    pub async fn delete_vectors(&self, bad: &[BadVector]) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let mut gone = Vec::new();
        for &BadVector { space, span, .. } in bad {
            let row = tx.row("SELECT level FROM spans WHERE key = $1", values![span]).await?;
            let of_span = row.as_ref().map(level).transpose()?;
            // Without its span nobody knows the level where an engine keeps it.
            let levels = of_span.map_or_else(|| Level::ALL.to_vec(), |level| vec![level]);
            let sql = "DELETE FROM embeddings WHERE space = $1 AND span = $2";
            if tx.execute(sql, values![space, span]).await? > 0 {
                gone.extend(levels.into_iter().map(|level| (Op::Delete, At { span, space, level })));
            }
        }
        vectors::append_changes(&mut tx, gone).await?;
        tx.commit().await
    }

    /// Adds a failed job with a reason to a video, unless its newest job has failed for this reason. The video stays
    /// searchable; once its file is back, the job can be retried. False if there is no such video.
    pub async fn mark_file_lost(&self, video: Uuid, reason: &str) -> Result<bool, CatalogError> {
        let mut tx = self.database.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(false);
        }
        let sql = "SELECT state, reason FROM jobs WHERE video = $1 ORDER BY id DESC LIMIT 1";
        if let Some(row) = tx.row(sql, values![video]).await? {
            let (state, known): (String, Option<String>) = (row.get("state")?, row.get("reason")?);
            if state == "failed" && known.as_deref() == Some(reason) {
                return Ok(true);
            }
        }
        let job = jobs::enqueue(&mut tx, jobs::NewJob::fill(video)).await?;
        let sql = "UPDATE jobs SET state = 'failed', reason = $2 WHERE id = $1";
        tx.execute(sql, values![job.id, reason]).await?;
        tx.commit().await?;
        Ok(true)
    }
}
