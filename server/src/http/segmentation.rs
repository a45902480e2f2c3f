//! Segmentation in a request: a policy, and the parameters that differ from the defaults.

use reprise_encoders::video::segment::{
    AdaptiveSettings, ContentSettings, DetectorSettings, FieldError, FilterMode, MinSceneLen, Preset,
    Segmentation, ThresholdSettings, Weights,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::error::ApiError;
use super::extract::stretch;
use super::videos::checked_metadata;
use crate::catalog::GivenClip;

/// Most clips given with one video.
const MAX_GIVEN: usize = 100_000;

/// How a video is cut.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SegmentationBody {
    /// Where clips begin; default `hybrid`.
    policy: Option<Policy>,
    /// Of the policy.
    #[serde(default)]
    params: Params,
    /// Clips of your own, beside the found ones.
    #[serde(default)]
    clips: Vec<GivenBody>,
}

/// A policy. `hybrid`: at cuts and slide changes, long clips split where nobody speaks or little moves. `content`:
/// at cuts, long clips split evenly. `subtitle`: where people begin to speak. `fixed`: every so often. `given`: only
/// the clips given here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Policy {
    Hybrid,
    Content,
    Subtitle,
    Fixed,
    Given,
}

/// Parameters; each belongs to some policies and detectors only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Settings by name, of the policy `content`; what else is said here overrides them.
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<PresetName>,
    /// What finds the cuts of `hybrid` and `content`; default `content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    detector: Option<DetectorName>,
    /// A cut where the content score (0 to 255; default 27) or the adaptive ratio (default 3) reaches this, or the
    /// brightness falls below it (0 to 255; default 12).
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    /// What the content score is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<WeightsBody>,
    /// What becomes of cuts that follow each other too closely, for the detector `content`; default `merge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<FilterName>,
    /// Frames on either side that the detector `adaptive` compares with, 1 to 100; default 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_width: Option<u32>,
    /// Least content score of a cut of the detector `adaptive`, 0 to 255; default 15.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_content_value: Option<f64>,
    /// Where in a fade the detector `threshold` cuts: -1 at its start, 1 at its end; default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    fade_bias: Option<f64>,
    /// Whether the detector `threshold` cuts at a last fade to black; default no.
    #[serde(skip_serializing_if = "Option::is_none")]
    add_final_scene: Option<bool>,
    /// Shortest scene between cuts in frames, 1 to 100000; default 15.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_scene_frames: Option<u32>,
    /// Shortest scene between cuts in seconds instead of frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_scene_seconds: Option<f64>,
    /// Least part of the picture that a slide change of `hybrid` changes, in per cent, counted in blocks of about a
    /// thirtieth of the width; 0: slides are not looked for; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    slide_area_percent: Option<f64>,
    /// Shortest pause in speech at which `subtitle` cuts, in seconds; default 0.7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_seconds: Option<f64>,
    /// Length of a clip of `fixed`; default the longest that the server allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    every_seconds: Option<f64>,
    /// Shortest clip of `hybrid` (default 0.5) and `subtitle` (default 2), in seconds; at most a quarter of the
    /// longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_clip_seconds: Option<f64>,
    /// Longest clip in seconds; default as the server is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_clip_seconds: Option<f64>,
}

/// `lovr`: as LoVR cut its videos, with threshold 34 and scenes of at least 5 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Preset)]
enum PresetName {
    Lovr,
}

/// `content`: sudden changes; `adaptive`: changes that stand out from their surroundings; `threshold`: fades to black.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DetectorName {
    #[default]
    Content,
    Adaptive,
    Threshold,
}

/// `merge`: the last of them is the cut; `suppress`: the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum FilterName {
    Merge,
    Suppress,
}

/// How much each change counts, 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WeightsBody {
    /// Of the hue.
    #[serde(default = "one")]
    hue: f64,
    /// Of the saturation.
    #[serde(default = "one")]
    saturation: f64,
    /// Of the value.
    #[serde(default = "one")]
    value: f64,
    /// Of the edges; they take longer than all the rest.
    #[serde(default)]
    edges: f64,
}

fn one() -> f64 {
    1.0
}

impl From<WeightsBody> for Weights {
    fn from(WeightsBody { hue, saturation, value, edges }: WeightsBody) -> Weights {
        Weights { hue, saturation, value, edges }
    }
}

/// A clip of the user's own, in seconds, end exclusive.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GivenBody {
    pub(super) start: f64,
    pub(super) end: f64,
    /// A JSON object that overlays the video's metadata.
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Value>,
}

impl GivenBody {
    /// Checks the clip and converts it to milliseconds.
    pub(super) fn checked(&self, pointer: &str) -> Result<GivenClip, ApiError> {
        let (start_ms, end_ms) = stretch(self.start, self.end, pointer)?;
        checked_metadata(self.metadata.as_ref(), &format!("{pointer}/metadata"))?;
        let metadata = self.metadata.clone().unwrap_or_else(|| Value::Object(Map::new()));
        Ok(GivenClip { start_ms, end_ms, metadata })
    }
}

impl SegmentationBody {
    /// Whether only the user's clips count.
    pub(super) fn is_given_only(&self) -> bool {
        self.policy == Some(Policy::Given)
    }

    /// Whether the request brings clips.
    pub(super) fn has_clips(&self) -> bool {
        !self.clips.is_empty()
    }

    /// The segmentation with every parameter set. No clip is longer than `longest_s` seconds.
    ///
    /// # Errors
    /// 422 with a pointer to a parameter that is out of range or that the policy does not have.
    pub(super) fn segmentation(&self, longest_s: f64) -> Result<Segmentation, ApiError> {
        let segmentation = self.params.clone().complete(self.policy(), longest_s)?;
        segmentation.check(longest_s).map_err(|FieldError { field, problem }| invalid(field, problem))?;
        Ok(segmentation)
    }

    /// The clips of the request, in milliseconds.
    ///
    /// # Errors
    /// 422 for an invalid clip, too many clips, or none with the policy `given`.
    pub(super) fn given(&self) -> Result<Vec<GivenClip>, ApiError> {
        if self.policy() == Policy::Given && self.clips.is_empty() {
            return Err(ApiError::invalid("/segmentation/clips", "the policy `given` needs clips"));
        }
        if self.clips.len() > MAX_GIVEN {
            return Err(ApiError::invalid("/segmentation/clips", format!("at most {MAX_GIVEN} clips")));
        }
        let clips = self.clips.iter().enumerate();
        clips.map(|(index, clip)| clip.checked(&format!("/segmentation/clips/{index}"))).collect()
    }

    /// The policy. With a preset the default is `content`.
    fn policy(&self) -> Policy {
        let unset = if self.params.preset.is_some() { Policy::Content } else { Policy::Hybrid };
        self.policy.unwrap_or(unset)
    }
}

fn invalid(name: &str, why: impl Into<String>) -> ApiError {
    ApiError::invalid(format!("/segmentation/params/{name}"), why.into())
}

impl Params {
    /// Takes the policy's parameters and refuses others.
    fn complete(mut self, policy: Policy, longest_s: f64) -> Result<Segmentation, ApiError> {
        if policy == Policy::Given && self != Params::default() {
            let why = "the policy `given` takes no parameters";
            return Err(ApiError::invalid("/segmentation/params", why));
        }
        let detector = self.detector.unwrap_or_default();
        let segmentation = self.take(policy, longest_s)?;
        match self.first_name() {
            None => Ok(segmentation),
            Some(name) => Err(invalid(&name, foreign(policy, detector))),
        }
    }

    fn take(&mut self, policy: Policy, longest_s: f64) -> Result<Segmentation, ApiError> {
        let mut segmentation = match policy {
            Policy::Fixed => {
                let every_seconds = self.every_seconds.take().unwrap_or(longest_s);
                return Ok(Segmentation::Fixed { every_seconds });
            }
            Policy::Given => return Ok(Segmentation::Given {}),
            Policy::Hybrid => Segmentation::hybrid(self.max_clip_seconds.take().unwrap_or(longest_s)),
            Policy::Content => Segmentation::content(self.max_clip_seconds.take().unwrap_or(longest_s)),
            Policy::Subtitle => Segmentation::subtitle(self.max_clip_seconds.take().unwrap_or(longest_s)),
        };
        match &mut segmentation {
            Segmentation::Hybrid { detector, slide_area_percent, min_clip_seconds, .. } => {
                *detector = self.take_detector(None)?;
                replace(slide_area_percent, self.slide_area_percent.take());
                replace(min_clip_seconds, self.min_clip_seconds.take());
            }
            Segmentation::Content { preset, detector, .. } => {
                *preset = self.preset.take().map(|PresetName::Lovr| Preset::Lovr);
                *detector = self.take_detector(*preset)?;
            }
            Segmentation::Subtitle { pause_seconds, min_clip_seconds, .. } => {
                replace(pause_seconds, self.pause_seconds.take());
                replace(min_clip_seconds, self.min_clip_seconds.take());
            }
            Segmentation::Fixed { .. } | Segmentation::Given {} => {}
        }
        Ok(segmentation)
    }

    fn take_detector(&mut self, preset: Option<Preset>) -> Result<DetectorSettings, ApiError> {
        let preset = preset.map(Preset::detector);
        let min_scene_len = match (self.min_scene_frames.take(), self.min_scene_seconds.take()) {
            (Some(_), Some(_)) => {
                return Err(invalid("min_scene_seconds", "give frames or seconds, not both"));
            }
            (Some(frames), None) => MinSceneLen::Frames(u64::from(frames)),
            (None, Some(seconds)) => MinSceneLen::Seconds(seconds),
            (None, None) => preset.map_or(MinSceneLen::DEFAULT, |it| it.min_scene_len),
        };
        let threshold = self.threshold.take().or(preset.map(|it| it.threshold));
        Ok(match self.detector.take().unwrap_or_default() {
            DetectorName::Content => {
                let mut settings = ContentSettings { min_scene_len, ..ContentSettings::default() };
                replace(&mut settings.threshold, threshold);
                replace(&mut settings.weights, self.weights.take().map(Weights::from));
                replace(&mut settings.filter, self.filter.take().map(FilterMode::from));
                DetectorSettings::Content(settings)
            }
            DetectorName::Adaptive => {
                let mut settings = AdaptiveSettings { min_scene_len, ..AdaptiveSettings::default() };
                replace(&mut settings.threshold, threshold);
                replace(&mut settings.weights, self.weights.take().map(Weights::from));
                replace(&mut settings.window_width, self.window_width.take().map(|it| it as usize));
                replace(&mut settings.min_content_value, self.min_content_value.take());
                DetectorSettings::Adaptive(settings)
            }
            DetectorName::Threshold => {
                let mut settings = ThresholdSettings { min_scene_len, ..ThresholdSettings::default() };
                replace(&mut settings.threshold, threshold);
                replace(&mut settings.fade_bias, self.fade_bias.take());
                replace(&mut settings.add_final_scene, self.add_final_scene.take());
                DetectorSettings::Threshold(settings)
            }
        })
    }

    /// The first name of a set parameter, in alphabetical order.
    fn first_name(&self) -> Option<String> {
        json!(self).as_object()?.keys().min().cloned()
    }
}

fn replace<T>(default: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *default = value;
    }
}

/// The reason to refuse a parameter.
fn foreign(policy: Policy, detector: DetectorName) -> String {
    let (of_policy, of_detector) = (json!(policy), json!(detector));
    let why = match policy {
        Policy::Hybrid | Policy::Content => {
            format!("the policy {of_policy} with the detector {of_detector} has no such parameter")
        }
        Policy::Subtitle | Policy::Fixed | Policy::Given => {
            format!("the policy {of_policy} has no such parameter")
        }
    };
    why.replace('"', "`")
}

impl From<FilterName> for FilterMode {
    fn from(name: FilterName) -> FilterMode {
        match name {
            FilterName::Merge => FilterMode::Merge,
            FilterName::Suppress => FilterMode::Suppress,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(json: &Value) -> SegmentationBody {
        serde_json::from_value(json.clone()).unwrap()
    }

    #[track_caller]
    fn check(json: Value, policy: &str, params: Value) {
        let body = body(&json);
        assert!(body.given().is_ok(), "{json}");
        let stored = json!(body.segmentation(30.0).unwrap());
        assert_eq!(stored, json!({"policy": policy, "params": params}), "{json}");
    }

    const WEIGHTS: [(&str, f64); 4] = [("hue", 1.0), ("saturation", 1.0), ("value", 1.0), ("edges", 0.0)];

    fn weights() -> Value {
        Value::Object(WEIGHTS.iter().map(|(name, weight)| ((*name).to_owned(), json!(weight))).collect())
    }

    #[test]
    fn every_parameter_is_spelt_out() {
        check(
            json!({}),
            "hybrid",
            json!({"detector": "content", "threshold": 27.0, "weights": weights(), "filter": "merge",
                "min_scene_frames": 15, "slide_area_percent": 1.0, "min_clip_seconds": 0.5,
                "max_clip_seconds": 30.0}),
        );
        check(
            json!({"policy": "content", "params": {"detector": "adaptive", "min_scene_seconds": 1}}),
            "content",
            json!({"detector": "adaptive", "threshold": 3.0, "weights": weights(), "window_width": 2,
                "min_content_value": 15.0, "min_scene_seconds": 1.0, "max_clip_seconds": 30.0}),
        );
        check(
            json!({"params": {"detector": "threshold", "max_clip_seconds": 1}}),
            "hybrid",
            json!({"detector": "threshold", "threshold": 12.0, "fade_bias": 0.0, "add_final_scene": false,
                "min_scene_frames": 15, "slide_area_percent": 1.0, "min_clip_seconds": 0.25,
                "max_clip_seconds": 1.0}),
        );
        check(
            json!({"policy": "subtitle"}),
            "subtitle",
            json!({"pause_seconds": 0.7, "min_clip_seconds": 2.0, "max_clip_seconds": 30.0}),
        );
        check(json!({"policy": "fixed"}), "fixed", json!({"every_seconds": 30.0}));
        check(json!({"policy": "given", "clips": [{"start": 0, "end": 1}]}), "given", json!({}));
    }

    #[test]
    fn a_preset_is_content_with_its_own_values() {
        let spelt_out = |threshold: f64| {
            json!({"preset": "lovr", "detector": "content", "threshold": threshold, "weights": weights(),
                "filter": "merge", "min_scene_seconds": 5.0, "max_clip_seconds": 30.0})
        };
        check(json!({"params": {"preset": "lovr"}}), "content", spelt_out(34.0));
        check(json!({"params": {"preset": "lovr", "threshold": 20}}), "content", spelt_out(20.0));
    }

    #[track_caller]
    fn check_refused(json: Value, pointer: &str) {
        let body = body(&json);
        let error = body.segmentation(30.0).and_then(|_| body.given()).unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains(&format!("\"{pointer}\"")), "{json}: {text}");
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_its_place() {
        for (params, name) in [
            (json!({"threshold": 0}), "threshold"),
            (json!({"every_seconds": 3}), "every_seconds"),
            (json!({"fade_bias": 0}), "fade_bias"),
            (json!({"detector": "adaptive", "filter": "merge"}), "filter"),
            (json!({"detector": "threshold", "weights": {}}), "weights"),
            (json!({"weights": {"hue": -1}}), "weights/hue"),
            (json!({"weights": {"hue": 0, "saturation": 0, "value": 0}}), "weights"),
            (json!({"min_clip_seconds": 8}), "min_clip_seconds"),
            (json!({"max_clip_seconds": 4, "min_clip_seconds": 1.5}), "min_clip_seconds"),
            (json!({"max_clip_seconds": 31}), "max_clip_seconds"),
            (json!({"min_scene_frames": 3, "min_scene_seconds": 1}), "min_scene_seconds"),
            (json!({"slide_area_percent": 101}), "slide_area_percent"),
        ] {
            check_refused(json!({"params": params}), &format!("/segmentation/params/{name}"));
        }
        check_refused(
            json!({"policy": "hybrid", "params": {"preset": "lovr"}}),
            "/segmentation/params/preset",
        );
        check_refused(
            json!({"policy": "fixed", "params": {"threshold": 3}}),
            "/segmentation/params/threshold",
        );
        check_refused(
            json!({"policy": "given", "params": {"threshold": 3}, "clips": []}),
            "/segmentation/params",
        );
        check_refused(json!({"policy": "given"}), "/segmentation/clips");
    }
}
