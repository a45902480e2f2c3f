//! Families with attention between frames, against their released modules (see parity/released/language_bind.py and
//! parity/released/video_clip_xl.py).

use std::path::Path;

use reprise_encoders::text::{Overflow, Tokens};
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::{Clip, Embedder, EncodeError, Frame, FrameSize, Input, load};
use serde::Deserialize;
use serde_json::{Value, json};

use super::encoders::{folder, picture, refused};

const LANGUAGE_BIND: &str = "languagebind";
const VIDEO_CLIP_XL: &str = "videoclip-xl";
const MODELS: [&str; 2] = [LANGUAGE_BIND, VIDEO_CLIP_XL];

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
    /// Kinds of pictures of each clip.
    clips: Vec<Vec<u32>>,
    clip_vectors: Vec<Vec<f32>>,
}

fn expected(model: &str) -> Expected {
    serde_json::from_slice(&std::fs::read(folder(model).join("expected.json")).unwrap()).unwrap()
}

fn loaded(model: &str) -> Embedder {
    load(&folder(model).to_str().unwrap().parse().unwrap(), 1).unwrap()
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

/// The reference, and the largest difference from it over texts and clips, in batches of 1 and 4.
fn farthest(model: &str) -> (String, f32) {
    let (expected, mut model) = (expected(model), loaded(model));
    let inputs = inputs(&expected);
    let references: Vec<&Vec<f32>> = expected.text_vectors.iter().chain(&expected.clip_vectors).collect();
    let mut most = 0_f32;
    for batch in [1, 4] {
        let got = inputs.chunks(batch).flat_map(|inputs| model.encoders[0].encode(inputs).unwrap());
        most = got.zip(&references).map(|(got, expected)| distance(&got, expected)).fold(most, f32::max);
    }
    (expected.reference, most)
}

pub(crate) fn language_bind() -> (String, f32) {
    farthest(LANGUAGE_BIND)
}

pub(crate) fn video_clip_xl() -> (String, f32) {
    farthest(VIDEO_CLIP_XL)
}

#[test]
fn texts_and_clips_have_the_reference_vectors_in_every_batch() {
    for model in MODELS {
        let (_, off) = farthest(model);
        assert!(off < 1e-4, "{model}: {off}");
    }
}

#[test]
fn a_batch_of_texts_and_clips_gives_the_vectors_of_single_inputs() {
    for model in MODELS {
        let (mut inputs, mut model) = (inputs(&expected(model)), loaded(model));
        inputs.reverse();
        let batch = model.encoders[0].encode(&inputs).unwrap();
        for (input, from_batch) in inputs.iter().zip(&batch) {
            let single = model.encoders[0].encode(std::slice::from_ref(input)).unwrap();
            assert!(distance(&single[0], from_batch) < 1e-5, "{}", model.space.name);
        }
    }
}

#[test]
fn ids_are_the_references_and_the_order_of_frames_matters() {
    for model in MODELS {
        let (expected, model) = (expected(model), loaded(model));
        let tokenizer = model.tokenizer.unwrap();
        for text in &expected.texts {
            let windows = tokenizer.windows(&text.text, Overflow::Truncate, 1).unwrap();
            assert_eq!(windows.windows[0].tokens.ids, text.ids, "{:?}", text.text);
        }
        assert!(distance(&expected.clip_vectors[0], &expected.clip_vectors[1]) > 1e-2);
        let space = model.space;
        assert!(space.temporal && space.frame_stage.is_none() && space.can.text && space.can.frames);
        let released = match space.family.as_str() {
            "languagebind" => Sampler::Ends { frames: 4 },
            _ => Sampler::Steps { frames: 4 },
        };
        assert_eq!(space.sampler, released);
    }
}

#[test]
fn frames_are_not_encoded_one_by_one() {
    for mut model in MODELS.map(loaded) {
        for input in [Input::Frame(picture(32, 32, 0)), Input::Features(vec![vec![0.0; 16].into()])] {
            let error = model.encoders[0].encode(&[input]).unwrap_err();
            assert!(matches!(error, EncodeError::Unsupported { .. }), "{error}");
        }
    }
}

#[test]
fn variants_of_language_bind_that_are_not_read_are_refused_by_name() {
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
        refused(LANGUAGE_BIND, change, &[key]);
    }
}

#[test]
fn video_clip_xl_reads_its_long_texts_and_squashes_its_frames() {
    let space = loaded(VIDEO_CLIP_XL).space;
    assert_eq!((space.family.as_str(), space.max_text_tokens, space.dim), ("videoclip-xl", 248, 16));
    assert_eq!(space.scaling.size, FrameSize::Exact { width: 32, height: 32 });
    let remove = |file: &'static str| move |folder: &Path| std::fs::remove_file(folder.join(file)).unwrap();
    refused(VIDEO_CLIP_XL, remove("tokenizer.json"), &["has no tokenizer.json"]);
    refused(VIDEO_CLIP_XL, remove("pytorch_model.bin"), &["has no model.safetensors"]);
    // Weights of plain CLIP have no temporal position embeddings.
    let plain = |path: &Path| {
        std::fs::remove_file(path.join("pytorch_model.bin")).unwrap();
        std::fs::copy(folder("openai").join("tiny-32.pt"), path.join("model.pt")).unwrap();
    };
    refused(VIDEO_CLIP_XL, plain, &["temporal_embedding"]);
}
