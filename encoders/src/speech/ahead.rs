//! Sound that is read ahead of the windows, with the frames in which somebody speaks.

use super::activity::{Activity, FRAME};
use super::error::TranscribeError;
use crate::video::VideoError;
use crate::video::audio::AudioReader;

/// Reads sound and keeps what is not done yet.
pub(super) struct Ahead {
    reader: AudioReader,
    activity: Option<Activity>,
    /// What is kept, from place `first` on.
    samples: Vec<f32>,
    first: i64,
    /// For each frame from place `frames_first` on, whether it is speech.
    frames: Vec<bool>,
    frames_first: i64,
    is_over: bool,
}

/// Samples of the sound, by the place of the first one and the place after the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: i64,
    pub(super) last: i64,
}

/// A stretch of speech that is written down at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) span: Span,
    /// Whether it would be longer if more had been read.
    pub(super) is_cut: bool,
}

/// The last place at or before `at` where a frame begins. Frames lie on one grid, wherever the reading begins: so a
/// resumed transcription marks the same frames.
pub(super) fn frame_start(at: i64) -> i64 {
    at - at.rem_euclid(FRAME as i64)
}

impl Ahead {
    /// Reads `reader` from its place, which is the start of a frame. Without an `activity` everything is speech.
    pub(super) fn new(reader: AudioReader, activity: Option<Activity>) -> Ahead {
        let at = reader.at();
        Ahead {
            reader,
            activity,
            samples: Vec::new(),
            first: at,
            frames: Vec::new(),
            frames_first: at,
            is_over: false,
        }
    }

    /// Place of the first sample that is not done.
    pub(super) fn first(&self) -> i64 {
        self.first
    }

    /// Whether all sound is read.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads until at least `count` samples are kept, to the end of a frame, or until the sound ends.
    pub(super) fn fill(&mut self, count: usize) -> Result<(), TranscribeError> {
        if self.is_over || self.samples.len() >= count {
            return Ok(());
        }
        let wanted = (count - self.samples.len()).next_multiple_of(FRAME);
        self.is_over = self.reader.read(&mut self.samples, wanted)? < wanted;
        self.mark()
    }

    /// Lets the detector hear the sound before place `at`, so that it marks what follows as if it had heard everything.
    pub(super) fn warm_up(&mut self, at: i64) -> Result<(), TranscribeError> {
        self.fill((at - self.first).max(0) as usize)?;
        self.drop_before(at);
        Ok(())
    }

    /// Marks the frames that are read whole, and at the end the last one.
    fn mark(&mut self) -> Result<(), TranscribeError> {
        let Some(activity) = &mut self.activity else { return Ok(()) };
        let next = self.frames_first + (self.frames.len() * FRAME) as i64;
        let from = ((next - self.first).max(0) as usize).min(self.samples.len());
        let rest = &self.samples[from..];
        let (whole, cut) = rest.split_at(rest.len() - rest.len() % FRAME);
        self.frames.extend(activity.next(whole)?);
        if self.is_over && !cut.is_empty() {
            let mut last = cut.to_vec();
            last.resize(FRAME, 0.0);
            self.frames.extend(activity.next(&last)?);
        }
        Ok(())
    }

    /// The samples of a window.
    pub(super) fn samples(&self, span: Span) -> &[f32] {
        let place = |at: i64| ((at - self.first).max(0) as usize).min(self.samples.len());
        &self.samples[place(span.first)..place(span.last)]
    }

    /// Drops what comes before place `at`.
    pub(super) fn drop_before(&mut self, at: i64) {
        let count = ((at - self.first).max(0) as usize).min(self.samples.len());
        self.samples.drain(..count);
        self.first += count as i64;
        let frames = ((self.first - self.frames_first).max(0) as usize / FRAME).min(self.frames.len());
        self.frames.drain(..frames);
        self.frames_first += (frames * FRAME) as i64;
    }

    /// The place after the last sample that is read.
    pub(super) fn end(&self) -> i64 {
        self.first + self.samples.len() as i64
    }

    /// Whether somebody speaks between two places.
    pub(super) fn has_speech(&self, span: Span) -> bool {
        self.speech(span.first, span.last).is_some()
    }

    /// Place of the first speech in what is read, with what is kept before it.
    pub(super) fn next_speech(&self) -> Option<i64> {
        self.speech(self.first, self.end())
    }

    /// Place of the first speech from `from` on and before `to`, with what is kept before it.
    fn speech(&self, from: i64, to: i64) -> Option<i64> {
        let Some(activity) = &self.activity else { return (from < to).then_some(from) };
        let start = ((from - self.frames_first).max(0) as usize) / FRAME;
        let found = self.frames.iter().enumerate().skip(start).find(|(_, is_speech)| **is_speech)?.0;
        let place = self.frames_first + (found * FRAME) as i64;
        let pad = (activity.options().pad_frames * FRAME) as i64;
        (place < to).then_some((place - pad).max(from))
    }

    /// The next window from `from` on, at most `longest` samples: from the first speech to the first long pause. `None` if
    /// nobody speaks in what is read. With `is_alone` no window continues it, so it ends in a pause if it can.
    pub(super) fn window(&self, from: i64, longest: usize, is_alone: bool) -> Option<Window> {
        let first = self.speech(from, self.end())?;
        let most = first + longest as i64;
        let last = self.end().min(most);
        let is_cut = last < most && !self.is_over;
        let Some(activity) = &self.activity else {
            return Some(Window { span: Span { first, last }, is_cut });
        };
        let options = activity.options();
        let pauses = self.pauses(first, last);
        let pad = (options.pad_frames * FRAME) as i64;
        let pause = (options.pause_frames * FRAME) as i64;
        if let Some(long) = pauses.iter().find(|it| it.last - it.first >= pause) {
            let last = (long.first + pad).min(last);
            return Some(Window { span: Span { first, last }, is_cut: false });
        }
        let half = first + longest as i64 / 2;
        let best =
            pauses.iter().filter(|it| it.first >= half).max_by_key(|it| (it.last - it.first, it.first));
        let last = match best.filter(|_| is_alone && last == most) {
            Some(pause) => i64::midpoint(pause.first, pause.last),
            None => last,
        };
        Some(Window { span: Span { first, last }, is_cut })
    }

    /// Where what is read may be dropped to if nobody speaks in it: at its end, but for what is kept before speech.
    pub(super) fn quiet_end(&self) -> i64 {
        match &self.activity {
            Some(activity) if !self.is_over => {
                let kept = activity.options().pad_frames * FRAME;
                (self.end() - kept as i64).max(self.first)
            }
            _ => self.end(),
        }
    }

    /// Stretches without speech between two places, in order. The first begins after speech.
    fn pauses(&self, first: i64, last: i64) -> Vec<Span> {
        let (mut pauses, mut quiet_from, mut has_spoken) = (Vec::new(), None, false);
        for (at, is_speech) in self.frames.iter().enumerate() {
            let place = self.frames_first + (at * FRAME) as i64;
            // The first frame may have begun before.
            if place + FRAME as i64 <= first || place >= last {
                continue;
            }
            let place = place.max(first);
            match (is_speech, quiet_from) {
                (true, Some(from)) => {
                    pauses.push(Span { first: from, last: place });
                    quiet_from = None;
                }
                (false, None) if has_spoken => quiet_from = Some(place),
                _ => {}
            }
            has_spoken |= is_speech;
        }
        pauses.extend(quiet_from.map(|from| Span { first: from, last }));
        pauses
    }

    /// Waits for ffmpeg to end; a warning if the sound is damaged.
    pub(super) fn finish(self) -> Result<Option<String>, VideoError> {
        self.reader.finish()
    }
}
