//! Counts of what a caller sees.

use super::database::{Row, values};
use super::error::CatalogError;
use super::tables::stored;
use super::types::Counts;
use super::view::View;
use crate::terms::{Collection, Level};

/// Counts of the whole library. Counting what was deleted is quicker than joining everything else with its video.
const OF_ALL: &str = "WITH deleted AS (SELECT id FROM videos WHERE deleted_at_ms IS NOT NULL), \
    living_jobs AS (SELECT state FROM jobs WHERE video IS NULL OR video NOT IN (SELECT id FROM deleted)) \
    SELECT (SELECT count(*) FROM visible_videos v) AS videos, \
    (SELECT count(*) FROM visible_videos v WHERE v.state = 'ready') AS videos_ready, \
    (SELECT count(*) FROM spans WHERE level = 'clip' AND video NOT IN (SELECT id FROM deleted)) AS clips, \
    (SELECT count(*) FROM spans WHERE level = 'passage' AND video NOT IN (SELECT id FROM deleted)) AS passages, \
    (SELECT count(*) FROM embeddings) - (SELECT count(*) FROM deleted d \
    JOIN spans s ON s.video = d.id JOIN embeddings e ON e.span = s.key) AS vectors, \
    (SELECT count(*) FROM living_jobs WHERE state = 'queued') AS jobs_queued, \
    (SELECT count(*) FROM living_jobs WHERE state = 'running') AS jobs_running, \
    (SELECT count(*) FROM living_jobs WHERE state = 'failed') AS jobs_failed, \
    (SELECT CAST(COALESCE(sum(v.bytes), 0) AS bigint) FROM visible_videos v) AS media_bytes, \
    (SELECT count(*) FROM trashed_videos t) AS videos_trashed, \
    (SELECT CAST(COALESCE(sum(t.bytes), 0) AS bigint) FROM trashed_videos t) AS trashed_bytes";

/// Counts of the videos that a caller with a filter sees. $1: its key.
const OF_SOME: &str = "WITH mine AS (SELECT v.id, v.state, v.bytes FROM visible_videos v), \
    spans_of_mine AS (SELECT s.key, s.level FROM spans s JOIN mine m ON m.id = s.video), \
    jobs_of_mine AS (SELECT j.state FROM jobs j JOIN mine m ON m.id = j.video \
    UNION ALL SELECT j.state FROM jobs j JOIN refusals r ON r.id = j.id WHERE r.added_by = $1 \
    UNION ALL SELECT j.state FROM jobs j JOIN evaluations u ON u.id = j.id WHERE u.owner = $1) \
    SELECT (SELECT count(*) FROM mine) AS videos, \
    (SELECT count(*) FROM mine WHERE state = 'ready') AS videos_ready, \
    (SELECT count(*) FROM spans_of_mine WHERE level = 'clip') AS clips, \
    (SELECT count(*) FROM spans_of_mine WHERE level = 'passage') AS passages, \
    (SELECT count(*) FROM embeddings e JOIN spans_of_mine s ON s.key = e.span) AS vectors, \
    (SELECT count(*) FROM jobs_of_mine WHERE state = 'queued') AS jobs_queued, \
    (SELECT count(*) FROM jobs_of_mine WHERE state = 'running') AS jobs_running, \
    (SELECT count(*) FROM jobs_of_mine WHERE state = 'failed') AS jobs_failed, \
    (SELECT CAST(COALESCE(sum(bytes), 0) AS bigint) FROM mine) AS media_bytes, \
    (SELECT count(*) FROM trashed_videos t) AS videos_trashed, \
    (SELECT CAST(COALESCE(sum(t.bytes), 0) AS bigint) FROM trashed_videos t) AS trashed_bytes";

/// Number of vectors that a caller sees in one space at one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorCount {
    /// Key of the space.
    pub space: u32,
    /// Level of the spans.
    pub level: Level,
    /// Number of vectors.
    pub vectors: u64,
}

impl VectorCount {
    /// The collection of these vectors.
    pub fn collection(&self) -> Collection {
        Collection { space: self.space, level: self.level }
    }
}

impl View<'_> {
    /// Counts for `/v1/stats`.
    pub async fn counts(&self) -> Result<Counts, CatalogError> {
        let (sql, values) =
            if self.visibility().is_limited() { (OF_SOME, values![self.key()]) } else { (OF_ALL, values![]) };
        let Some(row) = self.row(sql, values).await? else { return Ok(Counts::default()) };
        Ok(Counts {
            videos: row.get("videos")?,
            videos_ready: row.get("videos_ready")?,
            clips: row.get("clips")?,
            passages: row.get("passages")?,
            vectors: row.get("vectors")?,
            jobs_queued: row.get("jobs_queued")?,
            jobs_running: row.get("jobs_running")?,
            jobs_failed: row.get("jobs_failed")?,
            media_bytes: row.get("media_bytes")?,
            videos_trashed: row.get("videos_trashed")?,
            trashed_bytes: row.get("trashed_bytes")?,
        })
    }

    /// Numbers of visible vectors, by space and level. It reads the row of each vector, so it is for callers with a filter;
    /// the engine knows the numbers of all vectors.
    pub async fn vector_counts(&self) -> Result<Vec<VectorCount>, CatalogError> {
        let sql = "SELECT e.space, s.level, count(*) AS vectors FROM embeddings e JOIN spans s ON s.key = e.span \
                   JOIN visible_videos v ON v.id = s.video GROUP BY e.space, s.level";
        let rows = self.rows(sql, values![]).await?;
        let count = |row: &Row| {
            let vectors: i64 = row.get("vectors")?;
            let vectors = u64::try_from(vectors).unwrap_or_default();
            Ok(VectorCount { space: row.space("space")?, level: stored::level(row)?, vectors })
        };
        rows.iter().map(count).collect()
    }
}
