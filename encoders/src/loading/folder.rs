//! The files of a model folder: which of them hold the weights, and how they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::LoadError;
use crate::Cause;

/// The weights' name without its ending.
pub(crate) const STEM: &str = "model";
/// The weights in one file.
pub(crate) const WEIGHTS: &str = "model.safetensors";
pub(crate) const TOKENIZER: &str = "tokenizer.json";
/// What newer versions of transformers write instead of preprocessor_config.json.
pub(crate) const PROCESSOR: &str = "processor_config.json";

#[derive(Deserialize)]
struct Processor {
    image_processor: serde_json::Value,
}

/// The contents of preprocessor_config.json, or of that part of its newer form.
///
/// # Errors
/// [`LoadError::MissingFile`] or [`LoadError::BadFile`].
pub(crate) fn preprocessor(folder: &Path, model: &str) -> Result<Vec<u8>, LoadError> {
    let own = read_file(folder, model, "preprocessor_config.json");
    let Err(LoadError::MissingFile { .. }) = own else { return own };
    let Ok(bytes) = std::fs::read(folder.join(PROCESSOR)) else { return own };
    match serde_json::from_slice::<Processor>(&bytes) {
        Ok(processor) => Ok(processor.image_processor.to_string().into_bytes()),
        Err(_) => own,
    }
}

/// # Errors
/// [`LoadError::MissingFile`] or [`LoadError::BadFile`].
pub(crate) fn read_file(folder: &Path, model: &str, name: &str) -> Result<Vec<u8>, LoadError> {
    let path = folder.join(name);
    std::fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            LoadError::MissingFile { model: model.to_owned(), file: name.to_owned() }
        }
        _ => LoadError::BadFile { path, why: error.into() },
    })
}

/// The files that hold the weights `stem`: safetensors, whole or in parts, else a PyTorch checkpoint.
///
/// # Errors
/// [`LoadError::MissingFile`] where there are none or a part is missing, [`LoadError::BadFile`] where it is not known
/// which are meant.
pub(crate) fn weight_files(folder: &Path, stem: &str, model: &str) -> Result<Vec<PathBuf>, LoadError> {
    let found = candidates(folder, stem);
    check_checkpoint(folder, &found)?;
    let Some(found) = found.into_iter().next() else {
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

/// What authors write is often put beside weights that a model was published with, and is another model then.
fn check_checkpoint(folder: &Path, found: &[String]) -> Result<(), LoadError> {
    let is_checkpoint = |name: &&String| CHECKPOINTS.iter().any(|ending| name.ends_with(ending));
    let Some(checkpoint) = found.iter().find(is_checkpoint) else { return Ok(()) };
    match found.iter().find(|name| *name != checkpoint) {
        Some(other) => Err(LoadError::BadFile {
            path: folder.join(checkpoint),
            why: format!("{other} lies beside it, and one model has one of them; take away the other").into(),
        }),
        None => Ok(()),
    }
}

/// How the name of a list of parts ends: which of several files holds which tensor.
pub(crate) const PARTS: &str = ".index.json";

/// The names that weights of this stem are published by, the preferred first: whole or in parts, by those programs that
/// wrote PyTorch's own format before too.
pub(crate) fn published(stem: &str) -> [String; 4] {
    let (safe, pickled) =
        (format!("{stem}.safetensors"), format!("{}.bin", stem.replace(STEM, "pytorch_model")));
    let (safe_parts, pickled_parts) = (format!("{safe}{PARTS}"), format!("{pickled}{PARTS}"));
    [safe, safe_parts, pickled, pickled_parts]
}

/// How authors' own checkpoints end.
const CHECKPOINTS: [&str; 3] = [".pth", ".pt", ".ckpt"];

/// The files of this stem that weights can be read from, the preferred first.
pub(crate) fn candidates(folder: &Path, stem: &str) -> Vec<String> {
    let [safe, safe_parts, pickled, pickled_parts] = published(stem);
    let checkpoints = CHECKPOINTS.map(|ending| format!("{stem}{ending}"));
    let names = [safe, safe_parts].into_iter().chain(checkpoints).chain([pickled, pickled_parts]);
    names.filter(|name| folder.join(name).is_file()).collect()
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The files that an index names, each once. A name that leaves the folder is refused.
pub(crate) fn shards(index: &[u8], path: &Path) -> Result<Vec<String>, LoadError> {
    let bad = |why: Cause| LoadError::BadFile { path: path.to_owned(), why };
    let index: Index = serde_json::from_slice(index).map_err(|error| bad(error.into()))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    match names.iter().find(|name| Path::new(name).components().count() != 1 || name.starts_with('.')) {
        Some(name) => Err(bad(format!("it names the file {name:?}").into())),
        None if names.is_empty() => Err(bad("it names no file".into())),
        None => Ok(names.into_iter().collect()),
    }
}
