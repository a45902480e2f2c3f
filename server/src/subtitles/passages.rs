//! Passages: about half a minute of what is said, cut where sentences end, so that a meaning that takes several
//! cues is found whole.

use std::ops::Range;

use super::Line;

/// A passage is closed at the first end of a sentence after this long,
const SHORTEST_MS: i64 = 20_000;
/// and at any cue after this long.
const LONGEST_MS: i64 = 40_000;
/// Nobody goes on with a thought after so long a silence.
const SILENCE_MS: i64 = 15_000;
/// The last cues of a passage begin the next one as well, as long as they are no longer than this together.
const OVERLAP_MS: i64 = 6_000;
/// and no more than this many.
const OVERLAP_CUES: usize = 2;

/// Cuts lines, in order of start, into passages that cover them all; each begins and ends with a line.
pub fn passages(lines: &[Line]) -> Vec<Range<usize>> {
    let mut passages = Vec::new();
    let mut start = 0;
    while start < lines.len() {
        let end = end_of(lines, start);
        passages.push(start..end);
        if end == lines.len() {
            break;
        }
        let is_silent = SILENCE_MS < lines[end].start_ms - lines[end - 1].end_ms;
        let overlapping = overlapping(lines, start, end);
        // Nothing but the overlap would fit beside a very long cue.
        start = if is_silent || end_of(lines, overlapping) <= end { end } else { overlapping };
    }
    passages
}

fn end_of(lines: &[Line], start: usize) -> usize {
    let from = lines[start].start_ms;
    for at in start + 1..lines.len() {
        let (before, next) = (&lines[at - 1], &lines[at]);
        let so_far = before.end_ms - from;
        let is_over = next.end_ms - from > LONGEST_MS || SILENCE_MS < next.start_ms - before.end_ms;
        if is_over || (SHORTEST_MS <= so_far && ends_sentence(&before.text)) {
            return at;
        }
    }
    lines.len()
}

fn ends_sentence(text: &str) -> bool {
    let bare = text.trim_end_matches(|it: char| it.is_whitespace() || "\"'”’»)]".contains(it));
    bare.ends_with(['.', '!', '?', '…', '。', '！', '？', '।', '؟'])
}

/// Where the passage after `start..end` starts: always after `start`.
fn overlapping(lines: &[Line], start: usize, end: usize) -> usize {
    let fits = |from: &usize| lines[end - 1].end_ms - lines[*from].start_ms <= OVERLAP_MS;
    let earliest = (start + 1).max(end.saturating_sub(OVERLAP_CUES));
    (earliest..end).find(fits).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines as (start, end) in seconds; those whose number is in `sentences` end one.
    #[track_caller]
    fn check(times: &[(i64, i64)], sentences: &[usize], expected: &[Range<usize>]) {
        let line = |(number, (start, end)): (usize, &(i64, i64))| Line {
            start_ms: start * 1000,
            end_ms: end * 1000,
            text: if sentences.contains(&number) { "so it is.”".to_owned() } else { "and then".to_owned() },
        };
        let lines: Vec<Line> = times.iter().enumerate().map(line).collect();
        assert_eq!(passages(&lines), expected, "{times:?}");
    }

    fn every(seconds: i64, count: i64) -> Vec<(i64, i64)> {
        (0..count).map(|number| (number * seconds, (number + 1) * seconds)).collect()
    }

    #[test]
    fn passages_end_where_sentences_do() {
        check(&every(5, 8), &[1, 4], &[0..5, 4..8]);
        check(&every(2, 30), &[12, 24], &[0..13, 11..25, 23..30]);
    }

    #[test]
    fn a_speech_without_sentences_is_cut_all_the_same() {
        check(&every(10, 9), &[], &[0..4, 4..8, 8..9]);
        check(&[(0, 100), (100, 101)], &[], &[0..1, 1..2]);
    }

    #[test]
    fn silence_parts_passages() {
        check(&[(0, 2), (2, 4), (30, 32), (32, 34)], &[], &[0..2, 2..4]);
        check(&[(5, 6)], &[], std::slice::from_ref(&(0..1)));
        check(&[], &[], &[]);
    }

    proptest! {
        #[test]
        fn passages_cover_all_lines_and_go_on(
            times in proptest::collection::vec((0..20_000_i64, 1..50_000_i64, any::<bool>()), 0..60)
        ) {
            let mut at = 0;
            let lines: Vec<Line> = times.iter().map(|(pause, length, ends)| {
                at += pause;
                let text = if *ends { "so." } else { "so" };
                Line { start_ms: at, end_ms: at + length, text: text.to_owned() }
            }).collect();
            let cut = passages(&lines);
            prop_assert_eq!(cut.first().map_or(0, |it| it.start), 0);
            prop_assert_eq!(cut.last().map_or(0, |it| it.end), lines.len());
            for pair in cut.windows(2) {
                prop_assert!(pair[0].start < pair[1].start && pair[0].end < pair[1].end, "{cut:?}");
                prop_assert!(pair[1].start <= pair[0].end && pair[0].end - pair[1].start <= OVERLAP_CUES, "{cut:?}");
            }
        }
    }
}
