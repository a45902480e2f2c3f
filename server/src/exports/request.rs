//! What an export is to hold, and what it came to hold.

use reprise_encoders::video::FrameRate;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::ReelRange;

/// A request, as its job stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportRequest {
    /// Display title, also the stem of the file's name.
    pub title: String,
    /// The form of the file.
    pub format: Format,
    /// Whether pictures are encoded anew; for films.
    pub cut: Cut,
    /// Whether ranges become one file; for films.
    pub files: Files,
    /// The name of a standard frame rate. `None`: that of the first video.
    pub frame_rate: Option<String>,
    /// Whether timecode drops numbers where its rate allows it.
    pub drop_frame: bool,
    /// The ranges, in order.
    pub ranges: Vec<ReelRange>,
}

impl ExportRequest {
    /// The requested rate.
    pub fn rate(&self) -> Option<FrameRate> {
        self.frame_rate.as_deref().and_then(FrameRate::named)
    }

    /// The extension of the file's name.
    pub fn extension(&self) -> &'static str {
        match self.format {
            Format::Mp4 if self.files == Files::Each => "zip",
            Format::Mp4 => "mp4",
            Format::Edl => "edl",
            Format::Otio => "otio",
            Format::Fcpxml => "fcpxml",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Vtt => "vtt",
        }
    }

    /// The content type of the file.
    pub fn media_type(&self) -> &'static str {
        match self.extension() {
            "zip" => "application/zip",
            "mp4" => "video/mp4",
            "edl" => "text/plain; charset=utf-8",
            "fcpxml" => "application/xml",
            "csv" => "text/csv; charset=utf-8",
            "vtt" => "text/vtt; charset=utf-8",
            _ => "application/json",
        }
    }

    /// The name under which users save the file.
    pub fn file_name(&self) -> String {
        format!("{}.{}", plain_name(&self.title), self.extension())
    }
}

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A film, or a zip of films.
    Mp4,
    /// An edit decision list, CMX 3600.
    Edl,
    /// OpenTimelineIO's JSON.
    Otio,
    /// Final Cut Pro's XML.
    Fcpxml,
    /// A table.
    Csv,
    /// The table as JSON.
    Json,
    /// Chapters in WebVTT.
    Vtt,
}

/// How films are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Encoded anew, exact to the frame.
    Exact,
    /// Copied, from key frame to key frame.
    Copy,
}

/// The files of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// One file of all ranges.
    One,
    /// A file for each range, in a zip.
    Each,
}

/// What an export holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The rate at which it counts frames.
    pub frame_rate: String,
    /// Its ranges, with their real times.
    pub ranges: Vec<MadeRange>,
    /// The ranges that are not in it.
    pub left_out: Vec<LeftOut>,
}

/// A range of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeRange {
    /// Its place in the request, from 0.
    pub range: usize,
    /// Its video.
    pub video: Uuid,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// End, exclusive, in milliseconds.
    pub end_ms: i64,
}

/// A range that an export lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its place in the request, from 0.
    pub range: usize,
    /// Its video.
    pub video: Uuid,
    /// Why.
    pub why: String,
}

/// A text as the stem of a file's name on any system: letters, digits and a few signs, at most 80.
pub(super) fn plain_name(text: &str) -> String {
    let plain = |it: char| if it.is_alphanumeric() || " -_.()".contains(it) { it } else { '_' };
    let name: String = text.chars().map(plain).take(80).collect();
    let name = name.trim_matches(|it: char| it == '.' || it.is_whitespace());
    if name.is_empty() { "export".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(title: &str, expected: &str) {
        assert_eq!(plain_name(title), expected, "{title}");
    }

    #[test]
    fn titles_become_plain_names() {
        check("Best of: dives/1", "Best of_ dives_1");
        check("../../etc/passwd", "_.._etc_passwd");
        check("été 東京", "été 東京");
        check("a\r\nb\"c", "a__b_c");
        check(" . ", "export");
        check("", "export");
    }
}
