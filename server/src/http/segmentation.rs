//! How a video is asked to be cut: the wire form, its checks, and what is stored.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::error::ApiError;
use super::extract::stretch;
use super::videos::checked_metadata;
use crate::catalog::{GivenClip, Segmentation};

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
    preset: Option<Preset>,
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
enum Preset {
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

/// Largest weight.
const LARGEST_WEIGHT: f64 = 100.0;
/// LoVR's threshold and shortest scene in seconds.
const LOVR: (f64, f64) = (34.0, 5.0);

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
    /// In milliseconds.
    pub(super) fn checked(&self, pointer: &str) -> Result<GivenClip, ApiError> {
        let (start_ms, end_ms) = stretch(self.start, self.end, pointer)?;
        checked_metadata(self.metadata.as_ref(), &format!("{pointer}/metadata"))?;
        let metadata = self.metadata.clone().unwrap_or_else(|| Value::Object(Map::new()));
        Ok(GivenClip { start_ms, end_ms, metadata })
    }
}

impl SegmentationBody {
    /// Whether it brings clips of its own.
    pub(super) fn has_clips(&self) -> bool {
        !self.clips.is_empty()
    }

    /// Whether only clips that a user gave count.
    pub(super) fn is_given_only(&self) -> bool {
        self.policy == Some(Policy::Given)
    }

    /// Whether it can be done.
    pub(super) fn check(&self, longest_s: f64) -> Result<(), ApiError> {
        self.params.check(self.policy(), longest_s.max(1.0))?;
        if self.policy() == Policy::Given && self.clips.is_empty() {
            return Err(ApiError::invalid("/segmentation/clips", "the policy `given` needs clips"));
        }
        if self.clips.len() > MAX_GIVEN {
            return Err(ApiError::invalid("/segmentation/clips", format!("at most {MAX_GIVEN} clips")));
        }
        self.given().map(|_| ())
    }

    /// A preset is one of the policy `content`.
    fn policy(&self) -> Policy {
        let unset = if self.params.preset.is_some() { Policy::Content } else { Policy::Hybrid };
        self.policy.unwrap_or(unset)
    }

    fn given(&self) -> Result<Vec<GivenClip>, ApiError> {
        let clips = self.clips.iter().enumerate();
        clips.map(|(index, clip)| clip.checked(&format!("/segmentation/clips/{index}"))).collect()
    }
}

fn invalid(name: &str, why: impl Into<String>) -> ApiError {
    ApiError::invalid(format!("/segmentation/params/{name}"), why.into())
}

impl Params {
    fn check(&self, policy: Policy, longest_s: f64) -> Result<(), ApiError> {
        self.check_names(policy)?;
        let longest_s = longest_s.max(1.0);
        let frames = |frames: Option<u32>| frames.map(f64::from);
        for (name, value, low, high) in [
            ("threshold", self.threshold, 0.001, 255.0),
            ("window_width", frames(self.window_width), 1.0, 100.0),
            ("min_content_value", self.min_content_value, 0.0, 255.0),
            ("fade_bias", self.fade_bias, -1.0, 1.0),
            ("min_scene_frames", frames(self.min_scene_frames), 1.0, 100_000.0),
            ("min_scene_seconds", self.min_scene_seconds, 0.0, 3600.0),
            ("slide_area_percent", self.slide_area_percent, 0.0, 100.0),
            ("pause_seconds", self.pause_seconds, 0.0, 3600.0),
            ("every_seconds", self.every_seconds, 1.0, longest_s),
            ("max_clip_seconds", self.max_clip_seconds, 1.0, longest_s),
            (
                "min_clip_seconds",
                self.min_clip_seconds,
                0.0,
                self.max_clip_seconds.unwrap_or(longest_s) / 4.0,
            ),
        ] {
            if value.is_some_and(|value| !(low..=high).contains(&value)) {
                return Err(invalid(name, format!("must be from {low} to {high}")));
            }
        }
        if self.min_scene_frames.is_some() && self.min_scene_seconds.is_some() {
            return Err(invalid("min_scene_seconds", "give frames or seconds, not both"));
        }
        self.weights.map_or(Ok(()), WeightsBody::check)
    }

    /// Whether everything that is said belongs to the policy and its detector.
    fn check_names(&self, policy: Policy) -> Result<(), ApiError> {
        let said = json!(self);
        let said: Vec<&str> = said.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        if policy == Policy::Given && !said.is_empty() {
            return Err(ApiError::invalid("/segmentation/params", "the policy `given` takes no parameters"));
        }
        let detector = self.detector.unwrap_or_default();
        let (of_policy, has_detector) = match policy {
            Policy::Hybrid => (&["slide_area_percent", "min_clip_seconds", "max_clip_seconds"][..], true),
            Policy::Content => (&["preset", "max_clip_seconds"][..], true),
            Policy::Subtitle => (&["pause_seconds", "min_clip_seconds", "max_clip_seconds"][..], false),
            Policy::Fixed => (&["every_seconds"][..], false),
            Policy::Given => (&[][..], false),
        };
        let of_any = ["detector", "threshold", "min_scene_frames", "min_scene_seconds"];
        let of_detector = match detector {
            DetectorName::Content => &["weights", "filter"],
            DetectorName::Adaptive => &["weights", "window_width", "min_content_value"][..],
            DetectorName::Threshold => &["fade_bias", "add_final_scene"],
        };
        for name in said {
            let known = of_any.contains(&name) || of_detector.contains(&name);
            let fits = of_policy.contains(&name) || (has_detector && known);
            if !fits {
                let (policy, detector) = (json!(policy), json!(detector));
                let why = match has_detector {
                    true => format!("the policy {policy} with the detector {detector} has no such parameter"),
                    false => format!("the policy {policy} has no such parameter"),
                };
                return Err(invalid(name, why.replace('"', "`")));
            }
        }
        Ok(())
    }

    /// All parameters of the policy, spelt out.
    fn resolved(&self, policy: Policy, longest_s: f64) -> Value {
        let max = self.max_clip_seconds.unwrap_or(longest_s);
        let min = |unset: f64| self.min_clip_seconds.unwrap_or(unset.min(max / 4.0));
        let mut params = match policy {
            Policy::Given => return json!({}),
            Policy::Fixed => return json!({"every_seconds": self.every_seconds.unwrap_or(longest_s)}),
            Policy::Subtitle => {
                let pause = self.pause_seconds.unwrap_or(0.7);
                return json!({"pause_seconds": pause, "min_clip_seconds": min(2.0), "max_clip_seconds": max});
            }
            Policy::Content => json!({"max_clip_seconds": max}),
            Policy::Hybrid => json!({
                "slide_area_percent": self.slide_area_percent.unwrap_or(1.0),
                "min_clip_seconds": min(0.5),
                "max_clip_seconds": max,
            }),
        };
        self.spell_out_detector(&mut params);
        params
    }

    fn spell_out_detector(&self, params: &mut Value) {
        let detector = self.detector.unwrap_or_default();
        let (threshold, min_scene_seconds) = match self.preset {
            Some(Preset::Lovr) => (LOVR.0, Some(LOVR.1)),
            None => (detector.threshold(), None),
        };
        params["detector"] = json!(detector);
        params["threshold"] = json!(self.threshold.unwrap_or(threshold));
        if let Some(preset) = self.preset {
            params["preset"] = json!(preset);
        }
        match (self.min_scene_frames, self.min_scene_seconds.or(min_scene_seconds)) {
            (None, Some(seconds)) => params["min_scene_seconds"] = json!(seconds),
            (frames, _) => params["min_scene_frames"] = json!(frames.unwrap_or(15)),
        }
        let weights = json!(self.weights.unwrap_or_default());
        match detector {
            DetectorName::Content => {
                params["weights"] = weights;
                params["filter"] = json!(self.filter.unwrap_or(FilterName::Merge));
            }
            DetectorName::Adaptive => {
                params["weights"] = weights;
                params["window_width"] = json!(self.window_width.unwrap_or(2));
                params["min_content_value"] = json!(self.min_content_value.unwrap_or(15.0));
            }
            DetectorName::Threshold => {
                params["fade_bias"] = json!(self.fade_bias.unwrap_or(0.0));
                params["add_final_scene"] = json!(self.add_final_scene.unwrap_or(false));
            }
        }
    }
}

impl DetectorName {
    /// PySceneDetect's.
    fn threshold(self) -> f64 {
        match self {
            DetectorName::Content => 27.0,
            DetectorName::Adaptive => 3.0,
            DetectorName::Threshold => 12.0,
        }
    }
}

impl Default for WeightsBody {
    fn default() -> Self {
        WeightsBody { hue: 1.0, saturation: 1.0, value: 1.0, edges: 0.0 }
    }
}

impl WeightsBody {
    fn check(self) -> Result<(), ApiError> {
        let all = [
            ("hue", self.hue),
            ("saturation", self.saturation),
            ("value", self.value),
            ("edges", self.edges),
        ];
        for (name, weight) in all {
            if !(0.0..=LARGEST_WEIGHT).contains(&weight) {
                return Err(invalid(
                    &format!("weights/{name}"),
                    format!("must be from 0 to {LARGEST_WEIGHT}"),
                ));
            }
        }
        match all.iter().any(|it| it.1 > 0.0) {
            true => Ok(()),
            false => Err(invalid("weights", "at least one must be over 0")),
        }
    }
}

/// What is stored of a checked segmentation: the policy with all its parameters spelt out, and the clips.
pub(super) fn resolved(body: Option<&SegmentationBody>, longest_s: f64) -> (Segmentation, Vec<GivenClip>) {
    let body = body.cloned().unwrap_or_default();
    let policy = body.policy();
    let name = json!(policy).as_str().unwrap_or_default().to_owned();
    (
        Segmentation { policy: name, params: body.params.resolved(policy, longest_s) },
        body.given().unwrap_or_default(),
    )
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
        assert!(body.check(30.0).is_ok(), "{json}");
        let stored = resolved(Some(&body), 30.0).0;
        assert_eq!((stored.policy.as_str(), stored.params), (policy, params), "{json}");
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
        let error = body(&json).check(30.0).unwrap_err();
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
