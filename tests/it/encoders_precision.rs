//! Models with int8 matrix products against the same models in f32.

use reprise_encoders::text::Overflow;
use reprise_encoders::{Embedder, Input, LoadOptions, ModelName, Precision, load_with};

use crate::encoders::{VARIANTS, folder, picture};

fn loaded(variant: &str, precision: Precision) -> Embedder {
    let name: ModelName = folder(variant).to_str().unwrap().parse().unwrap();
    load_with(&name, &LoadOptions { precision, ..LoadOptions::default() }).unwrap()
}

/// The vectors of a picture, if the model takes one, and of a text.
fn vectors(model: &mut Embedder) -> Vec<Vec<f32>> {
    let tokenizer = model.tokenizer.as_ref().unwrap();
    let windows = tokenizer.windows("a brown dog runs", Overflow::Truncate, 1).unwrap().windows;
    let mut inputs: Vec<Input> = windows.into_iter().map(|window| Input::Text(window.tokens)).collect();
    if model.space.can.frames {
        inputs.push(Input::Frame(picture(48, 40, 1)));
    }
    model.encoders[0].encode(&inputs).unwrap()
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// Lowest accepted cosine. Rounding to int8 matters less in models of real size than in these narrow ones.
const NEAR: f32 = 0.999;

#[track_caller]
fn check(variant: &str) {
    let (mut floats, mut bytes) = (loaded(variant, Precision::F32), loaded(variant, Precision::Int8));
    assert_eq!((floats.space.precision, bytes.space.precision), (Precision::F32, Precision::Int8));
    assert_ne!(floats.space.id, bytes.space.id, "{variant}: other vectors are another space's");
    for (float, byte) in vectors(&mut floats).iter().zip(vectors(&mut bytes)) {
        let near = cosine(float, &byte);
        assert!(near > NEAR, "{variant}: cosine {near}");
    }
}

#[test]
fn bytes_give_nearly_the_vectors_of_floats() {
    VARIANTS.into_iter().for_each(check);
    check("sentence/mean");
}
