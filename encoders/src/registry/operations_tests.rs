//! Compares candle's operations, which run on a GPU, with the processor's kernels, on the CPU for every family.

use std::path::Path;

use super::load::find;
use crate::device::{Placement, Precision};
use crate::loading::{Embedder, LoadOptions};
use crate::text::{Overflow, Window};
use crate::{Clip, Frame, Input, Source};

/// Small models that tests/parity/make.py wrote.
const MODELS: [&str; 28] = [
    "legacy",
    "wordpiece",
    "unigram",
    "long-clip/hugging-face",
    "long-clip/original",
    "openai",
    "open-clip/clip",
    "open-clip/custom",
    "open-clip/eva",
    "open-clip/eva-post",
    "open-clip/pe",
    "open-clip/pe-large",
    "open-clip-siglip/one",
    "open-clip-siglip/two",
    "siglip/one",
    "siglip/two",
    "blip",
    "blip-covr",
    "blip-2",
    "languagebind",
    "videoclip-xl",
    "covr/bert",
    "covr/clip",
    "covr/qformer",
    "sentence/cls",
    "sentence/e5-tiny",
    "sentence/mean",
    "sentence/xlm",
];

fn loaded(model: &str, placement: &Placement) -> Embedder {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/parity/data").join(model);
    let options = LoadOptions::default();
    let found = find(&path.to_str().unwrap().parse().unwrap(), &options).unwrap();
    found.load(&options, placement).unwrap()
}

/// 40 by 48 pixels of waves and noise.
fn frame(number: u32) -> Frame {
    let byte = |at: u32| {
        let wave = ((at / 3) as f32 / (4 + number) as f32).sin() * 90.0 + 120.0;
        (wave + ((at * 7919 + number) % 31) as f32) as u8
    };
    Frame {
        time_ms: i64::from(number) * 100,
        width: 40,
        height: 48,
        rgb: (0..40 * 48 * 3).map(byte).collect(),
    }
}

/// Inputs of every kind that the model takes, of different lengths.
fn inputs(loaded: &Embedder) -> Vec<Input> {
    let mut inputs = Vec::new();
    if let Some(tokenizer) = &loaded.tokenizer {
        let first = |windows: Vec<Window>| windows.into_iter().next().unwrap().tokens;
        for text in ["a brown dog runs", "two and a half turns in the pike position, seen from above", "red"]
        {
            if loaded.space.can.text {
                let windows = tokenizer.windows(text, Overflow::Truncate, 1).unwrap();
                inputs.push(Input::Text(first(windows.windows)));
            }
            if loaded.space.can.composed {
                let query = Source::Frames(Clip { frames: (0..5).map(frame).collect() });
                let modification = first(tokenizer.modification(text).unwrap().windows);
                inputs.push(Input::Composed { query, modification });
            }
        }
    }
    if loaded.space.frame_stage.is_some() {
        inputs.extend((3..6).map(|number| Input::Frame(frame(number))));
    }
    if loaded.space.can.frames {
        inputs.extend([1, 8].map(|frames| Input::Frames(Clip { frames: (0..frames).map(frame).collect() })));
    }
    inputs
}

fn units(loaded: &mut Embedder, inputs: &[Input]) -> Vec<Vec<f32>> {
    let mut vectors = loaded.encoders[0].encode(inputs).unwrap();
    for vector in &mut vectors {
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|value| *value /= norm);
    }
    vectors
}

fn distance(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Cosine of unit vectors.
fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[track_caller]
fn check(model: &str) {
    let mut kernels = loaded(model, &Placement::default());
    let mut operations = loaded(model, &Placement::as_on_a_gpu(Precision::F32));
    let mut halves = loaded(model, &Placement::as_on_a_gpu(Precision::F16));
    assert_eq!(kernels.space.id, operations.space.id, "{model}: the same space on any device");
    assert_ne!(kernels.space.id, halves.space.id, "{model}: other vectors are another space's");
    let inputs = inputs(&kernels);
    let expected = units(&mut kernels, &inputs);
    let near = units(&mut operations, &inputs);
    let rounded = units(&mut halves, &inputs);
    for (at, expected) in expected.iter().enumerate() {
        let (off, alike) = (distance(expected, &near[at]), cosine(expected, &rounded[at]));
        println!("{model}, input {at}: {off:e} off in f32, cosine 1 - {:e} in f16", 1.0 - alike);
        assert!(off < 1e-5, "{model}, input {at}: {off} off");
        assert!(alike > 0.9999, "{model}, input {at}: cosine {alike}");
        let alone = units(&mut halves, &inputs[at..=at]);
        let alike = cosine(&alone[0], &rounded[at]);
        assert!(alike > 0.99999, "{model}, input {at}: cosine {alike} to itself in a batch");
    }
}

#[test]
fn every_family_gives_the_same_by_candles_operations_and_nearly_the_same_in_half_floats() {
    MODELS.into_iter().for_each(check);
}
