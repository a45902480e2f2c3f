//! The preprocessing of every family on frames of real videos. Pixels of the whole frame must equal the reference
//! processor's. Pixels scaled by the decoder must be close.

use std::path::Path;

use reprise_encoders::preprocess::Preprocessing;
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::{Limits, VideoFile, frames_of_span, probe};
use reprise_encoders::{FrameSize, Scaling};
use reprise_tests::test_data;
use serde::Deserialize;
use serde_json::Value;

/// The output of tests/parity/frames.py for one family and video.
#[derive(Deserialize)]
struct Case {
    video: String,
    family: String,
    kind: String,
    config: Value,
    /// Number of values of the reference.
    values: usize,
    /// The mean of all values.
    mean: f64,
    /// Some values and their positions.
    places: Vec<usize>,
    pixels: Vec<f32>,
}

fn preprocessing(case: &Case) -> Preprocessing {
    let json = case.config.to_string();
    let read = match case.kind.as_str() {
        "clip" => Preprocessing::from_json(json.as_bytes()),
        "siglip" => Preprocessing::from_siglip_json(json.as_bytes()),
        "blip" => Preprocessing::from_blip_json(json.as_bytes()),
        _ => Preprocessing::from_open_clip(&case.config, 224),
    };
    read.unwrap()
}

/// The pixels of the video's first frame, scaled by the decoder, channel by channel as the reference has them.
fn pixels(path: &Path, scaling: Scaling, preprocessing: &Preprocessing) -> Vec<f32> {
    let limits = Limits::default();
    let probe = probe(path, &limits).unwrap();
    let every = Sampler::Stride { frames: 1 };
    let frames = frames_of_span(
        VideoFile { path, probe: &probe, in_order: true, limits: &limits },
        0..100,
        &every,
        scaling,
    )
    .unwrap();
    let mut pixels = Vec::new();
    preprocessing.append(&frames[0], &mut pixels).unwrap();
    (0..3).flat_map(|channel| pixels.iter().skip(channel).step_by(3)).copied().collect()
}

/// Compares with the reference. `most` and `mean` limit the largest and the mean difference, in levels of 0 to 255.
#[track_caller]
fn check(case: &Case, got: &[f32], most: f32, mean: f32) {
    let of = format!("{}, {}", case.family, case.video);
    assert_eq!(got.len(), case.values, "{of}");
    let preprocessing = preprocessing(case);
    // The divisor of a value depends on its channel.
    let level = |at: usize| preprocessing.std[at * 3 / case.values] * 255.0;
    let off = |(&at, &reference): (&usize, &f32)| (got[at] - reference).abs() * level(at);
    let off: Vec<f32> = case.places.iter().zip(&case.pixels).map(off).collect();
    let (farthest, sum) = off.iter().fold((0.0_f32, 0.0), |(farthest, sum), it| (it.max(farthest), sum + it));
    assert!(farthest <= most, "{of}: a value is {farthest} levels off");
    assert!(sum / off.len() as f32 <= mean, "{of}: values are {} levels off", sum / off.len() as f32);
    let whole = got.iter().map(|&value| f64::from(value)).sum::<f64>() / got.len() as f64;
    assert!((whole - case.mean).abs() * f64::from(level(0)) < f64::from(mean), "{of}: the mean is {whole}");
}

#[test]
fn frames_of_real_videos_become_the_reference_processors_pixels() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../parity/data/frames.json")).unwrap();
    assert_eq!(cases.len(), 24);
    for case in &cases {
        let Some(path) = test_data(&format!("video/clips/{}.mp4", case.video)) else { return };
        let (preprocessing, shown) = (preprocessing(case), probe(&path, &Limits::default()).unwrap());
        let whole = FrameSize::Exact { width: shown.width, height: shown.height };
        // Only rounding differs; another ffmpeg may convert some values to RGB one level off.
        check(case, &pixels(&path, whole.into(), &preprocessing), 1.01, 0.1);
        // The file stores chroma at half the resolution. Beside sharp edges, scaling in one step therefore gives
        // other values.
        check(case, &pixels(&path, preprocessing.scaling(), &preprocessing), 24.0, 2.0);
    }
}
