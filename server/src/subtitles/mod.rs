//! Subtitles: reads and writes SubRip and WebVTT files, normalises language tags, and splits text into words.
//!
//! Times are milliseconds on the container's clock. Damaged files are read as far as possible, with a warning for each
//! unreadable line. Independent of catalog, HTTP and video.

mod blocks;
pub mod language;
mod markup;
pub mod passages;
pub mod ranking;
pub mod snippet;
mod srt;
#[cfg(test)]
mod tests;
mod text;
mod time;
mod vtt;
pub mod words;

use serde::{Deserialize, Serialize};

pub use srt::write as write_srt;
pub use vtt::write as write_vtt;

/// Largest number of cues of one file.
pub(crate) const MAX_CUES: usize = 100_000;
/// Largest number of lines of one file: ten for each cue.
const MAX_ROWS: usize = 1_000_000;
/// Largest number of characters of one cue.
const MAX_CHARACTERS: usize = 20_000;
/// Largest number of warnings per file.
const MAX_WARNINGS: usize = 50;

/// A timed line of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// First millisecond on the container's clock, inclusive.
    pub start_ms: i64,
    /// Millisecond after the last, greater than `start_ms`.
    pub end_ms: i64,
    /// Spoken or shown text, without markup. Line breaks are kept.
    pub text: String,
}

/// Format of a subtitle file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// SubRip, `.srt`.
    SubRip,
    /// WebVTT, `.vtt`.
    WebVtt,
}

/// The content of a subtitle file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The format, detected from the first line.
    pub format: Format,
    /// Cues in order of start, at least one. Cues with equal start keep the file's order.
    pub lines: Vec<Line>,
    /// Problems of the file. Each starts with `line N:`.
    pub warnings: Vec<String>,
}

/// A file without a readable cue, or with too many.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Unreadable {
    /// Line of the problem, from 1.
    pub line: usize,
    /// The problem.
    pub why: String,
}

/// Reads a subtitle file of either format, in UTF-8, UTF-16 with a byte order mark, or Windows-1252.
///
/// # Errors
/// [`Unreadable`] without a readable cue, or with more than 100,000 cues or 1,000,000 lines.
pub fn parse(bytes: &[u8]) -> Result<Parsed, Unreadable> {
    let (text, decoding_warning) = text::decode(bytes);
    let rows = text::rows(&text);
    if rows.len() > MAX_ROWS {
        return Err(Unreadable { line: MAX_ROWS, why: format!("the file has more than {MAX_ROWS} lines") });
    }
    let format = if vtt::is_header(&rows) { Format::WebVtt } else { Format::SubRip };
    let mut read = match format {
        Format::SubRip => srt::read(&rows),
        Format::WebVtt => vtt::read(&rows),
    };
    if read.lines.is_empty() {
        return Err(read.refusal(&rows));
    }
    if read.lines.len() > MAX_CUES {
        return Err(Unreadable { line: 1, why: format!("the file has more than {MAX_CUES} cues") });
    }
    read.lines.sort_by_key(|line| line.start_ms);
    let warnings = decoding_warning.into_iter().chain(read.warnings).collect();
    Ok(Parsed { format, lines: read.lines, warnings: shortened(warnings, read.more_warnings) })
}

/// Keeps the first warnings and counts the others, of which `more` are not in the list.
fn shortened(mut warnings: Vec<String>, more: usize) -> Vec<String> {
    let more = more + warnings.len().saturating_sub(MAX_WARNINGS);
    warnings.truncate(MAX_WARNINGS);
    if more > 0 {
        warnings.push(format!("and {more} more like these"));
    }
    warnings
}
