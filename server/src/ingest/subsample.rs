//! Samples few, evenly spaced frames from a long span while it is decoded. The span's frames are never all in memory.

use reprise_encoders::Frame;
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::segment::ClipRange;

/// A frame, or its features.
pub(super) trait Timed: Clone {
    /// Presentation time in milliseconds.
    fn time_ms(&self) -> i64;
}

impl Timed for Frame {
    fn time_ms(&self) -> i64 {
        self.time_ms
    }
}

/// Divides a span into `parts` intervals and takes the frame shown at the middle of each.
pub(super) struct FrameSubsampler<P> {
    range: ClipRange,
    parts: usize,
    /// Index of the next interval middle.
    next: usize,
    /// The newest frame before the span.
    before: Option<P>,
    /// The newest frame of the span, until it is taken.
    shown: Option<P>,
    taken: Vec<P>,
}

impl<P: Timed> FrameSubsampler<P> {
    /// A subsampler for a span with more than twice the sampler's most frames. `None` for a shorter span or another
    /// kind of sampler.
    pub(super) fn for_long(sampler: &Sampler, range: ClipRange) -> Option<FrameSubsampler<P>> {
        let Sampler::PerSecond { rate, at_most } = *sampler else { return None };
        let frames = (range.end_ms - range.start_ms) as f64 / 1000.0 * rate;
        let is_long = frames > 2.0 * at_most as f64;
        let (parts, taken) = (at_most.max(1), Vec::new());
        is_long.then_some(FrameSubsampler { range, parts, next: 0, before: None, shown: None, taken })
    }

    pub(super) fn range(&self) -> ClipRange {
        self.range
    }

    /// Takes the next frame of the video, inside or outside the span.
    pub(super) fn push(&mut self, frame: &P) {
        if frame.time_ms() < self.range.start_ms {
            self.before = Some(frame.clone());
        }
        if !(self.range.start_ms..self.range.end_ms).contains(&frame.time_ms()) {
            return;
        }
        if self.pass_middles_until(frame.time_ms()) {
            self.taken.extend(self.shown.take());
        }
        self.shown = Some(frame.clone());
    }

    /// The taken frames. If no frame begins in the span, the one shown at its start.
    pub(super) fn finish(mut self) -> Vec<P> {
        if self.pass_middles_until(self.range.end_ms) || self.taken.is_empty() {
            self.taken.extend(self.shown.take());
        }
        if self.taken.is_empty() {
            self.taken.extend(self.before.take());
        }
        self.taken
    }

    /// Advances past all interval middles up to `time_ms`. Returns whether it passed any.
    fn pass_middles_until(&mut self, time_ms: i64) -> bool {
        let before = self.next;
        while self.next < self.parts && self.middle() <= time_ms {
            self.next += 1;
        }
        self.next > before
    }

    fn middle(&self) -> i64 {
        let length = i128::from(self.range.end_ms - self.range.start_ms);
        let offset = length * (2 * self.next as i128 + 1) / (2 * self.parts as i128);
        self.range.start_ms + offset as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(range: (i64, i64), times: &[i64], expected: &[i64]) {
        let sampler = Sampler::PerSecond { rate: 2.0, at_most: 4 };
        let range = ClipRange { start_ms: range.0, end_ms: range.1 };
        let mut subsampler = FrameSubsampler::<Frame>::for_long(&sampler, range).unwrap();
        for &time_ms in times {
            subsampler.push(&Frame { time_ms, width: 1, height: 1, rgb: vec![0; 3].into() });
            assert!(subsampler.taken.len() <= 4);
        }
        let taken: Vec<i64> = subsampler.finish().iter().map(|frame| frame.time_ms).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    fn the_frames_on_the_screen_at_interval_middles_are_taken() {
        let times: Vec<i64> = (0..100).map(|i| i * 500).collect();
        check((0, 40_000), &times, &[4500, 14_500, 24_500, 34_500]);
        check((10_000, 20_000), &times, &[11_000, 13_500, 16_000, 18_500]);
    }

    #[test]
    fn a_picture_that_stays_is_taken_once() {
        check((0, 40_000), &[0, 30_000], &[0, 30_000]);
        check((0, 40_000), &[0], &[0]);
        check((10_000, 50_000), &[0, 9000, 60_000], &[9000]);
    }

    #[test]
    fn a_video_that_ends_early_gives_what_it_has() {
        check((0, 40_000), &[0, 500, 1000], &[1000]);
        check((0, 40_000), &[], &[]);
    }

    #[test]
    fn short_spans_and_other_samplers_are_not_thinned() {
        let short = ClipRange { start_ms: 0, end_ms: 3000 };
        assert!(
            FrameSubsampler::<Frame>::for_long(&Sampler::PerSecond { rate: 2.0, at_most: 4 }, short)
                .is_none()
        );
        let long = ClipRange { start_ms: 0, end_ms: 3_000_000 };
        assert!(FrameSubsampler::<Frame>::for_long(&Sampler::Stride { frames: 4 }, long).is_none());
    }
}
