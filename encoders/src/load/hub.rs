//! A model of the hub to a folder in the cache: which files it has, and which of them are needed.
//!
//! Why not the hub's own client: it neither checks what it downloads nor notices that a connection was cut or has
//! gone silent.

mod cache;
mod download;
mod progress;
mod remote;
mod settings;

use std::path::{Path, PathBuf};

use self::cache::Cache;
use self::remote::{Facts, Refusal, Remote, pause};
use self::settings::Settings;
use super::folder::{self, TOKENIZER, WEIGHTS, shards};
use super::padding::TOKENIZER_CONFIG;
use super::sentence::{LIMITS, MODULES, Module, PROMPTS, inside};
use super::{LoadError, LoadOptions, family, open_clip};
use crate::models::Family;

const REVISION: &str = "main";
/// How often the hub is asked what it says of a file.
const TRIES: u32 = 4;

/// Gets the files that are not in the cache yet; gives the folder that holds them all.
///
/// What the cache has is not asked for again: once downloaded, a model loads without a network, and stays at the commit
/// that its revision was at then.
///
/// # Errors
/// [`LoadError`]; what has come stays in the cache, and the next call goes on from there.
pub(super) fn download(
    repository: &str,
    revision: Option<&str>,
    options: &LoadOptions,
) -> Result<PathBuf, LoadError> {
    let hub = Hub::new(repository, revision, options);
    // Named by the commit: a model that moves on meanwhile can't mix two of its states.
    let commit = hub.commit(revision.unwrap_or(REVISION))?;
    let folder = hub.cache.snapshot(&commit);
    let family = hub.family(&commit)?;
    let stem = match family {
        // Refused by the loader; nothing of it is worth downloading.
        Some(Family::Aim) => return Ok(folder),
        Some(family) => {
            hub.get_files_beside(&commit, family)?;
            folder::STEM
        }
        None => {
            hub.get_if_there(&commit, TOKENIZER_CONFIG)?;
            open_clip::STEM
        }
    };
    let tokenizer = hub.get(&commit, TOKENIZER);
    tokenizer.map_err(|error| folder::with_tokenizer_source(error, family))?;
    hub.get_weights(&commit, stem)?;
    Ok(folder)
}

/// One model of the hub.
struct Hub {
    repository: String,
    /// As the user named it.
    model: String,
    settings: Settings,
    cache: Cache,
    remote: Remote,
}

impl Hub {
    fn new(repository: &str, revision: Option<&str>, options: &LoadOptions) -> Hub {
        let settings = Settings::new(options);
        let model =
            revision.map_or_else(|| repository.to_owned(), |revision| format!("{repository}@{revision}"));
        Hub {
            repository: repository.to_owned(),
            model,
            cache: Cache::new(&settings.cache, repository),
            remote: Remote::new(&settings),
            settings,
        }
    }

    /// The commit that the revision is at, or was at when it was downloaded.
    fn commit(&self, revision: &str) -> Result<String, LoadError> {
        if let Some(commit) = self.cache.commit(revision) {
            return Ok(commit);
        }
        let facts = match self.facts(revision, "config.json") {
            Err(error @ LoadError::MissingFile { .. }) => {
                self.facts(revision, open_clip::CONFIG).map_err(|other| match other {
                    LoadError::MissingFile { .. } => error,
                    other => other,
                })?
            }
            facts => facts?,
        };
        let kept = self.cache.keep_commit(revision, &facts.commit);
        kept.map_err(|error| self.disk(&self.cache.snapshot(&facts.commit), &error))?;
        Ok(facts.commit)
    }

    /// The model's family; `None` for a model that OpenCLIP's configuration alone describes.
    fn family(&self, commit: &str) -> Result<Option<Family>, LoadError> {
        let config = self.get(commit, "config.json");
        match config.and_then(|config| family(&read(&config)?, &self.cache.snapshot(commit))) {
            Err(error @ (LoadError::MissingFile { .. } | LoadError::Architecture { .. })) => {
                let open_clip = self.get_if_there(commit, open_clip::CONFIG)?;
                open_clip.map_or(Err(error), |_| Ok(None))
            }
            family => family.map(Some),
        }
    }

    /// What a model of this family has beside its configuration, tokenizer and weights.
    fn get_files_beside(&self, commit: &str, family: Family) -> Result<(), LoadError> {
        match family {
            Family::Sentence => return self.get_sentence_files(commit),
            // Its frames are made as its code says, not as a file does.
            Family::LanguageBind | Family::VideoClipXl => return Ok(()),
            _ => {}
        }
        if family == Family::Siglip {
            self.get_if_there(commit, TOKENIZER_CONFIG)?;
        }
        match self.get(commit, "preprocessor_config.json") {
            Err(error @ LoadError::MissingFile { .. }) => {
                let processor = self.get_if_there(commit, folder::PROCESSOR)?;
                processor.map_or(Err(error), |_| Ok(()))
            }
            got => got.map(drop),
        }
    }

    /// A file that the model must have.
    fn get(&self, commit: &str, file: &str) -> Result<PathBuf, LoadError> {
        let there = self.get_if_there(commit, file)?;
        there.ok_or_else(|| LoadError::MissingFile { model: self.model.clone(), file: file.to_owned() })
    }

    /// A file that the model may have. What the hub does not have is noted, so that the next load needs no network for
    /// that either.
    fn get_if_there(&self, commit: &str, file: &str) -> Result<Option<PathBuf>, LoadError> {
        if let Some(path) = self.cache.file(commit, file) {
            return Ok(Some(path));
        }
        if self.cache.is_absent(commit, file) {
            return Ok(None);
        }
        let facts = match self.facts(commit, file) {
            Ok(facts) => facts,
            Err(LoadError::MissingFile { .. }) => {
                // A note that can't be written is asked for again.
                let _ = self.cache.keep_absent(commit, file);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.download(file, &facts)?;
        let linked = self.cache.link(commit, file, &facts.etag);
        linked.map(Some).map_err(|error| self.disk(&self.cache.snapshot(commit), &error))
    }

    /// The weights, in the best form that the model has them.
    fn get_weights(&self, commit: &str, stem: &str) -> Result<(), LoadError> {
        let mut unknown = None;
        for name in folder::published(stem) {
            match self.get_if_there(commit, &name) {
                Ok(None) => {}
                Ok(Some(path)) if name.ends_with(folder::PARTS) => {
                    for shard in shards(&read(&path)?, &path)? {
                        self.get(commit, &shard)?;
                    }
                    return Ok(());
                }
                Ok(Some(_)) => return Ok(()),
                // Another form may be in the cache.
                Err(error @ LoadError::Offline { .. }) => unknown = unknown.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        let missing =
            LoadError::MissingFile { model: self.model.clone(), file: format!("{stem}.safetensors") };
        Err(unknown.unwrap_or(missing))
    }

    /// What sentence-transformers keeps beside a model, as far as it is there.
    fn get_sentence_files(&self, commit: &str) -> Result<(), LoadError> {
        self.get_if_there(commit, LIMITS)?;
        self.get_if_there(commit, PROMPTS)?;
        let Some(path) = self.get_if_there(commit, MODULES)? else { return Ok(()) };
        let modules: Vec<Module> = serde_json::from_slice(&read(&path)?)
            .map_err(|error| LoadError::BadFile { path: path.clone(), why: error.to_string() })?;
        for module in modules.iter().filter(|module| !module.path.is_empty()) {
            inside(path.parent().unwrap_or(&path), &module.path)?;
            let file = |name: &str| format!("{}/{name}", module.path);
            match module.class() {
                "Normalize" => continue,
                "Dense" => drop(self.get(commit, &file(WEIGHTS))?),
                _ => {}
            }
            self.get(commit, &file("config.json"))?;
        }
        Ok(())
    }

    /// What the hub says of a file, tried again while it may go better.
    fn facts(&self, revision: &str, file: &str) -> Result<Facts, LoadError> {
        if self.settings.offline {
            return Err(LoadError::Offline { model: self.model.clone(), file: file.to_owned() });
        }
        let mut failures = 0;
        loop {
            match self.remote.facts(&self.repository, revision, file) {
                Err(Refusal::Passing(why)) if failures + 1 < TRIES => {
                    failures += 1;
                    tracing::info!(model = self.model, file, why, "the hub fails; asking again");
                    std::thread::sleep(pause(self.settings.patience, failures));
                }
                told => return told.map_err(|refusal| self.refused(file, revision, refusal)),
            }
        }
    }

    fn refused(&self, file: &str, revision: &str, refusal: Refusal) -> LoadError {
        let (model, endpoint) = (self.model.clone(), self.settings.endpoint.clone());
        match refusal {
            Refusal::NoModel => LoadError::NotFound { model, endpoint },
            Refusal::NoFile => LoadError::MissingFile { model, file: file.to_owned() },
            Refusal::Gated => LoadError::Gated { model, page: format!("{endpoint}/{}", self.repository) },
            Refusal::Unauthorized => LoadError::Unauthorized { model, endpoint },
            // It may be either: ask for the model.
            Refusal::NotFound => match self.remote.model(&self.repository, revision) {
                Ok(()) => LoadError::MissingFile { model, file: file.to_owned() },
                Err(Refusal::NotFound) => LoadError::NotFound { model, endpoint },
                Err(other) => self.refused(file, revision, other),
            },
            Refusal::OutOfRange => {
                LoadError::Network { endpoint, why: format!("it has no such part of {file}") }
            }
            Refusal::Passing(why) | Refusal::Lasting(why) => LoadError::Network { endpoint, why },
        }
    }

    fn disk(&self, path: &Path, error: &std::io::Error) -> LoadError {
        let folder = path.parent().unwrap_or(path).to_owned();
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                LoadError::NoSpace { model: self.model.clone(), folder, why: error.to_string() }
            }
            _ => LoadError::BadFile { path: path.to_owned(), why: error.to_string() },
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(path).map_err(|error| LoadError::BadFile { path: path.to_owned(), why: error.to_string() })
}
