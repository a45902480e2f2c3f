//! What makes two spaces two: everything that decides which vectors come out, hashed.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::error::LoadError;
use super::folder;
use super::model_files::PretrainedFiles;
use super::name::ModelName;
use super::weights::Weights;
use crate::device::{Placement, Precision};

/// A model family in the description of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FamilyId {
    /// Its name, e.g. `clip`.
    pub(crate) name: &'static str,
    /// Raised when the same weights and input give other vectors, so that they become another space.
    pub(crate) version: u32,
}

/// How a space is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpaceName {
    /// 64 hex digits.
    pub(crate) id: String,
    /// The model's short name and the first six digits of the id.
    pub(crate) readable: String,
}

/// Digests of the files that a space hangs on, in a fixed order.
pub(crate) struct Identity {
    parts: Vec<[u8; 32]>,
    /// Where and how the model runs; other numbers give other vectors.
    placement: Placement,
}

impl Identity {
    /// Of a model in Hugging Face's layout: its weights and its tokenizer.
    pub(crate) fn of(files: &PretrainedFiles) -> Identity {
        let mut identity = Identity::new(files.weights.placement());
        identity.parts.push(*files.weights.digest());
        identity.add(&files.tokenizer);
        identity
    }

    /// Of a model whose files are taken in one by one.
    pub(crate) fn new(placement: &Placement) -> Identity {
        Identity { parts: Vec::new(), placement: placement.clone() }
    }

    /// In which numbers the model multiplies.
    pub(crate) fn precision(&self) -> Precision {
        self.placement.precision()
    }

    /// Reads the weights called `stem` in `folder` and takes them in.
    ///
    /// # Errors
    /// If they are missing or can't be read.
    pub(crate) fn weights(
        &mut self,
        folder: &Path,
        stem: &str,
        name: &ModelName,
    ) -> Result<Weights, LoadError> {
        self.weights_of(&folder::weight_files(folder, stem, &name.to_string())?)
    }

    /// Reads the weights that lie in `files` and takes them in.
    ///
    /// # Errors
    /// If they can't be read.
    pub(crate) fn weights_of(&mut self, files: &[PathBuf]) -> Result<Weights, LoadError> {
        let weights = Weights::read(files)?;
        self.parts.push(*weights.digest());
        Ok(weights.placed(&self.placement))
    }

    /// Takes in a file.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.parts.push(Sha256::digest(bytes).into());
    }

    /// The id and readable name of the model's space. `rest` holds what no file says: family, preprocessing, sampler,
    /// pooling.
    pub(crate) fn space(&self, name: &ModelName, rest: &Value) -> SpaceName {
        let mut hasher = Sha256::new();
        self.parts.iter().for_each(|part| hasher.update(part));
        hasher.update(rest.to_string());
        if self.precision() != Precision::F32 {
            hasher.update(format!("{:?}", self.precision()));
        }
        let id: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let readable = format!("{}-{}", name.short(), &id[..6]);
        SpaceName { id, readable }
    }
}
