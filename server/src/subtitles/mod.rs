//! Subtitles: SubRip and WebVTT files to timed lines and back, language tags, and the words of a text.
//!
//! Times are those of the file: milliseconds on the container's clock. Damaged files are read as far as they
//! can be; what could not be read is told line by line. Knows no catalog, no HTTP and no video.

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

pub use vtt::write as write_vtt;

/// Most cues of one file.
const MAX_CUES: usize = 100_000;
/// Most characters of one cue.
const MAX_CHARACTERS: usize = 20_000;
/// Warnings of one file that are told one by one.
const MAX_WARNINGS: usize = 50;

/// One timed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Start, milliseconds on the container's clock.
    pub start_ms: i64,
    /// End, exclusive, over start.
    pub end_ms: i64,
    /// What is said or shown, without markup; line breaks are kept.
    pub text: String,
}

/// How a subtitle file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// SubRip, `.srt`.
    SubRip,
    /// WebVTT, `.vtt`.
    WebVtt,
}

/// What a subtitle file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The file's format, told by its first line.
    pub format: Format,
    /// Its cues in order of start; those that start together in the file's order. At least one.
    pub lines: Vec<Line>,
    /// What is wrong with the file, each beginning with `line N:`.
    pub warnings: Vec<String>,
}

/// Why nothing of a file could be read; its maker's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Unreadable {
    /// Where the trouble is, from 1.
    pub line: usize,
    /// What it is.
    pub why: String,
}

/// Reads a subtitle file of either format, in UTF-8, UTF-16 with a byte order mark, or Windows-1252.
///
/// # Errors
/// [`Unreadable`] if not one cue could be read, or there are more than 100,000.
pub fn parse(bytes: &[u8]) -> Result<Parsed, Unreadable> {
    let (text, decoding_warning) = text::decode(bytes);
    let rows = text::rows(&text);
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
    Ok(Parsed { format, lines: read.lines, warnings: shortened(warnings) })
}

/// The first warnings, and how many more there are.
fn shortened(mut warnings: Vec<String>) -> Vec<String> {
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    warnings.truncate(MAX_WARNINGS);
    if more > 0 {
        warnings.push(format!("and {more} more like these"));
    }
    warnings
}
