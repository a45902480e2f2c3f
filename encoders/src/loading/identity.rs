//! The identity of a space: a hash of everything that affects its vectors.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::error::LoadError;
use super::folder;
use super::model_files::PretrainedFiles;
use super::name::ModelName;
use super::weights::Weights;
use crate::device::{Placement, Precision};
use crate::text::clean::Cleaning;

/// A model family, as it enters the space's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FamilyId {
    /// Its name, e.g. `clip`.
    pub(crate) name: &'static str,
    /// Raised when the same weights and input give other vectors; the space's id changes with it.
    pub(crate) version: u32,
}

/// Id and name of a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpaceName {
    /// 64 hex digits.
    pub(crate) id: String,
    /// The model's short name and the first six digits of the id.
    pub(crate) readable: String,
}

/// Adds the cleaning of texts to the values outside the files. Spaces without one keep the ids of earlier versions.
pub(crate) fn add_cleaning(rest: &mut Value, cleaning: Cleaning) {
    if let (true, Some(all)) = (cleaning != Cleaning::None, rest.as_object_mut()) {
        all.insert("cleaning".to_owned(), cleaning.name().into());
    }
}

/// Digests of the files that a space depends on, in a fixed order.
pub(crate) struct Identity {
    parts: Vec<[u8; 32]>,
    /// Device and precision; another precision gives other vectors.
    placement: Placement,
}

impl Identity {
    /// The identity of a model in Hugging Face's layout: weights and tokenizer.
    pub(crate) fn of(files: &PretrainedFiles) -> Identity {
        let mut identity = Identity::new(files.weights.placement());
        identity.parts.push(*files.weights.digest());
        identity.add(&files.tokenizer);
        identity
    }

    /// An empty identity, for families that add their files one by one.
    pub(crate) fn new(placement: &Placement) -> Identity {
        Identity { parts: Vec::new(), placement: placement.clone() }
    }

    /// The precision of the model's matrix products.
    pub(crate) fn precision(&self) -> Precision {
        self.placement.precision()
    }

    /// Reads the weights `stem` in `folder` and adds their digest.
    ///
    /// # Errors
    /// If the weights are missing or unreadable.
    pub(crate) fn weights(
        &mut self,
        folder: &Path,
        stem: &str,
        name: &ModelName,
    ) -> Result<Weights, LoadError> {
        self.weights_of(&folder::weight_files(folder, stem, &name.to_string())?)
    }

    /// Reads the weights in `files` and adds their digest.
    ///
    /// # Errors
    /// If they are unreadable.
    pub(crate) fn weights_of(&mut self, files: &[PathBuf]) -> Result<Weights, LoadError> {
        let weights = Weights::read(files)?;
        self.parts.push(*weights.digest());
        Ok(weights.placed(&self.placement))
    }

    /// Adds the digest of a file's contents.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.parts.push(Sha256::digest(bytes).into());
    }

    /// The id and readable name of the model's space. `rest` holds the values outside the files: family, preprocessing,
    /// sampler, pooling.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(cleaning: Cleaning, expected: Value) {
        let mut rest = json!({"family": "clip"});
        add_cleaning(&mut rest, cleaning);
        assert_eq!(rest, expected);
    }

    #[test]
    fn a_space_names_the_cleaning_of_its_texts_if_there_is_one() {
        check(Cleaning::None, json!({"family": "clip"}));
        check(Cleaning::Ftfy, json!({"family": "clip", "cleaning": Cleaning::Ftfy.name()}));
    }
}
