//! Shared by both formats: the cues of a file, and warnings about unreadable ones.

use super::text::Row;
use super::{Line, MAX_CHARACTERS, MAX_CUES, MAX_WARNINGS, Unreadable, time};

/// The cues and warnings so far.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) lines: Vec<Line>,
    /// The first problems.
    pub(super) warnings: Vec<String>,
    /// Number of further problems. Each line of a large file may have one.
    pub(super) more_warnings: usize,
}

impl Read {
    pub(super) fn warn(&mut self, row: &Row<'_>, what: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(format!("line {}: {what}", row.number));
        } else {
            self.more_warnings += 1;
        }
    }

    /// Adds a cue from its timing row and text rows, or a warning if it is unreadable. Keeps one cue beyond the limit,
    /// which shows that the file has too many.
    pub(super) fn cue(&mut self, timing: &Row<'_>, payload: &[Row<'_>], plain: impl Fn(&str) -> String) {
        if self.lines.len() > MAX_CUES {
            return;
        }
        let Some((start_ms, end_ms)) = time::range(timing.text) else {
            return self.warn(
                timing,
                "these are no two times like 00:00:01,000 --> 00:00:02,000; the cue is left out",
            );
        };
        if end_ms <= start_ms {
            return self.warn(timing, "the cue ends before it starts; it is left out");
        }
        let text = joined(payload, plain);
        if text.is_empty() {
            return self.warn(timing, "the cue has no text; it is left out");
        }
        let end = text.char_indices().nth(MAX_CHARACTERS).map(|(end, _)| end);
        if end.is_some() {
            self.warn(timing, &format!("the cue's text is cut at {MAX_CHARACTERS} characters"));
        }
        let text = text[..end.unwrap_or(text.len())].trim_end().to_owned();
        self.lines.push(Line { start_ms, end_ms, text });
    }

    /// The error for a file without a readable cue.
    pub(super) fn refusal(&self, rows: &[Row<'_>]) -> Unreadable {
        let told = self.warnings.first().and_then(|first| {
            let (line, why) = first.strip_prefix("line ")?.split_once(": ")?;
            Some(Unreadable { line: line.parse().ok()?, why: format!("not one cue could be read: {why}") })
        });
        told.unwrap_or_else(|| Unreadable {
            line: rows.iter().find(|row| !row.is_blank()).map_or(1, |row| row.number),
            why: "this is no SubRip or WebVTT file with a cue: no line has `-->` between two times"
                .to_owned(),
        })
    }
}

/// Joins the non-empty plain rows by line breaks. NUL becomes U+FFFD, because databases reject NUL in text.
fn joined(payload: &[Row<'_>], plain: impl Fn(&str) -> String) -> String {
    let rows = payload.iter().map(|row| plain(row.text).replace('\0', "\u{fffd}"));
    let rows: Vec<String> = rows.map(|row| row.trim().to_owned()).filter(|row| !row.is_empty()).collect();
    rows.join("\n")
}
