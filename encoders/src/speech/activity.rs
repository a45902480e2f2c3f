//! Marks where somebody speaks, frame by frame, with hysteresis.

use crate::EncodeError;

/// Samples of a frame: 32 ms.
pub const FRAME: usize = 512;

/// Hears frames one after the other and says how surely each holds speech. What it heard 20 s ago no longer matters.
pub trait SpeechDetector: Send {
    /// How surely each of the next frames holds speech, 0 to 1. `samples`: 16 kHz, whole frames of [`FRAME`] samples.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] if a model failed.
    fn speech(&mut self, samples: &[f32]) -> Result<Vec<f32>, EncodeError>;

    /// Forgets everything that it heard.
    fn reset(&mut self);
}

/// When sound counts as speech.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActivityOptions {
    /// Speech begins at this mark, 0 to 1.
    pub begins: f32,
    /// It ends below this one.
    pub ends: f32,
    /// Frames that are kept before the first frame of speech and after the last.
    pub pad_frames: usize,
    /// Frames of a pause. A window ends where a pause of at least this length begins.
    pub pause_frames: usize,
}

impl Default for ActivityOptions {
    /// Silero's thresholds; a pad of 0.4 s; windows end at pauses of 4 s.
    fn default() -> Self {
        ActivityOptions { begins: 0.5, ends: 0.35, pad_frames: 13, pause_frames: 125 }
    }
}

/// A detector with hysteresis.
pub(super) struct Activity {
    detector: Box<dyn SpeechDetector>,
    options: ActivityOptions,
    is_speech: bool,
}

impl Activity {
    pub(super) fn new(mut detector: Box<dyn SpeechDetector>, options: ActivityOptions) -> Activity {
        detector.reset();
        Activity { detector, options, is_speech: false }
    }

    /// Whether each of the next frames belongs to speech.
    pub(super) fn next(&mut self, samples: &[f32]) -> Result<Vec<bool>, EncodeError> {
        let marks = self.detector.speech(samples)?;
        Ok(marks.into_iter().map(|mark| self.is_speech(mark)).collect())
    }

    fn is_speech(&mut self, mark: f32) -> bool {
        let least = if self.is_speech { self.options.ends } else { self.options.begins };
        self.is_speech = mark >= least;
        self.is_speech
    }

    pub(super) fn options(&self) -> &ActivityOptions {
        &self.options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given(Vec<f32>);

    impl SpeechDetector for Given {
        fn speech(&mut self, samples: &[f32]) -> Result<Vec<f32>, EncodeError> {
            Ok(self.0.drain(..samples.len() / FRAME).collect())
        }

        fn reset(&mut self) {}
    }

    #[test]
    fn speech_ends_lower_than_it_begins() {
        let marks = vec![0.4, 0.5, 0.4, 0.36, 0.34, 0.45, 0.9];
        let sound = vec![0.0; marks.len() * FRAME];
        let mut activity = Activity::new(Box::new(Given(marks)), ActivityOptions::default());
        let (first, rest) = sound.split_at(3 * FRAME);
        let heard = [activity.next(first).unwrap(), activity.next(rest).unwrap()].concat();
        assert_eq!(heard, [false, true, true, true, false, false, true]);
    }
}
