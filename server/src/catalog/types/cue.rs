//! Cues of a video, and the passages made of them.

use crate::terms::{KeySet, Level, SpanKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use crate::subtitles::Line;
pub use crate::subtitles::ranking::CueQuery;

/// Provenance of tracks extracted from the video file itself.
pub const EMBEDDED: &str = "embedded";

/// Source of a cue's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CueKind {
    /// Spoken words.
    Speech,
    /// A written description of the picture.
    Caption,
    /// Text recognised in the picture.
    Ocr,
}

/// Cues of one kind and language that belong together, e.g. one subtitle file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// The kind.
    pub kind: CueKind,
    /// BCP 47 tag, e.g. `en`.
    pub language: String,
    /// Origin, e.g. the subtitle file's name or the transcribing model.
    pub provenance: String,
    /// Whether a program wrote it. Such a track never replaces a person's.
    pub is_machine: bool,
}

/// A track with its lines, e.g. one subtitle file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subtitles {
    /// The track.
    pub track: Track,
    /// Its lines. Times are on the container's clock, which is known before decoding.
    pub lines: Vec<Line>,
    /// Faults found in the file.
    pub warnings: Vec<String>,
}

/// A stored track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackRow {
    /// The track.
    pub track: Track,
    /// Number of cues.
    pub cues: i64,
    /// Faults found in its file.
    pub warnings: Vec<String>,
}

/// Where a line stands on screen, as fractions of the picture, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CueBox {
    /// The left edge.
    pub left: f64,
    /// The upper edge.
    pub top: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

/// A line on screen.
#[derive(Debug, Clone, PartialEq)]
pub struct ScreenCue {
    /// The line. Its times are on the container's clock.
    pub line: Line,
    /// Where it stands.
    pub region: CueBox,
}

/// What was read on screen in a video.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadText {
    /// Its track.
    pub track: Track,
    /// Its lines. Of those that start together, the upper ones come first.
    pub cues: Vec<ScreenCue>,
    /// Damage of the file: what was not read because of it.
    pub warnings: Vec<String>,
}

/// A stored line.
#[derive(Debug, Clone, PartialEq)]
pub struct Cue {
    /// uuid v7.
    pub id: Uuid,
    /// Its track.
    pub track: Track,
    /// The line; times are on the container's clock.
    pub line: Line,
    /// Where it stands on screen. `None` for what is spoken, and for passages.
    pub region: Option<CueBox>,
}

/// A correction of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineChange {
    /// The new text, without markup.
    pub text: String,
    /// The text that the change expects. If the line has another one, nothing changes
    /// ([`CatalogError::Stale`](crate::catalog::CatalogError::Stale)). `None`: the change holds for any text.
    pub expected: Option<String>,
}

/// A part of a transcript. Empty fields limit nothing.
#[derive(Debug, Clone, Default)]
pub struct TranscriptPart {
    /// Lines of this kind only.
    pub kind: Option<CueKind>,
    /// Lines in this language only: a BCP 47 tag as stored.
    pub language: Option<String>,
    /// Lines that end after this time, in milliseconds on the lines' clock.
    pub from_ms: Option<i64>,
    /// Lines that start before this time, in milliseconds on the lines' clock.
    pub until_ms: Option<i64>,
    /// Start and id of the last line before this part.
    pub after: Option<(i64, Uuid)>,
}

/// A cue that matches a query, with the span returned for it.
#[derive(Debug, Clone, PartialEq)]
pub struct CueHit {
    /// The cue.
    pub cue: Uuid,
    /// The returned span: it has the requested level and contains the cue's start. Found spans win over given ones.
    pub span: SpanKey,
    /// Its video.
    pub video: Uuid,
    /// Its track.
    pub track: Track,
    /// Start of the cue, in milliseconds of the video's time (not the container's clock).
    pub start_ms: i64,
    /// End, exclusive. If the matched words continue in later cues, the end of the last of them.
    pub end_ms: i64,
    /// The cue's text, and the text of the later cues in which the matched words continue.
    pub text: String,
    /// BM25 score of the cue, plus shares of the scores of its neighbours and of its whole track. Above 0; comparable
    /// within one answer.
    pub score: f64,
    /// Whether the query's words occur here in sequence, in this cue or continuing in the next ones.
    pub in_sequence: bool,
    /// Where the cue stands on screen; `None` for what is spoken.
    pub region: Option<CueBox>,
}

/// The text of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageText {
    /// The passage's key.
    pub span: SpanKey,
    /// The texts of its cues, joined by line breaks.
    pub text: String,
}

/// A passage, with the span returned for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageHit {
    /// The passage's key.
    pub passage: SpanKey,
    /// The returned span: of the requested level, the one that overlaps the passage most. Found spans win ties.
    pub span: SpanKey,
    /// Its video.
    pub video: Uuid,
    /// Its track.
    pub track: Track,
    /// First millisecond of the passage, in the video's time.
    pub start_ms: i64,
    /// End, exclusive, in milliseconds.
    pub end_ms: i64,
    /// The texts of its cues, joined by line breaks.
    pub text: String,
}

/// The cues to search, and the spans to return.
#[derive(Debug, Clone, Copy)]
pub struct CueScope<'a> {
    /// The kind of cue.
    pub kind: CueKind,
    /// Level of the returned spans: clip or video.
    pub level: Level,
    /// Keys of the spans that may be returned; `None`: all.
    pub only: Option<&'a KeySet>,
}
