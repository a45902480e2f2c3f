//! SubRip: a number, two times, text, an empty line. Damaged files lack numbers or have empty lines inside the
//! text. So a cue ends only at the next one's number or times.

use super::blocks::Read;
use super::markup;
use super::text::Row;

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
