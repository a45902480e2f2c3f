//! Families with a picture tower and a text tower: vectors, preprocessing and tokenizers against their references
//! (see parity/make.py).

use std::path::{Path, PathBuf};

use reprise_encoders::preprocess::Preprocessing;
use reprise_encoders::text::{Overflow, Specials, Tokenizer, Tokens};
use reprise_encoders::{
    Clip, Embedder, Encoder, Frame, FrameSize, Input, LoadError, ModelName, TrainedOn, load,
};
use serde_json::Value;

/// Variants of CLIP's layout by tokenizer, then its other layouts and the other families.
pub(crate) const VARIANTS: [&str; 19] = [
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
];

pub(crate) fn folder(variant: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data").join(variant)
}

fn expected(variant: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder(variant).join("expected.json")).unwrap()).unwrap()
}

fn loaded(variant: &str) -> Embedder {
    let name: ModelName = folder(variant).to_str().unwrap().parse().unwrap();
    load(&name, 1).unwrap()
}

fn preprocessing(variant: &str) -> Preprocessing {
    let read = |file: &str| std::fs::read(folder(variant).join(file)).unwrap();
    match variant.split_once('/') {
        None if variant.starts_with("blip") => {
            Preprocessing::from_blip_json(&read("preprocessor_config.json")).unwrap()
        }
        None if variant == "openai" => Preprocessing::from_open_clip(&serde_json::json!({}), 32).unwrap(),
        Some(("siglip", _)) => Preprocessing::from_siglip_json(&read("preprocessor_config.json")).unwrap(),
        Some(("open-clip" | "open-clip-siglip", _)) => {
            let config: Value = serde_json::from_slice(&read("open_clip_config.json")).unwrap();
            let side = config["model_cfg"]["vision_cfg"]["image_size"].as_u64().unwrap() as u32;
            Preprocessing::from_open_clip(&config["preprocess_cfg"], side).unwrap()
        }
        _ => Preprocessing::from_json(&read("preprocessor_config.json")).unwrap(),
    }
}

fn vectors(value: &Value) -> Vec<Vec<f32>> {
    serde_json::from_value(value.clone()).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let norm = dot(vector, vector).sqrt();
    vector.iter().map(|value| value / norm).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Compares with the reference, within f32 rounding on another machine.
#[track_caller]
fn check(got: &[f32], expected: &[f32]) {
    assert!(distance(got, expected) < 1e-4, "{got:?} instead of {expected:?}");
    assert!(dot(&unit(got), &unit(expected)) > 0.999_99);
}

/// A picture from the formula in parity/make.py, which gives the same integers.
pub(crate) fn picture(width: u32, height: u32, kind: u32) -> Frame {
    let byte = |x: u32, y: u32, c: u32| {
        let waves = (x * x * 3 + y * y * (5 + kind) + x * y * 7) / (width + height) + c * 60;
        let edges = (x / 5 + y / 3 + c) % 2 * 120;
        ((waves + edges * (kind % 2)) % 256) as u8
    };
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let rgb: Vec<u8> = pixels.flat_map(|(x, y)| [byte(x, y, 0), byte(x, y, 1), byte(x, y, 2)]).collect();
    Frame { time_ms: 0, width, height, rgb: rgb.into() }
}

fn clip(frames: &[Frame]) -> Input {
    Input::Frames(Clip { frames: frames.to_vec() })
}

fn texts(expected: &Value) -> Vec<Input> {
    let texts = expected["texts"].as_array().unwrap();
    texts.iter().map(|text| Input::Text(Tokens { ids: ids(&text["ids"]) })).collect()
}

/// Frames of the model's size, which need no resizing.
fn exact_frames(expected: &Value) -> Vec<Frame> {
    let side = expected["exact_side"].as_u64().unwrap() as u32;
    let count = expected["image_vectors"].as_array().unwrap().len() as u32;
    (0..count).map(|kind| picture(side, side, kind)).collect()
}

fn resized_frames(expected: &Value) -> Vec<Frame> {
    let sizes: Vec<(u32, u32)> = serde_json::from_value(expected["sizes"].clone()).unwrap();
    sizes.into_iter().map(|(width, height)| picture(width, height, 1)).collect()
}

/// Pairs of computed and expected vectors: texts by each padding and batch, pictures, a clip of 8 frames.
fn beside_the_reference(variant: &str) -> Vec<(Vec<f32>, Vec<f32>)> {
    let (expected, mut model) = (expected(variant), loaded(variant));
    let mut pairs = Vec::new();
    let kinds = expected["text_vectors"].as_object().unwrap();
    assert!(kinds.len() >= 2 && kinds.keys().any(|kind| kind.ends_with("batch 4")));
    let texts = texts(&expected);
    for batch in [1, 4] {
        let got: Vec<Vec<f32>> =
            texts.chunks(batch).flat_map(|texts| model.encoders[0].encode(texts).unwrap()).collect();
        kinds.values().for_each(|reference| pairs.extend(got.iter().cloned().zip(vectors(reference))));
    }
    let frames = exact_frames(&expected);
    assert_eq!(frames.len(), 8);
    let mut inputs: Vec<Input> = frames.iter().map(|frame| clip(std::slice::from_ref(frame))).collect();
    inputs.push(clip(&frames));
    let mut references: Vec<Vec<f32>> =
        vectors(&expected["image_vectors"]).iter().map(|it| unit(it)).collect();
    references.push(serde_json::from_value(expected["clip_vector"].clone()).unwrap());
    for batch in [1, 4] {
        let got = inputs.chunks(batch).flat_map(|inputs| model.encoders[0].encode(inputs).unwrap());
        pairs.extend(got.zip(references.iter().cloned()));
    }
    pairs
}

/// The reference's name and version, and the largest difference from it.
pub(crate) fn farthest(variant: &str) -> (String, f32) {
    let pairs = beside_the_reference(variant);
    let off = pairs.iter().map(|(got, expected)| distance(got, expected));
    let reference = expected(variant)["reference"].as_str().unwrap().to_owned();
    (reference, off.fold(0.0, f32::max))
}

#[test]
fn texts_pictures_and_clips_have_the_reference_vectors_whatever_the_padding_and_batch() {
    for variant in VARIANTS {
        beside_the_reference(variant).iter().for_each(|(got, expected)| check(got, expected));
    }
}

#[test]
fn padding_in_the_ids_changes_nothing() {
    for variant in VARIANTS {
        let (expected, mut model) = (expected(variant), loaded(variant));
        let plain = model.encoders[0].encode(&texts(&expected)).unwrap();
        for pad in ids(&expected["pads"]) {
            let padded = texts(&expected).into_iter().map(|input| match input {
                Input::Text(mut tokens) => {
                    tokens.ids.resize(model.space.max_text_tokens, pad);
                    Input::Text(tokens)
                }
                other => other,
            });
            let padded = model.encoders[0].encode(&padded.collect::<Vec<_>>()).unwrap();
            for (plain, padded) in plain.iter().zip(&padded) {
                assert!(distance(plain, padded) < 1e-5);
            }
        }
    }
}

#[test]
fn resized_pictures_stay_near_the_reference_vectors() {
    for variant in VARIANTS {
        let (expected, mut model) = (expected(variant), loaded(variant));
        let references = vectors(&expected["resized_vectors"]);
        for (frame, reference) in resized_frames(&expected).iter().zip(references) {
            let got = model.encoders[0].encode(&[clip(std::slice::from_ref(frame))]).unwrap();
            let cosine = dot(&got[0], &unit(&reference));
            assert!(cosine > 0.999_99, "{variant}, {}x{}: {cosine}", frame.width, frame.height);
        }
    }
}

#[test]
fn pixels_are_the_image_processors() {
    for variant in VARIANTS {
        let preprocessing = preprocessing(variant);
        let reference = std::fs::read(folder(variant).join("pixels.bin")).unwrap();
        let plane = (preprocessing.crop.0 * preprocessing.crop.1) as usize;
        let frames = resized_frames(&expected(variant));
        assert_eq!(reference.len(), frames.len() * 3 * plane);
        for (frame, reference) in frames.iter().zip(reference.chunks_exact(3 * plane)) {
            let mut pixels = Vec::new();
            preprocessing.append(frame, &mut pixels).unwrap();
            for (at, reference) in reference.iter().enumerate() {
                let (channel, place) = (at / plane, at % plane);
                let pixel = pixels[3 * place + channel];
                let byte = (pixel * preprocessing.std[channel] + preprocessing.mean[channel]) * 255.0;
                let off = (byte - f32::from(*reference)).abs();
                assert!(off < 0.01, "{variant}, {}x{}: {off} at {at}", frame.width, frame.height);
            }
        }
    }
}

#[test]
fn tokenizers_of_every_type_give_the_reference_ids() {
    for variant in VARIANTS {
        let (expected, model) = (expected(variant), loaded(variant));
        let tokenizer = model.tokenizer.unwrap();
        for row in expected["texts"].as_array().unwrap() {
            let text = row["text"].as_str().unwrap();
            let windows = tokenizer.windows(text, Overflow::Truncate, 1).unwrap();
            assert_eq!(windows.windows[0].tokens.ids, ids(&row["ids"]), "{variant}: {text:?}");
        }
    }
}

fn encoders_with_inputs() -> Vec<(Box<dyn Encoder>, Vec<Input>)> {
    let folders = VARIANTS.iter().map(|variant| folder(variant).to_str().unwrap().to_owned());
    let names = folders.chain(["builtin:tiny".to_owned(), "builtin:sports".to_owned()]);
    let model = |name: String| {
        let Embedder { mut encoders, tokenizer, .. } = load(&name.parse().unwrap(), 1).unwrap();
        let tokenizer = tokenizer.unwrap();
        let text = |text| tokenizer.windows(text, Overflow::Truncate, 1).unwrap().windows[0].tokens.clone();
        let inputs = vec![
            Input::Text(text("two and a half turns")),
            clip(&[picture(64, 64, 0), picture(90, 64, 1), picture(64, 70, 2)]),
            Input::Text(text("")),
            clip(&(0..70).map(|kind| picture(64, 64, kind)).collect::<Vec<_>>()),
            Input::Text(text("a woman draws the river at night, seen from above, and turns around again")),
            clip(&[picture(33, 120, 1)]),
        ];
        (encoders.remove(0), inputs)
    };
    names.map(model).collect()
}

#[test]
fn a_batch_gives_the_vectors_of_single_inputs_for_every_encoder() {
    for (mut encoder, inputs) in encoders_with_inputs() {
        let batch = encoder.encode(&inputs).unwrap();
        for (input, from_batch) in inputs.iter().zip(&batch) {
            let single = encoder.encode(std::slice::from_ref(input)).unwrap();
            let off = distance(&single[0], from_batch);
            assert!(off < 1e-5, "{}: {off}", encoder.space().name);
        }
    }
}

#[test]
fn the_space_tells_how_frames_and_texts_go_in() {
    let space = |variant| loaded(variant).space;
    let (a, b, c) = (space("legacy"), space("wordpiece"), space("unigram"));
    assert_eq!((a.dim, b.dim, c.dim), (16, 12, 24));
    assert_eq!((a.max_text_tokens, b.max_text_tokens, c.max_text_tokens), (20, 40, 12));
    assert_eq!(a.scaling.size, FrameSize::ShortEdge(32));
    assert_eq!(b.scaling.size, FrameSize::Exact { width: 30, height: 30 });
    assert_eq!(c.scaling.size, FrameSize::ShortEdge(28));
    assert_ne!(a.id, b.id);
    assert!(a.trained_on == TrainedOn::Unstated && a.can.text && a.can.frames && !a.can.composed);
    assert_eq!(a.id, space("legacy").id, "loading twice gives the same space");
}

#[test]
fn clips_own_tokenizer_gives_its_golden_ids() {
    let Some(folder) = reprise_tests::test_data("text/clip_tokenizer") else { return };
    let json = std::fs::read(folder.join("tokenizer.json")).unwrap();
    let tokenizer = Tokenizer::from_json(&json, Specials::default(), 77).unwrap();
    let golden: Value =
        serde_json::from_slice(&std::fs::read(folder.join("golden_tokens.json")).unwrap()).unwrap();
    let rows = golden["rows"].as_array().unwrap();
    let differing =
        rows.iter().filter(|row| tokenizer.ids(row["text"].as_str().unwrap()).unwrap() != ids(&row["ids"]));
    let differing: Vec<&str> = differing.map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(rows.len(), 235);
    assert_eq!(differing, ["a&amp;b"], "OpenAI's own code unescapes HTML, the tokenizer file does not");
}

/// Loads a changed copy of a model folder.
pub(crate) fn load_changed(variant: &str, change: impl Fn(&Path)) -> Result<Embedder, LoadError> {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder(variant)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    change(copy.path());
    load(&copy.path().to_str().unwrap().parse().unwrap(), 1)
}

#[track_caller]
pub(crate) fn refused(variant: &str, change: impl Fn(&Path), expected: &[&str]) {
    let error = match load_changed(variant, change) {
        Ok(_) => panic!("it loaded"),
        Err(error) => error.to_string(),
    };
    assert!(expected.iter().all(|part| error.contains(part)), "{error}");
}

fn remove(file: &'static str) -> impl Fn(&Path) {
    move |folder| std::fs::remove_file(folder.join(file)).unwrap()
}

#[test]
fn a_preprocessor_is_found_inside_a_processor() {
    let nested = |folder: &Path| {
        let path = folder.join("preprocessor_config.json");
        let own: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        std::fs::remove_file(path).unwrap();
        let processor = serde_json::json!({"image_processor": own, "processor_class": "CLIPProcessor"});
        std::fs::write(folder.join("processor_config.json"), processor.to_string()).unwrap();
    };
    assert_eq!(load_changed("wordpiece", nested).unwrap().space.id, loaded("wordpiece").space.id);
}

#[test]
fn what_a_folder_lacks_is_named() {
    for file in ["config.json", "preprocessor_config.json", "tokenizer.json", "model.safetensors"] {
        refused("legacy", remove(file), &["has no", file]);
    }
    for model in ["blip", "blip-2"] {
        let expected = ["has no tokenizer.json", "google-bert/bert-base-uncased"];
        refused(model, remove("tokenizer.json"), &expected);
    }
    let shard = "model-00002-of-00002.safetensors";
    refused("wordpiece", remove(shard), &["has no", shard]);
    let old = |folder: &Path| {
        std::fs::rename(folder.join("model.safetensors"), folder.join("tf_model.h5")).unwrap();
    };
    refused("legacy", old, &["tf_model.h5", "convert it"]);
}

#[test]
fn of_an_authors_checkpoint_and_other_weights_beside_it_neither_is_chosen() {
    let both = |folder: &Path| std::fs::write(folder.join("model.ckpt"), "").unwrap();
    refused("legacy", both, &["model.ckpt can't be used", "model.safetensors lies beside it"]);
    let published = |folder: &Path| std::fs::write(folder.join("pytorch_model.bin"), "").unwrap();
    assert!(load_changed("legacy", published).is_ok());
}

#[test]
fn a_blip_without_its_text_encoder_is_refused() {
    let captions = |folder: &Path| {
        let path = folder.join("model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        // The names have equal lengths, so the header stays valid.
        let (from, to) = (b"text_encoder.embeddings.word", b"text_decoder.embeddings.word");
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        std::fs::write(path, [&bytes[..at], to, &bytes[at + to.len()..]].concat()).unwrap();
    };
    refused("blip", captions, &["text_encoder.embeddings.word_embeddings.weight"]);
}

/// Changes a file of JSON.
pub(crate) fn edit(file: &'static str, change: impl Fn(&mut Value)) -> impl Fn(&Path) {
    move |folder| {
        let path = folder.join(file);
        let mut value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        std::fs::write(path, value.to_string()).unwrap();
    }
}

#[test]
fn of_blip_2s_classes_the_one_with_vectors_is_read_and_others_before_their_weights_are() {
    let class =
        |name: &'static str| edit("config.json", move |it| it["architectures"] = serde_json::json!([name]));
    assert!(load_changed("blip-2", class("Blip2ForImageTextRetrieval")).is_ok());
    let captions = |folder: &Path| {
        class("Blip2ForConditionalGeneration")(folder);
        remove("model.safetensors")(folder);
    };
    refused("blip-2", captions, &["Blip2ForConditionalGeneration", "Blip2ForImageTextRetrieval is"]);
}

#[test]
fn bert_reads_no_text_without_the_tokens_around_it() {
    let bare = edit("tokenizer.json", |file| file["post_processor"] = Value::Null);
    refused("blip", &bare, &["tokenizer.json", "[CLS]"]);
    refused("blip-2", &bare, &["tokenizer.json", "[CLS]"]);
}

#[test]
fn only_the_token_that_stands_for_a_picture_may_lie_beyond_a_q_formers_vocabulary() {
    // The model has 321 tokens, its tokenizer only 320.
    let last = |content: &'static str, special: bool| {
        edit("tokenizer.json", move |file| {
            let added = file["added_tokens"].as_array_mut().unwrap();
            for (id, content, special) in [(320, "[DEC]", true), (321, content, special)] {
                let mut token = added[0].clone();
                token["id"] = id.into();
                token["content"] = content.into();
                token["special"] = special.into();
                added.push(token);
            }
        })
    };
    assert!(load_changed("blip-2", last("<image>", true)).is_ok());
    refused("blip-2", last("<image>", false), &["322 ids", "321 tokens"]);
    refused("blip-2", last("<video>", true), &["322 ids", "321 tokens"]);
    refused("blip", last("<image>", true), &["322 ids"]);
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let write = |file: &'static str, text: &'static str| {
        move |folder: &Path| std::fs::write(folder.join(file), text).unwrap()
    };
    refused("legacy", write("config.json", "{"), &["config.json", "can't be used"]);
    refused("legacy", write("config.json", r#"{"model_type": "gpt2"}"#), &["\"gpt2\"", "not supported"]);
    refused("legacy", write("config.json", r#"{"model_type": "clip"}"#), &["32x32", "224x224"]);
    refused("legacy", write("tokenizer.json", "{}"), &["tokenizer"]);
    refused("legacy", write("model.safetensors", "no weights"), &["model.safetensors"]);
    let index = r#"{"weight_map": {"a": "../config.json"}}"#;
    refused("wordpiece", write("model.safetensors.index.json", index), &["../config.json"]);
    let truncated = |folder: &Path| {
        let path = folder.join("model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    };
    refused("legacy", truncated, &["model.safetensors", "can't be used"]);
    let other_tokenizer = |to: &Path| {
        std::fs::copy(folder("unigram").join("tokenizer.json"), to.join("tokenizer.json")).unwrap();
    };
    refused("wordpiece", other_tokenizer, &["tokenizer.json"]);
}
