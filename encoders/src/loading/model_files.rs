//! A model's files: classification and reading.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::LoadError;
use super::folder;
use super::name::{ModelName, Source};
use super::weights::Weights;
use crate::Cause;
use crate::device::Placement;

/// File name of a model's configuration.
pub(crate) const CONFIG: &str = "config.json";

/// A model whose weights are not read yet: its name, folder and config.json.
#[derive(Debug, Clone)]
pub struct ModelFiles {
    name: ModelName,
    /// The model's folder or single file; for messages, a built-in model's name.
    path: PathBuf,
    config: Option<ConfigFile>,
}

/// The contents of a config.json, and its fields that identify the family.
#[derive(Debug, Clone)]
struct ConfigFile {
    bytes: Vec<u8>,
    kind: ModelKind,
}

/// The fields that the config.json files of all families share.
#[derive(Debug, Clone, Deserialize)]
struct ModelKind {
    #[serde(default)]
    model_type: String,
    /// Class names of transformers, if any.
    #[serde(default)]
    architectures: Value,
}

impl ModelFiles {
    /// The files of a model that needs no download.
    ///
    /// # Errors
    /// [`LoadError::BadFile`] for a config.json that can't be read.
    pub(crate) fn local(name: &ModelName) -> Result<Self, LoadError> {
        match name.source() {
            Source::Folder(path) => ModelFiles::in_folder(name, path),
            _ => Ok(ModelFiles::without_folder(name)),
        }
    }

    /// The files in `folder`.
    ///
    /// # Errors
    /// [`LoadError::BadFile`] for a config.json that can't be read.
    pub(crate) fn in_folder(name: &ModelName, folder: &Path) -> Result<Self, LoadError> {
        let config = match folder::read_file(folder, &name.to_string(), CONFIG) {
            Ok(bytes) => Some(bytes),
            Err(LoadError::MissingFile { .. }) => None,
            Err(error) => return Err(error),
        };
        let parsed = |bytes: Vec<u8>| match serde_json::from_slice(&bytes) {
            Ok(kind) => Ok(ConfigFile { bytes, kind }),
            Err(error) => Err(LoadError::BadFile { path: folder.join(CONFIG), why: error.into() }),
        };
        let config = config.map(parsed).transpose()?;
        Ok(ModelFiles { name: name.clone(), path: folder.to_owned(), config })
    }

    fn without_folder(name: &ModelName) -> Self {
        let path = name.path().map_or_else(|| PathBuf::from(name.to_string()), Path::to_owned);
        ModelFiles { name: name.clone(), path, config: None }
    }

    /// The same folder without its config.json. Used if no family reads the config.json.
    pub(crate) fn without_config(&self) -> Self {
        ModelFiles { config: None, ..self.clone() }
    }

    /// The model as the user named it.
    pub fn name(&self) -> &ModelName {
        &self.name
    }

    /// The model's folder.
    pub fn folder(&self) -> &Path {
        &self.path
    }

    /// The name of a built-in model, without `builtin:`.
    pub fn built_in(&self) -> Option<&'static str> {
        match self.name.source() {
            Source::BuiltIn(name) => Some(name),
            _ => None,
        }
    }

    /// The path of a model that is a single file.
    pub fn file(&self) -> Option<&Path> {
        match self.name.source() {
            Source::File(path) => Some(path),
            _ => None,
        }
    }

    /// Whether the folder has the file `file`.
    pub fn has(&self, file: &str) -> bool {
        self.path.join(file).is_file()
    }

    /// `model_type` of config.json; empty if the field is missing, `None` without a config.json.
    pub fn model_type(&self) -> Option<&str> {
        self.config.as_ref().map(|config| &config.kind.model_type[..])
    }

    /// `architectures` of config.json; null if the field is missing.
    pub fn architectures(&self) -> &Value {
        self.config.as_ref().map_or(&Value::Null, |config| &config.kind.architectures)
    }

    /// The contents of config.json.
    ///
    /// # Errors
    /// [`LoadError::MissingFile`].
    pub(crate) fn config_bytes(&self) -> Result<&[u8], LoadError> {
        let missing = || self.missing(CONFIG.to_owned());
        self.config.as_ref().map(|config| &config.bytes[..]).ok_or_else(missing)
    }

    /// The parsed config.json.
    ///
    /// # Errors
    /// [`LoadError::MissingFile`], [`LoadError::BadFile`].
    pub(crate) fn config<T: DeserializeOwned>(&self) -> Result<T, LoadError> {
        serde_json::from_slice(self.config_bytes()?).map_err(|error| self.bad(CONFIG, error))
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// [`LoadError::MissingFile`], [`LoadError::BadFile`].
    pub(crate) fn read(&self, file: &str) -> Result<Vec<u8>, LoadError> {
        folder::read_file(&self.path, &self.name.to_string(), file)
    }

    /// The parsed contents of a JSON file.
    ///
    /// # Errors
    /// As [`ModelFiles::read`].
    pub(crate) fn json<T: DeserializeOwned>(&self, file: &str) -> Result<T, LoadError> {
        serde_json::from_slice(&self.read(file)?).map_err(|error| self.bad(file, error))
    }

    /// A file with a fault.
    pub(crate) fn bad(&self, file: &str, why: impl Into<Cause>) -> LoadError {
        LoadError::BadFile { path: self.path.join(file), why: why.into() }
    }

    /// The error for a missing file.
    pub(crate) fn missing(&self, file: String) -> LoadError {
        LoadError::MissingFile { model: self.name.to_string(), file }
    }
}

/// The files of a picture-and-text model in Hugging Face's layout.
#[derive(Debug)]
pub(crate) struct PretrainedFiles {
    /// The folder, for messages.
    pub(crate) folder: PathBuf,
    pub(crate) config: Vec<u8>,
    pub(crate) preprocessor: Vec<u8>,
    pub(crate) tokenizer: Vec<u8>,
    pub(crate) weights: Weights,
}

impl PretrainedFiles {
    /// Reads the files; layers made of the weights run on `placement`.
    ///
    /// # Errors
    /// [`LoadError::MissingFile`] or [`LoadError::BadFile`].
    pub(crate) fn read(model: &ModelFiles, placement: &Placement) -> Result<Self, LoadError> {
        let name = model.name().to_string();
        let folder = model.folder();
        Ok(PretrainedFiles {
            config: model.config_bytes()?.to_vec(),
            preprocessor: folder::preprocessor(folder, &name)?,
            tokenizer: model.read(folder::TOKENIZER)?,
            weights: Weights::read(&folder::weight_files(folder, folder::STEM, &name)?)?.placed(placement),
            folder: folder.to_owned(),
        })
    }

    /// The parsed config.json.
    ///
    /// # Errors
    /// [`LoadError::BadFile`].
    pub(crate) fn parsed<T: DeserializeOwned>(&self) -> Result<T, LoadError> {
        serde_json::from_slice(&self.config).map_err(|error| self.bad(CONFIG, error))
    }

    /// A file with a fault.
    pub(crate) fn bad(&self, file: &str, why: impl Into<Cause>) -> LoadError {
        LoadError::BadFile { path: self.folder.join(file), why: why.into() }
    }
}
