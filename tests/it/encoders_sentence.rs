//! Sentence encoders against transformers (see parity/sentence.py), and a real one if available.

use std::path::{Path, PathBuf};

use reprise_encoders::text::{Overflow, Tokenizer, Windows};
use reprise_encoders::{Clip, Embedder, EncodeError, Frame, Input, LoadError, load};
use reprise_tests::server::binary;
use reprise_tests::skip_optional;
use serde::Deserialize;

/// Models with different parts: mean pooling and a norm; first token, dense layer and given prompts; prompts by name
/// without modules; XLM-RoBERTa with a prompt.
const MODELS: [&str; 4] = ["mean", "cls", "e5-tiny", "xlm"];

fn folder(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data/sentence").join(model)
}

fn loaded(folder: &Path) -> Result<Embedder, LoadError> {
    load(&folder.to_str().unwrap().parse().unwrap(), 1)
}

#[derive(Deserialize)]
struct Vectors {
    ids: Vec<Vec<u32>>,
    batch_1: Vec<Vec<f32>>,
    batch_4: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct Expected {
    texts: Vec<String>,
    limit: usize,
    query: Vectors,
    passage: Vectors,
}

fn expected(model: &str) -> Expected {
    serde_json::from_slice(&std::fs::read(folder(model).join("expected.json")).unwrap()).unwrap()
}

fn query(tokenizer: &Tokenizer, text: &str) -> Windows {
    tokenizer.windows(text, Overflow::Truncate, 1).unwrap()
}

fn passage(tokenizer: &Tokenizer, text: &str) -> Windows {
    tokenizer.passages(text, Overflow::Truncate, 1).unwrap()
}

fn input(windows: Windows) -> Input {
    Input::Text(windows.windows.into_iter().next().unwrap().tokens)
}

#[track_caller]
fn near(got: &[f32], expected: &[f32], most: f32) {
    assert_eq!(got.len(), expected.len());
    let off = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < most, "{off} off: {got:?} instead of {expected:?}");
}

/// Checks texts of one kind: their ids, and their vectors encoded singly and in batches.
#[track_caller]
fn check(
    model: &mut Embedder,
    texts: &[String],
    windows: fn(&Tokenizer, &str) -> Windows,
    expected: &Vectors,
) {
    let tokenizer = model.tokenizer.clone().unwrap();
    let inputs: Vec<Input> = texts.iter().map(|text| input(windows(&tokenizer, text))).collect();
    for (input, ids) in inputs.iter().zip(&expected.ids) {
        assert!(matches!(input, Input::Text(tokens) if tokens.ids == *ids), "{input:?} instead of {ids:?}");
    }
    let encoder = &mut model.encoders[0];
    for (input, expected) in inputs.iter().zip(&expected.batch_1) {
        near(&encoder.encode(std::slice::from_ref(input)).unwrap()[0], expected, 1e-4);
    }
    for (batch, expected) in inputs.chunks(4).zip(expected.batch_4.chunks(4)) {
        for (got, expected) in encoder.encode(batch).unwrap().iter().zip(expected) {
            near(got, expected, 1e-4);
        }
    }
}

/// The reference, and the largest difference from it over queries and passages.
pub(crate) fn farthest() -> (String, f32) {
    let mut most = 0_f32;
    for name in MODELS {
        let (expected, mut model) = (expected(name), loaded(&folder(name)).unwrap());
        let tokenizer = model.tokenizer.clone().unwrap();
        let queries = expected.texts.iter().map(|text| input(query(&tokenizer, text)));
        let passages = expected.texts.iter().map(|text| input(passage(&tokenizer, text)));
        let got = model.encoders[0].encode(&queries.chain(passages).collect::<Vec<_>>()).unwrap();
        let references = expected.query.batch_1.iter().chain(&expected.passage.batch_1);
        let pairs = got.iter().zip(references).flat_map(|(got, expected)| got.iter().zip(expected));
        most = pairs.map(|(a, b)| (a - b).abs()).fold(most, f32::max);
    }
    ("transformers 5.23.0".to_owned(), most)
}

#[test]
fn queries_and_passages_have_the_reference_vectors_in_every_batch() {
    for name in MODELS {
        let (expected, mut model) = (expected(name), loaded(&folder(name)).unwrap());
        check(&mut model, &expected.texts, query, &expected.query);
        check(&mut model, &expected.texts, passage, &expected.passage);
        assert_eq!(model.space.max_text_tokens, expected.limit, "{name}");
        assert_eq!(model.space.dim, expected.query.batch_1[0].len(), "{name}");
    }
}

#[test]
fn a_batch_of_mixed_lengths_keeps_its_order() {
    let mut model = loaded(&folder("mean")).unwrap();
    let tokenizer = model.tokenizer.clone().unwrap();
    let texts: Vec<String> =
        (0..70).map(|at| "a dog runs ".repeat(1 + at * 7 % 9) + &at.to_string()).collect();
    let inputs: Vec<Input> = texts.iter().map(|text| input(query(&tokenizer, text))).collect();
    let batch = model.encoders[0].encode(&inputs).unwrap();
    for (input, from_batch) in inputs.iter().zip(&batch) {
        near(from_batch, &model.encoders[0].encode(std::slice::from_ref(input)).unwrap()[0], 1e-5);
    }
}

#[test]
fn only_models_with_prompts_tell_queries_from_passages() {
    for (name, differ) in [("mean", false), ("cls", true), ("e5-tiny", true), ("xlm", true)] {
        let tokenizer = loaded(&folder(name)).unwrap().tokenizer.unwrap();
        assert_eq!(query(&tokenizer, "a frog") != passage(&tokenizer, "a frog"), differ, "{name}");
        let long = "a frog jumps ".repeat(100);
        let windows = tokenizer.windows(&long, Overflow::Window, 1000).unwrap();
        let most = windows.windows.iter().map(|window| window.tokens.ids.len()).max().unwrap();
        assert_eq!(most, tokenizer.max_tokens(), "{name}");
        assert_eq!(windows.tokens_used, windows.tokens_total);
    }
}

#[test]
fn texts_are_all_that_they_take() {
    let mut model = loaded(&folder("mean")).unwrap();
    assert_eq!(model.space.family, "sentence");
    let can = model.space.can;
    assert!(can.text && !can.frames && !can.composed && !model.space.temporal);
    let frame = Frame { time_ms: 0, width: 1, height: 1, rgb: vec![0; 3].into() };
    let error = model.encoders[0].encode(&[Input::Frames(Clip { frames: vec![frame] })]).unwrap_err();
    assert!(matches!(error, EncodeError::Unsupported { .. }), "{error}");
    for ids in [Vec::new(), vec![2; 25], vec![100_000]] {
        let text = Input::Text(reprise_encoders::text::Tokens { ids });
        let error = model.encoders[0].encode(&[text]).unwrap_err();
        assert!(matches!(error, EncodeError::BadInput(_)), "{error}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => assert!(std::fs::copy(&path, &target).is_ok()),
        }
    }
}

/// Loads the model with one file rewritten, under another name.
fn changed(
    model: &str,
    name: &str,
    file: &str,
    change: impl Fn(String) -> String,
) -> Result<Embedder, LoadError> {
    let folder_of_copy = tempfile::tempdir().unwrap();
    let path = folder_of_copy.path().join(name);
    copy(&folder(model), &path);
    let text = std::fs::read_to_string(path.join(file)).unwrap_or_default();
    std::fs::write(path.join(file), change(text)).unwrap();
    loaded(&path)
}

#[track_caller]
fn refused(model: &str, file: &str, (from, to): (&str, &str), expected: &str) {
    let error =
        changed(model, "model", file, |text| text.replace(from, to)).err().expect("it loaded").to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_is_not_supported_is_named() {
    refused("mean", "config.json", ("\"bert\"", "\"mpnet\""), "mpnet");
    refused("mean", "config.json", ("\"bert\"", "\"distilbert\""), "bert, roberta, xlm-roberta");
    refused("mean", "modules.json", ("models.Normalize", "models.LSTM"), "LSTM in place 2");
    refused("mean", "modules.json", ("1_Pooling", "../1_Pooling"), "../1_Pooling");
    refused(
        "mean",
        "1_Pooling/config.json",
        ("\"pooling_mode_max_tokens\": false", "\"pooling_mode_max_tokens\": true"),
        "max_tokens",
    );
    refused("mean", "1_Pooling/config.json", ("\"pooling_mode_mean_tokens\": true", "\"a\": 1"), "neither");
    refused("cls", "2_Dense/config.json", ("activation.Tanh", "activation.ReLU"), "ReLU");
    refused(
        "cls",
        "2_Dense/config.json",
        ("\"in_features\": 24", "\"in_features\": 20"),
        "takes 20 values and gets 24",
    );
    refused("cls", "1_Pooling/config.json", ("{", "{\"include_prompt\": false, "), "prompt");
    refused("mean", "sentence_bert_config.json", ("24", "2"), "fill");
}

#[test]
fn whatever_changes_vectors_makes_another_space() {
    let id = |model: &str, name: &str, file: &str, (from, to): (&str, &str)| {
        changed(model, name, file, |text| text.replace(from, to)).unwrap().space.id
    };
    let same = ("", "");
    let mean = id("mean", "a", "config.json", same);
    assert_eq!(mean, id("mean", "b", "config.json", same), "the folder's name alone changes nothing");
    assert_ne!(mean, id("mean", "e5-a", "config.json", same), "but for the prompts that go with it");
    assert_ne!(mean, id("mean", "a", "sentence_bert_config.json", ("24", "20")));
    let cls = id("cls", "a", "config.json", same);
    assert_ne!(cls, id("cls", "a", "config_sentence_transformers.json", ("people: ", "persons: ")));
    assert_ne!(cls, id("cls", "a", "2_Dense/config.json", ("activation.Tanh", "linear.Identity")));
}

#[test]
fn the_command_line_embeds_with_it() {
    let path = folder("e5-tiny");
    let embed = |more: &[&str]| -> Vec<f32> {
        let mut command = std::process::Command::new(binary());
        command.args(["embed", "--model", path.to_str().unwrap(), "--text", "frog"]).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.split_whitespace().map(|value| value.parse().unwrap()).collect()
    };
    let expected = expected("e5-tiny");
    let unit = |raw: &[f32]| {
        let norm = raw.iter().map(|value| value * value).sum::<f32>().sqrt();
        raw.iter().map(|value| value / norm).collect::<Vec<f32>>()
    };
    assert_eq!(expected.texts[1], "frog");
    near(&embed(&[]), &unit(&expected.query.batch_1[1]), 1e-4);
    near(&embed(&["--passages"]), &unit(&expected.passage.batch_1[1]), 1e-4);
}

/// Needs `REPRISE_TEXT_MODEL`: the folder of, for example, all-MiniLM-L6-v2.
#[test]
fn a_real_model_puts_paraphrases_together() {
    let Some(path) = std::env::var_os("REPRISE_TEXT_MODEL").filter(|path| !path.is_empty()) else {
        return skip_optional("REPRISE_TEXT_MODEL is not set");
    };
    let mut model = loaded(Path::new(&path)).unwrap();
    let tokenizer = model.tokenizer.clone().unwrap();
    let sentences = [
        query(&tokenizer, "How can I make my model learn faster?"),
        passage(&tokenizer, "These tricks speed up the training of a neural network."),
        passage(&tokenizer, "The cat slept on the warm windowsill all afternoon."),
    ];
    let vectors = model.encoders[0].encode(&sentences.map(input)).unwrap();
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let cosine = |a: &[f32], b: &[f32]| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    let (same, other) = (cosine(&vectors[0], &vectors[1]), cosine(&vectors[0], &vectors[2]));
    assert!(same > other + 0.1, "{same} against {other}");
}
