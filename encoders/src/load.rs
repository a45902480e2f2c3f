//! A model folder or hub id to encoders, on each device that is asked for.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::batch::Limits;
use crate::device::{self, DeviceChoice};
use crate::models::sports::pretrained;
use crate::models::{Family, tiny};
use crate::placement::{Placement, Precision};
use crate::text::{Tokenizer, TokenizerError};
use crate::weights::Weights;
use crate::{EncodeError, Encoder, Space};

mod aim;
mod blip;
mod blip2;
mod budget;
mod clip;
mod folder;
mod hub;
mod identity;
mod language_bind;
mod open_clip;
mod openai;
mod padding;
mod sentence;
mod siglip;
mod sports;
mod two_towers;
mod video_clip_xl;
mod warm_up;

/// The model that answers when no other is named.
pub const DEFAULT_MODEL: &str = "builtin:sports";

/// Which model: `builtin:sports`, `builtin:tiny`, a folder, a `.pt` file of OpenAI's, or a hub id
/// `org/name[@revision]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Sports,
    Tiny,
    Folder(PathBuf),
    File(PathBuf),
    Hub { repository: String, revision: Option<String> },
}

/// A model ready to start in a pool.
pub struct Loaded {
    /// The space of its vectors.
    pub space: Space,
    /// How it reads text; `None` if it takes no text.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// One encoder a replica and device, all of this space.
    pub encoders: Vec<Box<dyn Encoder>>,
    /// The devices that they run on, as [`DeviceChoice`] names them.
    pub devices: Vec<String>,
    /// What one batch should hold, found by trying; `None` on the CPU, where more at a time is hardly faster.
    pub limits: Option<Limits>,
}

/// How and from where a model is loaded.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Encoders to make for each device; they share its copy of the weights. 0 counts as 1.
    pub replicas: usize,
    /// Where they run; one that can't be used is left out with a warning, and where none is left they run on the CPU.
    pub devices: Vec<DeviceChoice>,
    /// The hub's address; `None`: `HF_ENDPOINT`, or the public hub.
    pub endpoint: Option<String>,
    /// Where downloads are kept; `None`: under `HF_HOME`, or the user's cache folder.
    pub cache: Option<PathBuf>,
    /// The hub's access token; `None`: `HF_TOKEN`, or the token that the hub's own client stored.
    pub token: Option<String>,
    /// Frames per second of video that a model of single pictures looks at, 0.01 to 240; `None`: 2. Another
    /// rate makes another space.
    pub frames_per_second: Option<f64>,
    /// In which numbers the layers inside towers multiply; another makes another space.
    pub precision: Precision,
    /// Whether only what is downloaded already may be used; `None`: `HF_HUB_OFFLINE`.
    pub offline: Option<bool>,
    /// How long the hub may be silent before it is asked again, and in the end given up; `None`:
    /// `HF_HUB_DOWNLOAD_TIMEOUT` (seconds), or 10 s.
    pub patience: Option<Duration>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            replicas: 1,
            devices: vec![DeviceChoice::Auto],
            endpoint: None,
            cache: None,
            token: None,
            frames_per_second: None,
            precision: Precision::F32,
            offline: None,
            patience: None,
        }
    }
}

/// Why a model did not load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The name is of no known form; the caller's fault.
    #[error(
        "{0:?} is no model: give builtin:sports, builtin:tiny, an existing folder or .pt file, or a hub id such as org/name or org/name@revision"
    )]
    Name(String),
    /// The hub has no such model or revision.
    #[error("the hub at {endpoint} has no model {model}; check its name and revision")]
    NotFound {
        /// The hub id.
        model: String,
        /// The hub's address.
        endpoint: String,
    },
    /// The hub does not let this user read the model; it answers the same for some names that don't exist.
    #[error(
        "the hub at {endpoint} refuses access to {model}: it is private, gated or does not exist; \
         accept its terms on the hub and set HF_TOKEN to a token that may read it"
    )]
    Unauthorized {
        /// The hub id.
        model: String,
        /// The hub's address.
        endpoint: String,
    },
    /// The model is there, but only for users who have accepted its terms.
    #[error("{model} is gated: accept its terms at {page} and set HF_TOKEN to a token of the user who did")]
    Gated {
        /// The hub id.
        model: String,
        /// The model's page on the hub.
        page: String,
    },
    /// The hub may not be asked, and the cache has not got the file.
    #[error(
        "{file} of {model} is not in the cache and HF_HUB_OFFLINE forbids to download it; \
         load the model once without it"
    )]
    Offline {
        /// The hub id.
        model: String,
        /// The file.
        file: String,
    },
    /// What comes from the hub is not what the hub says it has; it was not kept.
    #[error(
        "{file} of {model} came damaged from the hub, twice: {why}; nothing of it is kept, try again later"
    )]
    Corrupt {
        /// The hub id.
        model: String,
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The disk is full.
    #[error(
        "there is no space left in {folder} for {model}: {why}; free some, or set HF_HOME to a folder on another disk"
    )]
    NoSpace {
        /// The hub id.
        model: String,
        /// Where it was to be kept.
        folder: PathBuf,
        /// How much is missing.
        why: String,
    },
    /// The hub can't be reached or does not behave.
    #[error(
        "the hub at {endpoint} can't be read: {why}; check the network and HF_ENDPOINT, or give a folder"
    )]
    Network {
        /// The hub's address.
        endpoint: String,
        /// What happened.
        why: String,
    },
    /// The model lacks a file.
    #[error("model {model} has no {file}")]
    MissingFile {
        /// The folder or hub id.
        model: String,
        /// The file, and what to do if it is known.
        file: String,
    },
    /// A file can't be read or parsed.
    #[error("{path} can't be used: {why}")]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No family reads this kind of model.
    #[error(
        "models of type {found:?} are not supported; clip, siglip, blip, blip-2, LanguageBindVideo, videoclip-xl, aim, bert, \
         xlm-roberta and reprise-sports are"
    )]
    Architecture {
        /// `model_type` of its config.json.
        found: String,
    },
    /// The configuration asks for something that the family can't do.
    #[error("the model's configuration is not supported: {0}")]
    Unsupported(String),
    /// The device does not multiply in such numbers; the caller should ask for others, or for another device.
    #[error("models can't multiply in {} on {device}: {why}", precision.name())]
    Precision {
        /// What was asked for.
        precision: Precision,
        /// Where.
        device: String,
        /// Why not, and what else there is.
        why: &'static str,
    },
    /// The weights lack a tensor that the configuration calls for.
    #[error("the weights have no tensor {name}; they do not belong to this config.json")]
    MissingTensor {
        /// The tensor's name.
        name: String,
    },
    /// A tensor has another shape than the configuration calls for.
    #[error("tensor {name} has shape {found:?}, config.json calls for {expected:?}")]
    WrongShape {
        /// The tensor's name.
        name: String,
        /// Shape that the configuration calls for.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },
    /// A tensor holds values that are no numbers: the file is damaged or its training diverged.
    #[error("tensor {name} holds values that are not finite; get the weights again")]
    NotFinite {
        /// The tensor's name.
        name: String,
    },
    /// The tokenizer can't be used.
    #[error("the model's tokenizer can't be used: {0}")]
    Tokenizer(#[from] TokenizerError),
    /// The model gives no vector for a plain text or picture.
    #[error("the model loads but does not encode: {0}")]
    WarmUp(EncodeError),
    /// The device failed, e.g. for want of memory.
    #[error("the device failed while loading: {0}")]
    Device(#[from] candle_core::Error),
}

impl FromStr for ModelName {
    type Err = LoadError;

    fn from_str(name: &str) -> Result<Self, LoadError> {
        if name == "builtin:sports" {
            return Ok(ModelName(Kind::Sports));
        }
        if name == "builtin:tiny" {
            return Ok(ModelName(Kind::Tiny));
        }
        if !name.is_empty() && PathBuf::from(name).is_dir() {
            return Ok(ModelName(Kind::Folder(PathBuf::from(name))));
        }
        if openai::is_file(Path::new(name)) {
            return Ok(ModelName(Kind::File(PathBuf::from(name))));
        }
        let (repository, revision) = match name.split_once('@') {
            Some((repository, revision)) => (repository, Some(revision)),
            None => (name, None),
        };
        let parts: Vec<&str> = repository.split('/').collect();
        let valid = parts.len() == 2 && parts.into_iter().chain(revision).all(is_hub_word);
        if !valid {
            return Err(LoadError::Name(name.to_owned()));
        }
        let (repository, revision) = (repository.to_owned(), revision.map(str::to_owned));
        Ok(ModelName(Kind::Hub { repository, revision }))
    }
}

/// What the hub allows in names of users, models and revisions; nothing that climbs out of a folder.
fn is_hub_word(word: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !word.is_empty() && word.chars().all(allowed) && !word.starts_with('.') && !word.contains("..")
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Sports => f.write_str("builtin:sports"),
            Kind::Tiny => f.write_str("builtin:tiny"),
            Kind::Folder(path) | Kind::File(path) => path.display().fmt(f),
            Kind::Hub { repository, revision: None } => f.write_str(repository),
            Kind::Hub { repository, revision: Some(revision) } => write!(f, "{repository}@{revision}"),
        }
    }
}

impl ModelName {
    /// The folder or file that it names, if it names one.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Folder(path) | Kind::File(path) => Some(path),
            _ => None,
        }
    }

    /// What its spaces are called, in letters that need no quoting.
    fn short(&self) -> String {
        let long = match &self.0 {
            Kind::Sports => "sports".to_owned(),
            Kind::Tiny => "tiny".to_owned(),
            Kind::Folder(path) => {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                path.file_name()
                    .map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
            }
            Kind::File(path) => path
                .file_stem()
                .map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned()),
            Kind::Hub { repository, .. } => repository.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let safe = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
        long.to_lowercase().chars().map(safe).collect()
    }
}

/// The files of a model, wherever they came from.
pub(crate) struct Files {
    /// Where they lie, for messages.
    pub(crate) folder: PathBuf,
    pub(crate) config: Vec<u8>,
    pub(crate) preprocessor: Vec<u8>,
    pub(crate) tokenizer: Vec<u8>,
    pub(crate) weights: Weights,
}

impl Files {
    /// What config.json says.
    fn parsed<T: DeserializeOwned>(&self) -> Result<T, LoadError> {
        serde_json::from_slice(&self.config).map_err(|error| self.bad("config.json", error.to_string()))
    }

    fn bad(&self, file: &str, why: String) -> LoadError {
        LoadError::BadFile { path: self.folder.join(file), why }
    }
}

/// Loads `name` with `replicas` encoders. Blocks; downloads if it must.
///
/// # Errors
/// As [`load_with`].
pub fn load(name: &ModelName, replicas: usize) -> Result<Loaded, LoadError> {
    load_with(name, &LoadOptions { replicas, ..LoadOptions::default() })
}

/// Loads `name` as `options` say. Blocks; downloads if it must.
///
/// Each encoder has encoded a text and a picture when this returns.
///
/// # Errors
/// [`LoadError`]: whatever would give wrong vectors later is an error here.
pub fn load_with(name: &ModelName, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let (first, others) = device::open(&options.devices);
    let placed = |device| Placement::new(device, options.precision);
    let first = placed(first)?;
    let others = others.into_iter().map(placed).collect::<Result<Vec<_>, _>>()?;
    let origin = match &name.0 {
        Kind::Sports => Origin::Sports,
        Kind::Tiny => Origin::Tiny,
        Kind::Folder(path) => Origin::Folder(path.clone()),
        Kind::File(path) => Origin::File(path.clone()),
        Kind::Hub { repository, revision } => {
            Origin::Folder(hub::download(repository, revision.as_deref(), options)?)
        }
    };
    others.iter().try_fold(load_onto(name, &origin, options, &first)?, |loaded, placement| {
        loaded.joined(load_onto(name, &origin, options, placement)?)
    })
}

/// Where a model's files are once they are downloaded.
enum Origin {
    Sports,
    Tiny,
    Folder(PathBuf),
    File(PathBuf),
}

impl Loaded {
    /// Where it runs is not said yet.
    fn new(space: Space, tokenizer: Option<Arc<Tokenizer>>, encoders: Vec<Box<dyn Encoder>>) -> Loaded {
        Loaded { space, tokenizer, encoders, devices: Vec::new(), limits: None }
    }

    /// `self` with the encoders of `other`, which is the same model on another device.
    fn joined(mut self, other: Loaded) -> Result<Loaded, LoadError> {
        if self.space.id != other.space.id {
            let why = "the model's files changed while they were read; load it again";
            return Err(LoadError::Unsupported(why.to_owned()));
        }
        self.encoders.extend(other.encoders);
        self.devices.extend(other.devices);
        // Any of them may get any batch.
        let smaller = |(one, other): (Limits, Limits)| Limits {
            inputs: one.inputs.min(other.inputs),
            cost: one.cost.min(other.cost),
        };
        self.limits = self.limits.zip(other.limits).map(smaller).or(self.limits).or(other.limits);
        Ok(self)
    }
}

/// Loads `name` onto one device.
fn load_onto(
    name: &ModelName,
    origin: &Origin,
    options: &LoadOptions,
    placement: &Placement,
) -> Result<Loaded, LoadError> {
    let mut loaded = match origin {
        Origin::Sports => load_files(name, pretrained::files()?, options, placement)?,
        Origin::Tiny => load_files(name, tiny::files()?, options, placement)?,
        Origin::Folder(path) => load_folder(name, path, options, placement)?,
        Origin::File(path) => openai::load(name, path, options, placement)?,
    };
    loaded.devices.push(device::name(placement.device()));
    loaded.warm_up().map_err(LoadError::WarmUp)?;
    if !placement.device().is_cpu() {
        loaded.find_limits().map_err(LoadError::WarmUp)?;
    }
    Ok(loaded)
}

/// Loads a model from its folder; which files it must have depends on its family.
fn load_folder(
    name: &ModelName,
    path: &Path,
    options: &LoadOptions,
    placement: &Placement,
) -> Result<Loaded, LoadError> {
    let config = folder::read_file(path, &name.to_string(), "config.json");
    let family = match config.and_then(|config| family(&config, path)) {
        // OpenCLIP's repositories may have a config.json beside, of another program.
        Err(LoadError::MissingFile { .. } | LoadError::Architecture { .. })
            if path.join(open_clip::CONFIG).is_file() =>
        {
            return open_clip::load(name, path, options, placement);
        }
        Err(missing @ LoadError::MissingFile { .. }) => match openai::only_file(path) {
            Some(file) => return openai::load(name, &file, options, placement),
            None => return Err(missing),
        },
        family => family?,
    };
    match family {
        Family::Aim if matches!(name.0, Kind::Hub { .. }) => {
            Err(LoadError::Unsupported("models of type aim are loaded from folders".to_owned()))
        }
        Family::Aim => aim::load(name, path, options, placement),
        Family::Sentence => sentence::load(name, path, options, placement),
        Family::Clip | Family::Siglip | Family::Blip | Family::Blip2 | Family::Sports => {
            let files = folder::read(path, &name.to_string());
            let files = files.map_err(|error| folder::with_tokenizer_source(error, Some(family)))?;
            load_files(name, files, options, placement)
        }
        Family::LanguageBind => language_bind::load(name, path, options, placement),
        Family::VideoClipXl => video_clip_xl::load(name, path, options, placement),
        Family::EvaClip | Family::PeCore => open_clip::load(name, path, options, placement),
    }
}

/// Loads a model in Hugging Face's layout that sees pictures.
fn load_files(
    name: &ModelName,
    files: Files,
    options: &LoadOptions,
    placement: &Placement,
) -> Result<Loaded, LoadError> {
    let family = family(&files.config, &files.folder)?;
    // The layers of the sports family are small, and shared with training: they know one precision.
    let placement = if family == Family::Sports { &placement.in_f32() } else { placement };
    let files = Files { weights: files.weights.placed(placement), ..files };
    match family {
        Family::Clip => clip::load(name, files, options),
        Family::Siglip => siglip::load(name, files, options),
        Family::Blip => blip::load(name, files, options),
        Family::Blip2 => blip2::load(name, files, options),
        Family::Sports => sports::load(name, &files, options.replicas.max(1)),
        family => Err(LoadError::Architecture { found: family.name().to_owned() }),
    }
}

/// The family that a config.json in `folder` asks for.
fn family(config: &[u8], folder: &Path) -> Result<Family, LoadError> {
    let bad = |error: serde_json::Error| LoadError::BadFile {
        path: folder.join("config.json"),
        why: error.to_string(),
    };
    let kind: ModelType = serde_json::from_slice(config).map_err(bad)?;
    if kind.model_type == "siglip2" {
        let why = "model_type siglip2 (NaFlex, which keeps the shape of pictures); SigLIP 2 of a fixed resolution is";
        return Err(LoadError::Unsupported(why.to_owned()));
    }
    let family = Family::of(&kind.model_type).ok_or(LoadError::Architecture { found: kind.model_type })?;
    if family == Family::Blip2 {
        blip2::check_architectures(&kind.architectures)?;
    }
    Ok(family)
}

#[derive(Deserialize)]
struct ModelType {
    #[serde(default)]
    model_type: String,
    /// The names of transformers' classes, if it says any.
    #[serde(default)]
    architectures: Value,
}

#[cfg(test)]
mod operations_tests;
#[cfg(test)]
mod tests;
