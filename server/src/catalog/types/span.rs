//! Spans, and the result of an ingest.

use serde_json::Value;
use uuid::Uuid;

use super::vector::NewVector;
use super::video::MediaFacts;
use crate::terms::{Level, SpanKey, UnitVector};

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

/// What one fill found out.
#[derive(Debug, Clone, Default)]
pub struct Filled {
    /// Vectors for spans that lacked them.
    pub vectors: Vec<NewVector>,
    /// Moments that are not stored yet.
    pub moments: Vec<IngestedSpan>,
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
