//! What a family of models is to the rest of the program.

use serde::Serialize;

use crate::device::Placement;
use crate::hub::Repository;
use crate::loading::{Embedder, LoadError, LoadOptions, ModelFiles};

/// A kind of model: which files it reads, and what it makes of them.
pub trait Family: Send + Sync {
    /// Its name in a space's description.
    fn name(&self) -> &'static str;

    /// Raised whenever the family's code gives other vectors for the same weights and input, so that they become
    /// another space.
    fn version(&self) -> u32;

    /// Its entries in the list of models to choose from.
    fn known(&self) -> &'static [KnownModel] {
        &[]
    }

    /// The values of `model_type` in config.json that it reads.
    fn model_types(&self) -> &'static [&'static str] {
        &[]
    }

    /// A file beside or instead of config.json by which it tells its models.
    fn mark(&self) -> Option<&'static str> {
        None
    }

    /// Whether it reads this model, from file names and configurations alone.
    ///
    /// The registry asks twice: the second time without the config.json, which may be another program's.
    fn reads(&self, model: &ModelFiles) -> Verdict {
        match model.model_type() {
            Some(kind) if self.model_types().contains(&kind) => Verdict::Yes,
            _ => Verdict::No,
        }
    }

    /// The repository of the hub whose tokenizer.json all models of this family can use.
    fn tokenizer_source(&self) -> Option<&'static str> {
        None
    }

    /// Downloads what [`Family::load`] reads. The configurations are there already.
    ///
    /// # Errors
    /// [`LoadError`] for files that can't be had, [`LoadError::Unsupported`] for families that are loaded from folders
    /// alone.
    fn download(&self, hub: &Repository) -> Result<(), LoadError>;

    /// Loads the model onto one device.
    ///
    /// # Errors
    /// [`LoadError`] for files that are missing, can't be read, don't belong together or ask for what is not supported.
    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError>;
}

/// Whether a family reads a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It does not know it.
    No,
    /// It does.
    Yes,
    /// It knows the model and can't load it, for this reason.
    Refused(String),
}

/// A loaded model, by what it does.
pub enum Model {
    /// Turns inputs into vectors.
    Embedder(Embedder),
}

/// One entry of `reprise models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownModel {
    /// What to pass as the model; `FOLDER` and `ORG/NAME` stand for the user's own.
    pub name: &'static str,
    /// The family that reads it.
    pub family: &'static str,
    /// What it encodes.
    pub modality: &'static str,
    /// Values per vector, or which field says it.
    pub dimension: &'static str,
    /// Longest text in tokens, or which field says it.
    pub text_tokens: &'static str,
    /// Of the weights that are published for it; the user's own may have another.
    pub licence: &'static str,
    /// The paper, and weights that have this layout.
    pub source: &'static str,
    /// What its vectors were compared with; `unverified`: a module of ours, written from the released code. Of
    /// released weights only all-MiniLM-L6-v2's were tried.
    pub verified: &'static str,
    /// What else to know.
    pub note: &'static str,
}

/// What models that transformers has were compared with.
pub(crate) const TRANSFORMERS: &str = "transformers, on small seeded models (docs/encoders.md)";
