//! The detectors behind one face.

use serde::{Deserialize, Serialize};

use super::adaptive::{AdaptiveDetector, AdaptiveSettings};
use super::content::{ContentDetector, ContentSettings};
use super::cut::{Cut, MinSceneLen};
use super::scores::FrameScores;
use super::threshold::{ThresholdDetector, ThresholdSettings};

/// Which detector, and how it is set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "detector", rename_all = "snake_case")]
pub enum DetectorSettings {
    /// Sudden changes.
    Content(ContentSettings),
    /// Changes that stand out from their surroundings.
    Adaptive(AdaptiveSettings),
    /// Fades to black.
    Threshold(ThresholdSettings),
}

impl Default for DetectorSettings {
    fn default() -> Self {
        DetectorSettings::Content(ContentSettings::default())
    }
}

impl DetectorSettings {
    /// Whether the detector asks for [`FrameScores::edges`].
    #[must_use]
    pub fn needs_edges(&self) -> bool {
        match self {
            DetectorSettings::Content(it) => it.weights.edges != 0.0,
            DetectorSettings::Adaptive(it) => it.weights.edges != 0.0,
            DetectorSettings::Threshold(_) => false,
        }
    }

    /// The shortest scene.
    #[must_use]
    pub fn min_scene_len(&self) -> MinSceneLen {
        match self {
            DetectorSettings::Content(it) => it.min_scene_len,
            DetectorSettings::Adaptive(it) => it.min_scene_len,
            DetectorSettings::Threshold(it) => it.min_scene_len,
        }
    }

    /// The score that is a cut; of [`DetectorSettings::Adaptive`] the ratio, of
    /// [`DetectorSettings::Threshold`] the brightness.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        match self {
            DetectorSettings::Content(it) => it.threshold,
            DetectorSettings::Adaptive(it) => it.threshold,
            DetectorSettings::Threshold(it) => it.threshold,
        }
    }

    /// The score of a frame and the score that is a cut, both as a person would plot them; for
    /// [`DetectorSettings::Adaptive`] the content score and its minimum, for
    /// [`DetectorSettings::Threshold`] the brightness.
    #[must_use]
    pub fn score(&self, scores: &FrameScores) -> (f64, f64) {
        match self {
            DetectorSettings::Content(it) => (it.weights.score(scores), it.threshold),
            DetectorSettings::Adaptive(it) => (it.weights.score(scores), it.min_content_value),
            DetectorSettings::Threshold(it) => (f64::from(scores.brightness), it.threshold),
        }
    }
}

/// A detector at work: takes frames in order, says where scenes begin.
#[derive(Debug)]
pub enum Detector {
    /// Sudden changes.
    Content(ContentDetector),
    /// Changes that stand out from their surroundings.
    Adaptive(AdaptiveDetector),
    /// Fades to black.
    Threshold(ThresholdDetector),
}

impl Detector {
    /// A detector that has seen nothing.
    #[must_use]
    pub fn new(settings: DetectorSettings) -> Self {
        match settings {
            DetectorSettings::Content(it) => Detector::Content(ContentDetector::new(it)),
            DetectorSettings::Adaptive(it) => Detector::Adaptive(AdaptiveDetector::new(it)),
            DetectorSettings::Threshold(it) => Detector::Threshold(ThresholdDetector::new(it)),
        }
    }

    /// Takes the next frame; returns a cut that is certain now, at this frame or an earlier one.
    pub fn push(&mut self, scores: &FrameScores) -> Option<Cut> {
        match self {
            Detector::Content(it) => it.push(scores),
            Detector::Adaptive(it) => it.push(scores),
            Detector::Threshold(it) => it.push(scores),
        }
    }

    /// The video is over: a last cut.
    pub fn finish(&mut self) -> Option<Cut> {
        match self {
            Detector::Content(_) | Detector::Adaptive(_) => None,
            Detector::Threshold(it) => it.finish(),
        }
    }

    /// The earliest frame so far that may still become a cut; `None`: only frames to come may.
    pub(super) fn undecided(&self) -> Option<Cut> {
        match self {
            Detector::Content(it) => it.undecided(),
            Detector::Adaptive(it) => it.undecided(),
            Detector::Threshold(it) => it.undecided(),
        }
    }
}
