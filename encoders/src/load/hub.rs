//! Downloads a model's files from the hub into its cache.

use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};

use super::folder::{INDEX, WEIGHTS, shards};
use super::sentence::{LIMITS, MODULES, Module, PROMPTS, inside};
use super::{LoadError, LoadOptions, family};
use crate::models::Family;

const ENDPOINT: &str = "https://huggingface.co";
const REVISION: &str = "main";

/// Gets the files that are not in the cache yet; gives the folder that holds them all.
///
/// What the cache has is not asked for again: once downloaded, a model loads without a network.
pub(super) fn download(
    repository: &str,
    revision: Option<&str>,
    options: &LoadOptions,
) -> Result<PathBuf, LoadError> {
    let hub = Hub::new(repository, revision, options)?;
    let config = hub.get(&hub.at(revision.unwrap_or(REVISION)), "config.json")?;
    let folder = config.parent().unwrap_or(&config).to_owned();
    // Named by the commit: a model that moves on meanwhile can't mix two of its states.
    let commit = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let files = hub.at(&commit);
    let bytes = std::fs::read(&config).map_err(|error| bad_file(&config, &error))?;
    match family(&bytes, &folder)? {
        Family::Sentence => hub.sentence_files(&files, &folder)?,
        _ => drop(hub.get(&files, "preprocessor_config.json")?),
    }
    hub.get(&files, "tokenizer.json")?;
    match hub.get(&files, WEIGHTS) {
        Err(LoadError::MissingFile { .. }) => {}
        got => return got.map(|_| folder),
    }
    let index = hub.get(&files, INDEX).map_err(|error| match error {
        LoadError::MissingFile { model, .. } => LoadError::MissingFile { model, file: WEIGHTS.to_owned() },
        other => other,
    })?;
    let bytes = std::fs::read(&index).map_err(|error| bad_file(&index, &error))?;
    for shard in shards(&bytes, &index)? {
        hub.get(&files, &shard)?;
    }
    Ok(folder)
}

struct Hub {
    api: hf_hub::api::sync::Api,
    repository: String,
    model: String,
    endpoint: String,
}

impl Hub {
    fn new(repository: &str, revision: Option<&str>, options: &LoadOptions) -> Result<Self, LoadError> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let endpoint =
            options.endpoint.clone().or_else(|| set("HF_ENDPOINT")).unwrap_or_else(|| ENDPOINT.to_owned());
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let cache = options.cache.clone().map_or_else(Cache::from_env, Cache::new);
        let token = options.token.clone().or_else(|| set("HF_TOKEN")).or_else(|| cache.token());
        let api = ApiBuilder::from_cache(cache)
            .with_endpoint(endpoint.clone())
            .with_token(token)
            .with_progress(std::io::stderr().is_terminal())
            .with_user_agent("reprise", env!("CARGO_PKG_VERSION"))
            .build()
            .map_err(|error| LoadError::Network { endpoint: endpoint.clone(), why: error.to_string() })?;
        let model =
            revision.map_or_else(|| repository.to_owned(), |revision| format!("{repository}@{revision}"));
        Ok(Hub { api, repository: repository.to_owned(), model, endpoint })
    }

    fn at(&self, revision: &str) -> ApiRepo {
        self.api.repo(Repo::with_revision(self.repository.clone(), RepoType::Model, revision.to_owned()))
    }

    fn get(&self, files: &ApiRepo, file: &str) -> Result<PathBuf, LoadError> {
        // The hub's client takes some malformed answers for impossible and panics.
        let got = catch_unwind(AssertUnwindSafe(|| files.get(file)));
        let got = got.map_err(|_| self.unreadable("it gave an answer that makes no sense".to_owned()))?;
        got.map_err(|error| match status(&error) {
            Some(401 | 403) => {
                LoadError::Unauthorized { model: self.model.clone(), endpoint: self.endpoint.clone() }
            }
            Some(404) => self.missing(files, file),
            _ => self.network(&error),
        })
    }

    /// What sentence-transformers keeps beside a model, as far as it is there.
    fn sentence_files(&self, files: &ApiRepo, folder: &Path) -> Result<(), LoadError> {
        self.get_if_there(files, folder, LIMITS)?;
        self.get_if_there(files, folder, PROMPTS)?;
        let Some(path) = self.get_if_there(files, folder, MODULES)? else { return Ok(()) };
        let bytes = std::fs::read(&path).map_err(|error| bad_file(&path, &error))?;
        let modules: Vec<Module> = serde_json::from_slice(&bytes)
            .map_err(|error| LoadError::BadFile { path: path.clone(), why: error.to_string() })?;
        for module in modules.iter().filter(|module| !module.path.is_empty()) {
            inside(path.parent().unwrap_or(&path), &module.path)?;
            let file = |name: &str| format!("{}/{name}", module.path);
            match module.class() {
                "Normalize" => continue,
                "Dense" => drop(self.get(files, &file(WEIGHTS))?),
                _ => {}
            }
            self.get(files, &file("config.json"))?;
        }
        Ok(())
    }

    /// `folder` is the commit's in the cache. What the hub does not have is noted there as the hub's own client notes
    /// it, so that the next load needs no network for that either.
    fn get_if_there(&self, files: &ApiRepo, folder: &Path, file: &str) -> Result<Option<PathBuf>, LoadError> {
        let model = folder.parent().and_then(Path::parent).unwrap_or(folder);
        let absent = model.join(".no_exist").join(folder.file_name().unwrap_or_default());
        if absent.join(file).exists() {
            return Ok(None);
        }
        match self.get(files, file) {
            Err(LoadError::MissingFile { .. }) => {
                // A note that can't be written is asked for again.
                let _ = std::fs::create_dir_all(&absent).and_then(|()| std::fs::write(absent.join(file), ""));
                Ok(None)
            }
            got => got.map(Some),
        }
    }

    /// The hub answers 404 for a missing file and for a missing model: ask for the model.
    fn missing(&self, files: &ApiRepo, file: &str) -> LoadError {
        let model = self.model.clone();
        match files.info() {
            Ok(_) => LoadError::MissingFile { model, file: file.to_owned() },
            Err(error) => match status(&error) {
                Some(401 | 403) => LoadError::Unauthorized { model, endpoint: self.endpoint.clone() },
                Some(404) => LoadError::NotFound { model, endpoint: self.endpoint.clone() },
                _ => self.network(&error),
            },
        }
    }

    fn network(&self, error: &ApiError) -> LoadError {
        self.unreadable(error.to_string())
    }

    fn unreadable(&self, why: String) -> LoadError {
        LoadError::Network { endpoint: self.endpoint.clone(), why }
    }
}

fn bad_file(path: &Path, error: &std::io::Error) -> LoadError {
    LoadError::BadFile { path: path.to_owned(), why: error.to_string() }
}

/// The HTTP status that the hub answered with, if it answered.
fn status(error: &ApiError) -> Option<u16> {
    match error {
        ApiError::RequestError(error) => match **error {
            ureq::Error::StatusCode(status) => Some(status),
            _ => None,
        },
        ApiError::TooManyRetries(error) => status(error),
        _ => None,
    }
}
