//! The fixtures' files.

use std::collections::HashMap;
use std::path::PathBuf;

use candle_core::{Device, Tensor};
use serde_json::Value;

use super::super::config::Config;
use super::super::grid::{Grid, Visual, VisualKind};
use super::super::model::{QwenVl, renamed};
use super::super::prompt::PromptTokenizer;
use crate::loading::Weights;

/// The three models.
pub(super) const NAMES: [&str; 3] = ["qwen2-vl", "qwen2-5-vl", "qwen3-vl"];

/// Largest accepted difference of values.
pub(super) const TOLERANCE: f32 = 1e-4;

/// The fixtures' folder; `None` after saying so.
pub(super) fn folder() -> Option<PathBuf> {
    let beside = || Some(PathBuf::from(std::env::var_os("REPRISE_TEST_DATA")?).join("../words"));
    let folder = std::env::var_os("REPRISE_TEST_WORDS").map(PathBuf::from).or_else(beside);
    let folder = folder.map(|folder| folder.join("fixtures")).filter(|folder| folder.is_dir());
    if folder.is_none() {
        assert!(std::env::var_os("REPRISE_REQUIRE_DATA").is_none(), "there are no fixtures of words");
        println!("skipped: REPRISE_TEST_WORDS names no folder with fixtures");
    }
    folder
}

/// One model's files.
pub(super) struct Fixture {
    pub(super) name: &'static str,
    pub(super) folder: PathBuf,
    pub(super) expected: Value,
    tensors: HashMap<String, Tensor>,
}

/// Calls `check` with each model's files.
pub(super) fn each(check: impl Fn(&Fixture)) {
    let Some(folder) = folder() else { return };
    for name in NAMES {
        let folder = folder.join(name);
        let expected = std::fs::read(folder.join("expected.json")).unwrap();
        let tensors = folder.join("expected.safetensors");
        check(&Fixture {
            name,
            expected: serde_json::from_slice(&expected).unwrap(),
            tensors: candle_core::safetensors::load(tensors, &Device::Cpu).unwrap(),
            folder,
        });
    }
}

impl Fixture {
    pub(super) fn config(&self) -> Config {
        Config::parse(&std::fs::read(self.folder.join("config.json")).unwrap()).unwrap()
    }

    pub(super) fn weights(&self) -> Weights {
        renamed(Weights::read(&[self.folder.join("model.safetensors")]).unwrap())
    }

    pub(super) fn model(&self) -> QwenVl {
        QwenVl::load(self.config(), &self.weights()).unwrap()
    }

    pub(super) fn tokenizer(&self) -> PromptTokenizer {
        let json = std::fs::read(self.folder.join("tokenizer.json")).unwrap();
        PromptTokenizer::from_json(&json, &self.config()).unwrap()
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// Names of tensors that end with `ending`, without it.
    pub(super) fn names(&self, ending: &str) -> Vec<String> {
        let names = self.tensors.keys().filter_map(|name| name.strip_suffix(ending));
        names.map(str::to_owned).collect()
    }

    /// The cases by name.
    pub(super) fn cases(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.expected["cases"].as_object().unwrap().iter().map(|(name, case)| (&name[..], case))
    }

    /// The picture or video `media` by its stored patches. `step`: seconds of a temporal patch.
    pub(super) fn visual(&self, media: &str, grid: &Value, step: f64) -> Visual {
        let grid = grid_of(grid);
        let kind = match media {
            "wide" | "tiny" => VisualKind::Picture,
            _ => VisualKind::Video,
        };
        let patches = self.tensor(&format!("{media}.patches")).unwrap();
        let patches = patches.flatten_all().unwrap().to_vec1().unwrap();
        Visual { kind, grid, patches, times: times(media), step }
    }
}

pub(super) fn grid_of(json: &Value) -> Grid {
    let at = |at: usize| json[at].as_u64().unwrap() as usize;
    Grid { frames: at(0), rows: at(1), columns: at(2) }
}

/// Seconds of the frames of a medium, two a temporal patch, by the indices and rates of the reference's table.
fn times(media: &str) -> Vec<f64> {
    let (indices, fps): (&[usize], f64) = match media {
        "three" => (&[0, 37, 74, 74], 25.0),
        "four" => (&[0, 66, 133, 199], 25.0),
        "long" => (&[0, 23, 45, 68, 91, 113, 136, 158, 181, 204, 226, 249], 29.97),
        _ => (&[], 1.0),
    };
    indices.iter().map(|index| *index as f64 / fps).collect()
}

/// The largest difference of two tensors of one shape.
#[track_caller]
pub(super) fn difference(got: &Tensor, expected: &Tensor) -> f32 {
    assert_eq!(got.dims(), expected.dims());
    let values = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    values(got).iter().zip(values(expected)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Fails for a difference over [`TOLERANCE`], and says the difference.
#[track_caller]
pub(super) fn check(what: &str, got: &Tensor, expected: &Tensor) {
    let largest = difference(got, expected);
    eprintln!("{what}: {largest:.1e}");
    assert!(largest <= TOLERANCE, "{what} differs by {largest}");
}
