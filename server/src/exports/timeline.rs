//! The edit that an export describes: clips in order, on one clock.

use std::ops::Range;

use reprise_encoders::video::FrameRate;
use uuid::Uuid;

use super::timecode::Numbering;

/// Clips in order, without gaps.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    /// Its name.
    pub(super) title: String,
    /// Its frames per second.
    pub(super) rate: FrameRate,
    /// Whether its timecode drops numbers.
    pub(super) drop_frame: bool,
    /// The clips, in order.
    pub(super) clips: Vec<Clip>,
}

/// A time range of a video.
#[derive(Debug, Clone)]
pub(super) struct Clip {
    /// The range's place in the request, from 0.
    pub(super) range: usize,
    /// The media that it is cut from.
    pub(super) media: Media,
    /// First millisecond in the video, inclusive.
    pub(super) start_ms: i64,
    /// End in the video, exclusive, in milliseconds.
    pub(super) end_ms: i64,
    /// The user's note; may be empty.
    pub(super) note: String,
}

/// The media of a clip.
#[derive(Debug, Clone)]
pub(super) struct Media {
    /// The video.
    pub(super) video: Uuid,
    /// Its title.
    pub(super) title: String,
    /// The user's file name.
    pub(super) file_name: String,
    /// Its frames per second.
    pub(super) rate: FrameRate,
    /// Whether its frames are unevenly spaced, so that numbers of frames mean nothing.
    pub(super) is_variable: bool,
    /// Its length in milliseconds.
    pub(super) duration_ms: i64,
    /// Shown width in pixels.
    pub(super) width: u32,
    /// Shown height in pixels.
    pub(super) height: u32,
    /// Whether it has sound.
    pub(super) has_audio: bool,
}

/// A clip with its place on the timeline. The source and the record range have equal lengths.
#[derive(Debug, Clone)]
pub(super) struct Placed<'a> {
    /// The clip.
    pub(super) clip: &'a Clip,
    /// Its frames in the video, counted at the timeline's rate.
    pub(super) source: Range<i64>,
    /// Its frames on the timeline.
    pub(super) record: Range<i64>,
}

impl Media {
    /// The rate in which its frames are counted; `timeline` for a variable rate.
    pub(super) fn counted_at(&self, timeline: FrameRate) -> FrameRate {
        if self.is_variable { timeline } else { self.rate }
    }
}

impl Timeline {
    /// The rate for clips, if the user names none: that of the first one.
    pub(super) fn usual_rate(clips: &[Clip]) -> FrameRate {
        let rate = |clip: &Clip| clip.media.rate.for_editing();
        clips.first().map_or(FrameRate::measured(25.0), rate)
    }

    /// The clips with their places.
    pub(super) fn placed(&self) -> Vec<Placed<'_>> {
        let mut at = 0;
        let mut place = |clip| {
            let source = self.frames_of(clip);
            let record = at..at + source.end - source.start;
            at = record.end;
            Placed { clip, source, record }
        };
        self.clips.iter().map(&mut place).collect()
    }

    /// The frames of a clip in its video, counted at the timeline's rate.
    pub(super) fn frames_of(&self, clip: &Clip) -> Range<i64> {
        self.rate.frames_of(&(clip.start_ms..clip.end_ms))
    }

    /// Its length in frames.
    pub(super) fn frames(&self) -> i64 {
        self.placed().last().map_or(0, |last| last.record.end)
    }

    /// How its frames are numbered.
    pub(super) fn numbering(&self) -> Numbering {
        Numbering::new(self.rate, self.drop_frame)
    }
}

/// One line of a text: control characters become spaces.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect::<String>().trim().to_owned()
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;

    /// A clip of a video at this rate.
    pub(crate) fn clip(rate: &str, start_ms: i64, end_ms: i64) -> Clip {
        let media = Media {
            video: Uuid::from_u128(7),
            title: "A dive <1> & \"two\"".to_owned(),
            file_name: "dive one.mp4".to_owned(),
            rate: FrameRate::named(rate).unwrap(),
            is_variable: false,
            duration_ms: 7_200_000,
            width: 1920,
            height: 1080,
            has_audio: true,
        };
        Clip { range: 0, media, start_ms, end_ms, note: "a note\n--> with <marks> & more".to_owned() }
    }

    /// A timeline of clips of one rate.
    pub(crate) fn timeline(rate: &str, spans: &[(i64, i64)]) -> Timeline {
        let clips =
            spans.iter().enumerate().map(|(range, span)| Clip { range, ..clip(rate, span.0, span.1) });
        let rate = FrameRate::named(rate).unwrap();
        Timeline { title: "A reel\r\nof dives".to_owned(), rate, drop_frame: true, clips: clips.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::timeline;

    #[test]
    fn clips_follow_each_other_without_gaps() {
        let timeline = timeline("25", &[(1000, 3000), (0, 40), (10, 20)]);
        let placed: Vec<_> = timeline.placed().into_iter().map(|it| (it.source, it.record)).collect();
        assert_eq!(placed, [(25..75, 0..50), (0..1, 50..51), (0..1, 51..52)]);
        assert_eq!(timeline.frames(), 52);
    }
}
