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

/// Largest number of the user's clips with one video.
const MAX_GIVEN: usize = 100_000;

/// How a video is cut into clips.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Segmentation)]
pub(super) struct SegmentationBody {
    /// Rule for the boundaries of clips. Default `hybrid`, or `content` with a preset.
    policy: Option<Policy>,
    /// Parameters of the policy.
    #[serde(default)]
    params: Params,
    /// Your own clips, in addition to those of the policy; at most 100000. The policy `given` needs one.
    #[serde(default)]
    #[schema(max_items = 100_000)]
    clips: Vec<GivenBody>,
}

/// Rule for the boundaries of clips.
///
/// `hybrid`: boundaries at cuts, gradual transitions and slide changes; long clips are split at pauses in speech or at
/// little movement. `content`: boundaries at cuts; long clips are split evenly. `subtitle`: boundaries where speech begins
/// after a pause. `fixed`: clips of equal length. `given`: only your own clips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SegmentationPolicy)]
enum Policy {
    Hybrid,
    Content,
    Subtitle,
    Fixed,
    Given,
}

/// Parameters of a policy and its detector. A parameter of another policy or detector is an error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SegmentationParams)]
struct Params {
    /// Named settings of the policy `content`. Other parameters override them.
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<PresetName>,
    /// Detector of cuts for the policies `hybrid` and `content`. Default `content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    detector: Option<DetectorName>,
    /// Threshold of the detector, 0.001 to 255. `content`: smallest content score of a cut; default 27. `adaptive`:
    /// smallest ratio of the score to its surroundings; default 3. `threshold`: brightness below which the picture is
    /// black; default 12.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 255)]
    threshold: Option<f64>,
    /// Weights of the content score, for the detectors `content` and `adaptive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<WeightsBody>,
    /// Treatment of cuts closer than the shortest scene, for the detector `content`. Default `merge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<FilterName>,
    /// Number of frames on either side that the detector `adaptive` compares with a frame, 1 to 100. Default 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    window_width: Option<u32>,
    /// Smallest content score of a cut for the detector `adaptive`, 0 to 255. Default 15.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 255)]
    min_content_value: Option<f64>,
    /// Position of the cut in a fade, for the detector `threshold`, -1 to 1: -1 is the start of the fade, 1 its end.
    /// Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -1, maximum = 1)]
    fade_bias: Option<f64>,
    /// Whether the detector `threshold` cuts at a last fade to black. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    add_final_scene: Option<bool>,
    /// Shortest scene in frames, 1 to 100000. Default 15.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000)]
    min_scene_frames: Option<u32>,
    /// Shortest scene in seconds, 0 to 3600. Give this or `min_scene_frames`, not both.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 3600)]
    min_scene_seconds: Option<f64>,
    /// Smallest area of a slide change for the policy `hybrid`, 0 to 100 per cent of the picture. Default 1; 0 turns slide
    /// changes off. The area is counted in blocks of about a thirtieth of the picture's width.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 100)]
    slide_area_percent: Option<f64>,
    /// Whether the policy `hybrid` also cuts in the middle of dissolves, fades and wipes, and passes over flashes and
    /// whip pans. Default true. Has no effect on a video that was ingested before reprise measured them.
    #[serde(skip_serializing_if = "Option::is_none")]
    gradual: Option<bool>,
    /// Shortest pause in speech at which the policy `subtitle` cuts, in seconds, 0 to 3600. Default 0.7.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 3600)]
    pause_seconds: Option<f64>,
    /// Length of the clips of the policy `fixed`, in seconds, 1 to the longest that the server allows, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0)]
    every_seconds: Option<f64>,
    /// Shortest clip of the policies `hybrid` (default 0.5) and `subtitle` (default 2), in seconds. At most a quarter
    /// of `max_clip_seconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    min_clip_seconds: Option<f64>,
    /// Longest clip in seconds, 1 to the longest that the server allows, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0)]
    max_clip_seconds: Option<f64>,
}

/// Named settings. `lovr`: the settings of the LoVR benchmark, with threshold 34 and scenes of at least 5 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SegmentationPreset)]
enum PresetName {
    Lovr,
}

/// Detector of cuts. `content`: sudden changes. `adaptive`: changes that exceed the changes around them. `threshold`:
/// fades to black.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = CutDetector)]
enum DetectorName {
    #[default]
    Content,
    Adaptive,
    Threshold,
}

/// Treatment of cuts that follow each other closely. `merge` keeps the last one, `suppress` the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = CloseCuts)]
enum FilterName {
    Merge,
    Suppress,
}

/// Weights of the content score's components, 0 to 100 each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ContentWeights)]
struct WeightsBody {
    /// Weight of changes in hue, 0 to 100. Default 1.
    #[serde(default = "one")]
    #[schema(minimum = 0, maximum = 100)]
    hue: f64,
    /// Weight of changes in saturation, 0 to 100. Default 1.
    #[serde(default = "one")]
    #[schema(minimum = 0, maximum = 100)]
    saturation: f64,
    /// Weight of changes in value (brightness), 0 to 100. Default 1.
    #[serde(default = "one")]
    #[schema(minimum = 0, maximum = 100)]
    value: f64,
    /// Weight of changes in edges, 0 to 100. Default 0. Edges take longer to compute than all other components.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 100)]
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

/// A user's clip. Times are in seconds, end exclusive.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewClip)]
pub(super) struct GivenBody {
    /// Start, in seconds of the video, 0 to 10000000.
    #[schema(minimum = 0, maximum = 10_000_000)]
    pub(super) start: f64,
    /// End, in seconds of the video, exclusive, 0 to 10000000; at least a millisecond after the start.
    #[schema(minimum = 0, maximum = 10_000_000)]
    pub(super) end: f64,
    /// A JSON object of at most 65536 bytes. In a hit, its fields replace the video's fields of the same name.
    #[schema(value_type = Option<HashMap<String, Value>>)]
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
            Segmentation::Hybrid { detector, slide_area_percent, gradual, min_clip_seconds, .. } => {
                *detector = self.take_detector(None)?;
                replace(slide_area_percent, self.slide_area_percent.take());
                replace(gradual, self.gradual.take());
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
                "min_scene_frames": 15, "slide_area_percent": 1.0, "gradual": true,
                "min_clip_seconds": 0.5, "max_clip_seconds": 30.0}),
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
                "min_scene_frames": 15, "slide_area_percent": 1.0, "gradual": true,
                "min_clip_seconds": 0.25, "max_clip_seconds": 1.0}),
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
