//! The interface of a model family to the rest of the program.

use serde::Serialize;

use crate::device::Placement;
use crate::generator::Generator;
use crate::hub::Repository;
use crate::loading::{Embedder, LoadError, LoadOptions, ModelFiles};
use crate::transcriber::Transcriber;

/// A model family: recognises, downloads and loads its models.
pub trait Family: Send + Sync {
    /// The family's name in a space's description.
    fn name(&self) -> &'static str;

    /// Raised when the same weights and input give other vectors; the space's id changes with it.
    fn version(&self) -> u32;

    /// The family's entries in the list of models to choose from.
    fn known(&self) -> &'static [KnownModel] {
        &[]
    }

    /// The values of `model_type` in config.json that the family reads.
    fn model_types(&self) -> &'static [&'static str] {
        &[]
    }

    /// A file, beside or instead of config.json, that identifies the family's models.
    fn mark(&self) -> Option<&'static str> {
        None
    }

    /// Whether the family reads this model; decides from file names and configurations alone.
    ///
    /// The registry asks twice: the second time without config.json, which may belong to another program.
    fn reads(&self, model: &ModelFiles) -> Verdict {
        match model.model_type() {
            Some(kind) if self.model_types().contains(&kind) => Verdict::Yes,
            _ => Verdict::No,
        }
    }

    /// A hub repository whose tokenizer.json fits all models of this family.
    fn tokenizer_source(&self) -> Option<&'static str> {
        None
    }

    /// Downloads the files that [`Family::load`] reads. The configurations are already present.
    ///
    /// # Errors
    /// [`LoadError`] for files that can't be downloaded, [`LoadError::Unsupported`] for families that load from folders
    /// only.
    fn download(&self, hub: &Repository) -> Result<(), LoadError>;

    /// Loads the model onto one device.
    ///
    /// # Errors
    /// [`LoadError`] for files that are missing, unreadable, inconsistent or with unsupported settings.
    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError>;

    /// Loads the model onto one device to write texts.
    ///
    /// # Errors
    /// [`LoadError::Unsupported`] for families that write none, and as [`Family::load`].
    fn load_generator(&self, model: &ModelFiles, on: &Placement) -> Result<Box<dyn Generator>, LoadError> {
        let _ = (model, on);
        let why =
            format!("models of family {} write no texts; Qwen2-VL, Qwen2.5-VL and Qwen3-VL do", self.name());
        Err(LoadError::Unsupported(why.into()))
    }

    /// Loads the model onto one device to write down speech.
    ///
    /// # Errors
    /// [`LoadError::Unsupported`] for families that do not hear, and as [`Family::load`].
    fn load_transcriber(
        &self,
        model: &ModelFiles,
        on: &Placement,
    ) -> Result<Box<dyn Transcriber>, LoadError> {
        let _ = (model, on);
        let why = format!("models of family {} write down no speech; Whisper does", self.name());
        Err(LoadError::Unsupported(why.into()))
    }
}

/// Whether a family reads a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The family does not know the model.
    No,
    /// The family reads the model.
    Yes,
    /// The family knows the model but can't load it, for this reason.
    Refused(String),
}

/// A loaded model, by its purpose.
pub enum Model {
    /// Turns inputs into vectors.
    Embedder(Embedder),
}

/// One entry of `reprise models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownModel {
    /// The value for the model option; `FOLDER` and `ORG/NAME` are placeholders.
    pub name: &'static str,
    /// The family that reads the model.
    pub family: &'static str,
    /// The kinds of input, e.g. `text, frames`.
    pub modality: &'static str,
    /// Values per vector, or the configuration field with them.
    pub dimension: &'static str,
    /// Longest text in tokens, or the configuration field with it.
    pub text_tokens: &'static str,
    /// Licence of the published weights; the user's own may have another.
    pub licence: &'static str,
    /// The paper, and published weights in this layout.
    pub source: &'static str,
    /// The reference for its vectors. Only all-MiniLM-L6-v2 was compared with its released weights.
    pub verified: &'static str,
    /// Further remarks.
    pub note: &'static str,
    /// Models by name that it stands for; there may be others.
    pub published: &'static [PublishedModel],
}

/// A model that can be loaded by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PublishedModel {
    /// The value for the model option.
    pub model: &'static str,
    /// SPDX id of the licence of its weights; `None` if it is not known for certain.
    pub licence: Option<&'static str>,
    /// Size of its weights in bytes, about: that of their files, or their number times the bytes of one. `None` if neither is
    /// known for certain.
    pub bytes: Option<u64>,
    /// Its use, in words.
    pub purpose: &'static str,
}

/// The use of models that compare pictures with texts.
pub(crate) const SEES: &str = "finds moments by a text or a clip";

/// The reference for models that transformers has.
pub(crate) const TRANSFORMERS: &str = "transformers, on small seeded models (docs/encoders.md)";
