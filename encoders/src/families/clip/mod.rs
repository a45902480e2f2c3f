//! Loads a folder with a CLIP model in Hugging Face's layout:
//!
//! ```text
//! config.json               "model_type": "clip"
//! preprocessor_config.json
//! tokenizer.json
//! model.safetensors         or its parts, model.pt, pytorch_model.bin, ...
//! ```
//!
//! The weights may also have the names of OpenAI's code: link MetaCLIP's and Long-CLIP's released checkpoints as
//! `model.pt`. A second position table identifies Long-CLIP. Its config.json needs `"max_position_embeddings": 248`.

pub(crate) mod config;
mod known;

use config::Config;

use crate::TrainedOn;
use crate::blocks::assembly::{Parts, assemble, check_side, spread, towers};
use crate::blocks::openai_names;
use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model};
use crate::hub::Repository;
use crate::loading::{FamilyId, Identity, LoadError, LoadOptions, ModelFiles, ModelName, PretrainedFiles};
use crate::preprocess::Preprocessing;
use crate::text::Tokenizer;
use crate::text::clean::Cleaning;

/// Contrastive image and text towers.
pub(crate) const ID: FamilyId = FamilyId { name: "clip", version: 1 };

/// CLIP in Hugging Face's layout.
pub(crate) struct Clip;

impl Family for Clip {
    fn name(&self) -> &'static str {
        ID.name
    }

    fn version(&self) -> u32 {
        ID.version
    }

    fn known(&self) -> &'static [KnownModel] {
        known::KNOWN
    }

    fn model_types(&self) -> &'static [&'static str] {
        &["clip"]
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get_pretrained()
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        load(model.name(), PretrainedFiles::read(model, on)?, TrainedOn::Unstated, options)
    }
}

/// Builds a model from files in memory.
///
/// # Errors
/// [`LoadError`] for files that do not fit together.
pub(crate) fn load(
    name: &ModelName,
    files: PretrainedFiles,
    trained_on: TrainedOn,
    options: &LoadOptions,
) -> Result<Model, LoadError> {
    let config: Config = files.parsed()?;
    let (vision, text) = (config.vision()?, config.text()?);
    let preprocessing = Preprocessing::from_json(&files.preprocessor)
        .map_err(|why| files.bad("preprocessor_config.json", why))?;
    check_side(&preprocessing, &vision)?;
    // Released weights were trained on cleaned texts.
    let cleaning = if trained_on == TrainedOn::Nothing { Cleaning::None } else { Cleaning::FtfyHtml };
    let tokenizer = Tokenizer::from_json(&files.tokenizer, config.text_config.specials(), text.longest)?;
    let tokenizer = tokenizer.cleaned(cleaning);
    let identity = Identity::of(&files);
    let weights = openai_names::text(openai_names::vision(openai_names::long(files.weights)?)?)?;
    let parts = Parts {
        family: ID,
        identity,
        config: serde_json::json!(config),
        towers: towers(vision, text, &weights)?,
        tokenizer,
        foreign_token: None,
        preprocessing,
        trained_on,
        sampler: spread,
    };
    Ok(Model::Embedder(assemble(name, parts, options)?))
}
