//! Splits a long text into windows, if possible one per sentence.
//!
//! A window with one sentence represents that sentence alone. A window filled to the model's limit blends all its
//! sentences.

use std::ops::Range;

/// The number of windows for `tokens` tokens when a window holds `room`; at least one.
pub(super) fn count(tokens: usize, room: usize) -> usize {
    let overlap = overlap(room);
    match tokens {
        _ if tokens <= room => 1,
        _ => (tokens - overlap).div_ceil(room - overlap),
    }
}

/// Windows of `room` tokens that overlap by a quarter of `room`. The last one holds more than a quarter.
pub(super) fn spans(tokens: usize, room: usize) -> impl Iterator<Item = Range<usize>> {
    let stride = room - overlap(room);
    (0..count(tokens, room)).map(move |window| {
        let start = window * stride;
        start..tokens.min(start + room)
    })
}

/// Sentences of fewer tokens ("No.", "Dr.") join the next one.
const SHORT: usize = 4;

/// The byte offsets of sentence ends, the last one the text's length. A sentence ends at a line end, or at a full stop,
/// question mark or exclamation mark (with closing quotes) that whitespace follows.
pub(super) fn sentence_ends(text: &str) -> impl Iterator<Item = usize> {
    let mut letters = text.char_indices().peekable();
    let mut closing = false;
    let inside = std::iter::from_fn(move || {
        loop {
            let (at, letter) = letters.next()?;
            let end = at + letter.len_utf8();
            closing = match letter {
                '.' | '!' | '?' | '…' => true,
                '"' | '\'' | ')' | ']' | '”' | '’' | '»' => closing,
                _ => false,
            };
            let ends = match letter {
                '\n' | '。' | '！' | '？' => true,
                _ => closing && letters.peek().is_some_and(|(_, next)| next.is_whitespace()),
            };
            if ends && letters.peek().is_some() {
                closing = false;
                return Some(end);
            }
        }
    });
    inside.chain(std::iter::once(text.len()))
}

/// Windows over sentences; `ends` are the sentences' end positions in tokens. At most `most` windows if possible, none
/// over `room`.
pub(super) fn by_sentence(ends: &[usize], room: usize, most: usize) -> Vec<Range<usize>> {
    let pieces = pieces(ends, room);
    if pieces.len() <= most {
        return pieces;
    }
    // Larger windows are fewer. This finds the smallest size that gives few enough.
    let (mut low, mut high) = (1, room);
    while low < high {
        let middle = low.midpoint(high);
        match packed(&pieces, middle).len() <= most {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    let packed = packed(&pieces, high);
    let tokens = ends.last().copied().unwrap_or_default();
    if packed.len() <= most { packed } else { side_by_side(tokens, room) }
}

/// The fewest windows without overlap.
fn side_by_side(tokens: usize, room: usize) -> Vec<Range<usize>> {
    (0..tokens.div_ceil(room)).map(|window| window * room..tokens.min((window + 1) * room)).collect()
}

/// The sentences, with short ones joined to the next and long ones split.
fn pieces(ends: &[usize], room: usize) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let (mut start, last) = (0, ends.last().copied().unwrap_or_default());
    for end in ends.iter().copied() {
        let is_short = end < start + SHORT.min(room);
        match pieces.last_mut() {
            _ if end <= start || (is_short && end < last) => continue,
            Some(before) if is_short && end - before.start <= room => before.end = end,
            _ => pieces.extend(spans(end - start, room).map(|it| start + it.start..start + it.end)),
        }
        start = end;
    }
    pieces
}

/// Joins neighbours while they hold at most `most` tokens.
fn packed(pieces: &[Range<usize>], most: usize) -> Vec<Range<usize>> {
    let mut packed: Vec<Range<usize>> = Vec::new();
    for piece in pieces {
        match packed.last_mut() {
            Some(last) if piece.end - last.start <= most => last.end = piece.end,
            _ => packed.push(piece.clone()),
        }
    }
    packed
}

/// The overlap: less than `room` for every `room` above 0.
fn overlap(room: usize) -> usize {
    room / 4
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut start = 0;
        let sentences: Vec<&str> = sentence_ends(text)
            .map(|end| {
                let sentence = &text[start..end];
                start = end;
                sentence.trim()
            })
            .collect();
        assert_eq!(sentences, expected);
    }

    #[test]
    fn sentences_end_where_a_reader_pauses() {
        check("One. Two? three!", &["One.", "Two?", "three!"]);
        check("with 2.5 turns in U.S.A", &["with 2.5 turns in U.S.A"]);
        check("he said \"No.\" and went", &["he said \"No.\"", "and went"]);
        check("a line\nanother", &["a line", "another"]);
        check("跳水。转体", &["跳水。", "转体"]);
        check("", &[""]);
    }

    #[test]
    fn each_sentence_is_a_window_and_long_ones_are_cut() {
        assert_eq!(by_sentence(&[5, 12, 20], 10, 9), [0..5, 5..12, 12..20]);
        assert_eq!(by_sentence(&[2, 8, 28], 10, 9), [0..8, 8..18, 16..26, 24..28]);
        assert_eq!(by_sentence(&[6, 12, 18, 24], 14, 2), [0..12, 12..24]);
        assert_eq!(by_sentence(&[6, 12, 18, 24], 12, 1), [0..12, 12..24], "the fewest that hold all");
        assert_eq!(by_sentence(&[8, 16, 24], 12, 2), [0..12, 12..24], "sentences give way to the limit");
    }

    proptest! {
        #[test]
        fn windows_by_sentence_hold_every_token_in_order_and_none_is_too_long(
            lengths in prop::collection::vec(0_usize..60, 1..200), room in 1_usize..100, most in 1_usize..150,
        ) {
            let ends: Vec<usize> = lengths.iter().scan(0, |sum, it| { *sum += it; Some(*sum) }).collect();
            let tokens = ends[ends.len() - 1];
            prop_assume!(tokens > room);
            let windows = by_sentence(&ends, room, most);
            prop_assert!(windows.len() <= most.max(count(tokens, room)));
            prop_assert_eq!((windows[0].start, windows[windows.len() - 1].end), (0, tokens));
            prop_assert!(windows.iter().all(|it| !it.is_empty() && it.len() <= room));
            prop_assert!(windows.windows(2).all(|pair| pair[1].start <= pair[0].end && pair[0].end < pair[1].end));
        }

        #[test]
        fn windows_cover_the_text_and_overlap_by_at_most_a_quarter(tokens in 0_usize..3000, room in 1_usize..300) {
            let spans: Vec<_> = spans(tokens, room).collect();
            prop_assert_eq!(spans.len(), count(tokens, room));
            prop_assert_eq!(spans[0].start, 0);
            prop_assert_eq!(spans[spans.len() - 1].end, tokens);
            for span in &spans {
                prop_assert!(span.len() <= room);
            }
            for pair in spans.windows(2) {
                prop_assert!(pair[1].start <= pair[0].end, "a gap");
                prop_assert!((pair[0].end - pair[1].start) * 4 <= room, "too much overlap");
                prop_assert!(pair[1].end > pair[0].end, "nothing new");
            }
        }
    }
}
