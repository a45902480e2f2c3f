//! Thumbnails of a video and of its clips, made of frames that a decode yields anyway.
//!
//! A clip's middle is known when the clip ends. Until then its frames wait, two to four a second. While a clip is so long that too
//! many wait, every second one is given up, so that the picture is always near the middle for the clip's length.

use std::collections::VecDeque;

use super::decode::{Output, detects_whole};
use super::jpeg::{Quality, jpeg};
use super::rendition::{Size, fitted};
use super::segment::ClipRange;
use super::{Probe, VideoError};
use crate::resize::{Pixels, Resampling, resize};
use crate::{Frame, FrameSize, Scaling};

/// Largest width of a thumbnail, in pixels.
pub const THUMBNAIL_WIDTH: u32 = 480;
/// Frames that wait for the end of their clip, per second of video.
const PER_SECOND: f64 = 2.0;
/// Milliseconds from one of these frames to the next, about.
const LEAST_APART_MS: i64 = 500;
/// Frames come a little earlier or later than the middles of intervals that they stand for.
const EARLY_MS: i64 = LEAST_APART_MS / 2;
/// Most bytes of waiting frames: a minute of them for most videos.
const MOST_WAITING: usize = 48 << 20;
/// Bytes of JPEGs after which no more are made: those of some thousand clips.
const MOST_BYTES: usize = 64 << 20;
const QUALITY: Quality = Quality(85);

/// Thumbnails of a video and of its clips, as JPEGs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thumbnails {
    /// The picture in the middle of the video.
    pub video: Option<Vec<u8>>,
    /// The pictures of clips, in order of time. Clips of which no frame was taken have none.
    pub clips: Vec<ClipThumbnail>,
}

/// The thumbnail of a clip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClipThumbnail {
    /// The clip.
    pub range: ClipRange,
    /// The picture in its middle.
    pub jpeg: Vec<u8>,
}

/// Chooses thumbnails while a video is decoded: at most 48 MB of frames wait for the end of their clip.
pub struct ThumbnailCollector {
    size: Pixels,
    output: Option<Output>,
    /// The middle of the video, as far as the probe knows it.
    middle_ms: i64,
    /// The frame on screen there.
    of_video: Option<Frame>,
    /// Frames after the last clip's end, in order of time.
    waiting: VecDeque<Frame>,
    /// Least time from a waiting frame to the next.
    apart_ms: i64,
    made: Vec<ClipThumbnail>,
    /// Bytes of `made`.
    bytes: usize,
}

impl ThumbnailCollector {
    /// Starts with the first frame of a video.
    pub fn new(probe: &Probe) -> ThumbnailCollector {
        let Size { width, height } = fitted(probe, THUMBNAIL_WIDTH);
        // Half as much work as bicubic, and as good for a picture that shrinks.
        let scaling = Scaling { size: FrameSize::Exact { width, height }, resampling: Resampling::Bilinear };
        let output = Output { scaling, per_second: Some(PER_SECOND) };
        ThumbnailCollector {
            size: Pixels { width, height },
            output: Some(output).filter(|_| !detects_whole(probe)),
            middle_ms: probe.duration_ms / 2,
            of_video: None,
            waiting: VecDeque::new(),
            apart_ms: LEAST_APART_MS,
            made: Vec::new(),
            bytes: 0,
        }
    }

    /// The output of the decode whose frames [`ThumbnailCollector::push`] takes. `None`: it takes those for the shot
    /// detector, which are large enough.
    #[must_use]
    pub fn output(&self) -> Option<Output> {
        self.output
    }

    /// Takes the next frame, in order of time.
    pub fn push(&mut self, frame: Frame) {
        let whole = 3 * u64::from(frame.width) * u64::from(frame.height);
        if whole == 0 || whole != frame.rgb.len() as u64 {
            return;
        }
        if self.of_video.is_none() || frame.time_ms <= self.middle_ms {
            self.of_video = Some(frame.clone());
        }
        let next_ms = self.waiting.back().map(|last| last.time_ms + self.apart_ms - EARLY_MS);
        if next_ms.is_none_or(|next_ms| next_ms <= frame.time_ms) {
            self.waiting.push_back(frame);
            let bytes: usize = self.waiting.iter().map(|it| it.rgb.len()).sum();
            if self.waiting.len() > 2 && bytes > MOST_WAITING {
                self.thin_out();
            }
        }
    }

    /// Takes the next clips, whose bounds are final, in order of time, and makes their thumbnails.
    ///
    /// # Errors
    /// [`VideoError::OverLimit`] if the video's shape fits into no JPEG.
    pub fn clips(&mut self, clips: &[ClipRange]) -> Result<(), VideoError> {
        for clip in clips {
            if self.bytes < MOST_BYTES
                && let Some(frame) = self.in_the_middle_of(*clip)
            {
                let jpeg = self.picture(&frame)?;
                self.bytes += jpeg.len();
                self.made.push(ClipThumbnail { range: *clip, jpeg });
            }
            self.waiting.retain(|frame| clip.end_ms <= frame.time_ms);
            self.apart_ms = LEAST_APART_MS;
        }
        Ok(())
    }

    /// Makes the video's thumbnail, and returns all.
    ///
    /// # Errors
    /// [`VideoError::OverLimit`] if the video's shape fits into no JPEG.
    pub fn finish(self) -> Result<Thumbnails, VideoError> {
        let of_video = self.of_video.as_ref().map(|frame| self.picture(frame));
        Ok(Thumbnails { video: of_video.transpose()?, clips: self.made })
    }

    fn picture(&self, frame: &Frame) -> Result<Vec<u8>, VideoError> {
        let from = Pixels { width: frame.width, height: frame.height };
        if from == self.size {
            return jpeg(&frame.rgb, self.size, QUALITY);
        }
        jpeg(&resize(&frame.rgb, from, self.size, Resampling::Bilinear), self.size, QUALITY)
    }

    /// The frame on screen at the clip's middle, or the first frame after it. None that began before the clip: it may show
    /// another shot.
    fn in_the_middle_of(&self, clip: ClipRange) -> Option<Frame> {
        let middle_ms = clip.start_ms + (clip.end_ms - clip.start_ms) / 2;
        let inside = self.waiting.iter().filter(|it| (clip.start_ms..clip.end_ms).contains(&it.time_ms));
        let on_screen = inside.clone().take_while(|it| it.time_ms <= middle_ms).last();
        on_screen.or_else(|| inside.clone().next()).cloned()
    }

    /// Drops every second waiting frame, and takes fewer from now on.
    fn thin_out(&mut self) {
        let mut keep = false;
        self.waiting.retain(|_| {
            keep = !keep;
            keep
        });
        self.apart_ms = self.apart_ms.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(width: u32, height: u32, duration_ms: i64) -> ThumbnailCollector {
        let probe = crate::video::sprites::tests::probe(width, height, duration_ms);
        ThumbnailCollector::new(&probe)
    }

    fn frame(time_ms: i64, width: u32, height: u32) -> Frame {
        Frame { time_ms, width, height, rgb: vec![0; 3 * (width * height) as usize].into() }
    }

    fn range(start_ms: i64, end_ms: i64) -> ClipRange {
        ClipRange { start_ms, end_ms }
    }

    /// Pushes frames of these times, and checks the times of the frames that stand for clips with these ends.
    #[track_caller]
    fn check(times: &[i64], ends: &[i64], expected: &[Option<i64>]) {
        let mut collector = collector(4, 2, 0);
        times.iter().for_each(|time_ms| collector.push(frame(*time_ms, 4, 2)));
        let mut start = 0;
        for (end, expected) in ends.iter().zip(expected) {
            let clip = range(start, *end);
            assert_eq!(collector.in_the_middle_of(clip).map(|it| it.time_ms), *expected, "{clip:?}");
            collector.clips(&[clip]).unwrap();
            start = *end;
        }
    }

    #[test]
    fn the_frame_on_screen_in_the_middle_stands_for_a_clip() {
        let times: Vec<i64> = (0..20).map(|number| 240 + 500 * number).collect();
        check(&times, &[2000, 3000, 10_000], &[Some(740), Some(2240), Some(6240)]);
        // The middle is 100, and the first frame comes later.
        check(&[180, 700], &[200, 1000], &[Some(180), Some(700)]);
        // A picture that stays for long is a frame of its clip only.
        check(&[0, 50_000], &[60_000], &[Some(0)]);
        check(&[0, 50_000], &[10_000, 40_000, 60_000], &[Some(0), None, Some(50_000)]);
        check(&[], &[1000], &[None]);
    }

    #[test]
    fn few_frames_of_a_long_clip_wait_and_one_is_near_the_middle() {
        let (width, height, length) = (480, 270, 3_600_000);
        let mut collector = collector(1920, 1080, length);
        let rgb: std::sync::Arc<[u8]> = vec![0; 3 * 480 * 270].into();
        for time_ms in (240..length).step_by(500) {
            collector.push(Frame { time_ms, width, height, rgb: rgb.clone() });
            assert!(collector.waiting.len() * rgb.len() <= MOST_WAITING);
        }
        for clip in [range(0, length), range(0, length / 3)] {
            let (middle, found) = (clip.end_ms / 2, collector.in_the_middle_of(clip).unwrap().time_ms);
            assert!((found - middle).abs() <= length / 30, "{found} is far from {middle}");
        }
        let of_video = collector.of_video.as_ref().unwrap().time_ms;
        assert!((length / 2 - 500..=length / 2).contains(&of_video), "{of_video}");
    }

    #[test]
    fn thumbnails_are_jpegs_of_the_clips_and_the_video() {
        let mut collector = collector(64, 33, 50_000);
        for number in 0..100 {
            collector.push(frame(number * 500, 64, 33));
            if number % 2 == 1 {
                collector.clips(&[range((number - 1) * 500, (number + 1) * 500)]).unwrap();
            }
        }
        // Anamorphic video has frames of another size in the file.
        collector.push(frame(50_000, 32, 16));
        collector.clips(&[range(50_000, 51_000)]).unwrap();
        let made = collector.finish().unwrap();
        assert_eq!(made.clips.len(), 51);
        assert!(
            made.clips
                .iter()
                .zip(0..)
                .all(|(it, number)| it.range == range(number * 1000, (number + 1) * 1000))
        );
        for jpeg in made.clips.iter().map(|it| &it.jpeg).chain(&made.video) {
            assert!(jpeg.starts_with(&[0xff, 0xd8, 0xff]) && jpeg.ends_with(&[0xff, 0xd9]));
            // The frame header: its length, the bits of a value, height and width.
            let header = jpeg.windows(9).find(|it| it.starts_with(&[0xff, 0xc0])).unwrap();
            assert_eq!(header[5..], [0, 33, 0, 64]);
        }
        assert!(made.video.is_some());
        let nothing = super::tests::collector(64, 33, 1000).finish().unwrap();
        assert_eq!(nothing, Thumbnails::default());
    }
}
