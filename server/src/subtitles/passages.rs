//! Passages: about half a minute of cues, cut at ends of sentences; of text on screen, what appears together. A search by
//! meaning finds a thought that spans several cues.

use std::ops::Range;

use super::Line;

/// Least length of a passage that ends with a sentence.
const SHORTEST_MS: i64 = 20_000;
/// Longest passage, except for a single longer cue.
const LONGEST_MS: i64 = 40_000;
/// A longer silence always ends a passage.
const SILENCE_MS: i64 = 15_000;
/// Longest overlap with the next passage,
const OVERLAP_MS: i64 = 6_000;
/// in at most this many cues.
const OVERLAP_CUES: usize = 2;

/// Lines on screen that start within this time of each other are one passage, such as a slide that is built up,
const TOGETHER_MS: i64 = 2_000;
/// up to this time after its first line,
const LONGEST_APPEARANCE_MS: i64 = 20_000;
/// and at most this number of lines.
const MOST_ON_SCREEN: usize = 60;

/// Cuts lines on screen, in order of start, into passages that cover all lines.
pub fn passages_on_screen(lines: &[Line]) -> Vec<Range<usize>> {
    let mut passages: Vec<Range<usize>> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match passages.last_mut() {
            Some(last)
                if line.start_ms - lines[at - 1].start_ms <= TOGETHER_MS
                    && line.start_ms - lines[last.start].start_ms <= LONGEST_APPEARANCE_MS
                    && last.len() < MOST_ON_SCREEN =>
            {
                last.end = at + 1;
            }
            _ => passages.push(at..at + 1),
        }
    }
    passages
}

/// Cuts lines, in order of start, into overlapping passages that cover all lines.
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
        // Beside a very long cue, only the overlap would fit.
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

/// Start of the passage after `start..end`. Always greater than `start`.
fn overlapping(lines: &[Line], start: usize, end: usize) -> usize {
    let fits = |from: &usize| lines[end - 1].end_ms - lines[*from].start_ms <= OVERLAP_MS;
    let earliest = (start + 1).max(end.saturating_sub(OVERLAP_CUES));
    (earliest..end).find(fits).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines as (start, end) in seconds. `sentences`: the lines that end a sentence.
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
        check(&every(5, 8), &[3], &[0..4, 3..8]);
        check(&[(0, 10), (10, 19), (19, 30), (30, 35)], &[1], std::slice::from_ref(&(0..4)));
        // The overlap is six seconds at most.
        check(&[(0, 14), (14, 17), (17, 20), (20, 25)], &[2], &[0..3, 1..4]);
        check(&[(0, 13), (13, 17), (17, 20), (20, 25)], &[2], &[0..3, 2..4]);
    }

    #[test]
    fn a_speech_without_sentences_is_cut_all_the_same() {
        check(&every(10, 9), &[], &[0..4, 4..8, 8..9]);
        check(&[(0, 100), (100, 101)], &[], &[0..1, 1..2]);
    }

    #[test]
    fn silence_parts_passages() {
        check(&[(0, 2), (2, 4), (30, 32), (32, 34)], &[], &[0..2, 2..4]);
        check(&[(0, 2), (17, 19)], &[], std::slice::from_ref(&(0..2)));
        check(&[(0, 2), (18, 20)], &[], &[0..1, 1..2]);
        check(&[(5, 6)], &[], std::slice::from_ref(&(0..1)));
        check(&[], &[], &[]);
    }

    #[test]
    fn what_appears_together_on_screen_is_a_passage() {
        let cut = |starts: &[i64]| {
            let line = |start: &i64| Line { start_ms: *start, end_ms: 600_000, text: "so".to_owned() };
            passages_on_screen(&starts.iter().map(line).collect::<Vec<_>>())
        };
        assert_eq!(cut(&[0, 0, 1000, 60_000, 60_000]), [0..3, 3..5]);
        assert_eq!(cut(&(0..30).map(|it| it * 1000).collect::<Vec<_>>()), [0..21, 21..30]);
        assert_eq!(cut(&[0; 61]), [0..60, 60..61]);
        assert_eq!(cut(&[0, 2000, 4001]), [0..2, 2..3]);
        assert!(cut(&[]).is_empty());
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
