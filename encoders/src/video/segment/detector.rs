//! The detectors as one type.

use serde::{Deserialize, Serialize};

use super::adaptive::{AdaptiveDetector, AdaptiveSettings};
use super::content::{ContentDetector, ContentSettings};
use super::cut::{Cut, MinSceneLen};
use super::scores::FrameScores;
use super::threshold::{ThresholdDetector, ThresholdSettings};

/// A detector with its settings.
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
    /// Whether the detector reads [`FrameScores::edges`].
    #[must_use]
    pub fn needs_edges(&self) -> bool {
        match self {
            DetectorSettings::Content(it) => it.weights.edges != 0.0,
            DetectorSettings::Adaptive(it) => it.weights.edges != 0.0,
            DetectorSettings::Threshold(_) => false,
        }
    }

    /// Whether the detector reads [`FrameScores::brightness`], not changes.
    #[must_use]
    pub fn is_of_brightness(&self) -> bool {
        matches!(self, DetectorSettings::Threshold(_))
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

    /// The limit for a cut: of the content score, for [`DetectorSettings::Adaptive`] of its ratio, for
    /// [`DetectorSettings::Threshold`] of the brightness.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        match self {
            DetectorSettings::Content(it) => it.threshold,
            DetectorSettings::Adaptive(it) => it.threshold,
            DetectorSettings::Threshold(it) => it.threshold,
        }
    }

    /// A frame's score and the limit for a cut, for a plot. [`DetectorSettings::Adaptive`] gives the content score and
    /// its minimum, [`DetectorSettings::Threshold`] the brightness.
    #[must_use]
    pub fn score(&self, scores: &FrameScores) -> (f64, f64) {
        match self {
            DetectorSettings::Content(it) => (it.weights.score(scores), it.threshold),
            DetectorSettings::Adaptive(it) => (it.weights.score(scores), it.min_content_value),
            DetectorSettings::Threshold(it) => (f64::from(scores.brightness), it.threshold),
        }
    }
}

/// A running detector: takes frames in order; returns the first frame of each scene.
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
    /// A detector before the first frame.
    #[must_use]
    pub fn new(settings: DetectorSettings) -> Self {
        match settings {
            DetectorSettings::Content(it) => Detector::Content(ContentDetector::new(it)),
            DetectorSettings::Adaptive(it) => Detector::Adaptive(AdaptiveDetector::new(it)),
            DetectorSettings::Threshold(it) => Detector::Threshold(ThresholdDetector::new(it)),
        }
    }

    /// Takes the next frame; returns a cut that is now certain, at this frame or an earlier one.
    pub fn push(&mut self, scores: &FrameScores) -> Option<Cut> {
        match self {
            Detector::Content(it) => it.push(scores),
            Detector::Adaptive(it) => it.push(scores),
            Detector::Threshold(it) => it.push(scores),
        }
    }

    /// Ends the video; may return a last cut.
    pub fn finish(&mut self) -> Option<Cut> {
        match self {
            Detector::Content(_) | Detector::Adaptive(_) => None,
            Detector::Threshold(it) => it.finish(),
        }
    }

    /// The earliest past frame that may still become a cut; `None` if none may.
    pub(super) fn undecided(&self) -> Option<Cut> {
        match self {
            Detector::Content(it) => it.undecided(),
            Detector::Adaptive(it) => it.undecided(),
            Detector::Threshold(it) => it.undecided(),
        }
    }
}
