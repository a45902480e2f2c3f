//! The models in the cache of downloads.

use std::fs::DirEntry;
use std::path::Path;

use super::settings::Settings;
use crate::loading::LoadOptions;

/// Most models that are listed.
const MOST_MODELS: usize = 1000;
/// Most files of a model that are measured.
const MOST_FILES: usize = 10_000;

/// A model of which files are in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedModel {
    /// `org/name`.
    pub repository: String,
    /// Bytes of its files, of all commits, with partial downloads.
    pub bytes: u64,
}

/// The models in the cache, at most 1000, in order of name. None if there is no cache or it can't be read. Blocks.
pub fn cached_models(options: &LoadOptions) -> Vec<CachedModel> {
    let Ok(folder) = std::fs::read_dir(Settings::new(options).cache) else { return Vec::new() };
    let mut models: Vec<CachedModel> =
        folder.filter_map(Result::ok).filter_map(|entry| model(&entry)).take(MOST_MODELS).collect();
    models.sort_by(|a, b| a.repository.cmp(&b.repository));
    models
}

/// The model in a folder like `models--org--name`.
fn model(entry: &DirEntry) -> Option<CachedModel> {
    let name = entry.file_name().into_string().ok()?;
    let (org, name) = name.strip_prefix("models--")?.split_once("--")?;
    let bytes = bytes_in(&entry.path().join("blobs"));
    Some(CachedModel { repository: format!("{org}/{name}"), bytes })
}

fn bytes_in(blobs: &Path) -> u64 {
    let Ok(files) = std::fs::read_dir(blobs) else { return 0 };
    let length = |file: std::io::Result<DirEntry>| file.ok()?.metadata().ok().map(|it| it.len());
    files.take(MOST_FILES).filter_map(length).fold(0, u64::saturating_add)
}
