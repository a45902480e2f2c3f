//! Moments: windows inside clips. They give one element of an uncut routine its own start and end.

use std::collections::BTreeSet;

use reprise_encoders::video::segment::ClipRange;

use crate::catalog::Span;

/// Window lengths in milliseconds. The stride is half the length.
const WINDOWS_MS: [i64; 3] = [1000, 2000, 4000];

/// The windows inside `clip`, of each length below the clip's. The last window of a length ends with the clip, so that
/// the windows cover the clip.
pub(super) fn windows(clip: ClipRange) -> Vec<ClipRange> {
    WINDOWS_MS.iter().flat_map(|&window_ms| windows_of(clip, window_ms)).collect()
}

fn windows_of(clip: ClipRange, window_ms: i64) -> impl Iterator<Item = ClipRange> {
    let room_ms = clip.end_ms - clip.start_ms - window_ms;
    let stride_ms = window_ms / 2;
    // Rounded up: the last stride may be shorter.
    let strides = if room_ms > 0 { (room_ms + stride_ms - 1) / stride_ms + 1 } else { 0 };
    (0..strides).map(move |number| {
        let start_ms = clip.start_ms + (number * stride_ms).min(room_ms);
        ClipRange { start_ms, end_ms: start_ms + window_ms }
    })
}

/// The windows inside `clips`, without duplicates.
pub(super) fn windows_inside(clips: &[Span]) -> Vec<ClipRange> {
    let ranges =
        clips.iter().flat_map(|clip| windows(ClipRange { start_ms: clip.start_ms, end_ms: clip.end_ms }));
    let once: BTreeSet<(i64, i64)> = ranges.map(|window| (window.start_ms, window.end_ms)).collect();
    once.into_iter().map(|(start_ms, end_ms)| ClipRange { start_ms, end_ms }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(clip: (i64, i64), expected: &[(i64, i64)]) {
        let found = windows(ClipRange { start_ms: clip.0, end_ms: clip.1 });
        let found: Vec<(i64, i64)> = found.iter().map(|it| (it.start_ms, it.end_ms)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_clips_longer_than_a_window_hold_it() {
        check((0, 1000), &[]);
        check((0, 0), &[]);
        check((5000, 6001), &[(5000, 6000), (5001, 6001)]);
    }

    #[test]
    fn windows_overlap_by_half_and_the_last_ends_with_the_clip() {
        check((100, 2400), &[(100, 1100), (600, 1600), (1100, 2100), (1400, 2400), (100, 2100), (400, 2400)]);
    }

    #[test]
    fn all_three_lengths_cover_a_long_clip() {
        let clip = ClipRange { start_ms: 0, end_ms: 10_000 };
        for window_ms in WINDOWS_MS {
            let of_length: Vec<ClipRange> =
                windows(clip).into_iter().filter(|it| it.end_ms - it.start_ms == window_ms).collect();
            assert_eq!(of_length.first().map(|it| it.start_ms), Some(0));
            assert_eq!(of_length.last().map(|it| it.end_ms), Some(10_000));
            assert!(of_length.windows(2).all(|pair| pair[1].start_ms - pair[0].start_ms <= window_ms / 2));
        }
    }
}
