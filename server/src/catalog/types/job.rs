//! Background jobs, and the counts of everything.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::span::Span;
use super::video::Video;

/// The name of a kind of job, as it is stored and sent. Kinds that no worker runs yet have their names reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobName {
    /// Turns a file into searchable spans.
    Ingest,
    /// Adds the vectors that a video's spans still lack (new given clips, a new space).
    Fill,
    /// Turns a video's sound into cues.
    Transcribe,
    /// Turns the writing in a video's pictures into cues.
    ReadText,
    /// Describes a video's clips in cues.
    Caption,
    /// Writes spans into a file.
    Export,
    /// Builds an index anew.
    Reindex,
}

impl JobName {
    /// All of them.
    pub const ALL: [JobName; 7] = [
        JobName::Ingest,
        JobName::Fill,
        JobName::Transcribe,
        JobName::ReadText,
        JobName::Caption,
        JobName::Export,
        JobName::Reindex,
    ];

    /// As it is stored and sent.
    pub fn name(self) -> &'static str {
        match self {
            JobName::Ingest => "ingest",
            JobName::Fill => "fill",
            JobName::Transcribe => "transcribe",
            JobName::ReadText => "read_text",
            JobName::Caption => "caption",
            JobName::Export => "export",
            JobName::Reindex => "reindex",
        }
    }
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waiting for a worker, or for its next attempt.
    Queued,
    /// Leased by a worker.
    Running,
    /// Done.
    Succeeded,
    /// Given up; `reason` says why.
    Failed,
    /// Stopped by a user.
    Cancelled,
}

impl JobState {
    /// All of them.
    pub const ALL: [JobState; 5] =
        [JobState::Queued, JobState::Running, JobState::Succeeded, JobState::Failed, JobState::Cancelled];

    /// As it is stored and sent.
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

/// A sign of life of a running job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heartbeat {
    /// How far the job is.
    pub progress: Progress,
    /// Whether this start has stored work that the next one does not repeat: kept features, finished windows.
    pub has_kept: bool,
}

/// One unit of background work.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// uuid v7.
    pub id: Uuid,
    /// Its kind.
    pub kind: JobName,
    /// The video that it works on, if it is about one.
    pub video: Option<Uuid>,
    /// What its kind needs to know: an object.
    pub params: Option<Value>,
    /// Where it stands.
    pub state: JobState,
    /// How far it is.
    pub progress: Progress,
    /// How often it was started; again from 1 when a process died after new progress.
    pub attempts: i64,
    /// How often it is started before it is given up.
    pub attempts_most: i64,
    /// When it is tried again, if it failed and waits for that.
    pub retry_at_ms: Option<i64>,
    /// Its last failure, or why it was cancelled.
    pub reason: Option<String>,
    /// When it was enqueued.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
}

/// What `add_video` did.
#[derive(Debug, Clone, PartialEq)]
pub enum Added {
    /// The video and its job.
    New(Box<Video>, Box<Job>),
    /// The same bytes were there already: that video, and its newest job.
    Duplicate(Box<Video>, Option<Box<Job>>),
}

/// What follows the failure of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAttempt {
    /// Nothing: the job has failed.
    Never,
    /// Another attempt after this wait, if the job has attempts left.
    After(Duration),
}

/// How often a job is started before it is given up, unless its row says otherwise.
pub const MAX_ATTEMPTS: i64 = 5;

/// How many processes may die in a row over a job that makes no progress, before it is given up.
pub const MAX_DEATHS: i64 = 3;

/// The right to work on a job until its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: Uuid,
    /// Proof that it is this start of it and no later one.
    pub token: Uuid,
}

/// A leased job and what it works on.
#[derive(Debug, Clone, PartialEq)]
pub struct Leased {
    /// The lease.
    pub lease: Lease,
    /// The job.
    pub job: Job,
    /// Its video, with the segmentation that the job asks for.
    pub video: Option<Video>,
    /// The given spans of its video.
    pub given: Vec<Span>,
}

/// Whether a lease still holds: the answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStatus {
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
    pub kind: Option<JobName>,
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
    /// Passages of all tracks.
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
