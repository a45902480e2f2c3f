//! Spans, and the result of an ingest.

use serde_json::Value;
use uuid::Uuid;

use super::vector::NewVector;
use super::video::MediaFacts;
use crate::terms::{Level, SpanKey, UnitVector};

/// A time range of a video.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its number in the index and in bitmaps.
    pub key: SpanKey,
    /// uuid v7.
    pub id: Uuid,
    /// Its video.
    pub video: Uuid,
    /// Its level.
    pub level: Level,
    /// Whether a user supplied it.
    pub given: bool,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// End, exclusive, in milliseconds.
    pub end_ms: i64,
    /// Its own metadata: a JSON object, empty for found spans.
    pub metadata: Value,
}

/// A span with the fields of its video that a hit shows.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanWithVideo {
    /// The span.
    pub span: Span,
    /// The video's title.
    pub title: String,
    /// The video's metadata.
    pub video_metadata: Value,
    /// The first presented frame's time on the container's clock, in milliseconds.
    pub media_offset_ms: i64,
    /// Length of the video, in milliseconds.
    pub duration_ms: i64,
    /// When the video was recorded, in Unix milliseconds, if the user said it.
    pub recorded_at_ms: Option<i64>,
}

/// The result of an ingest.
#[derive(Debug, Clone)]
pub struct Ingested {
    /// Facts of the media.
    pub facts: MediaFacts,
    /// Faults of the file that did not stop the ingest.
    pub warnings: Vec<String>,
    /// The found spans of all levels, and the given ones.
    pub spans: Vec<IngestedSpan>,
}

/// The result of a fill.
#[derive(Debug, Clone, Default)]
pub struct Filled {
    /// Vectors of spans that lacked them.
    pub vectors: Vec<NewVector>,
    /// Moments that are not yet stored.
    pub moments: Vec<IngestedSpan>,
}

/// A span with its vectors.
#[derive(Debug, Clone)]
pub struct IngestedSpan {
    /// The id of the given clip to which the vectors belong; `None`: a found span to insert.
    pub given: Option<Uuid>,
    /// Its level.
    pub level: Level,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// End, exclusive. The end of a given clip is cut to the video's end.
    pub end_ms: i64,
    /// (space key, unit vector, norm), one per space.
    pub vectors: Vec<(u32, UnitVector, f32)>,
}
