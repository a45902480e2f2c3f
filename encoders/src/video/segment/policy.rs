//! From cuts to clips that cover the video without gap or overlap, none longer than the maximum.
//!
//! A scene of at most the maximum length is one clip. A longer one is cut off at the maximum as soon
//! as twice the maximum has been seen of it (a stream can't know how long a scene will be, and must
//! not keep two hours of frames to find out); what remains when the scene ends, at most twice the
//! maximum, is halved if it is over the maximum. So no piece is shorter than about half the maximum.
//! Pieces begin at a frame where there is one in reach. A last scene shorter than the detector's
//! minimum is part of the clip before it.

use std::collections::VecDeque;

use super::content::{ContentDetector, ContentSettings};
use super::flash::Cut;
use crate::Frame;

/// A clip, in milliseconds, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClipRange {
    /// Start.
    pub start_ms: i64,
    /// End.
    pub end_ms: i64,
}

/// Settings of the policy `content`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmenterSettings {
    /// The detector.
    pub content: ContentSettings,
    /// Longer clips are split evenly.
    pub max_clip_ms: i64,
}

/// Turns frames, as they come, into clips, as they become certain.
#[derive(Debug)]
pub struct Segmenter {
    settings: SegmenterSettings,
    detector: ContentDetector,
    cuts: Vec<(u64, i64)>,
    frames: u64,
    /// Start of the clip that is open.
    open_ms: i64,
    /// A cut whose scene is not yet of the minimum length.
    young: Option<Cut>,
    /// Times of the frames after `open_ms`.
    times: VecDeque<i64>,
}

impl Segmenter {
    /// A segmenter that has seen nothing. A maximum below 1 ms counts as 1 ms.
    #[must_use]
    pub fn new(settings: SegmenterSettings) -> Self {
        let settings = SegmenterSettings { max_clip_ms: settings.max_clip_ms.max(1), ..settings };
        Segmenter {
            settings,
            detector: ContentDetector::new(settings.content),
            cuts: Vec::new(),
            frames: 0,
            open_ms: 0,
            young: None,
            times: VecDeque::new(),
        }
    }

    /// Takes the next small frame; returns clips that are certain now.
    pub fn push(&mut self, frame: &Frame) -> Vec<ClipRange> {
        let mut clips = Vec::new();
        let now = Cut { frame: self.frames, time_ms: frame.time_ms };
        self.frames += 1;
        self.times.push_back(frame.time_ms);
        if let Some(cut) = self.detector.push(frame) {
            self.cuts.push((cut.frame, cut.time_ms));
            self.close_young(&mut clips);
            self.young = Some(cut);
        }
        if self.young.is_some_and(|cut| self.settings.content.min_scene_len.is_met(cut, now)) {
            self.close_young(&mut clips);
        }
        let sure_end = self.young.map_or(frame.time_ms, |cut| cut.time_ms);
        self.cut_off(sure_end, &mut clips);
        clips
    }

    /// The video ends at `duration_ms`: the remaining clips.
    pub fn finish(&mut self, duration_ms: i64) -> Vec<ClipRange> {
        let mut clips = Vec::new();
        self.young = None;
        self.close(duration_ms, &mut clips);
        clips
    }

    /// Cuts found, as (frame number, time).
    #[must_use]
    pub fn cuts(&self) -> &[(u64, i64)] {
        &self.cuts
    }

    fn close_young(&mut self, clips: &mut Vec<ClipRange>) {
        if let Some(cut) = self.young.take() {
            self.close(cut.time_ms, clips);
        }
    }

    /// Ends the open scene.
    fn close(&mut self, end_ms: i64, clips: &mut Vec<ClipRange>) {
        if end_ms <= self.open_ms {
            return;
        }
        self.cut_off(end_ms, clips);
        let length = end_ms - self.open_ms;
        let longest = self.settings.max_clip_ms;
        if length > longest {
            let (earliest, latest) = (end_ms - longest, self.open_ms + longest);
            self.emit(self.split_point(self.open_ms + length / 2, earliest, latest), clips);
        }
        self.emit(end_ms, clips);
    }

    /// Cuts off whole pieces while more than twice the maximum is open.
    fn cut_off(&mut self, until_ms: i64, clips: &mut Vec<ClipRange>) {
        let longest = self.settings.max_clip_ms;
        while until_ms.saturating_sub(self.open_ms) > longest.saturating_mul(2) {
            let latest = self.open_ms + longest;
            self.emit(self.split_point(latest, self.open_ms + (longest + 1) / 2, latest), clips);
        }
    }

    /// The frame nearest to `wanted` among those from `earliest` to `latest`, or else `wanted`.
    fn split_point(&self, wanted: i64, earliest: i64, latest: i64) -> i64 {
        let from = self.times.partition_point(|&time| time < earliest.max(self.open_ms + 1));
        let reachable = self.times.range(from..).copied().take_while(|&time| time <= latest);
        reachable.min_by_key(|time| (time - wanted).abs()).unwrap_or(wanted)
    }

    fn emit(&mut self, end_ms: i64, clips: &mut Vec<ClipRange>) {
        clips.push(ClipRange { start_ms: self.open_ms, end_ms });
        self.open_ms = end_ms;
        let passed = self.times.partition_point(|&time| time < end_ms);
        self.times.drain(..passed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::MinSceneLen;
    use super::*;
    use proptest::prelude::*;

    fn settings(max_clip_ms: i64) -> SegmenterSettings {
        SegmenterSettings { content: ContentSettings::default(), max_clip_ms }
    }

    /// A video whose colour changes before each of the frames in `cuts`.
    fn segment(
        settings: SegmenterSettings,
        times: &[i64],
        cuts: &[usize],
        duration_ms: i64,
    ) -> (Vec<ClipRange>, Vec<u64>) {
        let mut segmenter = Segmenter::new(settings);
        let mut clips = Vec::new();
        let mut scene = 0;
        for (index, &time_ms) in times.iter().enumerate() {
            scene += usize::from(cuts.contains(&index));
            let colour = [[220, 20, 20], [120, 200, 110], [10, 10, 60]][scene % 3];
            let rgb = colour.iter().copied().cycle().take(12).collect();
            clips.extend(segmenter.push(&Frame { time_ms, width: 2, height: 2, rgb }));
        }
        clips.extend(segmenter.finish(duration_ms));
        (clips, segmenter.cuts().iter().map(|cut| cut.0).collect())
    }

    #[track_caller]
    fn check(max_clip_ms: i64, frames: i64, cuts: &[usize], expected: &[i64]) {
        let times: Vec<i64> = (0..frames).map(|i| i * 40).collect();
        let (clips, _) = segment(settings(max_clip_ms), &times, cuts, frames * 40);
        let mut bounds: Vec<i64> = clips.iter().map(|clip| clip.start_ms).collect();
        bounds.extend(clips.last().map(|clip| clip.end_ms));
        assert_eq!(bounds, expected);
    }

    #[test]
    fn scenes_become_clips() {
        check(60_000, 100, &[], &[0, 4000]);
        check(60_000, 100, &[30, 60], &[0, 1200, 2400, 4000]);
        check(60_000, 0, &[], &[]);
    }

    #[test]
    fn long_scenes_are_split_without_slivers() {
        check(2000, 75, &[], &[0, 1480, 3000]);
        check(2000, 101, &[], &[0, 2000, 3000, 4040]);
        check(2000, 250, &[], &[0, 2000, 4000, 6000, 8000, 10_000]);
        check(2000, 255, &[], &[0, 2000, 4000, 6000, 8000, 9080, 10_200]);
    }

    #[test]
    fn a_last_scene_below_the_minimum_belongs_to_the_clip_before() {
        check(60_000, 100, &[95], &[0, 4000]);
        let times: Vec<i64> = (0..100).map(|i| i * 40).collect();
        assert_eq!(segment(settings(60_000), &times, &[95], 4000).1, [95]);
    }

    #[test]
    fn a_picture_that_stays_is_split_where_no_frame_is() {
        let (clips, _) = segment(settings(2000), &[0, 40, 10_000], &[], 10_040);
        assert_eq!(clips.first(), Some(&ClipRange { start_ms: 0, end_ms: 2000 }));
        assert!(clips.iter().all(|clip| clip.end_ms - clip.start_ms <= 2000), "{clips:?}");
    }

    #[test]
    fn pieces_of_an_endless_scene_come_long_before_its_end() {
        let mut segmenter = Segmenter::new(settings(2000));
        let mut clips = Vec::new();
        for i in 0..10_000 {
            let time_ms = i * 40;
            clips.extend(segmenter.push(&Frame { time_ms, width: 1, height: 1, rgb: [9, 9, 9].into() }));
            let open = time_ms - clips.last().map_or(0, |clip: &ClipRange| clip.end_ms);
            assert!(open <= 4000);
            assert!(segmenter.times.len() <= 102);
        }
    }

    fn any_video() -> impl Strategy<Value = (Vec<i64>, Vec<usize>)> {
        prop::collection::vec(
            (prop_oneof![Just(40_i64), 1_i64..400, 1_i64..9000], prop::bool::weighted(0.05)),
            1..400,
        )
        .prop_map(|gaps| {
            let mut time = 0;
            let times = gaps
                .iter()
                .map(|(gap, _)| {
                    time += gap;
                    time - gaps[0].0
                })
                .collect();
            let cuts = gaps.iter().enumerate().filter(|(_, (_, cut))| *cut).map(|(i, _)| i).collect();
            (times, cuts)
        })
    }

    proptest! {
        #[test]
        fn clips_cover_the_video_exactly_and_none_is_too_long(
            (times, cuts) in any_video(), max_clip_ms in 1_i64..30_000, min in 0_u64..40, tail in 1_i64..500,
        ) {
            let content = ContentSettings { min_scene_len: MinSceneLen::Frames(min), ..ContentSettings::default() };
            let duration = times.last().unwrap() + tail;
            let (clips, _) = segment(SegmenterSettings { content, max_clip_ms }, &times, &cuts, duration);
            prop_assert_eq!(clips.first().map(|c| c.start_ms), Some(0));
            prop_assert_eq!(clips.last().map(|c| c.end_ms), Some(duration));
            prop_assert!(clips.windows(2).all(|pair| pair[0].end_ms == pair[1].start_ms));
            prop_assert!(clips.iter().all(|c| c.end_ms > c.start_ms && c.end_ms - c.start_ms <= max_clip_ms));
        }

        #[test]
        fn without_cuts_no_clip_is_shorter_than_half_the_maximum(
            frames in 1_i64..2000, spacing in 1_i64..100, max_clip_ms in 1000_i64..30_000,
        ) {
            let times: Vec<i64> = (0..frames).map(|i| i * spacing).collect();
            let (clips, _) = segment(settings(max_clip_ms), &times, &[], frames * spacing);
            let shortest = clips.iter().map(|c| c.end_ms - c.start_ms).min().unwrap();
            prop_assert!(clips.len() == 1 || shortest >= max_clip_ms / 2 - spacing, "{clips:?}");
        }
    }
}
