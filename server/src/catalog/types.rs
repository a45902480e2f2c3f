//! The rows of the catalog as the service sees them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::config::QueryKind;
pub use crate::subtitles::Line;
pub use crate::subtitles::ranking::CueQuery;
use crate::terms::{Level, SpaceInfo, SpanKey, UnitVector, VideoNumber};

/// Where a video stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VideoState {
    /// Stored, not searchable yet.
    Pending,
    /// Searchable whole.
    Ready,
    /// Its ingest failed; see its job.
    Failed,
}

/// Facts about the media, known once it was probed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MediaFacts {
    /// Length of the video stream as decoded.
    pub duration_ms: i64,
    /// Average frames per second.
    pub frame_rate: f64,
    /// Frames decoded.
    pub frames: u64,
    /// Width as shown.
    pub width: u32,
    /// Height as shown.
    pub height: u32,
    /// Codec as ffprobe names it.
    pub codec: String,
    /// Whether frames are unevenly spaced.
    pub variable_frame_rate: bool,
    /// The first presented frame's time on the container's clock.
    pub media_offset_ms: i64,
    /// Whether common browsers play the original.
    pub plays_in_browsers: bool,
    /// Whether seeking in the file yields the right pictures.
    pub seek_is_safe: bool,
    /// The complete probe, as JSON.
    pub probe: Value,
}

/// How a video was asked to be cut, as in the API: `{policy, params, clips}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segmentation {
    /// `content` or `given`.
    pub policy: String,
    /// The policy's parameters, all of them spelt out.
    pub params: Value,
}

/// A media file.
#[derive(Debug, Clone, PartialEq)]
pub struct Video {
    /// uuid v7.
    pub id: Uuid,
    /// SHA-256 of the file, 64 hex digits.
    pub content_hash: String,
    /// Path of the file: relative to the data folder if it is ours, absolute if it is the user's own.
    pub file: String,
    /// File name as the user gave it; shown, never used as a path.
    pub file_name: String,
    /// Bytes of the file.
    pub bytes: i64,
    /// Shown title.
    pub title: String,
    /// The user's metadata: a JSON object.
    pub metadata: Value,
    /// RFC 3339 date or instant given by the user, if any, as text.
    pub recorded_at: Option<String>,
    /// When it was added.
    pub created_at_ms: i64,
    /// Where it stands.
    pub state: VideoState,
    /// How it is cut.
    pub segmentation: Segmentation,
    /// Facts, once known.
    pub facts: Option<MediaFacts>,
    /// What was wrong with the file but could be lived with.
    pub warnings: Vec<String>,
    /// Found and given clips.
    pub clips: i64,
    /// Its newest job.
    pub job_id: Option<Uuid>,
}

/// A video to add.
#[derive(Debug, Clone)]
pub struct NewVideo {
    /// uuid v7, chosen by the caller (the stored file bears it).
    pub id: Uuid,
    /// As in [`Video`].
    pub content_hash: String,
    /// As in [`Video`].
    pub file: String,
    /// As in [`Video`].
    pub file_name: String,
    /// As in [`Video`].
    pub bytes: i64,
    /// As in [`Video`].
    pub title: String,
    /// A JSON object.
    pub metadata: Value,
    /// As in [`Video`].
    pub recorded_at: Option<String>,
    /// As in [`Video`].
    pub segmentation: Segmentation,
    /// Clips given by the user; stored at once, searchable when the job has finished.
    pub given: Vec<GivenClip>,
    /// Its subtitles. If the same bytes are there already, that video gets them.
    pub subtitles: Vec<Subtitles>,
}

/// A clip given by the user.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenClip {
    /// Start.
    pub start_ms: i64,
    /// End, exclusive, over start.
    pub end_ms: i64,
    /// A JSON object that overlays the video's metadata.
    pub metadata: Value,
}

/// A change to a video by its owner; `None` leaves as is.
#[derive(Debug, Clone, Default)]
pub struct VideoPatch {
    /// New title.
    pub title: Option<String>,
    /// New metadata object (replaces the old one).
    pub metadata: Option<Value>,
    /// New recording time; `Some(None)` removes it.
    pub recorded_at: Option<Option<String>>,
}

/// What `add_video` did.
#[derive(Debug, Clone, PartialEq)]
pub enum Added {
    /// The video and its job.
    New(Box<Video>, Box<Job>),
    /// The same bytes were there already: that video, and its newest job.
    Duplicate(Box<Video>, Option<Box<Job>>),
}

/// The key under which a request may be repeated, and a hash of its body.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// As the client sent it.
    pub key: String,
    /// 64 hex digits over all that the request says.
    pub request_hash: String,
}

/// What a request with an idempotency key did.
#[derive(Debug, Clone, PartialEq)]
pub struct IdempotencyRecord {
    /// Hash of the request.
    pub request_hash: String,
    /// The video it answered with.
    pub video: Uuid,
    /// The job it answered with.
    pub job: Option<Uuid>,
    /// Whether it answered `duplicate: true`.
    pub duplicate: bool,
}

/// A stretch of a video.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its number, used in the index and in bitmaps.
    pub key: SpanKey,
    /// uuid v7.
    pub id: Uuid,
    /// Its video.
    pub video: Uuid,
    /// Its level.
    pub level: Level,
    /// Whether the user gave it.
    pub given: bool,
    /// Start.
    pub start_ms: i64,
    /// End, exclusive.
    pub end_ms: i64,
    /// Own metadata: a JSON object, empty for found spans.
    pub metadata: Value,
}

/// A span and what a hit shows of its video.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanWithVideo {
    /// The span.
    pub span: Span,
    /// The video's title.
    pub title: String,
    /// The video's metadata.
    pub video_metadata: Value,
    /// The first presented frame's time on the container's clock.
    pub media_offset_ms: i64,
    /// Length of the video.
    pub duration_ms: i64,
}

/// A space to register.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSpace {
    /// 64 hex digits.
    pub id: String,
    /// Readable name.
    pub name: String,
    /// The model as the user named it.
    pub model: String,
    /// Values per vector.
    pub dim: usize,
}

/// A registered space.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceRow {
    /// Dense number, used in the index.
    pub key: u32,
    /// The rest.
    pub space: NewSpace,
    /// Vectors stored in it.
    pub vectors: i64,
    /// Whether its model was added to a running server: then it is loaded at each start.
    pub added: bool,
}

impl SpaceRow {
    /// What the index must know of it.
    pub fn expectation(&self) -> SpaceInfo {
        SpaceInfo { key: self.key, id: self.space.id.clone(), dim: self.space.dim }
    }
}

/// A kind of query that was moved to a space while a server ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// The kind.
    pub kind: QueryKind,
    /// The key of the space that answers it.
    pub space: u32,
    /// The id of the space that the command line named for the kind then: while it names the same, this holds.
    pub named: Option<String>,
}

/// A vector as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// Its span.
    pub span: SpanKey,
    /// The span's level.
    pub level: Level,
    /// The span's video.
    pub video: VideoNumber,
    /// The direction.
    pub unit: UnitVector,
}

/// One insert or delete of a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its place in the order of changes.
    pub seq: i64,
    /// The span.
    pub span: SpanKey,
    /// The space.
    pub space: u32,
    /// The span's level.
    pub level: Level,
    /// The vector if it was inserted and is still there; `None`: it is to be removed (deleted now, or by a
    /// later change).
    pub vector: Option<StoredVector>,
}

/// A vector to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVector {
    /// Its span.
    pub span: SpanKey,
    /// Its space.
    pub space: u32,
    /// The direction.
    pub unit: UnitVector,
    /// Length of the raw vector.
    pub norm: f32,
}

/// What one ingest found out.
#[derive(Debug, Clone)]
pub struct Ingested {
    /// Facts of the media.
    pub facts: MediaFacts,
    /// What was wrong with the file but could be lived with.
    pub warnings: Vec<String>,
    /// Found spans of all levels, and given ones.
    pub spans: Vec<IngestedSpan>,
}

/// A span with its vectors.
#[derive(Debug, Clone)]
pub struct IngestedSpan {
    /// The id of the given clip that these vectors are for; `None`: a found span to insert.
    pub given: Option<Uuid>,
    /// Level.
    pub level: Level,
    /// Start.
    pub start_ms: i64,
    /// End, exclusive (a given clip past the video's end is stored cut to it).
    pub end_ms: i64,
    /// (space key, direction, norm), one a space.
    pub vectors: Vec<(u32, UnitVector, f32)>,
}

/// Where a cue's text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CueKind {
    /// Said.
    Speech,
    /// Written by someone who describes what is shown.
    Caption,
    /// Read from the picture.
    Ocr,
}

/// The cues of one kind and language that belong together, e.g. one subtitle file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// The kind.
    pub kind: CueKind,
    /// BCP 47 tag, e.g. `en`.
    pub language: String,
    /// Where it came from, e.g. the subtitle file's name or the model that wrote it.
    pub provenance: String,
}

/// A track with its lines, e.g. one subtitle file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subtitles {
    /// The track.
    pub track: Track,
    /// Its lines; times are on the container's clock, and so known before the video was decoded.
    pub lines: Vec<Line>,
    /// What was wrong with the file.
    pub warnings: Vec<String>,
}

/// A stored track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackRow {
    /// The track.
    pub track: Track,
    /// How many cues it has.
    pub cues: i64,
    /// What was wrong with its file.
    pub warnings: Vec<String>,
}

/// A stored line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cue {
    /// uuid v7.
    pub id: Uuid,
    /// Its track.
    pub track: Track,
    /// The line; times are on the container's clock.
    pub line: Line,
}

/// A cue that answers a query, and the span that it counts for.
#[derive(Debug, Clone, PartialEq)]
pub struct CueHit {
    /// The cue.
    pub cue: Uuid,
    /// The span: of all spans of the asked level that hold the cue's start, a found one before a given one.
    pub span: SpanKey,
    /// Its video.
    pub video: Uuid,
    /// Its track.
    pub track: Track,
    /// Start of the cue, in the video's time (not the container's clock).
    pub start_ms: i64,
    /// End, exclusive; of the last cue that the sought words run into.
    pub end_ms: i64,
    /// The cue's text, with that of the cues that the sought words run into.
    pub text: String,
    /// How good the match is: BM25 of the cue, with parts of what its neighbours and its whole track say; over zero,
    /// comparable within one answer.
    pub score: f64,
    /// Whether the query's words stand here one after the other, in this cue or running on into the next.
    pub in_sequence: bool,
}

/// The text of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageText {
    /// The passage's key.
    pub span: SpanKey,
    /// Its cues' texts, joined by line breaks.
    pub text: String,
}

/// A passage, and the span that it counts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageHit {
    /// The passage's key.
    pub passage: SpanKey,
    /// The span: of all spans of the asked level that hold the passage's start, a found one before a given one.
    pub span: SpanKey,
    /// Its video.
    pub video: Uuid,
    /// Its track.
    pub track: Track,
    /// Start, in the video's time.
    pub start_ms: i64,
    /// End, exclusive.
    pub end_ms: i64,
    /// Its cues' texts, joined by line breaks.
    pub text: String,
}

/// What kind of work a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// A file to searchable spans.
    Ingest,
    /// Vectors that a video's spans still lack (new given clips, a new space).
    Fill,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waiting for a runner.
    Queued,
    /// Leased by a runner.
    Running,
    /// Done.
    Succeeded,
    /// Given up; `reason` says why.
    Failed,
    /// Stopped by a user.
    Cancelled,
}

/// How far a job is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// What it does now, e.g. `decode`.
    pub stage: String,
    /// 0 to 1.
    pub fraction: f64,
    /// Frames decoded.
    pub frames_done: i64,
    /// Frames expected; an estimate.
    pub frames_total: Option<i64>,
    /// Seconds left; an estimate.
    pub eta_s: Option<f64>,
}

/// One unit of background work.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// uuid v7.
    pub id: Uuid,
    /// Its kind.
    pub kind: JobKind,
    /// Its video.
    pub video: Uuid,
    /// Where it stands.
    pub state: JobState,
    /// How far it is.
    pub progress: Progress,
    /// How often it was started.
    pub attempts: i64,
    /// Why it failed, was queued again or cancelled.
    pub reason: Option<String>,
    /// When it was enqueued.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
}

/// How often a job is started before it is given up.
pub const MAX_ATTEMPTS: i64 = 5;

/// How long an idempotency key is honoured.
pub const IDEMPOTENCY_WINDOW: Duration = Duration::from_secs(24 * 3600);

/// The right to work on a job until its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: Uuid,
    /// Proof that it is this start of it and no later one.
    pub token: Uuid,
}

/// A leased job and all that its runner needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Leased {
    /// The lease.
    pub lease: Lease,
    /// The job.
    pub job: Job,
    /// Its video.
    pub video: Video,
    /// Its given spans.
    pub given: Vec<Span>,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// Go on.
    Held,
    /// A user cancelled the job; stop.
    Cancelled,
    /// Another worker has it, or its video is gone; stop.
    Lost,
}

/// Which jobs are listed.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobFilter {
    /// Only in this state.
    pub state: Option<JobState>,
    /// Only of this kind.
    pub kind: Option<JobKind>,
    /// Only of this video.
    pub video: Option<Uuid>,
}

/// Counts for /v1/stats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Videos of any state.
    pub videos: i64,
    /// Videos that are searchable.
    pub videos_ready: i64,
    /// Spans at level clip.
    pub clips: i64,
    /// Passages of what is said.
    pub passages: i64,
    /// Vectors of all spaces.
    pub vectors: i64,
    /// Jobs queued.
    pub jobs_queued: i64,
    /// Jobs running.
    pub jobs_running: i64,
    /// Jobs failed.
    pub jobs_failed: i64,
    /// Bytes of all stored media.
    pub media_bytes: i64,
}
