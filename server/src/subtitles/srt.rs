//! SubRip: a number, two times, text, an empty line. Damaged files lack numbers or have empty lines inside the
//! text. So a cue ends only at the next one's number or times.

use super::blocks::Read;
use super::markup;
use super::text::Row;
use super::{Line, time, vtt};

pub(super) fn read(rows: &[Row<'_>]) -> Read {
    let mut read = Read::default();
    let timings: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].has_arrow()).collect();
    if let Some(first) = timings.first() {
        preamble(&mut read, &rows[..*first]);
    }
    for (number, at) in timings.iter().enumerate() {
        let next = timings.get(number + 1).copied();
        let payload = &rows[at + 1..next.unwrap_or(rows.len())];
        let payload = if next.is_some() { without_number(payload) } else { payload };
        read.cue(&rows[*at], payload, markup::of_subrip);
    }
    read
}

/// Writes a SubRip file of `lines`, with all times shifted by `shift_ms`, as [`vtt::write`] does. SubRip escapes nothing, so
/// an arrow in a text loses its point.
pub fn write(lines: &[Line], shift_ms: i64) -> String {
    let mut file = String::new();
    for (number, shown) in vtt::shifted(lines, shift_ms).enumerate() {
        let time = |ms| time::written(ms).replace('.', ",");
        let (start, end) = (time(shown.start_ms), time(shown.end_ms));
        let rows = shown.text.lines().map(str::trim).filter(|row| !row.is_empty());
        let text = rows.collect::<Vec<_>>().join("\n").replace("-->", "--");
        let blank = if number > 0 { "\n" } else { "" };
        file.push_str(&format!("{blank}{}\n{start} --> {end}\n{text}\n", number + 1));
    }
    file
}

/// Removes the next cue's number from a cue's text.
fn without_number<'a, 'b>(payload: &'a [Row<'b>]) -> &'a [Row<'b>] {
    match payload.iter().rposition(|row| !row.is_blank()) {
        Some(last) if is_number(payload[last].text) => &payload[..last],
        _ => payload,
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Only a number may precede the first cue. Other text gives a warning.
fn preamble(read: &mut Read, rows: &[Row<'_>]) {
    if let Some(row) = without_number(rows).iter().find(|row| !row.is_blank()) {
        read.warn(row, "this stands before the first cue and is left out");
    }
}
