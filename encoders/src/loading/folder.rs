//! The files of a model folder: finds the weights and reads small files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::LoadError;
use crate::Cause;

/// File name of the weights without its ending.
pub(crate) const STEM: &str = "model";
/// File name of weights in one file.
pub(crate) const WEIGHTS: &str = "model.safetensors";
pub(crate) const TOKENIZER: &str = "tokenizer.json";
/// Newer versions of transformers write this file instead of preprocessor_config.json.
pub(crate) const PROCESSOR: &str = "processor_config.json";

#[derive(Deserialize)]
struct Processor {
    image_processor: Option<serde_json::Value>,
    video_processor: Option<serde_json::Value>,
}

/// The contents of preprocessor_config.json, or the matching part of processor_config.json.
///
/// # Errors
/// [`LoadError::MissingFile`] or [`LoadError::BadFile`].
pub(crate) fn preprocessor(folder: &Path, model: &str) -> Result<Vec<u8>, LoadError> {
    file_or_part(folder, model, "preprocessor_config.json", |processor| processor.image_processor)
}

/// The contents of video_preprocessor_config.json, or the matching part of processor_config.json.
///
/// # Errors
/// As [`preprocessor`].
pub(crate) fn video_preprocessor(folder: &Path, model: &str) -> Result<Vec<u8>, LoadError> {
    file_or_part(folder, model, "video_preprocessor_config.json", |processor| processor.video_processor)
}

fn file_or_part(
    folder: &Path,
    model: &str,
    file: &str,
    part: fn(Processor) -> Option<serde_json::Value>,
) -> Result<Vec<u8>, LoadError> {
    let own = read_file(folder, model, file);
    let Err(LoadError::MissingFile { .. }) = own else { return own };
    let Ok(bytes) = std::fs::read(folder.join(PROCESSOR)) else { return own };
    match serde_json::from_slice(&bytes).map(part) {
        Ok(Some(part)) => Ok(part.to_string().into_bytes()),
        Ok(None) => own,
        Err(error) => Err(LoadError::BadFile { path: folder.join(PROCESSOR), why: error.into() }),
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

/// The files with the weights `stem`: safetensors (one file or shards), else a PyTorch checkpoint.
///
/// # Errors
/// [`LoadError::MissingFile`] for missing weights or shards, [`LoadError::BadFile`] if the choice is ambiguous.
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

/// Refuses a checkpoint beside published weights: it often belongs to another model, so the choice would be a guess.
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

/// Suffix of a shard index, the file that maps each tensor to its shard.
pub(crate) const PARTS: &str = ".index.json";

/// File names of published weights with this stem, the preferred first: safetensors, then PyTorch's format, each as one
/// file or as shards.
pub(crate) fn published(stem: &str) -> [String; 4] {
    let (safe, pickled) =
        (format!("{stem}.safetensors"), format!("{}.bin", stem.replace(STEM, "pytorch_model")));
    let (safe_parts, pickled_parts) = (format!("{safe}{PARTS}"), format!("{pickled}{PARTS}"));
    [safe, safe_parts, pickled, pickled_parts]
}

/// Suffixes of authors' own checkpoints.
const CHECKPOINTS: [&str; 3] = [".pth", ".pt", ".ckpt"];

/// The existing weight files of this stem, the preferred first.
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

/// The shards that an index names, each once. Refuses names that leave the folder.
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
