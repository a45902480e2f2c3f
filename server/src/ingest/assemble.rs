//! Which sampled frames belong to which span, while both are still coming in.

use std::collections::VecDeque;

use reprise_encoders::Frame;
use reprise_encoders::video::Output;
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::segment::ClipRange;

/// Frames of one decoder output, waiting for the end of the spans that they are in.
///
/// Clips arrive in order of time, each after the frame that ended it; frames arrive in order of time, not
/// in step with the clips. Given spans are known from the start and may overlap.
pub(super) struct Assembler<T> {
    sampler: Sampler,
    frames: VecDeque<Frame>,
    waiting: Vec<(T, ClipRange)>,
    /// Clips that will still come start here or later: earlier frames are needed by `waiting` alone.
    clips_from_ms: i64,
    /// Time of the newest frame.
    seen_ms: i64,
}

/// A span that is over, with its frames (none if no sampled frame lies in it).
pub(super) struct Assembled<T> {
    pub(super) span: T,
    pub(super) range: ClipRange,
    pub(super) frames: Vec<Frame>,
}

impl<T> Assembler<T> {
    /// Waits for the `known` spans and for clips that start at `clips_from_ms` or later (`i64::MAX`: none).
    pub(super) fn new(sampler: Sampler, known: Vec<(T, ClipRange)>, clips_from_ms: i64) -> Self {
        Assembler { sampler, frames: VecDeque::new(), waiting: known, clips_from_ms, seen_ms: -1 }
    }

    /// A clip became certain.
    pub(super) fn clip(&mut self, span: T, range: ClipRange) {
        self.clips_from_ms = range.end_ms;
        self.waiting.push((span, range));
    }

    /// The next sampled frame.
    pub(super) fn frame(&mut self, frame: Frame) {
        self.seen_ms = frame.time_ms;
        let wanted = |(_, range): &(T, ClipRange)| holds(*range, frame.time_ms);
        if self.clips_from_ms <= frame.time_ms || self.waiting.iter().any(wanted) {
            self.frames.push_back(frame);
        }
    }

    /// Spans whose last frame has certainly come.
    pub(super) fn ready(&mut self) -> Vec<Assembled<T>> {
        self.take_until(self.seen_ms)
    }

    /// No more frames will come: all spans that are left.
    pub(super) fn finish(&mut self) -> Vec<Assembled<T>> {
        self.take_until(i64::MAX)
    }

    fn take_until(&mut self, seen_ms: i64) -> Vec<Assembled<T>> {
        let mut over = Vec::new();
        let mut index = 0;
        while index < self.waiting.len() {
            if self.waiting[index].1.end_ms <= seen_ms {
                let (span, range) = self.waiting.remove(index);
                over.push(Assembled { span, range, frames: self.frames_of(range) });
            } else {
                index += 1;
            }
        }
        self.forget();
        over
    }

    fn frames_of(&self, range: ClipRange) -> Vec<Frame> {
        let inside: Vec<&Frame> = self.frames.iter().filter(|frame| holds(range, frame.time_ms)).collect();
        pick(&self.sampler, &inside, range.start_ms)
    }

    fn forget(&mut self) {
        let starts = self.waiting.iter().map(|(_, range)| range.start_ms);
        let needed_from = starts.min().unwrap_or(i64::MAX).min(self.clips_from_ms);
        while self.frames.front().is_some_and(|frame| frame.time_ms < needed_from) {
            self.frames.pop_front();
        }
    }
}

fn holds(range: ClipRange, time_ms: i64) -> bool {
    (range.start_ms..range.end_ms).contains(&time_ms)
}

/// The decoder's output for `sampler`: rates are sampled by the decoder, other rules need every frame.
pub(super) fn per_second(sampler: &Sampler) -> Option<f64> {
    match sampler {
        Sampler::PerSecond { rate, .. } => Some(*rate),
        Sampler::Middles { .. } | Sampler::Stride { .. } => None,
    }
}

/// The decoder output that a space's sampler needs.
pub(super) fn output_of(space: &reprise_encoders::Space) -> Output {
    Output { size: space.frame_size, per_second: per_second(&space.sampler) }
}

/// Frames that came at the sampler's own rate are all taken, thinned evenly to its bound; the other rules
/// pick from all frames of the span.
fn pick(sampler: &Sampler, frames: &[&Frame], start_ms: i64) -> Vec<Frame> {
    let indices = match sampler {
        Sampler::PerSecond { at_most, .. } => thin(frames.len(), *at_most),
        Sampler::Middles { .. } | Sampler::Stride { .. } => {
            let times: Vec<i64> = frames.iter().map(|frame| frame.time_ms).collect();
            sampler.pick(&times, start_ms)
        }
    };
    indices.into_iter().map(|index| frames[index].clone()).collect()
}

/// Indices of `at_most` of `count` things, at interval middles.
fn thin(count: usize, at_most: usize) -> Vec<usize> {
    let taken = count.min(at_most);
    (0..taken).map(|i| (2 * i + 1) * count / (2 * taken)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLER: Sampler = Sampler::PerSecond { rate: 2.0, at_most: 3 };

    fn frame(time_ms: i64) -> Frame {
        Frame { time_ms, width: 1, height: 1, rgb: vec![0; 3].into() }
    }

    fn range(start_ms: i64, end_ms: i64) -> ClipRange {
        ClipRange { start_ms, end_ms }
    }

    /// Feeds frames every 500 ms from 250, ends clips as their end passes, and compares (name, times).
    #[track_caller]
    fn check(known: &[(i64, i64)], clips: &[(i64, i64)], frames_until_ms: i64, expected: &[(&str, &[i64])]) {
        let names = ["a", "b", "c", "d"];
        let known: Vec<_> = names.into_iter().zip(known.iter().map(|it| range(it.0, it.1))).collect();
        let from = if clips.is_empty() { i64::MAX } else { 0 };
        let mut assembler = Assembler::new(SAMPLER, known, from);
        let mut clips = clips.iter().peekable();
        let mut over = Vec::new();
        for time_ms in (250..frames_until_ms).step_by(500) {
            if let Some(clip) = clips.next_if(|clip| clip.1 <= time_ms) {
                assembler.clip("clip", range(clip.0, clip.1));
            }
            assembler.frame(frame(time_ms));
            over.extend(assembler.ready());
        }
        clips.for_each(|clip| assembler.clip("clip", range(clip.0, clip.1)));
        over.extend(assembler.finish());
        let got: Vec<(&str, Vec<i64>)> =
            over.iter().map(|it| (it.span, it.frames.iter().map(|frame| frame.time_ms).collect())).collect();
        let expected: Vec<(&str, Vec<i64>)> = expected.iter().map(|it| (it.0, it.1.to_vec())).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn every_frame_goes_to_the_clip_it_is_in() {
        check(&[], &[(0, 1000), (1000, 2100)], 2100, &[("clip", &[250, 750]), ("clip", &[1250, 1750])]);
    }

    #[test]
    fn long_clips_are_thinned_evenly() {
        check(&[], &[(0, 3000)], 3000, &[("clip", &[750, 1750, 2750])]);
    }

    #[test]
    fn known_spans_may_overlap_and_leave_gaps() {
        check(
            &[(0, 1000), (500, 1500), (2000, 2500)],
            &[],
            3000,
            &[("a", &[250, 750]), ("b", &[750, 1250]), ("c", &[2250])],
        );
    }

    #[test]
    fn a_span_between_two_samples_comes_back_empty() {
        check(&[(300, 400)], &[], 1000, &[("a", &[])]);
    }

    #[test]
    fn known_spans_and_clips_share_frames() {
        check(
            &[(500, 1500)],
            &[(0, 1000), (1000, 2000)],
            2000,
            &[("clip", &[250, 750]), ("a", &[750, 1250]), ("clip", &[1250, 1750])],
        );
    }
}
