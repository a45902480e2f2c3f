//! LanguageBind's video model against a module written from its released code (see parity/language_bind.py).

use std::path::Path;

use reprise_encoders::text::{Overflow, Tokens};
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::{Clip, EncodeError, Frame, Input, Loaded, load};
use serde::Deserialize;
use serde_json::{Value, json};

use super::encoders::{folder, picture, refused};

const MODEL: &str = "languagebind";

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Expected {
    reference: String,
    texts: Vec<Text>,
    text_vectors: Vec<Vec<f32>>,
    /// Kinds of pictures.
    clips: Vec<Vec<u32>>,
    clip_vectors: Vec<Vec<f32>>,
}

fn expected() -> Expected {
    serde_json::from_slice(&std::fs::read(folder(MODEL).join("expected.json")).unwrap()).unwrap()
}

fn loaded() -> Loaded {
    load(&folder(MODEL).to_str().unwrap().parse().unwrap(), 1).unwrap()
}

fn inputs(expected: &Expected) -> Vec<Input> {
    let texts = expected.texts.iter().map(|text| Input::Text(Tokens { ids: text.ids.clone() }));
    let clips = expected.clips.iter().map(|kinds| {
        let frames = kinds.iter().enumerate();
        let frames = frames.map(|(at, kind)| Frame { time_ms: at as i64 * 40, ..picture(32, 32, *kind) });
        Input::Frames(Clip { frames: frames.collect() })
    });
    texts.chain(clips).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The reference, and how far the farthest value of a text or a clip is from it, in batches of 1 and 4.
pub(crate) fn farthest() -> (String, f32) {
    let (expected, mut model) = (expected(), loaded());
    let inputs = inputs(&expected);
    let references: Vec<&Vec<f32>> = expected.text_vectors.iter().chain(&expected.clip_vectors).collect();
    let mut most = 0_f32;
    for batch in [1, 4] {
        let got = inputs.chunks(batch).flat_map(|inputs| model.encoders[0].encode(inputs).unwrap());
        most = got.zip(&references).map(|(got, expected)| distance(&got, expected)).fold(most, f32::max);
    }
    (expected.reference, most)
}

#[test]
fn texts_and_clips_have_the_reference_vectors_in_every_batch() {
    let (_, off) = farthest();
    assert!(off < 1e-4, "{off}");
}

#[test]
fn ids_are_the_references_and_the_order_of_frames_matters() {
    let (expected, model) = (expected(), loaded());
    let tokenizer = model.tokenizer.unwrap();
    for text in &expected.texts {
        let windows = tokenizer.windows(&text.text, Overflow::Truncate, 1).unwrap();
        assert_eq!(windows.windows[0].tokens.ids, text.ids, "{:?}", text.text);
    }
    assert!(distance(&expected.clip_vectors[0], &expected.clip_vectors[1]) > 1e-2);
    let space = model.space;
    assert!(space.temporal && space.frame_stage.is_none() && space.can.text && space.can.frames);
    assert_eq!(space.sampler, Sampler::Spread { frames: 4 });
}

#[test]
fn frames_are_not_encoded_one_by_one() {
    let mut model = loaded();
    for input in [Input::Frame(picture(32, 32, 0)), Input::Features(vec![vec![0.0; 16].into()])] {
        let error = model.encoders[0].encode(&[input]).unwrap_err();
        assert!(matches!(error, EncodeError::Unsupported { .. }), "{error}");
    }
}

#[test]
fn variants_that_are_not_read_are_refused_by_name() {
    for (key, value) in [
        ("add_time_attn", json!(false)),
        ("clip_type", json!("vl_new")),
        ("lora_r", json!(16)),
        ("num_frames", json!(0)),
    ] {
        let change = |folder: &Path| {
            let path = folder.join("config.json");
            let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            config["vision_config"][key] = value.clone();
            std::fs::write(path, config.to_string()).unwrap();
        };
        refused(MODEL, change, &[key]);
    }
}
