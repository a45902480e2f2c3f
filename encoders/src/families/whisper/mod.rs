//! Whisper (arXiv 2212.04356), which writes down speech, in Hugging Face's layout; Distil-Whisper (2311.00430) too:
//!
//! ```text
//! config.json                "model_type": "whisper"
//! generation_config.json     suppressed tokens, heads whose attention follows the words
//! preprocessor_config.json   bands of the spectrogram
//! tokenizer.json
//! model.safetensors          or its parts
//! ```

mod attempt;
mod choice;
mod config;
mod decoder;
mod encoder;
mod known;
mod load;
mod mel;
mod rules;
mod segments;
mod tokens;
mod transcriber;
mod words;

#[cfg(test)]
mod tests;

use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model};
use crate::hub::Repository;
use crate::loading::{FamilyId, LoadError, LoadOptions, ModelFiles, folder};
use crate::transcriber::Transcriber;

const ID: FamilyId = FamilyId { name: "whisper", version: 1 };

/// Whisper, as a transcriber.
pub(crate) struct Whisper;

impl Family for Whisper {
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
        &["whisper"]
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get(folder::TOKENIZER)?;
        for file in [load::GENERATION, load::PREPROCESSOR] {
            hub.get_if_there(file)?;
        }
        hub.get_weights(folder::STEM)
    }

    fn load(&self, _: &ModelFiles, _: &Placement, _: &LoadOptions) -> Result<Model, LoadError> {
        let why = "this model writes down speech and makes no vectors; give it to `reprise transcribe`";
        Err(LoadError::Unsupported(why.into()))
    }

    fn load_transcriber(
        &self,
        model: &ModelFiles,
        on: &Placement,
    ) -> Result<Box<dyn Transcriber>, LoadError> {
        Ok(Box::new(load::transcriber(model, on)?))
    }
}
