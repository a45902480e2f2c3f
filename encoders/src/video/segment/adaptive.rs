//! Cuts where the content score stands out from its surroundings: PySceneDetect's AdaptiveDetector.
//!
//! Fast camera movement raises the scores of all frames; a cut raises the score of one.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::cut::{Cut, MinSceneLen};
use super::scores::{FrameScores, Weights};

/// Settings of [`AdaptiveDetector`]; the defaults are PySceneDetect's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AdaptiveSettings {
    /// A cut scores at least this many times the mean of its surroundings. Default 3.
    pub threshold: f64,
    /// Frames on either side that count as surroundings, at least 1. Default 2.
    pub window_width: usize,
    /// Smallest content score of a cut. Default 15.
    pub min_content_value: f64,
    /// Weights of the content score. Default: hue, saturation and value equally.
    pub weights: Weights,
    /// Cuts closer than this to the previous one are dropped. Default 15 frames.
    #[serde(flatten)]
    pub min_scene_len: MinSceneLen,
}

impl Default for AdaptiveSettings {
    fn default() -> Self {
        AdaptiveSettings {
            threshold: 3.0,
            window_width: 2,
            min_content_value: 15.0,
            weights: Weights::default(),
            min_scene_len: MinSceneLen::DEFAULT,
        }
    }
}

/// Takes frames in order; returns the first frame of each scene, `window_width` frames later.
#[derive(Debug)]
pub struct AdaptiveDetector {
    settings: AdaptiveSettings,
    /// The candidate frame in the middle, with its surroundings.
    window: VecDeque<(Cut, f64)>,
    frames: u64,
    last: Option<Cut>,
}

/// Upper bound on the ratio. A score over a mean of zero has this ratio.
const LARGEST_RATIO: f64 = 255.0;
/// Means below count as zero.
const NOTHING: f64 = 0.000_01;

impl AdaptiveDetector {
    /// A detector before the first frame.
    #[must_use]
    pub fn new(settings: AdaptiveSettings) -> Self {
        let settings = AdaptiveSettings { window_width: settings.window_width.max(1), ..settings };
        AdaptiveDetector { settings, window: VecDeque::new(), frames: 0, last: None }
    }

    /// Takes the next frame; returns a cut if this frame decides one.
    pub fn push(&mut self, scores: &FrameScores) -> Option<Cut> {
        let at = Cut { frame: self.frames, time_ms: scores.time_ms };
        self.frames += 1;
        let last = *self.last.get_or_insert(at);
        let width = self.settings.window_width;
        self.window.push_back((at, self.settings.weights.score(scores)));
        if self.window.len() <= 2 * width {
            return None;
        }
        let (middle, score) = self.window[width];
        let others = self.window.iter().enumerate().filter(|(index, _)| *index != width);
        let mean = others.map(|(_, (_, score))| score).sum::<f64>() / (2 * width) as f64;
        self.window.pop_front();
        let is_cut = score >= self.settings.min_content_value
            && ratio(score, mean) >= self.settings.threshold
            && self.settings.min_scene_len.is_met(last, middle);
        is_cut.then(|| {
            self.last = Some(middle);
            middle
        })
    }

    /// The earliest frame so far that may still become a cut.
    pub(super) fn undecided(&self) -> Option<Cut> {
        self.window.get(self.settings.window_width.min(self.window.len().saturating_sub(1))).map(|it| it.0)
    }
}

/// Ratio of a score to the mean of its surroundings. The score itself is large enough for a cut.
fn ratio(score: f64, mean: f64) -> f64 {
    if mean.abs() < NOTHING { LARGEST_RATIO } else { (score / mean).min(LARGEST_RATIO) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: AdaptiveSettings, score: impl Fn(u64) -> f32, expected: &[u64]) {
        let mut detector = AdaptiveDetector::new(settings);
        let found: Vec<u64> = (0..100)
            .filter_map(|frame| {
                let [hue, saturation, value] = [score(frame); 3];
                let time_ms = frame as i64 * 40;
                detector.push(&FrameScores { time_ms, hue, saturation, value, ..FrameScores::default() })
            })
            .map(|cut| cut.frame)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_stands_out_is_a_cut() {
        check(AdaptiveSettings::default(), |frame| if frame == 50 { 40.0 } else { 5.0 }, &[50]);
        check(AdaptiveSettings::default(), |frame| if frame == 50 { 40.0 } else { 0.0 }, &[50]);
    }

    #[test]
    fn what_is_as_its_surroundings_is_none() {
        check(AdaptiveSettings::default(), |frame| if frame > 50 { 40.0 } else { 20.0 }, &[]);
        check(AdaptiveSettings::default(), |frame| if frame == 50 { 14.0 } else { 1.0 }, &[]);
    }

    #[test]
    fn cuts_keep_their_distance() {
        let spikes = |frame: u64| if [10, 20, 30, 45].contains(&frame) { 90.0 } else { 1.0 };
        check(AdaptiveSettings::default(), spikes, &[20, 45]);
        let min_scene_len = MinSceneLen::Seconds(0.0);
        check(AdaptiveSettings { min_scene_len, ..AdaptiveSettings::default() }, spikes, &[10, 20, 30, 45]);
    }

    #[test]
    fn a_frame_without_surroundings_is_no_cut() {
        check(
            AdaptiveSettings { min_scene_len: MinSceneLen::Frames(0), ..AdaptiveSettings::default() },
            |frame| if frame == 1 || frame == 98 { 90.0 } else { 1.0 },
            &[],
        );
    }
}
