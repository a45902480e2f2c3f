//! Videos, and adding them.

use std::time::Duration;

pub use reprise_encoders::video::segment::Segmentation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::cue::Subtitles;

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

/// A deleted video that still has files and rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedVideo {
    /// Its id.
    pub id: Uuid,
    /// Its file, as in [`Video`].
    pub file: String,
    /// Ids of its clips.
    pub clips: Vec<Uuid>,
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

/// How long an idempotency key is honoured.
pub const IDEMPOTENCY_WINDOW: Duration = Duration::from_secs(24 * 3600);
