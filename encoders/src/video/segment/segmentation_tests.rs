//! Tests of the stored form of a segmentation and of its checks.

use serde_json::{Value, json};

use super::super::{AdaptiveSettings, FilterMode, ThresholdSettings};
use super::*;

fn weights() -> Value {
    json!({"hue": 1.0, "saturation": 1.0, "value": 1.0, "edges": 0.0})
}

/// Checks that the segmentation serialises to this JSON and back.
#[track_caller]
fn check(segmentation: Segmentation, expected: Value) {
    assert_eq!(serde_json::to_value(segmentation).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Segmentation>(expected.clone()).unwrap(), segmentation);
    assert_eq!(serde_json::from_str::<Segmentation>(&expected.to_string()).unwrap(), segmentation);
    assert_eq!(segmentation.check(30.0), Ok(()));
}

#[test]
fn every_policy_has_one_form() {
    check(
        Segmentation::hybrid(30.0),
        json!({"policy": "hybrid", "params": {"detector": "content", "threshold": 27.0, "weights": weights(),
            "min_scene_frames": 15, "filter": "merge", "slide_area_percent": 1.0, "gradual": true,
            "min_clip_seconds": 0.5, "max_clip_seconds": 30.0}}),
    );
    check(
        Segmentation::Content {
            preset: Some(Preset::Lovr),
            detector: DetectorSettings::Content(Preset::Lovr.detector()),
            max_clip_seconds: 30.0,
        },
        json!({"policy": "content", "params": {"preset": "lovr", "detector": "content", "threshold": 34.0,
            "weights": weights(), "min_scene_seconds": 5.0, "filter": "merge", "max_clip_seconds": 30.0}}),
    );
    check(
        Segmentation::subtitle(30.0),
        json!({"policy": "subtitle", "params": {"pause_seconds": 0.7, "min_clip_seconds": 2.0,
            "max_clip_seconds": 30.0}}),
    );
    check(
        Segmentation::Fixed { every_seconds: 2.5 },
        json!({"policy": "fixed", "params": {"every_seconds": 2.5}}),
    );
    check(Segmentation::Given {}, json!({"policy": "given", "params": {}}));
}

#[test]
fn a_segmentation_from_before_gradual_transitions_finds_none() {
    let mut stored = serde_json::to_value(Segmentation::hybrid(30.0)).unwrap();
    stored["params"].as_object_mut().unwrap().remove("gradual");
    let read: Segmentation = serde_json::from_value(stored).unwrap();
    assert!(matches!(read, Segmentation::Hybrid { gradual: false, .. }));
}

#[test]
fn every_detector_has_one_form() {
    let with = |detector| Segmentation::Content { preset: None, detector, max_clip_seconds: 20.0 };
    let adaptive = AdaptiveSettings { window_width: 3, ..AdaptiveSettings::default() };
    check(
        with(DetectorSettings::Adaptive(adaptive)),
        json!({"policy": "content", "params": {"detector": "adaptive", "threshold": 3.0, "window_width": 3,
            "min_content_value": 15.0, "weights": weights(), "min_scene_frames": 15,
            "max_clip_seconds": 20.0}}),
    );
    check(
        with(DetectorSettings::Threshold(ThresholdSettings::default())),
        json!({"policy": "content", "params": {"detector": "threshold", "threshold": 12.0, "fade_bias": 0.0,
            "add_final_scene": false, "min_scene_frames": 15, "max_clip_seconds": 20.0}}),
    );
    let suppress = ContentSettings { filter: FilterMode::Suppress, ..ContentSettings::default() };
    check(
        with(DetectorSettings::Content(suppress)),
        json!({"policy": "content", "params": {"detector": "content", "threshold": 27.0, "weights": weights(),
            "filter": "suppress", "min_scene_frames": 15, "max_clip_seconds": 20.0}}),
    );
}

#[test]
fn whole_numbers_are_numbers_too() {
    let json = json!({"policy": "subtitle", "params": {"pause_seconds": 1, "min_clip_seconds": 0,
        "max_clip_seconds": 20}});
    let read = serde_json::from_value::<Segmentation>(json).unwrap();
    let expected =
        Segmentation::Subtitle { pause_seconds: 1.0, min_clip_seconds: 0.0, max_clip_seconds: 20.0 };
    assert_eq!(read, expected);
}

#[track_caller]
fn check_refused(segmentation: Segmentation, field: &str) {
    assert_eq!(segmentation.check(30.0).map_err(|error| error.field), Err(field), "{segmentation:?}");
}

#[test]
fn a_parameter_out_of_range_is_named() {
    let with = |detector| Segmentation::Content { preset: None, detector, max_clip_seconds: 30.0 };
    let content = |settings| with(DetectorSettings::Content(settings));
    let unset = ContentSettings::default();
    check_refused(content(ContentSettings { threshold: 0.0, ..unset }), "threshold");
    check_refused(
        content(ContentSettings { min_scene_len: MinSceneLen::Frames(0), ..unset }),
        "min_scene_frames",
    );
    check_refused(
        content(ContentSettings { min_scene_len: MinSceneLen::Seconds(-1.0), ..unset }),
        "min_scene_seconds",
    );
    let weights = Weights { hue: f64::NAN, ..Weights::default() };
    check_refused(content(ContentSettings { weights, ..unset }), "weights/hue");
    let weights = Weights { hue: 0.0, saturation: 0.0, value: 0.0, edges: 0.0 };
    check_refused(content(ContentSettings { weights, ..unset }), "weights");
    let adaptive = AdaptiveSettings { window_width: 0, ..AdaptiveSettings::default() };
    check_refused(with(DetectorSettings::Adaptive(adaptive)), "window_width");
    let fades = ThresholdSettings { fade_bias: 2.0, ..ThresholdSettings::default() };
    check_refused(with(DetectorSettings::Threshold(fades)), "fade_bias");
    check_refused(Segmentation::content(31.0), "max_clip_seconds");
    check_refused(Segmentation::Fixed { every_seconds: 0.5 }, "every_seconds");
    let subtitle = |min_clip_seconds| Segmentation::Subtitle {
        pause_seconds: 1.0,
        min_clip_seconds,
        max_clip_seconds: 4.0,
    };
    check_refused(subtitle(1.5), "min_clip_seconds");
    assert_eq!(subtitle(1.0).check(30.0), Ok(()));
}

#[test]
fn parts_of_given_clips_are_bounded_as_found_ones() {
    assert_eq!(Segmentation::Given {}.of_parts(20.0), Segmentation::content(20.0));
    let fixed = Segmentation::Fixed { every_seconds: 2.0 };
    assert_eq!(fixed.of_parts(20.0), fixed);
}
