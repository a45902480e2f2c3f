//! Timed texts of a video, and the passages that are made of them.

use crate::terms::{KeySet, Level, SpanKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use crate::subtitles::Line;
pub use crate::subtitles::ranking::CueQuery;

/// Provenance of tracks that a video's file carries.
pub const EMBEDDED: &str = "embedded";

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

/// Which cues are searched, and what they may be answered for.
#[derive(Debug, Clone, Copy)]
pub struct CueScope<'a> {
    /// The kind of cue.
    pub kind: CueKind,
    /// The level of the spans that are answered: clip or video.
    pub level: Level,
    /// Keys of the spans that may be answered; `None`: all.
    pub only: Option<&'a KeySet>,
}
