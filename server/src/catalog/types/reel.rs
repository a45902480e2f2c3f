//! Reels, and the exports of ranges.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::job::Job;

/// Most ranges of a reel or an export.
pub const MOST_RANGES: usize = 1000;
/// Most reels of a library.
pub const MOST_REELS: i64 = 10_000;
/// Most exports of a library that have not expired, finished or not.
pub const MOST_EXPORTS: i64 = 200;
/// Longest name of a reel, in characters.
pub const LONGEST_NAME: usize = 200;
/// Longest note of a range, in characters.
pub const LONGEST_NOTE: usize = 1000;

/// A time range of a video, with a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReelRange {
    /// The video.
    pub video: Uuid,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// End, exclusive; greater than the start. May lie after the video's end.
    pub end_ms: i64,
    /// The user's note; may be empty.
    pub note: String,
}

/// A reel to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReel {
    /// Display name.
    pub name: String,
    /// Its ranges in order, 1 to [`MOST_RANGES`].
    pub ranges: Vec<ReelRange>,
}

/// An ordered list of ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reel {
    /// uuid v7.
    pub id: Uuid,
    /// Display name.
    pub name: String,
    /// Its state.
    pub version: ReelVersion,
    /// Its ranges in order, without those of deleted videos. Empty in lists.
    pub ranges: Vec<ReelRange>,
    /// The videos of its ranges, each once. Empty in lists.
    pub videos: Vec<ReelVideo>,
    /// Sum of the lengths of its ranges, in milliseconds.
    pub duration_ms: i64,
    /// Time of creation, in Unix milliseconds.
    pub created_at_ms: i64,
    /// Time of the last change, in Unix milliseconds.
    pub updated_at_ms: i64,
}

/// A video of a reel, as its player must know it. `None` until the video has been decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReelVideo {
    /// uuid v7.
    pub id: Uuid,
    /// The first presented frame's time on the container's clock, in milliseconds.
    pub media_offset_ms: Option<i64>,
    /// Whether common browsers play the original.
    pub plays_in_browsers: Option<bool>,
}

/// The state of a reel: a change raises `version`, the deletion of a video lowers `ranges`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReelVersion {
    /// Number of the last change, from 1.
    pub version: i64,
    /// Number of ranges, without those of deleted videos.
    pub ranges: i64,
}

/// A part of a reel that a link to it may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReelPart {
    /// The list of its ranges.
    Ranges,
    /// A video of one of its ranges.
    Video(Uuid),
    /// A span of a video that has a range in the reel.
    Span(Uuid),
}

/// An export to make.
#[derive(Debug, Clone)]
pub struct NewExport {
    /// The request as its job reads it: a JSON object.
    pub request: Value,
    /// The ranges, for checks; they are part of the request.
    pub ranges: Vec<ReelRange>,
    /// The API key that asks for it, whose quota it uses; `None` for callers without one.
    pub added_by: Option<Uuid>,
}

/// An export and its job, which have the same id.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// Its job.
    pub job: Job,
    /// The request.
    pub request: Value,
    /// Its file, once it is made.
    pub made: Option<MadeExport>,
    /// Time from which nobody can read it, in Unix milliseconds.
    pub expires_at_ms: Option<i64>,
}

/// The file of an export.
#[derive(Debug, Clone, PartialEq)]
pub struct MadeExport {
    /// Its name in the storage.
    pub file: String,
    /// The name under which users save it.
    pub file_name: String,
    /// Its content type.
    pub media_type: String,
    /// Size in bytes.
    pub bytes: i64,
    /// SHA-256 of its bytes, 64 hex digits.
    pub content_hash: String,
    /// What was made and what was left out: a JSON object.
    pub report: Value,
}

/// An export that nobody can read any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredExport {
    /// Its id.
    pub id: Uuid,
    /// Its file, if it was made.
    pub file: Option<String>,
}
