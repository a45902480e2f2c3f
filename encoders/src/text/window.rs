//! How many windows a text of some length needs, and where they lie: arithmetic only.

use std::ops::Range;

/// Windows that `tokens` tokens need when each holds `room`; at least one.
pub(super) fn count(tokens: usize, room: usize) -> usize {
    let overlap = overlap(room);
    match tokens {
        _ if tokens <= room => 1,
        _ => (tokens - overlap).div_ceil(room - overlap),
    }
}

/// The windows: each but the last holds `room` tokens, neighbours share a quarter of `room`, so the
/// last holds more than a quarter.
pub(super) fn spans(tokens: usize, room: usize) -> impl Iterator<Item = Range<usize>> {
    let stride = room - overlap(room);
    (0..count(tokens, room)).map(move |window| {
        let start = window * stride;
        start..tokens.min(start + room)
    })
}

/// Less than `room` for every `room` above 0.
fn overlap(room: usize) -> usize {
    room / 4
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
