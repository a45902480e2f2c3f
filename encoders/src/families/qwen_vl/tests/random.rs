//! Models of random shapes against the reference's vectors and texts (tests/parity/random_qwen_vl.py). Their weights are
//! made here from seeds, by the formulas of tests/parity/counted.py and unseen_qwen_vl.py.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::Path;

use candle_core::{Device, Tensor};
use serde::Deserialize;
use serde_json::Value;

use super::embedding::{load, text};
use super::fixture::{TOLERANCE, folder};
use super::pixels::picture;
use crate::generator::{Conversation, Message, Part, Role, Sampling};
use crate::registry::load_generator;
use crate::{Clip, DeviceChoice, Frame, Input, LoadOptions, Source};

/// The file of expected values.
#[derive(Deserialize)]
struct Expected {
    texts: Vec<String>,
    /// The modification text of composed queries.
    change: String,
    system: String,
    question: String,
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    seed: u64,
    config: Value,
    preprocessor: Value,
    /// Shapes by name.
    tensors: BTreeMap<String, Vec<usize>>,
    frame: Frames,
    /// Of each text; normalised, as those below.
    texts: Vec<Vec<f32>>,
    clip: Vec<f32>,
    composed: Vec<f32>,
    caption: Caption,
}

/// Pictures 0, 1, ... of a clip, one a second.
#[derive(Deserialize)]
struct Frames {
    width: u32,
    height: u32,
    count: u32,
}

/// The greedy text after the first frame and the question.
#[derive(Deserialize)]
struct Caption {
    text: String,
    /// Tokens up to the first whose choice was close.
    tokens: usize,
    /// Whether no choice was close.
    is_whole: bool,
}

/// SplitMix64's output for a state.
fn mixed(state: u64) -> u64 {
    let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// 64-bit FNV-1a.
fn named(name: &str) -> u64 {
    let step = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn weight(name: &str, shape: &[usize], seed: u64) -> Tensor {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let (start, count) = (seed.wrapping_mul(STEP).wrapping_add(named(name)), shape.iter().product::<usize>());
    let noise = |at: u64| (mixed(start.wrapping_add(at.wrapping_mul(STEP))) >> 40) as f32 / 8_388_608.0 - 1.0;
    let is_norm = name.contains("norm") && name.ends_with("weight") || name.contains("ln_q.weight");
    let value = |noise: f32| match shape.len() {
        1 => f32::from(u8::from(is_norm)) + 0.25 * noise,
        _ if name.contains("embed") && !name.contains("patch") => noise,
        _ => noise * (2.25 / (shape[1..].iter().product::<usize>() as f32).sqrt()),
    };
    let values: Vec<f32> = (1..=count as u64).map(|at| value(noise(at))).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

impl Model {
    /// A folder with the model, as an embedder or as one that writes.
    fn folder(&self, words: &Path, is_embedder: bool) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let weights: HashMap<&str, Tensor> =
            self.tensors.iter().map(|(name, shape)| (&name[..], weight(name, shape, self.seed))).collect();
        candle_core::safetensors::save(&weights, file("model.safetensors")).unwrap();
        let mut config = self.config.clone();
        if !is_embedder {
            config.as_object_mut().unwrap().remove("embedding");
        }
        std::fs::write(file("config.json"), config.to_string()).unwrap();
        std::fs::write(file("preprocessor_config.json"), self.preprocessor.to_string()).unwrap();
        std::fs::copy(words.join("qwen2-vl/tokenizer.json"), file("tokenizer.json")).unwrap();
        folder
    }

    fn frame(&self, number: u32) -> Frame {
        let frame = picture(self.frame.width, self.frame.height, number);
        Frame { time_ms: i64::from(number) * 1000, ..frame }
    }

    fn clip(&self) -> Clip {
        Clip { frames: (0..self.frame.count).map(|at| self.frame(at)).collect() }
    }

    fn check_vectors(&self, words: &Path, asked: &Expected) {
        let folder = self.folder(words, true);
        let mut model = load(folder.path()).unwrap();
        let tokenizer = model.tokenizer.clone().unwrap();
        let mut inputs: Vec<Input> = asked.texts.iter().map(|it| text(&tokenizer, it)).collect();
        let modification = tokenizer.modification(&asked.change).unwrap().windows.remove(0).tokens;
        inputs.push(Input::Frames(self.clip()));
        inputs.push(Input::Composed { query: Source::Frames(self.clip()), modification });
        let vectors = model.encoders[0].encode(&inputs).unwrap();
        let expected = self.texts.iter().chain([&self.clip, &self.composed]);
        for (got, expected) in vectors.iter().zip(expected) {
            assert_eq!(got.len(), expected.len());
            let norm = got.iter().map(|value| value * value).sum::<f32>().sqrt();
            let off = got
                .iter()
                .map(|value| value / norm)
                .zip(expected)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            assert!(off < TOLERANCE, "{} differs by {off}", self.config);
        }
    }

    fn check_text(&self, words: &Path, expected: &Expected) {
        let folder = self.folder(words, false);
        let options = LoadOptions { devices: vec![DeviceChoice::Cpu], ..LoadOptions::default() };
        let mut model = load_generator(&folder.path().to_str().unwrap().parse().unwrap(), &options).unwrap();
        let asked = vec![Part::Picture(self.frame(0)), Part::Text(expected.question.clone())];
        let messages = vec![
            Message { role: Role::System, parts: vec![Part::Text(expected.system.clone())] },
            Message { role: Role::User, parts: asked },
        ];
        let sampling = Sampling { max_tokens: self.caption.tokens.max(1), ..Sampling::default() };
        let conversation = Conversation { messages, sampling };
        let written = model.generate(&[conversation], &mut |_, _| ControlFlow::Continue(())).unwrap();
        // A letter may be cut in its bytes where the comparison ends.
        let got = written[0].text.trim_end_matches('\u{fffd}');
        match self.caption.is_whole {
            true => assert_eq!(got, self.caption.text, "{}", self.config),
            false => assert!(got.starts_with(&self.caption.text), "{}: {got}", self.config),
        }
    }
}

#[test]
fn models_of_random_shapes_are_the_references() {
    let Some(words) = folder() else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/parity/data/qwen-vl/random.json");
    let expected: Expected = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(expected.models.len(), 12);
    for model in &expected.models {
        model.check_vectors(&words, &expected);
        model.check_text(&words, &expected);
    }
}
