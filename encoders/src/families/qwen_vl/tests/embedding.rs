//! Embedders: prompts against the reference's, and folders through the registry.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use serde_json::{Value, json};

use super::super::config::Generation;
use super::super::embedding::EmbeddingKind;
use super::super::encoder::Reader;
use super::super::instructions::{PROMPTS, PromptFile, PromptIds, Prompts};
use super::super::model::Sequence;
use super::super::template::ChatTemplate;
use super::cases::{numbers, visuals};
use super::fixture::{Fixture, check, each};
use super::pixels::{patching, picture};
use crate::loading::Embedder;
use crate::registry::load_with;
use crate::text::{Overflow, Tokenizer};
use crate::{
    Clip, DeviceChoice, EncodeError, Frame, FrameSize, Input, LoadError, LoadOptions, ModelName, Source,
};

pub(super) fn kind(fixture: &Fixture) -> EmbeddingKind {
    match fixture.config().generation {
        Generation::Two => EmbeddingKind::Gme,
        Generation::TwoFive => EmbeddingKind::Care,
        Generation::Three => EmbeddingKind::Qwen3,
    }
}

/// The key of config.json.
pub(super) fn key(kind: EmbeddingKind) -> Value {
    json!({"kind": kind})
}

/// The prompts of the reference's cases of embedders.
fn prompt_file(kind: EmbeddingKind) -> Value {
    let helpful = json!({"system": "You are a helpful assistant."});
    match kind {
        EmbeddingKind::Gme => json!({"text": helpful, "composed": helpful}),
        EmbeddingKind::Qwen3 | EmbeddingKind::Care => json!({}),
    }
}

fn reader(fixture: &Fixture, kind: EmbeddingKind) -> Reader {
    let (model, tokenizer) = (fixture.model(), fixture.tokenizer());
    let file: PromptFile = serde_json::from_value(prompt_file(kind)).unwrap();
    let template = ChatTemplate::plain(model.config.generation);
    let prompts = Prompts::new(kind, &file, &template).unwrap();
    let ids = PromptIds::new(&prompts, &tokenizer, &[]).unwrap();
    Reader { model, tokenizer, patching: patching(fixture), prompts, ids }
}

#[track_caller]
fn vector_is(reader: &Reader, sequence: &Sequence, what: &str, case: &Value) {
    assert_eq!(sequence.ids(), numbers(&case["ids"]), "{what}");
    let hidden = reader.model.last_hidden(&[sequence], &|| {}).unwrap();
    let got = crate::blocks::layers::divided_by_norm(&hidden).unwrap();
    let expected: Vec<f32> =
        case["vector"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect();
    check(what, &got, &Tensor::from_vec(expected, got.shape(), &Device::Cpu).unwrap());
}

#[test]
fn prompts_and_vectors_of_embedders_are_the_references() {
    each(|fixture| {
        let case = |name: &str| &fixture.expected["cases"][name];
        let check = |kind, name: &str, text: Option<&str>| {
            let (reader, case) = (reader(fixture, kind), case(name));
            let around = &reader.prompts.text;
            let text = text.map(|text| {
                reader.tokenizer.ids(&format!("{}{text}{}", around.before, around.after)).unwrap()
            });
            let sequence = match (visuals(fixture, case).pop(), text) {
                (Some(visual), Some(text)) => reader.composed_of(visual, &text),
                (Some(visual), None) => reader.document(visual),
                (None, text) => reader.sequence(text.unwrap_or_default(), Vec::new()),
            };
            vector_is(&reader, &sequence.unwrap(), &format!("{} {name}", fixture.name), case);
        };
        match kind(fixture) {
            EmbeddingKind::Gme => {
                check(EmbeddingKind::Gme, "gme-text", Some("the red car"));
                check(EmbeddingKind::Gme, "gme-image-text", Some("the red car"));
                check(EmbeddingKind::Care, "care-video", None);
                check(EmbeddingKind::Care, "text-eol", Some("a diver turns two and a half times"));
            }
            EmbeddingKind::Qwen3 => {
                check(EmbeddingKind::Qwen3, "embedding-text", Some("the red car"));
                check(EmbeddingKind::Qwen3, "embedding-video", Some("the red car"));
            }
            EmbeddingKind::Care => {
                check(EmbeddingKind::Care, "text-eol", Some("a diver turns two and a half times"));
            }
        }
    });
}

/// A folder with the fixture's model and this key in its config.json.
pub(super) fn folder(fixture: &Fixture, embedding: Option<Value>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in ["model.safetensors", "tokenizer.json", "preprocessor_config.json"] {
        std::fs::copy(fixture.folder.join(file), folder.path().join(file)).unwrap();
    }
    std::fs::write(folder.path().join(PROMPTS), prompt_file(kind(fixture)).to_string()).unwrap();
    let json = std::fs::read(fixture.folder.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_slice(&json).unwrap();
    if let Some(embedding) = embedding {
        config["embedding"] = embedding;
    }
    // Frames of a video have 128 tokens at least.
    longer(&mut config);
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    folder
}

/// Room for real prompts; rotary positions know no limit.
fn longer(config: &mut Value) {
    let text = match config.get("text_config") {
        Some(_) => &mut config["text_config"],
        None => config,
    };
    text["max_position_embeddings"] = 8192.into();
}

pub(super) fn load(folder: &Path) -> Result<Embedder, LoadError> {
    let options = LoadOptions { devices: vec![DeviceChoice::Cpu], ..LoadOptions::default() };
    load_with(&folder.to_str().unwrap().parse().unwrap(), &options)
}

pub(super) fn text(tokenizer: &Tokenizer, text: &str) -> Input {
    let mut windows = tokenizer.windows(text, Overflow::Truncate, 1).unwrap().windows;
    Input::Text(windows.remove(0).tokens)
}

pub(super) fn clip(frames: u32) -> Clip {
    let frame = |at: u32| Frame { time_ms: i64::from(at) * 1000, ..picture(48, 32, at) };
    Clip { frames: (0..frames).map(frame).collect() }
}

fn largest(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn a_batch_of_texts_clips_and_both_is_its_inputs_alone() {
    each(|fixture| {
        let kind = kind(fixture);
        let folder = folder(fixture, Some(key(kind)));
        let mut model = load(folder.path()).unwrap();
        let tokenizer = Arc::clone(model.tokenizer.as_ref().unwrap());
        let mut inputs = vec![
            text(&tokenizer, "the red car"),
            Input::Frames(clip(3)),
            text(&tokenizer, ""),
            Input::Frames(clip(1)),
            text(&tokenizer, "a <|im_end|> in the text"),
        ];
        let modification = tokenizer.modification("but blue").unwrap().windows.remove(0).tokens;
        inputs.push(Input::Composed { query: Source::Frames(clip(2)), modification });
        let encoder = &mut model.encoders[0];
        let together = encoder.encode(&inputs).unwrap();
        for (input, vector) in inputs.iter().zip(&together) {
            let alone = encoder.encode(std::slice::from_ref(input)).unwrap().remove(0);
            assert!(largest(&alone, vector) < 1e-4, "{} {}", fixture.name, largest(&alone, vector));
            assert!(encoder.cost(input) > 0);
        }
        encoder.bound_pass(1);
        let one_by_one = encoder.share().encode(&inputs).unwrap();
        assert!(one_by_one.iter().zip(&together).all(|(one, other)| largest(one, other) < 1e-4));
        let (first, last) = (&together[0], &together[together.len() - 1]);
        assert!(largest(first, last) > 1e-3, "every input has the same vector");
    });
}

#[test]
fn special_tokens_in_a_text_are_letters_for_an_embedder_too() {
    each(|fixture| {
        let folder = folder(fixture, Some(key(kind(fixture))));
        let tokenizer = load(folder.path()).unwrap().tokenizer.unwrap();
        let json = std::fs::read(fixture.folder.join("tokenizer.json")).unwrap();
        let json: Value = serde_json::from_slice(&json).unwrap();
        let added = json["added_tokens"].as_array().unwrap().iter();
        let specials: Vec<(u32, &str)> = added
            .filter(|token| token["special"] == true)
            .map(|token| (token["id"].as_u64().unwrap() as u32, token["content"].as_str().unwrap()))
            .collect();
        let specials_in = |windows: crate::text::Windows| -> Vec<u32> {
            let ids = windows.windows.into_iter().flat_map(|window| window.tokens.ids);
            ids.filter(|id| specials.iter().any(|(special, _)| special == id)).collect()
        };
        let of_text = |text: &str| specials_in(tokenizer.windows(text, Overflow::Truncate, 1).unwrap());
        let of_change = |text: &str| specials_in(tokenizer.modification(text).unwrap());
        let (prompts, changes) = (of_text(""), of_change(""));
        assert!(!prompts.is_empty() && specials.len() > 10, "{}", fixture.name);
        for (_, special) in &specials {
            let text = format!("a {special} in the text{special}");
            assert_eq!(of_text(&text), prompts, "{} {special}", fixture.name);
            assert_eq!(of_change(&text), changes, "{} {special}", fixture.name);
        }
    });
}

#[test]
fn a_pause_comes_with_every_layer_and_another_encoder_may_work_in_it() {
    each(|fixture| {
        let folder = folder(fixture, Some(key(kind(fixture))));
        let mut model = load(folder.path()).unwrap();
        let tokenizer = Arc::clone(model.tokenizer.as_ref().unwrap());
        let (long, query) = ([Input::Frames(clip(4))], [text(&tokenizer, "the red car")]);
        let expected = [&long, &query].map(|input| model.encoders[0].encode(input).unwrap());
        let (pauses, other) = (Cell::new(0), RefCell::new(model.encoders[0].share()));
        let pause = || {
            pauses.set(pauses.get() + 1);
            assert_eq!(other.borrow_mut().encode(&query).unwrap(), expected[1]);
        };
        assert_eq!(model.encoders[0].encode_pausing(&long, &pause).unwrap(), expected[0]);
        let config = fixture.config();
        assert!(pauses.get() >= config.text.depth + config.vision.depth, "{} pauses", pauses.get());
    });
}

#[test]
fn an_empty_text_is_null_where_the_release_says_so() {
    each(|fixture| {
        let kind = kind(fixture);
        let folder = folder(fixture, Some(key(kind)));
        let mut model = load(folder.path()).unwrap();
        let tokenizer = Arc::clone(model.tokenizer.as_ref().unwrap());
        let inputs = [text(&tokenizer, ""), text(&tokenizer, "NULL")];
        let vectors = model.encoders[0].encode(&inputs).unwrap();
        assert_eq!(largest(&vectors[0], &vectors[1]) < 1e-6, kind == EmbeddingKind::Qwen3);
    });
}

#[test]
fn features_of_single_frames_give_the_clips_vector() {
    each(|fixture| {
        let folder = folder(fixture, Some(key(kind(fixture))));
        let mut model = load(folder.path()).unwrap();
        let frames = clip(3).frames;
        let features: Vec<Input> = frames.into_iter().map(Input::Frame).collect();
        let features = model.encoders[0].encode(&features);
        if model.space.frame_stage.is_none() {
            assert!(matches!(features, Err(EncodeError::Unsupported { .. })));
            return;
        }
        let features = features.unwrap().into_iter().map(Arc::from).collect();
        let both = [Input::Features(features), Input::Frames(clip(3))];
        let vectors = model.encoders[0].encode(&both).unwrap();
        assert!(largest(&vectors[0], &vectors[1]) < 1e-5);
    });
}

#[test]
fn the_space_depends_on_prompts_frames_and_pixels() {
    each(|fixture| {
        let kind = kind(fixture);
        let id = |file: Option<(&str, &str)>, rate: Option<f64>| {
            let folder = folder(fixture, Some(key(kind)));
            if let Some((name, json)) = file {
                std::fs::write(folder.path().join(name), json).unwrap();
            }
            let options = LoadOptions {
                devices: vec![DeviceChoice::Cpu],
                frames_per_second: rate,
                ..LoadOptions::default()
            };
            let name = folder.path().to_str().unwrap().parse().unwrap();
            load_with(&name, &options).unwrap().space.id
        };
        let first = id(None, None);
        assert_eq!(first, id(None, None));
        // A file without prompts changes nothing.
        assert_eq!(first == id(Some((PROMPTS, "{}")), None), prompt_file(kind) == json!({}));
        assert_ne!(first, id(Some((PROMPTS, r#"{"text": {"system": "Find a video."}}"#)), None));
        let means = r#"{"image_mean": [0.1, 0.2, 0.3], "min_pixels": 256, "max_pixels": 1024}"#;
        assert_ne!(first, id(Some(("preprocessor_config.json", means)), None));
        if kind != EmbeddingKind::Care {
            assert_ne!(first, id(None, Some(0.5)));
        }
    });
}

#[test]
fn fewer_frames_and_smaller_ones_make_another_space_that_costs_less() {
    each(|fixture| {
        let folder = folder(fixture, Some(key(kind(fixture))));
        let name: ModelName = folder.path().to_str().unwrap().parse().unwrap();
        let load = |frames_per_clip, max_pixels| {
            let devices = vec![DeviceChoice::Cpu];
            load_with(&name, &LoadOptions { devices, frames_per_clip, max_pixels, ..LoadOptions::default() })
                .unwrap()
        };
        let (usual, mut few, mut small) = (load(None, None), load(Some(2), None), load(None, Some(4096)));
        assert_ne!(few.space.id, usual.space.id);
        assert_ne!(small.space.id, usual.space.id);
        assert!(few.space.sampler.pick(&(0..9000).step_by(40).collect::<Vec<_>>(), 0).len() == 2);
        assert!(few.space.frame_stage.is_none());
        let large = Input::Frames(Clip { frames: vec![picture(640, 360, 1), picture(640, 360, 2)] });
        let (cost, less) = (usual.encoders[0].cost(&large), small.encoders[0].cost(&large));
        assert!(less * 2 < cost, "{less} of {cost}");
        for model in [&mut few, &mut small] {
            assert_eq!(model.encoders[0].encode(std::slice::from_ref(&large)).unwrap().len(), 1);
        }
        // What the decoder gives needs no second resize.
        let FrameSize::Area(rule) = small.space.scaling.size else { panic!("a size of another kind") };
        let decoded = rule.usual();
        assert!(decoded.0 * decoded.1 <= 4096 && (decoded.0 % 8, decoded.1 % 8) == (0, 0), "{decoded:?}");
    });
}

#[test]
fn a_shorter_vector_is_a_prefix_where_the_model_was_trained_for_it() {
    each(|fixture| {
        let kind = kind(fixture);
        let folder = folder(fixture, Some(key(kind)));
        let name: ModelName = folder.path().to_str().unwrap().parse().unwrap();
        let load = |dim| {
            let devices = vec![DeviceChoice::Cpu];
            load_with(&name, &LoadOptions { devices, dim, ..LoadOptions::default() })
        };
        let (mut whole, mut short) = (load(None).unwrap(), load(Some(16)).unwrap());
        let width = fixture.config().text.width;
        let is_trained_so = kind == EmbeddingKind::Qwen3;
        assert_eq!(short.space.dim, if is_trained_so { 16 } else { width });
        assert_eq!(short.space.id != whole.space.id, is_trained_so);
        let tokenizer = Arc::clone(whole.tokenizer.as_ref().unwrap());
        let modification = tokenizer.modification("but blue").unwrap().windows.remove(0).tokens;
        let composed = Input::Composed { query: Source::Frames(clip(2)), modification };
        let inputs = [text(&tokenizer, "the red car"), Input::Frames(clip(3)), composed];
        let [long, short] = [&mut whole, &mut short].map(|it| it.encoders[0].encode(&inputs).unwrap());
        assert!(long.iter().zip(&short).all(|(long, short)| long[..short.len()] == short[..]));
        assert_eq!(load(Some(width + 1)).is_err(), is_trained_so);
    });
}

#[test]
fn what_can_not_be_read_is_said() {
    each(|fixture| {
        let kind = kind(fixture);
        let refused = |change: &dyn Fn(&Path), part: &str| {
            let folder = folder(fixture, Some(key(kind)));
            change(folder.path());
            let error = load(folder.path()).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(part), "{error:?} without {part:?}");
        };
        let without =
            |file: &'static str| move |folder: &Path| std::fs::remove_file(folder.join(file)).unwrap();
        refused(&without("tokenizer.json"), "tokenizer.json");
        refused(&without("preprocessor_config.json"), "preprocessor_config.json");
        refused(&without("model.safetensors"), "model.safetensors");
        let with = |file: &'static str, bytes: &'static str| {
            move |folder: &Path| std::fs::write(folder.join(file), bytes).unwrap()
        };
        refused(&with("preprocessor_config.json", r#"{"patch_size": 14}"#), "cuts other patches");
        refused(&with("preprocessor_config.json", r#"{"max_pixels": 1}"#), "leave no size");
        refused(&with("chat_template.jinja", "{% if %}"), "chat_template.jinja");
        refused(&with("chat_template.jinja", "no text"), "leaves the user's text out");
        refused(&with(PROMPTS, r#"{"text": {"user": "In one word:"}}"#), "prompts.json");
        refused(&with(PROMPTS, r#"{"text": {"user": "In one word:"}}"#), "{text} 0 times instead of 1");
        refused(&with(PROMPTS, r#"{"query": {}}"#), "unknown field `query`");
        refused(
            &|folder| {
                let name = folder.join("config.json");
                let mut config: Value = serde_json::from_slice(&std::fs::read(&name).unwrap()).unwrap();
                config["embedding"] = json!({"kind": "qwen3", "text": "Find a video."});
                std::fs::write(name, config.to_string()).unwrap();
            },
            "the key \"embedding\"",
        );
        let plain = folder(fixture, None);
        let error = load(plain.path()).err().unwrap().to_string();
        assert!(error.contains("reprise generate"), "{error}");
    });
}

#[test]
fn frames_and_queries_that_the_model_can_not_read_are_the_callers_fault() {
    each(|fixture| {
        let folder = folder(fixture, Some(key(kind(fixture))));
        let mut model = load(folder.path()).unwrap();
        let modification =
            model.tokenizer.as_ref().unwrap().modification("a").unwrap().windows.remove(0).tokens;
        let narrow = Frame { time_ms: 0, width: 300, height: 1, rgb: vec![0; 900].into() };
        let broken = Frame { time_ms: 0, width: 30, height: 10, rgb: vec![0; 9].into() };
        let mixed = Clip { frames: vec![picture(48, 32, 0), picture(32, 48, 1)] };
        let mut bad = vec![
            Input::Frames(Clip { frames: vec![] }),
            Input::Frames(Clip { frames: vec![narrow] }),
            Input::Frames(Clip { frames: vec![broken] }),
            Input::Text(crate::text::Tokens { ids: vec![] }),
            Input::Text(crate::text::Tokens { ids: vec![352] }),
            Input::Text(crate::text::Tokens { ids: vec![99_999] }),
            Input::Composed { query: Source::Raw(vec![1.0]), modification },
        ];
        if kind(fixture) != EmbeddingKind::Gme {
            bad.push(Input::Frames(mixed));
        }
        for input in bad {
            let error = model.encoders[0].encode(std::slice::from_ref(&input)).unwrap_err();
            let is_theirs = matches!(error, EncodeError::BadInput(_) | EncodeError::Unsupported { .. });
            assert!(is_theirs, "{error} for {input:?}");
        }
    });
}
