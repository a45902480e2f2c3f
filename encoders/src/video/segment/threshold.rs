//! Cuts where the picture fades out and in again: PySceneDetect's ThresholdDetector (method FLOOR).

use serde::{Deserialize, Serialize};

use super::cut::{Cut, MinSceneLen};
use super::scores::FrameScores;

/// Settings of [`ThresholdDetector`]; the defaults are PySceneDetect's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThresholdSettings {
    /// The picture is faded out while its mean of red, green and blue is below this, 0 to 255. Rounded down, as in
    /// PySceneDetect. Default 12.
    pub threshold: f64,
    /// Position of the cut between fading out (-1) and fading in (1). Default 0.
    pub fade_bias: f64,
    /// Whether a last fade-out without a fade-in is a cut. Default no.
    pub add_final_scene: bool,
    /// Fades closer than this to the previous cut are dropped. Default 15 frames.
    #[serde(flatten)]
    pub min_scene_len: MinSceneLen,
}

impl Default for ThresholdSettings {
    fn default() -> Self {
        ThresholdSettings {
            threshold: 12.0,
            fade_bias: 0.0,
            add_final_scene: false,
            min_scene_len: MinSceneLen::DEFAULT,
        }
    }
}

/// Takes frames in order; returns the start of a scene once it has faded in.
#[derive(Debug)]
pub struct ThresholdDetector {
    settings: ThresholdSettings,
    frames: u64,
    /// The fade-in that ended the last fade, or the first frame.
    last: Option<Cut>,
    /// While faded out: the first dark frame, and the times of all frames since.
    out: Option<(Cut, Vec<i64>)>,
    newest: Option<Cut>,
}

impl ThresholdDetector {
    /// A detector before the first frame.
    #[must_use]
    pub fn new(settings: ThresholdSettings) -> Self {
        ThresholdDetector { settings, frames: 0, last: None, out: None, newest: None }
    }

    /// Takes the next frame; returns a cut if this frame decides one.
    pub fn push(&mut self, scores: &FrameScores) -> Option<Cut> {
        let at = Cut { frame: self.frames, time_ms: scores.time_ms };
        self.frames += 1;
        self.newest = Some(at);
        let last = *self.last.get_or_insert(at);
        let dark = f64::from(scores.brightness) < self.settings.threshold.trunc();
        match &mut self.out {
            Some((_, times)) if dark => times.push(at.time_ms),
            None if dark => self.out = Some((at, vec![at.time_ms])),
            Some(_) => return self.fade_in(last, at),
            None => {}
        }
        None
    }

    fn fade_in(&mut self, last: Cut, at: Cut) -> Option<Cut> {
        let (out, times) = self.out.take()?;
        if !self.settings.min_scene_len.is_met(last, at) {
            return None;
        }
        self.last = Some(at);
        let dark_frames = (at.frame - out.frame) as f64;
        let into = (dark_frames * (1.0 + self.settings.fade_bias) / 2.0).round_ties_even() as usize;
        Some(times.get(into).map_or(at, |time_ms| Cut { frame: out.frame + into as u64, time_ms: *time_ms }))
    }

    /// Ends the video; returns a last fade-out if `add_final_scene` is set.
    pub fn finish(&mut self) -> Option<Cut> {
        let ((out, _), last, newest) = (self.out.take()?, self.last?, self.newest?);
        (self.settings.add_final_scene && self.settings.min_scene_len.is_met(last, newest)).then_some(out)
    }

    /// The earliest frame so far that may still become a cut.
    pub(super) fn undecided(&self) -> Option<Cut> {
        self.out.as_ref().map(|it| it.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A video of 100 frames that is dark in the given stretches.
    #[track_caller]
    fn check(settings: ThresholdSettings, dark: std::ops::Range<u64>, expected: &[u64]) {
        let mut detector = ThresholdDetector::new(settings);
        let mut found: Vec<Cut> = (0..100)
            .filter_map(|frame| {
                let brightness = if dark.contains(&frame) { 11.9 } else { 12.0 };
                let time_ms = frame as i64 * 40;
                detector.push(&FrameScores { time_ms, brightness, ..FrameScores::default() })
            })
            .collect();
        found.extend(detector.finish());
        assert!(found.iter().all(|cut| cut.time_ms == cut.frame as i64 * 40));
        assert_eq!(found.iter().map(|cut| cut.frame).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_cut_lies_between_fading_out_and_in() {
        let biased = |fade_bias| ThresholdSettings { fade_bias, ..ThresholdSettings::default() };
        check(biased(0.0), 40..50, &[45]);
        check(biased(-1.0), 40..50, &[40]);
        check(biased(1.0), 40..50, &[50]);
    }

    #[test]
    fn halves_go_to_the_even_frame_as_in_python() {
        check(ThresholdSettings::default(), 40..45, &[42]);
        check(ThresholdSettings::default(), 40..47, &[44]);
    }

    #[test]
    fn a_dark_beginning_is_a_fade_too_if_it_is_long_enough() {
        check(ThresholdSettings::default(), 0..20, &[10]);
        check(ThresholdSettings::default(), 0..10, &[]);
    }

    #[test]
    fn a_dark_end_is_a_cut_on_demand() {
        check(ThresholdSettings::default(), 80..100, &[]);
        check(ThresholdSettings { add_final_scene: true, ..ThresholdSettings::default() }, 80..100, &[80]);
    }
}
