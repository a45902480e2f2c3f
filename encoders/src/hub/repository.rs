//! One hub model at one commit: finds its files and downloads them into the cache.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache::Cache;
use super::remote::{Facts, Refusal, Remote, pause};
use super::settings::Settings;
use crate::loading::folder::{self, TOKENIZER, shards};
use crate::loading::{CONFIG, DownloadProgress, LoadError, LoadOptions};

const REVISION: &str = "main";
/// Attempts to get a file's facts.
const TRIES: u32 = 4;

/// One model of the hub, at one commit.
///
/// The hub is never asked again for a cached file. A downloaded model loads without a network and stays at its commit.
pub struct Repository {
    pub(super) repository: String,
    /// The model's name, as the user wrote it.
    pub(super) model: String,
    pub(super) settings: Settings,
    pub(super) cache: Cache,
    pub(super) remote: Remote,
    /// Gets the progress of downloads.
    pub(super) progress: Option<Arc<DownloadProgress>>,
    /// The commit of all files.
    commit: String,
}

impl Repository {
    /// Finds the commit of `repository` at `revision`. The model must have a config.json or one of `marks`.
    ///
    /// # Errors
    /// [`LoadError`]: no such model, no access, no network, or none of these files.
    pub(crate) fn open(
        repository: &str,
        revision: Option<&str>,
        marks: &[&str],
        options: &LoadOptions,
    ) -> Result<Repository, LoadError> {
        let settings = Settings::new(options);
        let model =
            revision.map_or_else(|| repository.to_owned(), |revision| format!("{repository}@{revision}"));
        let mut hub = Repository {
            repository: repository.to_owned(),
            model,
            cache: Cache::new(&settings.cache, repository),
            remote: Remote::new(&settings),
            progress: options.progress.clone(),
            settings,
            commit: String::new(),
        };
        // All files come from one commit, even if the branch moves meanwhile.
        hub.commit = hub.find_commit(revision.unwrap_or(REVISION), marks)?;
        Ok(hub)
    }

    /// The folder in the cache with the files.
    pub(crate) fn folder(&self) -> PathBuf {
        self.cache.snapshot(&self.commit)
    }

    /// The commit of `revision`, from the cache if it is there.
    fn find_commit(&self, revision: &str, marks: &[&str]) -> Result<String, LoadError> {
        if let Some(commit) = self.cache.commit(revision) {
            return Ok(commit);
        }
        let mut facts = self.facts(revision, CONFIG);
        for mark in marks {
            let Err(error @ LoadError::MissingFile { .. }) = facts else { break };
            facts = match self.facts(revision, mark) {
                Err(LoadError::MissingFile { .. }) => Err(error),
                other => other,
            };
        }
        let facts = facts?;
        let kept = self.cache.keep_commit(revision, &facts.commit);
        kept.map_err(|error| self.disk(&self.cache.snapshot(&facts.commit), error))?;
        Ok(facts.commit)
    }

    /// Downloads the files of a picture-and-text model in Hugging Face's layout, except config.json: preprocessing,
    /// tokenizer, weights.
    ///
    /// # Errors
    /// [`LoadError::MissingFile`] and the hub's errors.
    pub(crate) fn get_pretrained(&self) -> Result<(), LoadError> {
        self.get_preprocessor()?;
        self.get(TOKENIZER)?;
        self.get_weights(folder::STEM)
    }

    /// Downloads preprocessor_config.json, or processor_config.json where the model has that instead.
    ///
    /// # Errors
    /// As [`Repository::get_pretrained`].
    pub(crate) fn get_preprocessor(&self) -> Result<(), LoadError> {
        match self.get("preprocessor_config.json") {
            Err(error @ LoadError::MissingFile { .. }) => {
                let processor = self.get_if_there(folder::PROCESSOR)?;
                processor.map_or(Err(error), |_| Ok(()))
            }
            got => got.map(drop),
        }
    }

    /// Downloads a required file.
    ///
    /// # Errors
    /// [`LoadError::MissingFile`] and the hub's errors. The next call resumes a partial download.
    pub(crate) fn get(&self, file: &str) -> Result<PathBuf, LoadError> {
        let there = self.get_if_there(file)?;
        there.ok_or_else(|| LoadError::MissingFile { model: self.model.clone(), file: file.to_owned() })
    }

    /// Downloads an optional file; `None` if the model lacks it. The cache stores the absence, so the next load needs no
    /// network.
    ///
    /// # Errors
    /// The hub's errors, except a missing file.
    pub(crate) fn get_if_there(&self, file: &str) -> Result<Option<PathBuf>, LoadError> {
        let commit = &self.commit;
        if let Some(path) = self.cache.file(commit, file) {
            return Ok(Some(path));
        }
        if self.cache.is_absent(commit, file) {
            return Ok(None);
        }
        let facts = match self.facts(commit, file) {
            Ok(facts) => facts,
            Err(LoadError::MissingFile { .. }) => {
                // If the mark can't be written, the next load asks again.
                let _ = self.cache.keep_absent(commit, file);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.download(file, &facts)?;
        let linked = self.cache.link(commit, file, &facts.etag);
        linked.map(Some).map_err(|error| self.disk(&self.cache.snapshot(commit), error))
    }

    /// Downloads the weights `stem` in the preferred format that the model has.
    ///
    /// # Errors
    /// As [`Repository::get`].
    pub(crate) fn get_weights(&self, stem: &str) -> Result<(), LoadError> {
        let mut unknown = None;
        for name in folder::published(stem) {
            match self.get_if_there(&name) {
                Ok(None) => {}
                Ok(Some(path)) if name.ends_with(folder::PARTS) => {
                    for shard in shards(&read(&path)?, &path)? {
                        self.get(&shard)?;
                    }
                    return Ok(());
                }
                Ok(Some(_)) => return Ok(()),
                // The cache may hold another format.
                Err(error @ LoadError::Offline { .. }) => unknown = unknown.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        let missing =
            LoadError::MissingFile { model: self.model.clone(), file: format!("{stem}.safetensors") };
        Err(unknown.unwrap_or(missing))
    }

    /// The facts about a file; retries temporary failures.
    fn facts(&self, revision: &str, file: &str) -> Result<Facts, LoadError> {
        if self.settings.offline {
            return Err(LoadError::Offline { model: self.model.clone(), file: file.to_owned() });
        }
        let mut failures = 0;
        loop {
            match self.remote.facts(&self.repository, revision, file) {
                Err(Refusal::Passing(why)) if failures + 1 < TRIES => {
                    failures += 1;
                    tracing::info!(model = self.model, file, %why, "the hub fails; asking again");
                    std::thread::sleep(pause(self.settings.patience, failures));
                }
                told => return told.map_err(|refusal| self.refused(file, revision, refusal)),
            }
        }
    }

    pub(super) fn refused(&self, file: &str, revision: &str, refusal: Refusal) -> LoadError {
        let (model, endpoint) = (self.model.clone(), self.settings.endpoint.clone());
        match refusal {
            Refusal::NoModel => LoadError::NotFound { model, endpoint },
            Refusal::NoFile => LoadError::MissingFile { model, file: file.to_owned() },
            Refusal::Gated => LoadError::Gated { model, page: format!("{endpoint}/{}", self.repository) },
            Refusal::Unauthorized => LoadError::Unauthorized { model, endpoint },
            // Either the file or the model is missing: ask for the model.
            Refusal::NotFound => match self.remote.model(&self.repository, revision) {
                Ok(()) => LoadError::MissingFile { model, file: file.to_owned() },
                Err(Refusal::NotFound) => LoadError::NotFound { model, endpoint },
                Err(other) => self.refused(file, revision, other),
            },
            Refusal::OutOfRange => {
                LoadError::Network { endpoint, why: format!("it has no such part of {file}").into() }
            }
            Refusal::Passing(why) | Refusal::Lasting(why) => LoadError::Network { endpoint, why },
        }
    }

    pub(super) fn disk(&self, path: &Path, error: std::io::Error) -> LoadError {
        let folder = path.parent().unwrap_or(path).to_owned();
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                LoadError::NoSpace { model: self.model.clone(), folder, why: error.into() }
            }
            _ => LoadError::BadFile { path: path.to_owned(), why: error.into() },
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(path).map_err(|error| LoadError::BadFile { path: path.to_owned(), why: error.into() })
}
