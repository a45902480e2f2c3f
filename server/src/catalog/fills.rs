//! Fills: jobs that add missing vectors, and spaces whose fill is paused.

use uuid::Uuid;

use super::database::values;
use super::error::CatalogError;
use super::store::Catalog;
use super::tables::spans::{self, span_columns};
use super::tables::{jobs, videos};
use super::types::{Span, Video};
use super::wake::News;
use crate::terms::SpanKey;

impl Catalog {
    /// Enqueues a `fill` job for each ready video without an unfinished job that lacks a vector of a span (except
    /// passages) in one of `spaces`. Returns the number of jobs.
    pub async fn enqueue_fills(&self, spaces: &[u32]) -> Result<u64, CatalogError> {
        // Moments are excluded: the catalog does not know which spaces have them. Clips given after the video's end are
        // excluded too: they have no frame.
        let lacking = "SELECT v.id FROM videos v WHERE v.state = 'ready' AND v.deleted_at_ms IS NULL \
                       AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.video = v.id AND j.state IN ('queued', 'running')) \
                       AND EXISTS (SELECT 1 FROM spans s WHERE s.video = v.id AND s.level NOT IN ('moment', 'passage') \
                       AND s.start_ms < v.duration_ms \
                       AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.space = $1 AND e.span = s.key)) ORDER BY v.id";
        let mut tx = self.database.begin().await?;
        let mut count = 0;
        for space in spaces {
            for row in tx.rows(lacking, values![*space]).await? {
                jobs::enqueue(&mut tx, jobs::NewJob::fill(row.get("id")?)).await?;
                count += 1;
            }
        }
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(count)
    }

    /// Whether a clip of a ready video lacks a vector in a space.
    pub async fn lacks_clips(&self, space: u32) -> Result<bool, CatalogError> {
        let sql = "SELECT 1 AS one FROM spans s JOIN videos v ON v.id = s.video WHERE s.level = 'clip' \
                   AND v.state = 'ready' AND v.deleted_at_ms IS NULL AND s.start_ms < v.duration_ms \
                   AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.space = $1 AND e.span = s.key) LIMIT 1";
        Ok(self.database.row(sql, values![space]).await?.is_some())
    }

    /// Enqueues a `fill` job for a video, unless one is queued or the video does not exist. Returns whether it did.
    pub async fn enqueue_fill(&self, video: Uuid) -> Result<bool, CatalogError> {
        let mut tx = self.database.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(false);
        }
        // A queued job will find new passages; a running one may have read the missing ones already.
        let sql = "SELECT 1 AS one FROM jobs WHERE video = $1 AND kind = 'fill' AND state = 'queued'";
        if tx.row(sql, values![video]).await?.is_some() {
            return Ok(false);
        }
        jobs::enqueue(&mut tx, jobs::NewJob::fill(video)).await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Pauses the fill of a space, also after restarts. Running fills return to the queue: the process that runs one
    /// notices it at its next heartbeat, and the next attempt leaves the space out.
    pub async fn pause_fill(&self, space: u32) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "INSERT INTO paused_fills (space) VALUES ($1) ON CONFLICT (space) DO NOTHING";
        tx.execute(sql, values![space]).await?;
        let sql = "UPDATE jobs SET state = 'queued', attempts = attempts - 1, lease_token = NULL, \
                   lease_until_ms = NULL, updated_at_ms = $1 WHERE kind = 'fill' AND state = 'running'";
        tx.execute(sql, values![now]).await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await
    }

    /// Ends the pause of a space's fill. The caller enqueues the fills.
    pub async fn resume_fill(&self, space: u32) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        tx.execute("DELETE FROM paused_fills WHERE space = $1", values![space]).await?;
        tx.commit().await
    }

    /// Keys of the spaces whose fill is paused.
    pub async fn paused_fills(&self) -> Result<Vec<u32>, CatalogError> {
        let rows = self.database.rows("SELECT space FROM paused_fills ORDER BY space", values![]).await?;
        rows.iter().map(|row| row.space("space")).collect()
    }

    /// The first clip of a ready video with a key of at least `from`, given clips included, and its video.
    pub async fn clip_from(&self, from: SpanKey) -> Result<Option<(Span, Video)>, CatalogError> {
        let sql = concat!(
            "SELECT ",
            span_columns!(),
            " FROM spans s JOIN videos v ON v.id = s.video WHERE s.key >= $1 AND s.level = 'clip' \
             AND v.state = 'ready' AND v.deleted_at_ms IS NULL AND s.start_ms < v.duration_ms ORDER BY s.key LIMIT 1"
        );
        let mut tx = self.database.begin().await?;
        let Some(row) = tx.row(sql, values![from]).await? else { return Ok(None) };
        let clip = spans::from_row(&row)?;
        Ok(videos::read(&mut tx, clip.video).await?.map(|video| (clip, video)))
    }
}
