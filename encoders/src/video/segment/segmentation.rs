//! The segmentation policies and their parameters: stored, sent over the API, set by flags, run by the [`Segmenter`].
//!
//! [`Segmenter`]: super::Segmenter

use serde::{Deserialize, Serialize};

use super::cut::{MinSceneLen, millis};
use super::detector::DetectorSettings;
use super::scores::WHOLE;
use super::{ContentSettings, Weights};

/// A policy with all its parameters. JSON: `{"policy": "fixed", "params": {"every_seconds": 10.0}}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "policy", content = "params", rename_all = "snake_case")]
pub enum Segmentation {
    /// Cuts at the detector's cuts, at gradual transitions and at slide changes. Longer clips are split at pauses between
    /// cues, or without cues where the least moves.
    Hybrid {
        /// Finds the cuts.
        #[serde(flatten)]
        detector: DetectorSettings,
        /// Least area of a slide change, in per cent of the picture; 0 turns slide changes off.
        slide_area_percent: f64,
        /// Whether to cut in the middle of dissolves, fades and wipes, and not at flashes or in whip pans. Segmentations
        /// that were stored before this was there do neither.
        #[serde(default)]
        gradual: bool,
        /// Shortest clip, in seconds; at most a quarter of the longest. Of closer boundaries, cuts win over slide
        /// changes, and earlier boundaries over later ones.
        min_clip_seconds: f64,
        /// Longest clip, in seconds.
        max_clip_seconds: f64,
    },
    /// Cuts at the detector's cuts. Longer scenes are split evenly; a last scene below the detector's minimum joins the
    /// clip before it.
    Content {
        /// The named settings on which the detector is based.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preset: Option<Preset>,
        /// Finds the cuts.
        #[serde(flatten)]
        detector: DetectorSettings,
        /// Longest clip, in seconds.
        max_clip_seconds: f64,
    },
    /// Cuts where speech begins after a pause. Longer clips are split as in [`Segmentation::Hybrid`].
    Subtitle {
        /// Shortest pause, in seconds.
        pause_seconds: f64,
        /// Shortest clip, in seconds; at most a quarter of the longest.
        min_clip_seconds: f64,
        /// Longest clip, in seconds.
        max_clip_seconds: f64,
    },
    /// Cuts at regular intervals.
    Fixed {
        /// Length of a clip, in seconds; the last may be shorter.
        every_seconds: f64,
    },
    /// Finds no clips: a user supplies them.
    Given {},
}

/// Named settings of [`Segmentation::Content`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The settings with which the LoVR benchmark cut its videos.
    Lovr,
}

impl Preset {
    /// The detector of the preset: for LoVR threshold 34 and scenes of at least 5 s.
    #[must_use]
    pub fn detector(self) -> ContentSettings {
        let Preset::Lovr = self;
        ContentSettings {
            threshold: 34.0,
            min_scene_len: MinSceneLen::Seconds(5.0),
            ..ContentSettings::default()
        }
    }
}

/// A parameter with a value that is not allowed; the caller should change it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct FieldError {
    /// Path of the parameter below `params`, e.g. `weights/hue`.
    pub field: &'static str,
    /// The rule that the value breaks.
    pub problem: String,
}

impl Segmentation {
    /// [`Segmentation::Hybrid`] with default parameters.
    #[must_use]
    pub fn hybrid(max_clip_seconds: f64) -> Segmentation {
        Segmentation::Hybrid {
            detector: DetectorSettings::default(),
            slide_area_percent: 1.0,
            gradual: true,
            min_clip_seconds: 0.5_f64.min(max_clip_seconds / 4.0),
            max_clip_seconds,
        }
    }

    /// [`Segmentation::Content`] with default parameters.
    #[must_use]
    pub fn content(max_clip_seconds: f64) -> Segmentation {
        Segmentation::Content { preset: None, detector: DetectorSettings::default(), max_clip_seconds }
    }

    /// [`Segmentation::Subtitle`] with default parameters.
    #[must_use]
    pub fn subtitle(max_clip_seconds: f64) -> Segmentation {
        let min_clip_seconds = 2.0_f64.min(max_clip_seconds / 4.0);
        Segmentation::Subtitle { pause_seconds: 0.7, min_clip_seconds, max_clip_seconds }
    }

    /// A segmentation that cuts the whole video. [`Segmentation::Given`], whose clips may leave gaps, becomes
    /// [`Segmentation::Content`]; any other stays.
    #[must_use]
    pub fn of_parts(self, max_clip_seconds: f64) -> Segmentation {
        if self == (Segmentation::Given {}) { Segmentation::content(max_clip_seconds) } else { self }
    }

    /// Whether the scores must have edges.
    #[must_use]
    pub fn needs_edges(&self) -> bool {
        self.detector().is_some_and(|it| it.needs_edges())
    }

    /// The detector of the policy, if it has one.
    #[must_use]
    pub fn detector(&self) -> Option<DetectorSettings> {
        match self {
            Segmentation::Content { detector, .. } | Segmentation::Hybrid { detector, .. } => Some(*detector),
            Segmentation::Fixed { .. } | Segmentation::Subtitle { .. } | Segmentation::Given {} => None,
        }
    }

    /// Checks every parameter; no clip may be longer than `longest_seconds`.
    ///
    /// # Errors
    /// [`FieldError`] names the first parameter that is out of range.
    pub fn check(&self, longest_seconds: f64) -> Result<(), FieldError> {
        if let Some(detector) = self.detector() {
            detector.check()?;
        }
        let clip_length = Range { low: longest_seconds.min(1.0), high: longest_seconds.max(1.0) };
        match *self {
            Segmentation::Hybrid { slide_area_percent, min_clip_seconds, max_clip_seconds, .. } => {
                Range { low: 0.0, high: 100.0 }.check("slide_area_percent", slide_area_percent)?;
                clip_length.check("max_clip_seconds", max_clip_seconds)?;
                shortest(max_clip_seconds).check("min_clip_seconds", min_clip_seconds)
            }
            Segmentation::Content { max_clip_seconds, .. } => {
                clip_length.check("max_clip_seconds", max_clip_seconds)
            }
            Segmentation::Subtitle { pause_seconds, min_clip_seconds, max_clip_seconds } => {
                Range { low: 0.0, high: 3600.0 }.check("pause_seconds", pause_seconds)?;
                clip_length.check("max_clip_seconds", max_clip_seconds)?;
                shortest(max_clip_seconds).check("min_clip_seconds", min_clip_seconds)
            }
            Segmentation::Fixed { every_seconds } => clip_length.check("every_seconds", every_seconds),
            Segmentation::Given {} => Ok(()),
        }
    }

    /// Longest clip in milliseconds, at least 1.
    pub fn max_clip_ms(&self) -> i64 {
        match self {
            Segmentation::Content { max_clip_seconds: seconds, .. }
            | Segmentation::Fixed { every_seconds: seconds }
            | Segmentation::Subtitle { max_clip_seconds: seconds, .. }
            | Segmentation::Hybrid { max_clip_seconds: seconds, .. } => millis(*seconds).max(1),
            Segmentation::Given {} => i64::MAX,
        }
    }

    /// Shortest distance between two boundaries.
    pub(super) fn min_clip(&self) -> MinSceneLen {
        match self {
            Segmentation::Content { detector, .. } => detector.min_scene_len(),
            Segmentation::Fixed { .. } | Segmentation::Given {} => MinSceneLen::Seconds(0.0),
            Segmentation::Subtitle { min_clip_seconds, .. }
            | Segmentation::Hybrid { min_clip_seconds, .. } => {
                let most_ms = self.max_clip_ms() / 4;
                MinSceneLen::Seconds(millis(*min_clip_seconds).min(most_ms) as f64 / 1000.0)
            }
        }
    }

    /// The detector whose cuts are judged, if gradual transitions are boundaries.
    pub(super) fn gradual_detector(&self) -> Option<DetectorSettings> {
        match self {
            Segmentation::Hybrid { gradual: true, detector, .. } => Some(*detector),
            _ => None,
        }
    }

    /// Least area of a slide change, in parts of [`WHOLE`]; `None` turns slide changes off.
    pub(super) fn slide_area(&self) -> Option<u16> {
        let Segmentation::Hybrid { slide_area_percent, .. } = self else { return None };
        let area = (slide_area_percent / 100.0 * f64::from(WHOLE)).round();
        (*slide_area_percent > 0.0).then_some(area.max(1.0) as u16)
    }
}

impl DetectorSettings {
    fn check(&self) -> Result<(), FieldError> {
        let brightness = Range { low: 0.0, high: 255.0 };
        Range { low: 0.001, high: 255.0 }.check("threshold", self.threshold())?;
        match self {
            DetectorSettings::Content(it) => it.weights.check()?,
            DetectorSettings::Adaptive(it) => {
                Range { low: 1.0, high: 100.0 }.check("window_width", it.window_width as f64)?;
                brightness.check("min_content_value", it.min_content_value)?;
                it.weights.check()?;
            }
            DetectorSettings::Threshold(it) => {
                Range { low: -1.0, high: 1.0 }.check("fade_bias", it.fade_bias)?;
            }
        }
        match self.min_scene_len() {
            MinSceneLen::Frames(frames) => {
                Range { low: 1.0, high: 100_000.0 }.check("min_scene_frames", frames as f64)
            }
            MinSceneLen::Seconds(seconds) => {
                Range { low: 0.0, high: 3600.0 }.check("min_scene_seconds", seconds)
            }
        }
    }
}

impl Weights {
    fn check(&self) -> Result<(), FieldError> {
        let weight = Range { low: 0.0, high: 100.0 };
        weight.check("weights/hue", self.hue)?;
        weight.check("weights/saturation", self.saturation)?;
        weight.check("weights/value", self.value)?;
        weight.check("weights/edges", self.edges)?;
        if [self.hue, self.saturation, self.value, self.edges].iter().any(|it| *it > 0.0) {
            return Ok(());
        }
        Err(FieldError { field: "weights", problem: "at least one must be over 0".to_owned() })
    }
}

/// Allowed values, both ends included.
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn check(&self, field: &'static str, value: f64) -> Result<(), FieldError> {
        let Range { low, high } = self;
        if (*low..=*high).contains(&value) {
            return Ok(());
        }
        Err(FieldError { field, problem: format!("must be from {low} to {high}") })
    }
}

fn shortest(max_clip_seconds: f64) -> Range {
    Range { low: 0.0, high: max_clip_seconds / 4.0 }
}

#[cfg(test)]
#[path = "segmentation_tests.rs"]
mod tests;
