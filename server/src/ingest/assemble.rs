//! Assigns sampled frames to spans while both still arrive. An entry holds a frame's pixels or its features.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::segment::ClipRange;

use super::subsample::{FrameSubsampler, Timed};

/// The output of a frame stage for one frame.
pub(super) type Feature = Arc<[f32]>;

/// The features of one frame in all spaces of a tap.
#[derive(Debug, Clone)]
pub(super) struct Featured {
    pub(super) time_ms: i64,
    /// One per space.
    pub(super) features: Vec<Feature>,
}

impl Timed for Featured {
    fn time_ms(&self) -> i64 {
        self.time_ms
    }
}

/// Frames of one decoder output. Each waits until the spans that contain it end.
///
/// Clips arrive in order of time, each after the frame that ended it. Frames arrive in order of time, out of step with
/// the clips. Given spans are known from the start and may overlap.
pub(super) struct Assembler<T, P> {
    sampler: Sampler,
    feed: Feed,
    frames: VecDeque<P>,
    /// Waiting spans by (end, number). The span with the earliest end comes first.
    waiting: BTreeMap<(i64, usize), (T, ClipRange)>,
    /// (start, number) of the waiting spans.
    starts: BTreeSet<(i64, usize)>,
    /// Long known spans. Each keeps only the frames that it encodes.
    long: Vec<(T, FrameSubsampler<P>)>,
    next_number: usize,
    /// Later clips start here or later. Only `waiting` needs earlier frames.
    clips_from_ms: i64,
    /// Time of the newest frame.
    seen_ms: i64,
}

/// The frames that the decoder yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feed {
    /// Frames at the sampler's rate, counted from the video's start. A span's sample is all of its frames.
    Sampled,
    /// Every frame. The sampler picks from a span's frames, counted from the span's start.
    Every,
}

/// A span that has ended, with its frames. Empty if the span has no sampled frame.
pub(super) struct Assembled<T, P> {
    pub(super) span: T,
    pub(super) range: ClipRange,
    pub(super) frames: Vec<P>,
}

impl<T, P: Timed> Assembler<T, P> {
    /// Expects the `known` spans, and clips that start at `clips_from_ms` or later (`i64::MAX`: none).
    pub(super) fn new(sampler: Sampler, feed: Feed, known: Vec<(T, ClipRange)>, clips_from_ms: i64) -> Self {
        let mut assembler = Assembler {
            sampler,
            feed,
            frames: VecDeque::new(),
            waiting: BTreeMap::new(),
            starts: BTreeSet::new(),
            long: Vec::new(),
            next_number: 0,
            clips_from_ms,
            seen_ms: -1,
        };
        for (span, range) in known {
            match FrameSubsampler::for_long(&sampler, range) {
                Some(thinner) => assembler.long.push((span, thinner)),
                None => assembler.wait(span, range),
            }
        }
        assembler
    }

    /// Adds a clip with final bounds.
    pub(super) fn clip(&mut self, span: T, range: ClipRange) {
        self.clips_from_ms = range.end_ms;
        self.wait(span, range);
    }

    /// Adds a span whose frames are still held or still to come: one inside the open clip, or after it.
    pub(super) fn wait(&mut self, span: T, range: ClipRange) {
        self.starts.insert((range.start_ms, self.next_number));
        self.waiting.insert((range.end_ms, self.next_number), (span, range));
        self.next_number += 1;
    }

    /// Takes the next sampled frame.
    pub(super) fn frame(&mut self, frame: P) {
        self.seen_ms = frame.time_ms();
        for (_, thinner) in &mut self.long {
            thinner.push(&frame);
        }
        if self.needed_from() <= frame.time_ms() || self.feed == Feed::Every {
            self.frames.push_back(frame);
        }
        self.forget();
    }

    /// Returns the spans that have all of their frames.
    pub(super) fn ready(&mut self) -> Vec<Assembled<T, P>> {
        self.take_until(self.seen_ms)
    }

    /// Returns all remaining spans, after the last frame.
    pub(super) fn finish(&mut self) -> Vec<Assembled<T, P>> {
        self.take_until(i64::MAX)
    }

    fn take_until(&mut self, seen_ms: i64) -> Vec<Assembled<T, P>> {
        let mut over = Vec::new();
        while self.waiting.first_key_value().is_some_and(|((end_ms, _), _)| *end_ms <= seen_ms) {
            let Some(((_, number), (span, range))) = self.waiting.pop_first() else { break };
            self.starts.remove(&(range.start_ms, number));
            over.push(Assembled { span, range, frames: self.frames_of(range) });
        }
        for (span, thinner) in self.long.extract_if(.., |(_, thinner)| thinner.range().end_ms <= seen_ms) {
            over.push(Assembled { span, range: thinner.range(), frames: thinner.finish() });
        }
        self.forget();
        over
    }

    fn frames_of(&self, range: ClipRange) -> Vec<P> {
        let from = self.frames.partition_point(|frame| frame.time_ms() < range.start_ms);
        let end = self.frames.partition_point(|frame| frame.time_ms() < range.end_ms);
        let picked: Vec<usize> = match (self.feed, &self.sampler) {
            (Feed::Sampled, Sampler::PerSecond { at_most, .. }) => thin(end - from, *at_most),
            _ => {
                let times: Vec<i64> = self.frames.range(from..end).map(|frame| frame.time_ms()).collect();
                self.sampler.pick(&times, range.start_ms)
            }
        };
        let frames: Vec<P> = picked.into_iter().map(|index| self.frames[from + index].clone()).collect();
        if frames.is_empty() && self.feed == Feed::Every {
            // No frame begins in the span. The frame shown at its start lasts through it.
            return from.checked_sub(1).map(|shown| self.frames[shown].clone()).into_iter().collect();
        }
        frames
    }

    fn needed_from(&self) -> i64 {
        self.starts.first().map_or(i64::MAX, |(start_ms, _)| *start_ms).min(self.clips_from_ms)
    }

    /// Drops frames before the first needed one. With [`Feed::Every`] it keeps the frame shown at that time.
    fn forget(&mut self) {
        let needed_from = self.needed_from();
        let kept_before = usize::from(self.feed == Feed::Every);
        while self.frames.get(kept_before).is_some_and(|frame| frame.time_ms() <= needed_from)
            && self.frames.front().is_some_and(|frame| frame.time_ms() < needed_from)
        {
            self.frames.pop_front();
        }
    }
}

/// Indices of `at_most` of `count` entries, at interval middles.
fn thin(count: usize, at_most: usize) -> Vec<usize> {
    let taken = count.min(at_most);
    (0..taken).map(|i| (2 * i + 1) * count / (2 * taken)).collect()
}

#[cfg(test)]
mod tests {
    use reprise_encoders::Frame;

    use super::*;

    const SAMPLER: Sampler = Sampler::PerSecond { rate: 2.0, at_most: 3 };

    fn frame(time_ms: i64) -> Frame {
        Frame { time_ms, width: 1, height: 1, rgb: vec![0; 3].into() }
    }

    fn range(start_ms: i64, end_ms: i64) -> ClipRange {
        ClipRange { start_ms, end_ms }
    }

    fn named<'a>(ranges: &[(i64, i64)]) -> Vec<(&'a str, ClipRange)> {
        ["a", "b", "c", "d"].into_iter().zip(ranges.iter().map(|it| range(it.0, it.1))).collect()
    }

    /// Feeds frames at `times`, ends clips when their end passes, and compares (name, frame times).
    #[track_caller]
    fn check_fed(
        mut assembler: Assembler<&str, Frame>,
        times: impl Iterator<Item = i64>,
        clips: &[(i64, i64)],
        expected: &[(&str, &[i64])],
    ) {
        let mut clips = clips.iter().peekable();
        let mut over = Vec::new();
        for time_ms in times {
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

    /// Frames every 500 ms from 250 ms on, as from a sampling decoder.
    #[track_caller]
    fn check(known: &[(i64, i64)], clips: &[(i64, i64)], frames_until_ms: i64, expected: &[(&str, &[i64])]) {
        let from = if clips.is_empty() { i64::MAX } else { 0 };
        let assembler = Assembler::new(SAMPLER, Feed::Sampled, named(known), from);
        check_fed(assembler, (250..frames_until_ms).step_by(500), clips, expected);
    }

    /// Feeds every frame.
    #[track_caller]
    fn check_every(known: &[(i64, i64)], times: &[i64], expected: &[(&str, &[i64])]) {
        let assembler = Assembler::new(SAMPLER, Feed::Every, named(known), i64::MAX);
        check_fed(assembler, times.iter().copied(), &[], expected);
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
    fn long_known_spans_are_thinned_as_they_come() {
        check(&[(0, 9000)], &[], 9000, &[("a", &[1250, 4250, 7250])]);
        check(&[(1000, 100_000)], &[], 3100, &[("a", &[2750])]);
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

    #[test]
    fn of_every_frame_the_sampler_picks() {
        check_every(&[(300, 900)], &[0, 100, 200, 300, 400, 500, 600, 700, 800, 900], &[("a", &[500])]);
    }

    #[test]
    fn a_picture_that_stays_is_the_frame_of_spans_in_which_none_begins() {
        check_every(
            &[(200, 300), (5000, 6000), (20_000, 30_000)],
            &[0, 100, 10_000],
            &[("a", &[100]), ("b", &[100]), ("c", &[10_000])],
        );
    }

    #[test]
    fn no_more_frames_are_held_than_the_open_spans_need() {
        let mut assembler =
            Assembler::new(SAMPLER, Feed::Sampled, named(&[(1000, 2000), (5000, 5500)]), i64::MAX);
        for time_ms in (250..7000).step_by(500) {
            assembler.frame(frame(time_ms));
            assembler.ready();
            assert!(assembler.frames.len() <= 3, "{} frames at {time_ms}", assembler.frames.len());
        }
        assert!(assembler.frames.is_empty());
    }
}
