//! Speech by loudness: frames that are louder than the quietest of the last seconds.

use super::activity::{FRAME, SpeechDetector};
use crate::EncodeError;

/// How much louder than the floor speech is, in dB.
const ABOVE_FLOOR: f32 = 9.0;
/// Everything below is silence, and everything above speech, in dB of full scale. Sound that is loud all the time, such as
/// speech over music, must not be skipped.
const SILENT: f32 = -58.0;
const LOUD: f32 = -38.0;
/// How fast the floor rises, in dB a frame: 1.5 dB in a second. From the lowest floor to the highest it takes 14 s, so
/// what was heard before that is forgotten.
const RISE: f32 = 0.05;
/// dB below the threshold at which speech ends; the marks 0.5 and 0.35 are so far apart.
const HYSTERESIS: f32 = 4.0;
/// Lower and higher floors give the same thresholds.
const LOWEST: f32 = SILENT - ABOVE_FLOOR;
const HIGHEST: f32 = LOUD - ABOVE_FLOOR;

/// Finds speech by its energy. Takes music and noise that swells for speech; never skips what is loud.
#[derive(Debug, Clone)]
pub struct Energy {
    floor: f32,
    /// The sample before, for the filter.
    before: f32,
}

impl Default for Energy {
    fn default() -> Self {
        Energy { floor: LOWEST, before: 0.0 }
    }
}

impl SpeechDetector for Energy {
    fn speech(&mut self, samples: &[f32]) -> Result<Vec<f32>, EncodeError> {
        Ok(samples.chunks_exact(FRAME).map(|frame| self.mark(frame)).collect())
    }

    fn reset(&mut self) {
        *self = Energy::default();
    }
}

impl Energy {
    fn mark(&mut self, frame: &[f32]) -> f32 {
        let loudness = self.loudness(frame);
        self.floor = loudness.min(self.floor + RISE).clamp(LOWEST, HIGHEST);
        let threshold = self.floor + ABOVE_FLOOR;
        // A mark of 0.5 at the threshold, 0.35 at its lower edge.
        (0.5 + (loudness - threshold) * 0.15 / HYSTERESIS).clamp(0.0, 1.0)
    }

    /// dB of full scale, after a filter that takes away hum and a constant.
    fn loudness(&mut self, frame: &[f32]) -> f32 {
        let mut sum = 0.0;
        for sample in frame {
            let high = sample - 0.97 * self.before;
            self.before = *sample;
            sum += f64::from(high) * f64::from(high);
        }
        let mean = (sum / frame.len().max(1) as f64) as f32;
        // A voice loses about this much in the filter.
        10.0 * mean.max(1e-12).log10() + 12.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity::{Activity, ActivityOptions};
    use super::*;

    /// Noise in parts of (level in dB, seconds), and whether most of each part is speech.
    #[track_caller]
    fn check(parts: &[(f32, f32)], expected: &[bool]) {
        let mut activity = Activity::new(Box::<Energy>::default(), ActivityOptions::default());
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        for ((level, seconds), is_speech) in parts.iter().zip(expected) {
            let frames = (seconds * 16_000.0 / FRAME as f32) as usize;
            let scale = 10_f32.powf((level - 12.0) / 20.0);
            let sound: Vec<f32> = (0..frames * FRAME).map(|_| noise() * scale).collect();
            let speech = activity.next(&sound).unwrap();
            let share = speech.iter().filter(|it| **it).count() as f32 / frames as f32;
            assert_eq!(share > 0.5, *is_speech, "{level} dB: {share}");
            assert!(!(0.1..0.9).contains(&share), "{level} dB: {share}");
        }
    }

    #[test]
    fn what_stands_out_is_speech_and_what_is_loud() {
        check(&[(-90.0, 5.0), (-30.0, 5.0), (-90.0, 5.0)], &[false, true, false]);
        check(&[(-52.0, 120.0), (-30.0, 5.0), (-52.0, 5.0)], &[false, true, false]);
        check(&[(-20.0, 120.0)], &[true]);
    }
}
