//! Decoded frames of the ranges that composed queries ask for, kept in memory: models that read a clip and a text together
//! need its frames each time, and users try several changes of one clip.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reprise_encoders::video::sample::Sampler;
use reprise_encoders::{Frame, Scaling};

/// Most bytes of pixels: some ten clips of eight large frames.
const MOST_BYTES: usize = 128 << 20;
/// Most ranges.
const MOST_RANGES: usize = 64;

/// What frames were decoded. Contents of one hash never change.
#[derive(Debug, Clone, PartialEq)]
pub struct FramesOf {
    /// SHA-256 of the file, 64 hex digits.
    pub content_hash: String,
    /// The range, in milliseconds.
    pub range: Range<i64>,
    /// The rule that picked the frames.
    pub sampler: Sampler,
    /// Their size.
    pub scaling: Scaling,
}

/// The frames of recent ranges, the least recently used first.
#[derive(Debug, Default)]
pub struct QueryFrames(Mutex<VecDeque<(FramesOf, Vec<Frame>)>>);

impl QueryFrames {
    /// The kept frames of a range. The pixels are shared.
    pub fn get(&self, of: &FramesOf) -> Option<Vec<Frame>> {
        let mut kept = self.lock();
        let at = kept.iter().position(|(known, _)| known == of)?;
        let used = kept.remove(at)?;
        let frames = used.1.clone();
        kept.push_back(used);
        Some(frames)
    }

    /// Keeps the frames of a range; others leave until all fit. More than half of the room is never given to one range.
    pub fn keep(&self, of: FramesOf, frames: &[Frame]) {
        if bytes(frames) > MOST_BYTES / 2 {
            return;
        }
        let mut kept = self.lock();
        kept.retain(|(known, _)| *known != of);
        kept.push_back((of, frames.to_vec()));
        while kept.len() > MOST_RANGES
            || kept.iter().map(|(_, frames)| bytes(frames)).sum::<usize>() > MOST_BYTES
        {
            kept.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(FramesOf, Vec<Frame>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(frames: &[Frame]) -> usize {
    frames.iter().map(|frame| frame.rgb.len()).sum()
}

#[cfg(test)]
mod tests {
    use reprise_encoders::FrameSize;

    use super::*;

    fn of(start_ms: i64) -> FramesOf {
        FramesOf {
            content_hash: "a".repeat(64),
            range: start_ms..start_ms + 1000,
            sampler: Sampler::Spread { frames: 1 },
            scaling: FrameSize::ShortEdge(8).into(),
        }
    }

    fn frames(bytes: usize) -> Vec<Frame> {
        vec![Frame { time_ms: 0, width: 1, height: 1, rgb: vec![0; bytes].into() }]
    }

    /// Keeps ranges of these sizes, the first at 0, the next at 1, and so on. Checks the starts of those that are left.
    #[track_caller]
    fn check(sizes: &[usize], expected: &[i64]) {
        let cache = QueryFrames::default();
        for (start, size) in sizes.iter().enumerate() {
            cache.keep(of(start as i64), &frames(*size));
            // The first is used all the time.
            cache.get(&of(0));
        }
        let kept: Vec<i64> =
            (0..sizes.len() as i64).filter(|start| cache.get(&of(*start)).is_some()).collect();
        assert_eq!(kept, expected);
    }

    #[test]
    fn the_least_recently_used_ranges_leave() {
        check(&[], &[]);
        check(&[3, 3], &[0, 1]);
        check(&[MOST_BYTES / 2 + 1, 3], &[1]);
        check(&[MOST_BYTES / 2, MOST_BYTES / 2, 3], &[0, 2]);
        let all: Vec<i64> = [0].into_iter().chain(2..=MOST_RANGES as i64).collect();
        check(&vec![1; MOST_RANGES + 1], &all);
    }

    #[test]
    fn other_frames_of_a_range_are_kept_apart() {
        let cache = QueryFrames::default();
        cache.keep(of(0), &frames(1));
        let others = [
            FramesOf { content_hash: "b".repeat(64), ..of(0) },
            FramesOf { sampler: Sampler::Spread { frames: 2 }, ..of(0) },
            FramesOf { scaling: FrameSize::ShortEdge(9).into(), ..of(0) },
            of(1),
        ];
        assert!(others.iter().all(|other| cache.get(other).is_none()));
        cache.keep(of(0), &frames(2));
        assert_eq!(cache.get(&of(0)).map(|frames| frames[0].rgb.len()), Some(2));
    }
}
