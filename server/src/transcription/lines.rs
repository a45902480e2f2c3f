//! Lines of subtitles from segments of speech.

use reprise_encoders::transcriber::{SpokenSegment, SpokenWord};

use crate::catalog::Line;

/// Longest line that is not cut, in milliseconds, if the times of its words are known.
const LONGEST_MS: i64 = 7_000;
/// Most characters of a line that is not cut: two rows of subtitles.
const MOST_CHARACTERS: usize = 84;
/// A line may end at the end of a sentence from this length on, in characters.
const SENTENCE_FROM: usize = 30;
/// Shortest line, in milliseconds: players show no shorter ones.
const SHORTEST_MS: i64 = 100;

/// The lines of some segments, in order. Long segments are cut between words, if the times of those are known. No line
/// ends after the next one's start, begins before zero, or is empty.
pub fn lines_of(segments: &[SpokenSegment]) -> Vec<Line> {
    let mut lines: Vec<Line> = segments.iter().flat_map(of_segment).collect();
    for at in 1..lines.len() {
        let next_ms = lines[at].start_ms;
        let line = &mut lines[at - 1];
        line.end_ms = line.end_ms.min(next_ms).max(line.start_ms + SHORTEST_MS);
    }
    lines
}

fn of_segment(segment: &SpokenSegment) -> Vec<Line> {
    let is_long = segment.text.chars().count() > MOST_CHARACTERS
        || segment.end_ms.saturating_sub(segment.start_ms) > LONGEST_MS;
    if is_long && segment.words.len() > 1 {
        let words: Vec<SpokenWord> = segment.words.iter().map(|word| within(segment, word)).collect();
        return pieces(&words).into_iter().filter_map(of_words).collect();
    }
    line(segment.start_ms, segment.end_ms, &segment.text).into_iter().collect()
}

/// The word inside of its segment: attention may lie in the silence around it.
fn within(segment: &SpokenSegment, word: &SpokenWord) -> SpokenWord {
    let within = |ms: i64| ms.min(segment.end_ms).max(segment.start_ms);
    SpokenWord { start_ms: within(word.start_ms), end_ms: within(word.end_ms), ..word.clone() }
}

/// Cuts words into runs that a line holds.
fn pieces(words: &[SpokenWord]) -> Vec<&[SpokenWord]> {
    let (mut pieces, mut from, mut characters) = (Vec::new(), 0, 0);
    for (at, word) in words.iter().enumerate() {
        let length = word.text.chars().count();
        let ends_sentence =
            |word: &SpokenWord| word.text.trim_end().ends_with(['.', '?', '!', '。', '？', '！']);
        let is_sentence = at > from && characters >= SENTENCE_FROM && ends_sentence(&words[at - 1]);
        let is_full = characters + length > MOST_CHARACTERS
            || word.end_ms.saturating_sub(words[from].start_ms) > LONGEST_MS;
        if at > from && (is_sentence || is_full) {
            pieces.push(&words[from..at]);
            (from, characters) = (at, 0);
        }
        characters += length;
    }
    pieces.push(&words[from..]);
    pieces
}

fn of_words(words: &[SpokenWord]) -> Option<Line> {
    let (first, last) = (words.first()?, words.last()?);
    line(first.start_ms, last.end_ms, &words.iter().map(|word| word.text.as_str()).collect::<String>())
}

fn line(start_ms: i64, end_ms: i64, text: &str) -> Option<Line> {
    let text: String = text.chars().filter(|character| *character != '\0').collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let start_ms = start_ms.max(0);
    let end_ms = end_ms.max(start_ms.saturating_add(SHORTEST_MS));
    (!text.is_empty()).then_some(Line { start_ms, end_ms, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start_ms: i64, end_ms: i64, words: &[&str]) -> SpokenSegment {
        let step = (end_ms - start_ms) / words.len().max(1) as i64;
        let word = |(at, text): (usize, &&str)| SpokenWord {
            start_ms: start_ms + at as i64 * step,
            end_ms: start_ms + (at as i64 + 1) * step,
            text: format!(" {text}"),
            probability: 1.0,
        };
        SpokenSegment {
            start_ms,
            end_ms,
            text: words.join(" "),
            words: words.iter().enumerate().map(word).collect(),
            language: None,
            avg_logprob: 0.0,
            no_speech: 0.0,
            compression_ratio: 1.0,
            temperature: 0.0,
        }
    }

    #[track_caller]
    fn check(segments: &[SpokenSegment], expected: &[(i64, i64, &str)]) {
        let lines = lines_of(segments);
        let got: Vec<_> = lines.iter().map(|it| (it.start_ms, it.end_ms, it.text.as_str())).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_short_segment_is_a_line() {
        check(&[segment(500, 2500, &["Hello", "there."])], &[(500, 2500, "Hello there.")]);
        check(&[segment(-5, 0, &["x"])], &[(0, 100, "x")]);
        check(&[segment(0, 900, &[" ", "\0"])], &[]);
        check(&[], &[]);
    }

    #[test]
    fn a_long_segment_is_cut_between_words_where_sentences_end() {
        let words = ["The", "learning", "rate", "falls", "in", "steps.", "Then", "we", "train", "again."];
        let expected =
            [(0, 6_000, "The learning rate falls in steps."), (6_000, 10_000, "Then we train again.")];
        check(&[segment(0, 10_000, &words)], &expected);
        let slow = segment(0, 16_000, &["one", "two", "three", "four"]);
        check(
            &[slow],
            &[(0, 4_000, "one"), (4_000, 8_000, "two"), (8_000, 12_000, "three"), (12_000, 16_000, "four")],
        );
        let mut late = segment(1_000, 9_000, &["one", "two"]);
        late.words[0].start_ms = 200;
        late.words[1].end_ms = 12_000;
        check(&[late], &[(1_000, 5_000, "one"), (5_000, 9_000, "two")]);
        let untimed = SpokenSegment { words: Vec::new(), ..segment(0, 10_000, &words) };
        check(&[untimed], &[(0, 10_000, "The learning rate falls in steps. Then we train again.")]);
    }

    #[test]
    fn lines_do_not_overlap() {
        check(
            &[segment(0, 3_000, &["a"]), segment(2_000, 4_000, &["b"])],
            &[(0, 2_000, "a"), (2_000, 4_000, "b")],
        );
        check(&[segment(0, 3_000, &["a"]), segment(0, 4_000, &["b"])], &[(0, 100, "a"), (0, 4_000, "b")]);
    }
}
