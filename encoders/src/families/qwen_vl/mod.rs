//! Qwen2-VL (arXiv 2409.12191), Qwen2.5-VL (2502.13923) and Qwen3-VL (2511.21631), and embedders trained from them:
//!
//! ```text
//! config.json                     "model_type": "qwen2_vl", "qwen2_5_vl" or "qwen3_vl"
//! preprocessor_config.json
//! video_preprocessor_config.json  Qwen3-VL's bounds of videos; newer folders have processor_config.json for both
//! tokenizer.json
//! chat_template.jinja             or chat_template.json, tokenizer_config.json; without one, ChatML
//! generation_config.json          ids that end a text
//! model.safetensors               or its parts
//! ```
//!
//! A key of ours in config.json says how a model was trained for vectors, where its name and files do not:
//!
//! ```text
//! "embedding": {"kind": "gme"}
//! ```
//!
//! `prompts.json` gives other prompts than the released ones (see `instructions`).

mod attention;
mod cache;
mod config;
mod conversation;
mod decoder;
mod embedding;
mod encoder;
mod grid;
mod instructions;
mod known;
mod layers;
mod load;
mod merger;
mod model;
mod patches;
mod positions;
mod prompt;
mod rotary;
mod sampling;
mod template;
mod tower;
mod tower_positions;
mod windows;
mod writer;

#[cfg(test)]
mod tests;

use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model};
use crate::generator::Generator;
use crate::hub::Repository;
use crate::loading::{FamilyId, LoadError, LoadOptions, ModelFiles, folder};

/// Decoders that read pictures and videos.
const ID: FamilyId = FamilyId { name: "qwen-vl", version: 1 };

/// Qwen-VL, as embedder and generator.
pub(crate) struct QwenVlFamily;

impl Family for QwenVlFamily {
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
        &["qwen2_vl", "qwen2_5_vl", "qwen3_vl"]
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get_preprocessor()?;
        hub.get(folder::TOKENIZER)?;
        let optional = [load::VIDEO_PREPROCESSOR, load::GENERATION].into_iter();
        let marks = embedding::GME_FILES.into_iter().chain(embedding::QWEN3_FILES);
        for file in optional.chain(template::FILES).chain(marks) {
            hub.get_if_there(file)?;
        }
        hub.get_weights(folder::STEM)
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        Ok(Model::Embedder(load::embedder(model, on, options)?))
    }

    fn load_generator(&self, model: &ModelFiles, on: &Placement) -> Result<Box<dyn Generator>, LoadError> {
        load::generator(model, on)
    }
}
