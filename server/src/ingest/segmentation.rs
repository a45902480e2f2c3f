//! What a stored segmentation means: its policy and parameters as settings of the segmenter.
//!
//! The HTTP layer has checked what is stored, and has spelt out every parameter; what is missing was
//! stored before the parameter existed, and has the value that was meant then.

use reprise_encoders::video::segment::scores::WHOLE;
use reprise_encoders::video::segment::{
    AdaptiveSettings, ContentSettings, DetectorSettings, FilterMode, MinSceneLen, SegmenterSettings,
    ThresholdSettings, Weights,
};
use serde_json::Value;

use crate::catalog::{Segmentation, Video};

/// Whether the clips of a video are those that its user gave, and no others.
pub(super) fn is_given_only(video: &Video) -> bool {
    video.segmentation.policy == "given"
}

/// The settings that a video's segmentation spells out; for `given`, those by which it is cut where only the
/// parts count, for the full-video vector.
pub fn segmenter_settings(segmentation: &Segmentation, max_clip_ms: i64) -> SegmenterSettings {
    let params = Params(&segmentation.params);
    let max_clip_ms = params.millis("max_clip_seconds").unwrap_or(max_clip_ms);
    let min_clip_ms = params.millis("min_clip_seconds").unwrap_or(0);
    match segmentation.policy.as_str() {
        "fixed" => {
            SegmenterSettings::Fixed { every_ms: params.millis("every_seconds").unwrap_or(max_clip_ms) }
        }
        "subtitle" => {
            let pause_ms = params.millis("pause_seconds").unwrap_or(0);
            SegmenterSettings::Subtitle { pause_ms, min_clip_ms, max_clip_ms }
        }
        "hybrid" => SegmenterSettings::Hybrid {
            detector: params.detector(),
            slide_area: params.slide_area(),
            min_clip_ms,
            max_clip_ms,
        },
        _ => SegmenterSettings::Content { detector: params.detector(), max_clip_ms },
    }
}

/// The parameters as they are stored.
struct Params<'a>(&'a Value);

impl Params<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    fn millis(&self, name: &str) -> Option<i64> {
        self.number(name).map(|seconds| (seconds * 1000.0) as i64)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    fn detector(&self) -> DetectorSettings {
        let min_scene_len = match self.millis("min_scene_seconds") {
            Some(ms) => MinSceneLen::Millis(ms),
            None => MinSceneLen::Frames(self.number("min_scene_frames").unwrap_or(15.0) as u64),
        };
        match self.text("detector") {
            Some("adaptive") => {
                let unset = AdaptiveSettings::default();
                DetectorSettings::Adaptive(AdaptiveSettings {
                    threshold: self.number("threshold").unwrap_or(unset.threshold),
                    window_width: self
                        .number("window_width")
                        .map_or(unset.window_width, |frames| frames as usize),
                    min_content_value: self.number("min_content_value").unwrap_or(unset.min_content_value),
                    weights: self.weights(),
                    min_scene_len,
                })
            }
            Some("threshold") => {
                let unset = ThresholdSettings::default();
                DetectorSettings::Threshold(ThresholdSettings {
                    threshold: self.number("threshold").unwrap_or(unset.threshold),
                    fade_bias: self.number("fade_bias").unwrap_or(unset.fade_bias),
                    add_final_scene: self.0.get("add_final_scene").and_then(Value::as_bool).unwrap_or(false),
                    min_scene_len,
                })
            }
            _ => DetectorSettings::Content(ContentSettings {
                threshold: self.number("threshold").unwrap_or(ContentSettings::default().threshold),
                weights: self.weights(),
                min_scene_len,
                filter: match self.text("filter") {
                    Some("suppress") => FilterMode::Suppress,
                    _ => FilterMode::Merge,
                },
            }),
        }
    }

    fn weights(&self) -> Weights {
        let unset = Weights::default();
        let of = |name: &str, otherwise: f64| {
            self.0.get("weights").and_then(|it| it.get(name)).and_then(Value::as_f64).unwrap_or(otherwise)
        };
        Weights {
            hue: of("hue", unset.hue),
            saturation: of("saturation", unset.saturation),
            value: of("value", unset.value),
            edges: of("edges", unset.edges),
        }
    }

    /// Per cent of the picture; 0: slides are not looked for.
    fn slide_area(&self) -> Option<u16> {
        let percent = self.number("slide_area_percent").filter(|it| *it > 0.0)?;
        Some((percent / 100.0 * f64::from(WHOLE)).round().max(1.0) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(policy: &str, params: Value, expected: SegmenterSettings) {
        let segmentation = Segmentation { policy: policy.to_owned(), params };
        assert_eq!(segmenter_settings(&segmentation, 30_000), expected);
    }

    fn content(content: ContentSettings, max_clip_ms: i64) -> SegmenterSettings {
        SegmenterSettings::Content { detector: DetectorSettings::Content(content), max_clip_ms }
    }

    #[test]
    fn what_the_first_release_stored_means_what_it_meant() {
        let unset = ContentSettings::default();
        check("content", json!({}), content(unset, 30_000));
        check("given", json!({}), content(unset, 30_000));
        let settings = ContentSettings { threshold: 40.0, min_scene_len: MinSceneLen::Frames(7), ..unset };
        check(
            "content",
            json!({"threshold": 40, "max_clip_seconds": 12.5, "min_scene_frames": 7}),
            content(settings, 12_500),
        );
        let settings = ContentSettings { threshold: 34.0, min_scene_len: MinSceneLen::Millis(5000), ..unset };
        check(
            "content",
            json!({"threshold": 34.0, "max_clip_seconds": 60.0, "min_scene_seconds": 5.0}),
            content(settings, 60_000),
        );
    }

    #[test]
    fn every_policy_has_its_settings() {
        check("fixed", json!({"every_seconds": 2.5}), SegmenterSettings::Fixed { every_ms: 2500 });
        check(
            "subtitle",
            json!({"pause_seconds": 0.7, "min_clip_seconds": 2, "max_clip_seconds": 20}),
            SegmenterSettings::Subtitle { pause_ms: 700, min_clip_ms: 2000, max_clip_ms: 20_000 },
        );
        let detector = DetectorSettings::Adaptive(AdaptiveSettings {
            threshold: 4.0,
            window_width: 3,
            min_content_value: 10.0,
            weights: Weights { edges: 0.5, ..Weights::default() },
            min_scene_len: MinSceneLen::Millis(600),
        });
        check(
            "hybrid",
            json!({"detector": "adaptive", "threshold": 4, "window_width": 3, "min_content_value": 10,
                "weights": {"hue": 1, "saturation": 1, "value": 1, "edges": 0.5}, "min_scene_seconds": 0.6,
                "slide_area_percent": 1.5, "min_clip_seconds": 0.5, "max_clip_seconds": 30}),
            SegmenterSettings::Hybrid {
                detector,
                slide_area: Some(150),
                min_clip_ms: 500,
                max_clip_ms: 30_000,
            },
        );
    }

    #[test]
    fn slides_can_be_left_out_and_fades_looked_for() {
        let detector = DetectorSettings::Threshold(ThresholdSettings {
            threshold: 20.0,
            fade_bias: -1.0,
            add_final_scene: true,
            min_scene_len: MinSceneLen::Frames(15),
        });
        check(
            "hybrid",
            json!({"detector": "threshold", "threshold": 20, "fade_bias": -1, "add_final_scene": true,
                "min_scene_frames": 15, "slide_area_percent": 0, "min_clip_seconds": 0}),
            SegmenterSettings::Hybrid { detector, slide_area: None, min_clip_ms: 0, max_clip_ms: 30_000 },
        );
        let suppress = ContentSettings { filter: FilterMode::Suppress, ..ContentSettings::default() };
        check("content", json!({"filter": "suppress"}), content(suppress, 30_000));
    }
}
