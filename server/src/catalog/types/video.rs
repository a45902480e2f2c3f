//! Videos, and requests to add them.

use std::time::Duration;

pub use reprise_encoders::video::segment::Segmentation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::cue::Subtitles;
use super::tags::{Folder, Tags};

/// State of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VideoState {
    /// Stored, not yet searchable.
    Pending,
    /// Completely searchable.
    Ready,
    /// The ingest failed; see its job.
    Failed,
}

impl VideoState {
    /// The name in the catalog.
    pub(in crate::catalog) fn name(self) -> &'static str {
        match self {
            VideoState::Pending => "pending",
            VideoState::Ready => "ready",
            VideoState::Failed => "failed",
        }
    }
}

/// Facts about the media, known after the ingest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MediaFacts {
    /// Decoded length of the video stream, in milliseconds.
    pub duration_ms: i64,
    /// Average frames per second.
    pub frame_rate: f64,
    /// Number of decoded frames.
    pub frames: u64,
    /// Display width, in pixels.
    pub width: u32,
    /// Display height, in pixels.
    pub height: u32,
    /// Codec name from ffprobe.
    pub codec: String,
    /// Whether frames are unevenly spaced.
    pub variable_frame_rate: bool,
    /// The first presented frame's time on the container's clock, in milliseconds.
    pub media_offset_ms: i64,
    /// Whether common browsers play the original.
    pub plays_in_browsers: bool,
    /// Whether seeking in the file gives the right pictures. False also for small videos, which are not checked.
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
    /// Path of the file: relative to the data folder for stored files, absolute for a user's own file.
    pub file: String,
    /// The user's file name; for display, never a path.
    pub file_name: String,
    /// Size of the file in bytes.
    pub bytes: i64,
    /// Display title.
    pub title: String,
    /// The user's metadata: a JSON object.
    pub metadata: Value,
    /// Its tags as they were given, in order of their keys.
    pub tags: Vec<String>,
    /// The path of its folder as it was given.
    pub folder: Option<String>,
    /// Recording time from the user: an RFC 3339 date or instant.
    pub recorded_at: Option<String>,
    /// Time of adding, in Unix milliseconds.
    pub created_at_ms: i64,
    /// Its state.
    pub state: VideoState,
    /// Its segmentation.
    pub segmentation: Segmentation,
    /// Facts about the media, once known.
    pub facts: Option<MediaFacts>,
    /// Faults of the file that did not stop the ingest.
    pub warnings: Vec<String>,
    /// Number of clips, found and given.
    pub clips: i64,
    /// Its newest job.
    pub job_id: Option<Uuid>,
    /// Time of its deletion, in Unix milliseconds, if it is in the trash.
    pub deleted_at_ms: Option<i64>,
    /// Time when it last left the trash, in Unix milliseconds.
    pub restored_at_ms: Option<i64>,
}

/// A video whose file must stay: one that is not deleted, or one in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptVideo {
    /// Its id.
    pub id: Uuid,
    /// Its file, as in [`Video`].
    pub file: String,
    /// SHA-256 of the file, 64 hex digits.
    pub content_hash: String,
}

/// A deleted video that can't be restored, and still has files and rows.
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
    /// uuid v7, chosen by the caller, because the stored file's name contains it.
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
    /// Its tags.
    pub tags: Tags,
    /// Its folder.
    pub folder: Folder,
    /// As in [`Video`].
    pub recorded_at: Option<String>,
    /// As in [`Video`].
    pub segmentation: Segmentation,
    /// Clips from the user. Stored at once, searchable after the job.
    pub given: Vec<GivenClip>,
    /// Its subtitles. If the catalog already has these bytes, the existing video gets the subtitles.
    pub subtitles: Vec<Subtitles>,
    /// The API key that adds it, whose quota it uses; `None` for callers without one.
    pub added_by: Option<Uuid>,
    /// Duration by the file's header, in milliseconds, for quotas.
    pub probed_ms: i64,
    /// The resumable upload whose file it is. It is finished in the same transaction.
    pub upload: Option<Uuid>,
}

/// A clip that a user supplies.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenClip {
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// End, exclusive; greater than the start.
    pub end_ms: i64,
    /// A JSON object that overlays the video's metadata.
    pub metadata: Value,
}

/// A change to a video; `None` leaves a field unchanged, but for `expected`.
#[derive(Debug, Clone, Default)]
pub struct VideoPatch {
    /// New title.
    pub title: Option<String>,
    /// New metadata object; replaces the old one.
    pub metadata: Option<Value>,
    /// New tags; they replace the old ones.
    pub tags: Option<Tags>,
    /// New folder; the empty one takes it out of its folder.
    pub folder: Option<Folder>,
    /// New recording time; `Some(None)` removes it.
    pub recorded_at: Option<Option<String>>,
    /// The video as the change expects it. If it is another one, nothing changes ([`CatalogError::Stale`]). `None`: the
    /// change always happens.
    ///
    /// [`CatalogError::Stale`]: crate::catalog::CatalogError::Stale
    pub expected: Option<Box<Video>>,
}

/// A client's key for a repeatable request, with a hash of the request.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// The key from the client.
    pub key: String,
    /// Hash of the whole request, 64 hex digits.
    pub request_hash: String,
}

/// The stored result of a request with an idempotency key.
#[derive(Debug, Clone, PartialEq)]
pub struct IdempotencyRecord {
    /// Hash of the request.
    pub request_hash: String,
    /// The video in the answer.
    pub video: Uuid,
    /// The job in the answer.
    pub job: Option<Uuid>,
    /// Whether the answer had `duplicate: true`.
    pub duplicate: bool,
}

/// Lifetime of an idempotency key.
pub const IDEMPOTENCY_WINDOW: Duration = Duration::from_secs(24 * 3600);
