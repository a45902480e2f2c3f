//! The [`Catalog`] on either database: each method is one function of this folder, and a wake-up for those
//! who wait for what it did.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::database::{Database, values};
use super::types::*;
use super::wake::Wake;
use super::{
    Catalog, CatalogError, Filter, activations, cues, jobs, passages, results, said, spans, vectors, videos,
};
use crate::terms::{KeySet, Level, SpanKey};

/// How often a waiter looks by itself: other processes' news has no other way on SQLite, and a lease that
/// runs out tells nobody.
const POLL: Duration = Duration::from_secs(1);

/// The catalog in a SQL database.
pub(super) struct SqlCatalog {
    database: Database,
    wake: Arc<Wake>,
    listener: Option<JoinHandle<()>>,
}

impl SqlCatalog {
    /// On an open, migrated database. `listener` hears other processes' news and is ended with the catalog.
    pub(super) fn new(database: Database, wake: Arc<Wake>, listener: Option<JoinHandle<()>>) -> SqlCatalog {
        SqlCatalog { database, wake, listener }
    }

    fn wake_for_jobs<T>(&self, done: Result<T, CatalogError>) -> Result<T, CatalogError> {
        if done.is_ok() {
            self.wake.jobs();
        }
        done
    }

    fn wake_for_changes<T>(&self, done: Result<T, CatalogError>) -> Result<T, CatalogError> {
        if done.is_ok() {
            self.wake.changes();
        }
        done
    }
}

impl Drop for SqlCatalog {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}

#[async_trait]
impl Catalog for SqlCatalog {
    async fn add_video(
        &self,
        video: NewVideo,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Added, CatalogError> {
        self.wake_for_jobs(videos::add(&self.database, video, idempotency).await)
    }

    async fn idempotent(&self, key: &str) -> Result<Option<IdempotencyRecord>, CatalogError> {
        videos::idempotent(&self.database, key).await
    }

    async fn video(&self, id: Uuid) -> Result<Option<Video>, CatalogError> {
        videos::get(&self.database, id).await
    }

    async fn video_by_hash(&self, content_hash: &str) -> Result<Option<Video>, CatalogError> {
        videos::by_hash(&self.database, content_hash).await
    }

    async fn videos(&self, after: Option<Uuid>, limit: u32) -> Result<Vec<Video>, CatalogError> {
        videos::list(&self.database, after, limit).await
    }

    async fn update_video(&self, id: Uuid, patch: VideoPatch) -> Result<Option<Video>, CatalogError> {
        videos::update(&self.database, id, patch).await
    }

    async fn resegment(&self, id: Uuid, segmentation: &Segmentation) -> Result<Option<Job>, CatalogError> {
        self.wake_for_jobs(jobs::resegment(&self.database, id, segmentation).await)
    }
    async fn delete_video(&self, id: Uuid) -> Result<Option<Video>, CatalogError> {
        self.wake_for_changes(videos::delete(&self.database, id).await)
    }

    async fn clips(
        &self,
        video: Uuid,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Span>, CatalogError> {
        spans::clips(&self.database, video, after, limit).await
    }

    async fn span(&self, id: Uuid) -> Result<Option<Span>, CatalogError> {
        spans::get(&self.database, id).await
    }

    async fn span_at(
        &self,
        video: Uuid,
        start_ms: i64,
        end_ms: i64,
        space: u32,
    ) -> Result<Option<Span>, CatalogError> {
        spans::at(&self.database, video, start_ms, end_ms, space).await
    }

    async fn add_given_clip(
        &self,
        video: Uuid,
        clip: GivenClip,
    ) -> Result<Option<(Span, Job)>, CatalogError> {
        self.wake_for_jobs(spans::add_given(&self.database, video, clip).await)
    }

    async fn update_clip(&self, id: Uuid, metadata: serde_json::Value) -> Result<Option<Span>, CatalogError> {
        spans::update_given(&self.database, id, metadata).await
    }

    async fn delete_clip(&self, id: Uuid) -> Result<Option<Span>, CatalogError> {
        self.wake_for_changes(spans::delete_given(&self.database, id).await)
    }

    async fn spans_beside(&self, keys: &[SpanKey], moments: bool) -> Result<Vec<Span>, CatalogError> {
        spans::beside(&self.database, keys, moments).await
    }
    async fn spans_by_key(&self, keys: &[SpanKey]) -> Result<Vec<SpanWithVideo>, CatalogError> {
        spans::by_key(&self.database, keys).await
    }

    async fn keys_matching(&self, filter: &Filter) -> Result<KeySet, CatalogError> {
        spans::keys_matching(&self.database, filter).await
    }

    async fn replace_cues(&self, video: Uuid, subtitles: &Subtitles) -> Result<bool, CatalogError> {
        self.wake_for_changes(cues::replace(&self.database, video, subtitles).await)
    }

    async fn keep_embedded(&self, video: Uuid, subtitles: &[Subtitles]) -> Result<bool, CatalogError> {
        self.wake_for_changes(cues::keep_embedded(&self.database, video, subtitles).await)
    }

    async fn delete_track(&self, video: Uuid, kind: CueKind, language: &str) -> Result<bool, CatalogError> {
        self.wake_for_changes(cues::delete(&self.database, video, kind, language).await)
    }

    async fn tracks(&self, video: Uuid) -> Result<Vec<TrackRow>, CatalogError> {
        cues::tracks(&self.database, video).await
    }

    async fn track_lines(
        &self,
        video: Uuid,
        kind: CueKind,
        language: &str,
    ) -> Result<Vec<Line>, CatalogError> {
        cues::lines(&self.database, video, kind, language).await
    }

    async fn cue_hits(
        &self,
        query: &CueQuery,
        level: Level,
        only: Option<&KeySet>,
        limit: usize,
    ) -> Result<Vec<CueHit>, CatalogError> {
        said::hits(&self.database, query, level, only, limit).await
    }

    async fn cues(
        &self,
        video: Uuid,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Cue>, CatalogError> {
        cues::list(&self.database, video, after, limit).await
    }

    async fn passages_within(&self, only: &KeySet) -> Result<KeySet, CatalogError> {
        passages::within(&self.database, only).await
    }

    async fn passage_hits(
        &self,
        passages: &[SpanKey],
        level: Level,
        only: Option<&KeySet>,
    ) -> Result<Vec<PassageHit>, CatalogError> {
        passages::hits(&self.database, passages, level, only).await
    }

    async fn passages_without_vector(
        &self,
        video: Uuid,
        space: u32,
    ) -> Result<Vec<PassageText>, CatalogError> {
        passages::without_vector(&self.database, video, space).await
    }

    async fn enqueue_fill(&self, video: Uuid) -> Result<bool, CatalogError> {
        self.wake_for_jobs(passages::enqueue_fill(&self.database, video).await)
    }

    async fn videos_lacking_passages(&self, space: u32) -> Result<Vec<Uuid>, CatalogError> {
        passages::lacking(&self.database, space).await
    }

    async fn register_space(&self, space: &NewSpace) -> Result<SpaceRow, CatalogError> {
        vectors::register(&self.database, space).await
    }

    async fn spaces(&self) -> Result<Vec<SpaceRow>, CatalogError> {
        vectors::spaces(&self.database).await
    }

    async fn keep_space(&self, space: u32) -> Result<(), CatalogError> {
        activations::keep(&self.database, space).await
    }

    async fn activate(&self, activations: &[Activation]) -> Result<(), CatalogError> {
        activations::store(&self.database, activations).await
    }

    async fn activations(&self) -> Result<Vec<Activation>, CatalogError> {
        activations::list(&self.database).await
    }

    async fn forget_added(&self) -> Result<(), CatalogError> {
        activations::forget(&self.database).await
    }

    async fn raw_vector(&self, span: SpanKey, space: u32) -> Result<Option<Vec<f32>>, CatalogError> {
        vectors::raw(&self.database, span, space).await
    }

    async fn vector_keys(&self, space: u32, level: Level) -> Result<KeySet, CatalogError> {
        vectors::keys(&self.database, space, level).await
    }

    async fn vectors_of(&self, space: u32, spans: &[SpanKey]) -> Result<Vec<StoredVector>, CatalogError> {
        vectors::of_spans(&self.database, space, spans).await
    }

    async fn changes(&self, after: i64, limit: u32) -> Result<Vec<Change>, CatalogError> {
        vectors::changes(&self.database, after, limit).await
    }

    async fn last_seq(&self) -> Result<i64, CatalogError> {
        vectors::last_seq(&self.database).await
    }

    async fn enqueue_fills(&self, spaces: &[u32]) -> Result<u64, CatalogError> {
        self.wake_for_jobs(vectors::enqueue_fills(&self.database, spaces).await)
    }

    async fn spans_without_vector(&self, video: Uuid, space: u32) -> Result<Vec<Span>, CatalogError> {
        vectors::spans_without(&self.database, video, space).await
    }

    async fn lease_job(&self, worker: Uuid, lease: Duration) -> Result<Option<Leased>, CatalogError> {
        jobs::lease(&self.database, worker, lease).await
    }

    async fn heartbeat(
        &self,
        lease: &Lease,
        extend: Duration,
        progress: &Progress,
    ) -> Result<Beat, CatalogError> {
        jobs::heartbeat(&self.database, lease, extend, progress).await
    }

    async fn release_job(&self, lease: &Lease) -> Result<(), CatalogError> {
        self.wake_for_jobs(jobs::release(&self.database, lease).await)
    }

    async fn fail_job(&self, lease: &Lease, reason: &str, retry: bool) -> Result<(), CatalogError> {
        self.wake_for_jobs(jobs::fail(&self.database, lease, reason, retry).await)
    }

    async fn finish_ingest(&self, lease: &Lease, ingested: Ingested) -> Result<(), CatalogError> {
        let done = results::finish_ingest(&self.database, lease, ingested).await;
        self.wake_for_changes(self.wake_for_jobs(done))
    }

    async fn finish_fill(
        &self,
        lease: &Lease,
        vectors: Vec<NewVector>,
        moments: Vec<IngestedSpan>,
    ) -> Result<(), CatalogError> {
        self.wake_for_changes(results::finish_fill(&self.database, lease, vectors, moments).await)
    }

    async fn job(&self, id: Uuid) -> Result<Option<Job>, CatalogError> {
        jobs::get(&self.database, id).await
    }

    async fn jobs(
        &self,
        only: &JobFilter,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Job>, CatalogError> {
        jobs::list(&self.database, only, before, limit).await
    }

    async fn cancel_job(&self, id: Uuid) -> Result<Option<Job>, CatalogError> {
        jobs::cancel(&self.database, id).await
    }

    async fn retry_job(&self, id: Uuid) -> Result<Option<Job>, CatalogError> {
        self.wake_for_jobs(jobs::retry(&self.database, id).await)
    }

    async fn wait_for_job(&self, at_most: Duration) {
        let end = Instant::now() + at_most;
        loop {
            // Registered before looking: what comes between the two is not missed.
            let mut woken = pin!(self.wake.next_job());
            woken.as_mut().enable();
            // A failing database is the next lease's to report; here it is a reason to go on waiting.
            let is_there = jobs::is_one_waiting(&self.database).await.unwrap_or(false);
            if is_there || Instant::now() >= end {
                return;
            }
            let _ = timeout_at(end.min(Instant::now() + POLL), woken).await;
        }
    }

    async fn wait_for_change(&self, after: i64, at_most: Duration) {
        let end = Instant::now() + at_most;
        loop {
            let mut woken = pin!(self.wake.next_change());
            woken.as_mut().enable();
            let is_there = vectors::last_seq(&self.database).await.is_ok_and(|seq| seq > after);
            if is_there || Instant::now() >= end {
                return;
            }
            let _ = timeout_at(end.min(Instant::now() + POLL), woken).await;
        }
    }

    async fn counts(&self) -> Result<Counts, CatalogError> {
        let sql = "SELECT (SELECT count(*) FROM videos) AS videos, \
                   (SELECT count(*) FROM videos WHERE state = 'ready') AS videos_ready, \
                   (SELECT count(*) FROM spans WHERE level = 'clip') AS clips, \
                   (SELECT count(*) FROM spans WHERE level = 'passage') AS passages, \
                   (SELECT count(*) FROM embeddings) AS vectors, \
                   (SELECT count(*) FROM jobs WHERE state = 'queued') AS jobs_queued, \
                   (SELECT count(*) FROM jobs WHERE state = 'running') AS jobs_running, \
                   (SELECT count(*) FROM jobs WHERE state = 'failed') AS jobs_failed, \
                   (SELECT CAST(COALESCE(sum(bytes), 0) AS bigint) FROM videos) AS media_bytes";
        let Some(row) = self.database.row(sql, values![]).await? else { return Ok(Counts::default()) };
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
        })
    }

    async fn ping(&self) -> Result<(), CatalogError> {
        self.database.row("SELECT 1 AS one", values![]).await.map(|_| ())
    }

    fn kind(&self) -> &'static str {
        match self.database {
            Database::Sqlite { .. } => "sqlite",
            Database::Postgres(_) => "postgres",
        }
    }

    async fn close(&self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
        self.database.close().await;
    }
}
