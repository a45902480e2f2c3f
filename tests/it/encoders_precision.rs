//! Models with int8 and bf16 matrix products against the same models in f32.

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

/// `near`: the lowest accepted cosine.
#[track_caller]
fn check(variant: &str, precision: Precision, near: f32) {
    let (mut floats, mut rounded) = (loaded(variant, Precision::F32), loaded(variant, precision));
    assert_eq!((floats.space.precision, rounded.space.precision), (Precision::F32, precision));
    assert_ne!(floats.space.id, rounded.space.id, "{variant}: other vectors are another space's");
    for (float, rounded) in vectors(&mut floats).iter().zip(vectors(&mut rounded)) {
        let found = cosine(float, &rounded);
        assert!(found > near, "{variant}: cosine {found}");
    }
}

#[test]
fn bytes_give_nearly_the_vectors_of_floats() {
    // Rounding to int8 matters less in models of real size than in these narrow ones.
    VARIANTS.into_iter().chain(["sentence/mean"]).for_each(|variant| check(variant, Precision::Int8, 0.999));
}

#[test]
fn bf16_gives_nearly_the_vectors_of_floats() {
    VARIANTS.into_iter().chain(["sentence/mean"]).for_each(|variant| check(variant, Precision::Bf16, 0.9999));
}
