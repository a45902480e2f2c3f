//! `builtin:tiny`: a small CLIP generated from a seed, for trials without a download. It is untrained.

mod known;
mod weights;

use std::path::PathBuf;

use crate::TrainedOn;
use crate::device::Placement;
use crate::families::clip;
use crate::families::family::{Family, KnownModel, Model, Verdict};
use crate::hub::Repository;
use crate::loading::{LoadError, LoadOptions, ModelFiles, PretrainedFiles, Weights};

/// The untrained built-in model; its spaces are CLIP's.
pub(crate) struct Tiny;

impl Family for Tiny {
    fn name(&self) -> &'static str {
        clip::ID.name
    }

    fn version(&self) -> u32 {
        clip::ID.version
    }

    fn known(&self) -> &'static [KnownModel] {
        known::KNOWN
    }

    fn reads(&self, model: &ModelFiles) -> Verdict {
        if model.built_in() == Some("tiny") { Verdict::Yes } else { Verdict::No }
    }

    fn download(&self, _: &Repository) -> Result<(), LoadError> {
        Ok(())
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        clip::load(model.name(), files(on)?, TrainedOn::Nothing, options)
    }
}

const TOKENIZER: &str = include_str!("tokenizer.json");
const PREPROCESSOR: &str = r#"{"size": {"shortest_edge": 64}, "crop_size": {"height": 64, "width": 64}}"#;

/// The model's files, in the form in which a folder is read.
pub(crate) fn files(placement: &Placement) -> Result<PretrainedFiles, LoadError> {
    let folder = PathBuf::from("builtin:tiny");
    let json = |value: serde_json::Result<serde_json::Value>| {
        let json = value.map(|mut value| {
            value["model_type"] = "clip".into();
            value.to_string().into_bytes()
        });
        json.map_err(|error| LoadError::BadFile { path: folder.join("config.json"), why: error.into() })
    };
    Ok(PretrainedFiles {
        config: json(serde_json::to_value(weights::config()))?,
        preprocessor: PREPROCESSOR.into(),
        tokenizer: TOKENIZER.into(),
        weights: Weights::from_values(weights::make())?.placed(placement),
        folder,
    })
}
