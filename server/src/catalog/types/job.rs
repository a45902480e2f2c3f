//! Background jobs, and the counts of all rows.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::span::Span;
use super::video::{IdempotencyKey, Video};

/// The kind of a job, by its stored and public name. The names of kinds without a worker are reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobName {
    /// Cuts a video into spans and encodes them.
    Ingest,
    /// Adds missing vectors of a video's spans (new given clips, a new space).
    Fill,
    /// Transcribes a video's sound into cues.
    Transcribe,
    /// Recognises text in a video's pictures (OCR) as cues.
    ReadText,
    /// Describes a video's clips as cues.
    Caption,
    /// Exports spans to a file.
    Export,
    /// Rebuilds an index.
    Reindex,
    /// Asks spaces the queries of an evaluation.
    Evaluation,
    /// Makes the map of a space and level.
    Map,
}

impl JobName {
    /// All kinds.
    pub const ALL: [JobName; 9] = [
        JobName::Ingest,
        JobName::Fill,
        JobName::Transcribe,
        JobName::ReadText,
        JobName::Caption,
        JobName::Export,
        JobName::Reindex,
        JobName::Evaluation,
        JobName::Map,
    ];

    /// The stored and public name.
    pub fn name(self) -> &'static str {
        match self {
            JobName::Ingest => "ingest",
            JobName::Fill => "fill",
            JobName::Transcribe => "transcribe",
            JobName::ReadText => "read_text",
            JobName::Caption => "caption",
            JobName::Export => "export",
            JobName::Reindex => "reindex",
            JobName::Evaluation => "evaluation",
            JobName::Map => "map",
        }
    }
}

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waits for a worker, or for its next attempt.
    Queued,
    /// Leased by a worker.
    Running,
    /// Finished with success.
    Succeeded,
    /// Failed for good; see `reason`.
    Failed,
    /// Stopped by a user.
    Cancelled,
}

impl JobState {
    /// All states.
    pub const ALL: [JobState; 5] =
        [JobState::Queued, JobState::Running, JobState::Succeeded, JobState::Failed, JobState::Cancelled];

    /// The stored and public name.
    pub fn name(self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Running => "running",
            JobState::Succeeded => "succeeded",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }
}

/// Progress of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Current stage, e.g. `decode`.
    pub stage: String,
    /// Finished share, 0 to 1.
    pub fraction: f64,
    /// Number of decoded frames.
    pub frames_done: i64,
    /// Expected number of frames; an estimate.
    pub frames_total: Option<i64>,
    /// Remaining seconds; an estimate.
    pub eta_s: Option<f64>,
}

/// A heartbeat of a running job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heartbeat {
    /// Progress so far.
    pub progress: Progress,
    /// Whether this attempt has stored work that the next attempt can reuse: features, finished windows.
    pub has_kept: bool,
}

/// One unit of background work.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// uuid v7.
    pub id: Uuid,
    /// Its kind.
    pub kind: JobName,
    /// The video that it works on, if any.
    pub video: Option<Uuid>,
    /// Parameters of its kind: a JSON object.
    pub params: Option<Value>,
    /// Its state.
    pub state: JobState,
    /// Its progress.
    pub progress: Progress,
    /// Number of starts. Back to 1 when the process died after new progress.
    pub attempts: i64,
    /// Number of starts after which the job is given up.
    pub attempts_most: i64,
    /// Time of the next attempt after a failure, in Unix milliseconds.
    pub retry_at_ms: Option<i64>,
    /// Reason of the last failure or of the cancellation.
    pub reason: Option<String>,
    /// What it found, where that needs words: e.g. that a video has no sound.
    pub note: Option<String>,
    /// The file that was refused, if this is the job of one. It failed at once and can't be retried.
    pub refused: Option<RefusedFile>,
    /// Time of enqueueing, in Unix milliseconds.
    pub created_at_ms: i64,
    /// Time of the last change, in Unix milliseconds.
    pub updated_at_ms: i64,
}

/// A file that was refused. It is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedFile {
    /// The user's file name; for display, never a path.
    pub file_name: String,
    /// Its size in bytes; `None` if it was cut off because it is too large.
    pub bytes: Option<i64>,
}

/// A refused file to store as a failed job.
#[derive(Debug, Clone)]
pub struct NewRefusal {
    /// The file.
    pub file: RefusedFile,
    /// Why it was refused.
    pub reason: String,
    /// The API key that sent it; `None` for callers without one.
    pub added_by: Option<Uuid>,
    /// The idempotency key of its request.
    pub repeat: Option<IdempotencyKey>,
}

/// Most stored refusals; the oldest make room for new ones.
pub const MOST_REFUSALS: i64 = 10_000;

/// Most stored refusals of one API key; the oldest make room for new ones.
pub const MOST_REFUSALS_OF_KEY: i64 = 1_000;

/// The result of adding a video.
#[derive(Debug, Clone, PartialEq)]
pub enum Added {
    /// The video and its job.
    New(Box<Video>, Box<Job>),
    /// The catalog already has these bytes: the existing video, and its newest job.
    Duplicate(Box<Video>, Option<Box<Job>>),
}

/// The consequence of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAttempt {
    /// No further attempt: the job has failed.
    Never,
    /// Another attempt after this wait, if the job has attempts left.
    After(Duration),
}

/// Default of [`Job::attempts_most`].
pub const MAX_ATTEMPTS: i64 = 5;

/// A job is given up after this many deaths of its process in a row without progress.
pub const MAX_DEATHS: i64 = 3;

/// The right to work on a job until its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: Uuid,
    /// Identifies this start of the job; a later start has another token.
    pub token: Uuid,
}

/// A leased job with its inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Leased {
    /// The lease.
    pub lease: Lease,
    /// The job.
    pub job: Job,
    /// Its video, with the segmentation that the job requests.
    pub video: Option<Video>,
    /// The given spans of its video.
    pub given: Vec<Span>,
}

/// Whether a lease is still valid: the answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStatus {
    /// Valid: continue.
    Held,
    /// A user cancelled the job; stop.
    Cancelled,
    /// Another worker holds the job, or the video is gone; stop.
    Lost,
}

/// Filter for lists of jobs.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobFilter {
    /// Only jobs in this state.
    pub state: Option<JobState>,
    /// Only jobs of this kind.
    pub kind: Option<JobName>,
    /// Only jobs of this video.
    pub video: Option<Uuid>,
}

/// Counts for `/v1/stats`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of videos in any state, without those in the trash.
    pub videos: i64,
    /// Number of searchable videos.
    pub videos_ready: i64,
    /// Number of spans at level clip.
    pub clips: i64,
    /// Number of passages of all tracks.
    pub passages: i64,
    /// Number of vectors of all spaces.
    pub vectors: i64,
    /// Number of queued jobs.
    pub jobs_queued: i64,
    /// Number of running jobs.
    pub jobs_running: i64,
    /// Number of failed jobs.
    pub jobs_failed: i64,
    /// Bytes of the media of these videos.
    pub media_bytes: i64,
    /// Number of videos in the trash.
    pub videos_trashed: i64,
    /// Bytes of the media of the videos in the trash.
    pub trashed_bytes: i64,
}
