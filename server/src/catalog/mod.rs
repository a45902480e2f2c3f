//! What is known about videos, spans, vectors and jobs, and keeps being known after a crash.
//!
//! The only folder with SQL. Everything else talks to [`Catalog`] in the service's own words. SQLite and
//! Postgres implement it; one conformance suite runs on both.

mod activations;
mod cues;
mod database;
pub mod filter;
pub mod instant;
mod jobs;
mod migrations;
mod passages;
mod postgres;
mod results;
mod rows;
mod said;
mod spans;
mod sqlite;
mod store;
mod types;
mod vectors;
mod videos;
mod wake;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::terms::{KeySet, Level, SpanKey};

pub use filter::Filter;
pub use types::*;

/// Provenance of tracks that a video's file carries.
pub const EMBEDDED: &str = "embedded";

/// Opens the catalog at `url` (`sqlite:PATH`, `postgres://…`), creating and migrating as needed.
///
/// PATH is taken as it is: no percent signs, no parameters.
///
/// # Errors
/// [`CatalogError::Database`] if it can't be reached or migrated; [`CatalogError::Invalid`] for any other URL.
pub async fn open(url: &str) -> Result<Arc<dyn Catalog>, CatalogError> {
    let wake = Arc::new(wake::Wake::default());
    match place(url)? {
        Place::Postgres => {
            let database = postgres::open(url).await?;
            let listener = postgres::listen(url.to_owned(), Arc::clone(&wake));
            Ok(Arc::new(store::SqlCatalog::new(database, wake, Some(listener))))
        }
        Place::Sqlite(path) => {
            let database = sqlite::open(path).await?;
            Ok(Arc::new(store::SqlCatalog::new(database, wake, None)))
        }
    }
}

/// Opens the catalog at `url`, as [`open`] takes it, beside a server that may be running: nothing is created or migrated.
///
/// # Errors
/// [`CatalogError::Database`] if it isn't there or can't be reached; [`CatalogError::Invalid`] for any other URL. A schema
/// of another version shows when something is asked.
pub async fn open_to_read(url: &str) -> Result<Arc<dyn Catalog>, CatalogError> {
    let database = match place(url)? {
        Place::Postgres => postgres::connect(url).await?,
        Place::Sqlite(path) => sqlite::open_to_read(path).await?,
    };
    Ok(Arc::new(store::SqlCatalog::new(database, Arc::default(), None)))
}

/// Which database a URL is of.
enum Place<'a> {
    Postgres,
    Sqlite(&'a Path),
}

fn place(url: &str) -> Result<Place<'_>, CatalogError> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Place::Postgres);
    }
    match url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) {
        Some(path) => Ok(Place::Sqlite(Path::new(path))),
        None => {
            let text = "the database's URL must start with sqlite: or postgres://";
            Err(CatalogError::Invalid(text.to_owned()))
        }
    }
}

/// The URL of the embedded database in `data_dir`.
pub fn embedded_url(data_dir: &Path) -> String {
    format!("sqlite:{}", data_dir.join("catalog.sqlite").display())
}

/// Everything that is stored. All times are milliseconds; instants are Unix milliseconds.
///
/// Every method is atomic: it happened whole and is durable when it returns `Ok`, or did not happen.
#[async_trait]
pub trait Catalog: Send + Sync {
    // --- videos ---

    /// Adds a video and its first job in one transaction, unless its content hash is there already.
    ///
    /// With `idempotency`, the key and the resulting ids are stored in the same transaction.
    async fn add_video(
        &self,
        video: NewVideo,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Added, CatalogError>;
    /// What an earlier request with this key did, if it is younger than 24 hours.
    async fn idempotent(&self, key: &str) -> Result<Option<IdempotencyRecord>, CatalogError>;
    /// One video.
    async fn video(&self, id: Uuid) -> Result<Option<Video>, CatalogError>;
    /// The video with this content hash (64 hex digits).
    async fn video_by_hash(&self, content_hash: &str) -> Result<Option<Video>, CatalogError>;
    /// Videos in order of id (so: of creation), after `after`.
    async fn videos(&self, after: Option<Uuid>, limit: u32) -> Result<Vec<Video>, CatalogError>;
    /// Changes title, metadata or recording time; `None` if there is no such video.
    async fn update_video(&self, id: Uuid, patch: VideoPatch) -> Result<Option<Video>, CatalogError>;
    /// Enqueues a job that cuts a ready video anew; its segmentation changes when the job has succeeded. `None` if
    /// there is no such video, `Err(Conflict)` if it isn't ready or is being cut already.
    async fn resegment(&self, id: Uuid, segmentation: &Segmentation) -> Result<Option<Job>, CatalogError>;
    /// Deletes a video with its spans, vectors (appended to `changes`), jobs and keys; returns what it was.
    async fn delete_video(&self, id: Uuid) -> Result<Option<Video>, CatalogError>;

    // --- spans ---

    /// Spans of a video at level clip, in order of (start, id), after `after`.
    async fn clips(
        &self,
        video: Uuid,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Span>, CatalogError>;
    /// One span of any level.
    async fn span(&self, id: Uuid) -> Result<Option<Span>, CatalogError>;
    /// The span of `video` with exactly this range that has a vector in `space`, level clip or video.
    async fn span_at(
        &self,
        video: Uuid,
        start_ms: i64,
        end_ms: i64,
        space: u32,
    ) -> Result<Option<Span>, CatalogError>;
    /// Adds a given clip and a `fill` job for its vectors in one transaction; `None` if there is no such video.
    async fn add_given_clip(&self, video: Uuid, clip: GivenClip)
    -> Result<Option<(Span, Job)>, CatalogError>;
    /// Replaces a given clip's metadata. `Err(Conflict)` for a found clip.
    async fn update_clip(&self, id: Uuid, metadata: serde_json::Value) -> Result<Option<Span>, CatalogError>;
    /// Deletes a given clip with its vectors. `Err(Conflict)` for a found clip.
    async fn delete_clip(&self, id: Uuid) -> Result<Option<Span>, CatalogError>;
    /// Everything a hit shows, for these keys; keys that are gone are left out; any order.
    async fn spans_by_key(&self, keys: &[SpanKey]) -> Result<Vec<SpanWithVideo>, CatalogError>;
    /// The full-video span and the clips (and the moments, if asked for) of each video that one of these spans is
    /// of; any order.
    async fn spans_beside(&self, keys: &[SpanKey], moments: bool) -> Result<Vec<Span>, CatalogError>;
    /// Keys of all spans that match. `filter` was validated when it was parsed.
    async fn keys_matching(&self, filter: &Filter) -> Result<KeySet, CatalogError>;

    // --- what is said ---

    /// Stores a track in the place of the one of its kind and language; searchable at once, no vector of a clip
    /// or video is touched. False if there is no such video.
    async fn replace_cues(&self, video: Uuid, subtitles: &Subtitles) -> Result<bool, CatalogError>;
    /// Stores the tracks that a video's file carries in the place of those that it carried; their provenance is
    /// [`EMBEDDED`]. A track of the same kind and language that a user gave stays. False if there is no such video.
    async fn keep_embedded(&self, video: Uuid, subtitles: &[Subtitles]) -> Result<bool, CatalogError>;
    /// Deletes a track with its cues; false if there is none.
    async fn delete_track(&self, video: Uuid, kind: CueKind, language: &str) -> Result<bool, CatalogError>;
    /// Tracks of a video, by kind and language.
    async fn tracks(&self, video: Uuid) -> Result<Vec<TrackRow>, CatalogError>;
    /// Lines of one track in order of start, on the container's clock; none if there is no such track.
    async fn track_lines(
        &self,
        video: Uuid,
        kind: CueKind,
        language: &str,
    ) -> Result<Vec<Line>, CatalogError>;
    /// Cues of a video in order of (start, id), after `after`, on the container's clock.
    async fn cues(
        &self,
        video: Uuid,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Cue>, CatalogError>;
    /// The best spans of `level` (clip or video) for what is said in them: one hit for each span, with the best
    /// of its cues, best first: cues that hold the query's words in sequence, then by score. `only`: keys of the
    /// spans that may be answered. Only videos that are ready are looked at.
    async fn cue_hits(
        &self,
        query: &CueQuery,
        level: Level,
        only: Option<&KeySet>,
        limit: usize,
    ) -> Result<Vec<CueHit>, CatalogError>;

    /// Passages of the videos that one of these spans is of: what a search for passages may answer where only
    /// these spans may be answered.
    async fn passages_within(&self, only: &KeySet) -> Result<KeySet, CatalogError>;
    /// What passages count for at `level` (clip or video), in their order: one hit for each span, with the first of
    /// its passages. `only`: keys of the spans that may be answered. Passages that are gone are left out.
    async fn passage_hits(
        &self,
        passages: &[SpanKey],
        level: Level,
        only: Option<&KeySet>,
    ) -> Result<Vec<PassageHit>, CatalogError>;
    /// Passages of a video that lack a vector in `space`, in order of key.
    async fn passages_without_vector(
        &self,
        video: Uuid,
        space: u32,
    ) -> Result<Vec<PassageText>, CatalogError>;
    /// Enqueues a `fill` job for a video unless one is waiting already, or there is no such video; says whether.
    async fn enqueue_fill(&self, video: Uuid) -> Result<bool, CatalogError>;
    /// Ready videos with a passage that lacks a vector in `space`, and without an unfinished job.
    async fn videos_lacking_passages(&self, space: u32) -> Result<Vec<Uuid>, CatalogError>;

    // --- spaces and vectors ---

    /// Registers a space, or finds it by its id.
    async fn register_space(&self, space: &NewSpace) -> Result<SpaceRow, CatalogError>;
    /// All spaces that were ever registered.
    async fn spaces(&self) -> Result<Vec<SpaceRow>, CatalogError>;
    /// Marks a space's model as one to load at each start.
    async fn keep_space(&self, space: u32) -> Result<(), CatalogError>;
    /// Stores which space answers which kinds of query from now on; other kinds stay as they are.
    async fn activate(&self, activations: &[Activation]) -> Result<(), CatalogError>;
    /// All kinds of query that were moved to a space.
    async fn activations(&self) -> Result<Vec<Activation>, CatalogError>;
    /// Forgets which spaces to load at each start and which kinds were moved; the spaces and their vectors stay.
    async fn forget_added(&self) -> Result<(), CatalogError>;
    /// The raw vector (norm * unit) of a span in a space.
    async fn raw_vector(&self, span: SpanKey, space: u32) -> Result<Option<Vec<f32>>, CatalogError>;
    /// Keys of the spans of `level` that have a vector in a space.
    async fn vector_keys(&self, space: u32, level: Level) -> Result<KeySet, CatalogError>;
    /// Vectors of these spans in a space, in order of span key; a span without one is left out.
    async fn vectors_of(&self, space: u32, spans: &[SpanKey]) -> Result<Vec<StoredVector>, CatalogError>;
    /// Inserts and deletes of vectors with a seq over `after`, in order. On Postgres a seq is visible only
    /// when all smaller ones are.
    async fn changes(&self, after: i64, limit: u32) -> Result<Vec<Change>, CatalogError>;
    /// The newest seq; 0 if there was never a change.
    async fn last_seq(&self) -> Result<i64, CatalogError>;
    /// Enqueues a `fill` job for each ready video that lacks a vector of a span (no passage) in one of `spaces` and
    /// has no unfinished job. Returns how many.
    async fn enqueue_fills(&self, spaces: &[u32]) -> Result<u64, CatalogError>;
    /// Spans of a video (all levels but passages) that lack a vector in `space`.
    async fn spans_without_vector(&self, video: Uuid, space: u32) -> Result<Vec<Span>, CatalogError>;

    // --- jobs ---

    /// Takes the oldest job that is queued, or running with a lease that has run out; counts an attempt.
    ///
    /// A job whose attempts are used up is failed instead, with a reason, and the next one is tried.
    async fn lease_job(&self, worker: Uuid, lease: Duration) -> Result<Option<Leased>, CatalogError>;
    /// Renews the lease and stores progress.
    async fn heartbeat(
        &self,
        lease: &Lease,
        extend: Duration,
        progress: &Progress,
    ) -> Result<Beat, CatalogError>;
    /// Hands a job back: queued again, the attempt not counted.
    async fn release_job(&self, lease: &Lease) -> Result<(), CatalogError>;
    /// Ends a job as failed (and, for `ingest`, the video as failed), or queues it again if `retry`.
    async fn fail_job(&self, lease: &Lease, reason: &str, retry: bool) -> Result<(), CatalogError>;
    /// One transaction: replaces the found spans of the job's video and all its vectors by `ingested`, keeps
    /// given spans (they are matched by id), appends to `changes`, finishes the job, marks the video ready.
    ///
    /// # Errors
    /// [`CatalogError::LeaseLost`] if the lease is no longer held or the job was cancelled: nothing changed.
    async fn finish_ingest(&self, lease: &Lease, ingested: Ingested) -> Result<(), CatalogError>;
    /// One transaction: inserts vectors that are still missing and `moments` that are new, appends to `changes`,
    /// finishes the job.
    async fn finish_fill(
        &self,
        lease: &Lease,
        vectors: Vec<NewVector>,
        moments: Vec<IngestedSpan>,
    ) -> Result<(), CatalogError>;
    /// One job.
    async fn job(&self, id: Uuid) -> Result<Option<Job>, CatalogError>;
    /// Jobs in order of id, newest first, before `before`.
    async fn jobs(
        &self,
        only: &JobFilter,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Job>, CatalogError>;
    /// Queued or running becomes cancelled; `Err(Conflict)` if it has ended.
    async fn cancel_job(&self, id: Uuid) -> Result<Option<Job>, CatalogError>;
    /// Failed or cancelled becomes queued with fresh attempts; `Err(Conflict)` otherwise.
    async fn retry_job(&self, id: Uuid) -> Result<Option<Job>, CatalogError>;
    /// Waits until a job may be waiting, or `at_most` has passed (NOTIFY on Postgres; in-process on SQLite).
    async fn wait_for_job(&self, at_most: Duration);
    /// Waits until `changes` may have grown past `after`, or `at_most` has passed.
    async fn wait_for_change(&self, after: i64, at_most: Duration);

    // --- operation ---

    /// Counts for /v1/stats.
    async fn counts(&self) -> Result<Counts, CatalogError>;
    /// Answers if the database answers.
    async fn ping(&self) -> Result<(), CatalogError>;
    /// `sqlite` or `postgres`.
    fn kind(&self) -> &'static str;
    /// Finishes what runs and closes all connections.
    async fn close(&self);
}

/// Why the catalog did not do it.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The state of the thing forbids it; the caller's fault. The text says what and why.
    #[error("{0}")]
    Conflict(String),
    /// What was to be stored is not valid; the caller's fault. The text says what is wrong with it.
    #[error("{0}")]
    Invalid(String),
    /// The worker no longer holds the job; it must drop its result.
    #[error("the job's lease was lost or the job was cancelled")]
    LeaseLost,
    /// The database failed or can't be reached; the operator's concern.
    #[error("the database failed: {0}")]
    Database(String),
    /// A stored row can't be read back; ours.
    #[error("stored data is damaged: {0}")]
    Damaged(String),
}
