//! WebVTT: a header, then blocks between empty lines: cues, notes, styles, regions.

use super::blocks::Read;
use super::text::Row;
use super::{Line, markup, time};

/// Whether the first row is the `WEBVTT` header.
pub(super) fn is_header(rows: &[Row<'_>]) -> bool {
    let rest = rows.first().and_then(|row| row.text.strip_prefix("WEBVTT"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

pub(super) fn read(rows: &[Row<'_>]) -> Read {
    let mut read = Read::default();
    // Rows after the header, up to an empty row, belong to the header. A cue among them is still read.
    let body = rows.iter().position(|row| row.is_blank() || row.has_arrow()).unwrap_or(rows.len());
    let mut rest = &rows[body..];
    while let Some(start) = rest.iter().position(|row| !row.is_blank()) {
        rest = &rest[start..];
        let end = rest.iter().position(Row::is_blank).unwrap_or(rest.len());
        block(&mut read, &rest[..end]);
        rest = &rest[end..];
    }
    read
}

fn block(read: &mut Read, rows: &[Row<'_>]) {
    let timings: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].has_arrow()).collect();
    let is_named = |name: &str| {
        let rest = rows.first().and_then(|row| row.text.strip_prefix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    let first = match timings.first() {
        _ if is_named("NOTE") => return,
        None if is_named("STYLE") || is_named("REGION") => return,
        None => return read.warn(&rows[0], "this belongs to no cue and is left out"),
        Some(first) => *first,
    };
    // The identifier is one row. Further rows are text that an empty row cut off.
    if first > 1 {
        read.warn(&rows[0], "this belongs to no cue and is left out");
    }
    for (number, at) in timings.iter().enumerate() {
        let next = timings.get(number + 1).copied().unwrap_or(rows.len());
        read.cue(&rows[*at], &rows[at + 1..next], markup::of_vtt);
    }
}

/// Writes a WebVTT file of `lines`, with all times shifted by `shift_ms`. Starts before zero become zero. Lines
/// that end at zero or before are left out.
pub fn write(lines: &[Line], shift_ms: i64) -> String {
    let mut file = String::from("WEBVTT\n");
    for shown in shifted(lines, shift_ms) {
        let (start, end) = (time::written(shown.start_ms), time::written(shown.end_ms));
        file.push_str(&format!("\n{start} --> {end}\n{}\n", escaped(shown.text)));
    }
    file
}

/// A line with its times in a written file.
pub(super) struct Shifted<'a> {
    pub(super) start_ms: i64,
    pub(super) end_ms: i64,
    pub(super) text: &'a str,
}

/// The lines that a file shows: those that end after zero.
pub(super) fn shifted(lines: &[Line], shift_ms: i64) -> impl Iterator<Item = Shifted<'_>> {
    lines.iter().filter_map(move |line| {
        let start_ms = line.start_ms.saturating_add(shift_ms).max(0);
        let end_ms = line.end_ms.saturating_add(shift_ms);
        (end_ms > 0).then_some(Shifted { start_ms, end_ms, text: &line.text })
    })
}

/// Escapes markup and the cue arrow.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
