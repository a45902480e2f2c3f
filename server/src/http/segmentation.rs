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
    /// `content` (default): at shot boundaries; `given`: only the clips given here.
    policy: Option<Policy>,
    /// Of the policy `content`.
    #[serde(default)]
    params: Params,
    /// Clips of your own, beside the found ones.
    #[serde(default)]
    clips: Vec<GivenBody>,
}

/// A policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Policy {
    Content,
    Given,
}

/// Parameters of the policy `content`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// A cut where the content score reaches this, over 0 to 255; default 27.
    threshold: Option<f64>,
    /// Shortest clip in frames, 1 to 100000; default 15.
    min_scene_frames: Option<u32>,
    /// Shortest clip in seconds instead of frames.
    min_scene_seconds: Option<f64>,
    /// Longest clip in seconds; default as the server is configured.
    max_clip_seconds: Option<f64>,
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
    /// In milliseconds.
    pub(super) fn checked(&self, pointer: &str) -> Result<GivenClip, ApiError> {
        let (start_ms, end_ms) = stretch(self.start, self.end, pointer)?;
        checked_metadata(self.metadata.as_ref(), &format!("{pointer}/metadata"))?;
        let metadata = self.metadata.clone().unwrap_or_else(|| Value::Object(Map::new()));
        Ok(GivenClip { start_ms, end_ms, metadata })
    }
}

impl SegmentationBody {
    /// Whether it can be done.
    pub(super) fn check(&self, longest_s: f64) -> Result<(), ApiError> {
        let between = |value: Option<f64>, low: f64, high: f64, name: &str| match value {
            Some(value) if !(low..=high).contains(&value) => Err(ApiError::invalid(
                format!("/segmentation/params/{name}"),
                format!("must be from {low} to {high}"),
            )),
            _ => Ok(()),
        };
        between(self.params.threshold, 0.001, 255.0, "threshold")?;
        between(self.params.min_scene_frames.map(f64::from), 1.0, 100_000.0, "min_scene_frames")?;
        between(self.params.min_scene_seconds, 0.0, 3600.0, "min_scene_seconds")?;
        between(self.params.max_clip_seconds, 1.0, longest_s.max(1.0), "max_clip_seconds")?;
        if self.params.min_scene_frames.is_some() && self.params.min_scene_seconds.is_some() {
            return Err(ApiError::invalid(
                "/segmentation/params/min_scene_seconds",
                "give frames or seconds, not both",
            ));
        }
        if self.policy == Some(Policy::Given) && self.params != Params::default() {
            return Err(ApiError::invalid("/segmentation/params", "the policy `given` takes no parameters"));
        }
        if self.policy == Some(Policy::Given) && self.clips.is_empty() {
            return Err(ApiError::invalid("/segmentation/clips", "the policy `given` needs clips"));
        }
        if self.clips.len() > MAX_GIVEN {
            return Err(ApiError::invalid("/segmentation/clips", format!("at most {MAX_GIVEN} clips")));
        }
        self.given().map(|_| ())
    }

    fn given(&self) -> Result<Vec<GivenClip>, ApiError> {
        let clips = self.clips.iter().enumerate();
        clips.map(|(index, clip)| clip.checked(&format!("/segmentation/clips/{index}"))).collect()
    }
}

/// What is stored of a checked segmentation: the policy with all its parameters spelt out, and the clips.
pub(super) fn resolved(body: Option<&SegmentationBody>, longest_s: f64) -> (Segmentation, Vec<GivenClip>) {
    let body = body.cloned().unwrap_or_default();
    let given = body.given().unwrap_or_default();
    if body.policy == Some(Policy::Given) {
        return (Segmentation { policy: "given".to_owned(), params: json!({}) }, given);
    }
    let mut params = json!({
        "threshold": body.params.threshold.unwrap_or(27.0),
        "max_clip_seconds": body.params.max_clip_seconds.unwrap_or(longest_s),
    });
    match body.params.min_scene_seconds {
        Some(seconds) => params["min_scene_seconds"] = json!(seconds),
        None => params["min_scene_frames"] = json!(body.params.min_scene_frames.unwrap_or(15)),
    }
    (Segmentation { policy: "content".to_owned(), params }, given)
}
