//! Loads a named model onto each requested device.

use super::classify::{classify, marks};
use super::warm_up::{find_limits, warm_up};
use crate::Space;
use crate::device::{self, Placement};
use crate::families::family::{Family, Model};
use crate::generator::Generator;
use crate::hub::Repository;
use crate::loading::{
    CONFIG, Embedder, LoadError, LoadOptions, ModelFiles, ModelName, Source, folder::TOKENIZER,
};
use crate::transcriber::Transcriber;

/// Loads `name` with `replicas` encoders. Blocks; downloads if needed.
///
/// # Errors
/// As [`load_with`].
pub fn load(name: &ModelName, replicas: usize) -> Result<Embedder, LoadError> {
    load_with(name, &LoadOptions { replicas, ..LoadOptions::default() })
}

/// Loads `name` with `options`. Blocks; downloads if needed.
///
/// Warms up each encoder with a text and a picture.
///
/// # Errors
/// [`LoadError`], also for every fault that would give wrong vectors later.
pub fn load_with(name: &ModelName, options: &LoadOptions) -> Result<Embedder, LoadError> {
    let (first, others) = device::open(&options.devices);
    let placed = |device| Placement::new(device, options.precision);
    let first = placed(first)?;
    let others = others.into_iter().map(placed).collect::<Result<Vec<_>, _>>()?;
    let found = find(name, options)?;
    let embedder = others.iter().try_fold(found.load(options, &first)?, |embedder, placement| {
        embedder.joined(found.load(options, placement)?)
    })?;
    if let Some(dim) = options.dim.filter(|dim| *dim != embedder.space.dim) {
        let Space { name: space, dim: own, .. } = &embedder.space;
        tracing::warn!(
            space,
            own,
            dim,
            "the model was not trained for shorter vectors and keeps its own length"
        );
    }
    Ok(embedder)
}

/// Loads `name` to write texts, on the first of `options.devices`. Blocks; downloads if needed.
///
/// # Errors
/// [`LoadError`], also for models that write no texts.
pub fn load_generator(name: &ModelName, options: &LoadOptions) -> Result<Box<dyn Generator>, LoadError> {
    let (first, _) = device::open(&options.devices);
    let placement = Placement::new(first, options.precision)?;
    let found = find(name, options)?;
    found.family.load_generator(&found.files, &placement)
}

/// Loads `name` to write down speech, on the first of `options.devices`. Blocks; downloads if needed.
///
/// # Errors
/// [`LoadError`], also for models that write down no speech.
pub fn load_transcriber(name: &ModelName, options: &LoadOptions) -> Result<Box<dyn Transcriber>, LoadError> {
    let (first, _) = device::open(&options.devices);
    let placement = Placement::new(first, options.precision)?;
    let found = find(name, options)?;
    found.family.load_transcriber(&found.files, &placement)
}

/// Whether a model would load without a network: all its files are on this machine, and a family reads them. Blocks on the
/// disk for a moment.
pub fn is_here(name: &ModelName, options: &LoadOptions) -> bool {
    find(name, &LoadOptions { offline: Some(true), progress: None, ..options.clone() }).is_ok()
}

/// A model with its files on this machine, and the family that reads them.
pub(super) struct Found {
    files: ModelFiles,
    family: &'static dyn Family,
}

/// Classifies a model; downloads it if its name is a hub id.
pub(super) fn find(name: &ModelName, options: &LoadOptions) -> Result<Found, LoadError> {
    let Source::Hub { repository, revision } = name.source() else {
        let files = ModelFiles::local(name)?;
        let family = classify(&files)?;
        return Ok(Found { files, family });
    };
    let marks = marks();
    let hub = Repository::open(repository, revision.as_deref(), &marks, options)?;
    hub.get_if_there(CONFIG)?;
    let files = ModelFiles::in_folder(name, &hub.folder())?;
    let family = match classify(&files) {
        Err(error @ (LoadError::MissingFile { .. } | LoadError::Architecture { .. })) => {
            for mark in marks {
                hub.get_if_there(mark)?;
            }
            // Keep the first error: it names the file that most models have.
            classify(&files).map_err(|_| error)?
        }
        classified => classified?,
    };
    family.download(&hub).map_err(|error| with_tokenizer_source(error, family))?;
    Ok(Found { files, family })
}

impl Found {
    /// Loads the model onto one device and warms it up there.
    ///
    /// # Errors
    /// As [`load_with`].
    pub(super) fn load(&self, options: &LoadOptions, placement: &Placement) -> Result<Embedder, LoadError> {
        let loaded = self.family.load(&self.files, placement, options);
        let Model::Embedder(mut embedder) =
            loaded.map_err(|error| with_tokenizer_source(error, self.family))?;
        embedder.devices.push(device::name(placement.device()));
        warm_up(&mut embedder).map_err(LoadError::WarmUp)?;
        if !placement.device().is_cpu() {
            find_limits(&mut embedder).map_err(LoadError::WarmUp)?;
        }
        Ok(embedder)
    }
}

/// Adds a source to the error for a missing tokenizer.json, if all models of the family can use the same.
fn with_tokenizer_source(error: LoadError, family: &dyn Family) -> LoadError {
    match (error, family.tokenizer_source()) {
        (LoadError::MissingFile { model, file }, Some(source)) if file == TOKENIZER => {
            let file = format!("{file}; copy that of {source} into a folder with the model's files");
            LoadError::MissingFile { model, file }
        }
        (error, _) => error,
    }
}
