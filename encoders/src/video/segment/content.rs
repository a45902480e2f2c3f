//! Cuts where hue, saturation, value and (optionally) edges change at once: PySceneDetect's ContentDetector.

use serde::{Deserialize, Serialize};

use super::cut::{Cut, MinSceneLen};
use super::flash::{FilterMode, FlashFilter};
use super::scores::{FrameScores, Weights};

/// Settings of [`ContentDetector`]; the defaults are PySceneDetect's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ContentSettings {
    /// Smallest score of a cut. Default 27.
    pub threshold: f64,
    /// Weights of the score. Default: hue, saturation and value equally.
    pub weights: Weights,
    /// Cuts closer than this to the previous one are filtered. Default 15 frames.
    #[serde(flatten)]
    pub min_scene_len: MinSceneLen,
    /// Treatment of such cuts. Default: merged.
    pub filter: FilterMode,
}

impl Default for ContentSettings {
    fn default() -> Self {
        ContentSettings {
            threshold: 27.0,
            weights: Weights::default(),
            min_scene_len: MinSceneLen::DEFAULT,
            filter: FilterMode::Merge,
        }
    }
}

/// Takes frames in order; returns the first frame of each scene.
#[derive(Debug)]
pub struct ContentDetector {
    threshold: f64,
    weights: Weights,
    filter: FlashFilter,
    frames: u64,
}

impl ContentDetector {
    /// A detector before the first frame.
    #[must_use]
    pub fn new(settings: ContentSettings) -> Self {
        ContentDetector {
            threshold: settings.threshold,
            weights: settings.weights,
            filter: FlashFilter::new(settings.filter, settings.min_scene_len),
            frames: 0,
        }
    }

    /// Takes the next frame; returns the first frame of a new scene once it is certain. A burst of cuts is merged only
    /// when it is over.
    pub fn push(&mut self, scores: &FrameScores) -> Option<Cut> {
        let at = Cut { frame: self.frames, time_ms: scores.time_ms };
        self.frames += 1;
        self.filter.push(at, self.weights.score(scores) >= self.threshold)
    }

    /// The earliest frame so far that may still become a cut.
    pub(super) fn undecided(&self) -> Option<Cut> {
        self.filter.undecided()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hue` is the hue difference of each frame; the other two planes change by a third of it.
    #[track_caller]
    fn check(settings: ContentSettings, hue: &[f32], expected: &[u64]) {
        let mut detector = ContentDetector::new(settings);
        let scores = hue.iter().enumerate().map(|(at, &hue)| FrameScores {
            time_ms: at as i64 * 40,
            hue,
            saturation: hue / 3.0,
            value: hue / 3.0,
            edges: Some(hue),
            ..FrameScores::default()
        });
        let found: Vec<u64> = scores.filter_map(|it| detector.push(&it)).map(|cut| cut.frame).collect();
        assert_eq!(found, expected);
    }

    fn spike(at: usize, hue: f32) -> Vec<f32> {
        (0..60).map(|frame| if frame == at { hue } else { 1.0 }).collect()
    }

    #[test]
    fn a_cut_is_the_first_frame_of_the_new_scene() {
        check(ContentSettings::default(), &spike(30, 60.0), &[30]);
    }

    #[test]
    fn the_score_that_equals_the_threshold_is_a_cut() {
        check(ContentSettings { threshold: 25.0, ..ContentSettings::default() }, &spike(30, 45.0), &[30]);
        check(ContentSettings { threshold: 25.0, ..ContentSettings::default() }, &spike(30, 44.9), &[]);
    }

    #[test]
    fn weights_say_what_counts() {
        let only = |hue, edges| Weights { hue, saturation: 0.0, value: 0.0, edges };
        let settings = |weights| ContentSettings { weights, ..ContentSettings::default() };
        check(settings(only(1.0, 0.0)), &spike(30, 28.0), &[30]);
        check(settings(only(0.0, 1.0)), &spike(30, 28.0), &[30]);
        check(settings(Weights { edges: 1.0, ..Weights::default() }), &spike(30, 28.0), &[]);
    }
}
