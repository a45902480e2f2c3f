//! A model folder in Hugging Face's layout.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Files, LoadError};
use crate::weights::Weights;

/// The weights in one file.
pub(super) const WEIGHTS: &str = "model.safetensors";
/// Which of several files holds which tensor.
pub(super) const INDEX: &str = "model.safetensors.index.json";
/// What transformers called a whole model before it wrote safetensors, and its index.
pub(super) const PICKLED: &str = "pytorch_model.bin";
pub(super) const PICKLED_INDEX: &str = "pytorch_model.bin.index.json";

/// Reads the folder; `model` is its name in messages.
///
/// # Errors
/// [`LoadError::MissingFile`] or [`LoadError::BadFile`].
pub(super) fn read(folder: &Path, model: &str) -> Result<Files, LoadError> {
    let file = |name: &str| read_file(folder, model, name);
    Ok(Files {
        config: file("config.json")?,
        preprocessor: file("preprocessor_config.json")?,
        tokenizer: file("tokenizer.json")?,
        weights: Weights::read(&weight_files(folder, "model", model)?)?,
        folder: folder.to_owned(),
    })
}

/// # Errors
/// [`LoadError::MissingFile`] or [`LoadError::BadFile`].
pub(super) fn read_file(folder: &Path, model: &str, name: &str) -> Result<Vec<u8>, LoadError> {
    let path = folder.join(name);
    std::fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            LoadError::MissingFile { model: model.to_owned(), file: name.to_owned() }
        }
        _ => LoadError::BadFile { path, why: error.to_string() },
    })
}

/// The files that hold the weights `stem`: safetensors, whole or in parts, else a PyTorch checkpoint.
///
/// # Errors
/// [`LoadError::MissingFile`] where there are none or a part is missing.
pub(super) fn weight_files(folder: &Path, stem: &str, model: &str) -> Result<Vec<PathBuf>, LoadError> {
    let Some(found) = candidates(folder, stem).into_iter().next() else {
        let other = ["tf_model.h5", "flax_model.msgpack"];
        let wanted = format!("{stem}.safetensors");
        let file = match other.into_iter().find(|file| folder.join(file).is_file()) {
            Some(other) => format!("{wanted} (only {other}: convert it to safetensors)"),
            None => wanted,
        };
        return Err(LoadError::MissingFile { model: model.to_owned(), file });
    };
    let Some(index) = found.strip_suffix(PARTS).map(|_| &found) else { return Ok(vec![folder.join(found)]) };
    let names = shards(&read_file(folder, model, index)?, &folder.join(index))?;
    let missing = names.iter().find(|name| !folder.join(name).is_file());
    match missing {
        Some(name) => Err(LoadError::MissingFile { model: model.to_owned(), file: name.clone() }),
        None => Ok(names.iter().map(|name| folder.join(name)).collect()),
    }
}

const PARTS: &str = ".index.json";

/// The files of this stem that weights can be read from, the preferred first.
pub(super) fn candidates(folder: &Path, stem: &str) -> Vec<String> {
    let endings = [".safetensors", ".safetensors.index.json", ".pth", ".pt", ".ckpt"];
    let names = endings.map(|ending| format!("{stem}{ending}")).into_iter();
    let names = names.chain([format!("pytorch_{stem}.bin"), format!("pytorch_{stem}.bin.index.json")]);
    names.filter(|name| folder.join(name).is_file()).collect()
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The files that an index names, each once. A name that leaves the folder is refused.
pub(super) fn shards(index: &[u8], path: &Path) -> Result<Vec<String>, LoadError> {
    let bad = |why: String| LoadError::BadFile { path: path.to_owned(), why };
    let index: Index = serde_json::from_slice(index).map_err(|error| bad(error.to_string()))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    match names.iter().find(|name| Path::new(name).components().count() != 1 || name.starts_with('.')) {
        Some(name) => Err(bad(format!("it names the file {name:?}"))),
        None if names.is_empty() => Err(bad("it names no file".to_owned())),
        None => Ok(names.into_iter().collect()),
    }
}
