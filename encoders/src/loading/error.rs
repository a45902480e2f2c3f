//! Why a model did not load.

use std::path::PathBuf;

use crate::device::PrecisionError;
use crate::text::TokenizerError;
use crate::{Cause, EncodeError};

/// Why a model did not load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The name has no known form; the caller's fault.
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
    /// The hub denies access to the model. It answers the same for some names that do not exist.
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
    /// The model exists, but its user must accept its terms first.
    #[error("{model} is gated: accept its terms at {page} and set HF_TOKEN to a token of the user who did")]
    Gated {
        /// The hub id.
        model: String,
        /// The model's page on the hub.
        page: String,
    },
    /// The hub must not be asked, and the cache lacks the file.
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
    /// The downloaded bytes differ from the hub's size or checksum; they were deleted.
    #[error(
        "{file} of {model} came damaged from the hub, twice: {why}; nothing of it is kept, try again later"
    )]
    Corrupt {
        /// The hub id.
        model: String,
        /// The file.
        file: String,
        /// The fault, in plain words.
        #[source]
        why: Cause,
    },
    /// The disk is full.
    #[error(
        "there is no space left in {folder} for {model}: {why}; free some, or set HF_HOME to a folder on another disk"
    )]
    NoSpace {
        /// The hub id.
        model: String,
        /// The cache folder.
        folder: PathBuf,
        /// How much is missing.
        #[source]
        why: Cause,
    },
    /// The hub cannot be reached or answers wrongly.
    #[error(
        "the hub at {endpoint} can't be read: {why}; check the network and HF_ENDPOINT, or give a folder"
    )]
    Network {
        /// The hub's address.
        endpoint: String,
        /// The error.
        #[source]
        why: Cause,
    },
    /// The machine has too little memory free.
    #[error(
        "loading the model needs about {:.1} GB of memory and {:.1} GB are free; \
         free some, choose a smaller model, or on a CPU precision int8 or bf16",
        *needed as f64 / 1e9,
        *free as f64 / 1e9
    )]
    Memory {
        /// Bytes needed, estimated.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The model lacks a file.
    #[error("model {model} has no {file}")]
    MissingFile {
        /// The folder or hub id.
        model: String,
        /// The file, with advice if there is some.
        file: String,
    },
    /// A file can't be read or parsed.
    #[error("{path} can't be used: {why}")]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The fault, in plain words.
        #[source]
        why: Cause,
    },
    /// No family reads this kind of model.
    #[error("models of type {found:?} are not supported; {known} are")]
    Architecture {
        /// `model_type` of its config.json.
        found: String,
        /// All supported types, as an English list.
        known: String,
    },
    /// The family does not support a setting of the configuration.
    #[error("the model's configuration is not supported: {0}")]
    Unsupported(#[source] Cause),
    /// The device does not multiply in such numbers.
    #[error(transparent)]
    Precision(#[from] PrecisionError),
    /// The weights lack a tensor that the configuration requires.
    #[error("the weights have no tensor {name}; they do not belong to this config.json")]
    MissingTensor {
        /// The tensor's name.
        name: String,
    },
    /// The weights have a tensor that the family does not read: vectors without it would be wrong.
    #[error("nothing reads tensor {name}; this kind of model is not supported, its vectors would be wrong")]
    UnreadTensor {
        /// The tensor's name.
        name: String,
    },
    /// A tensor's shape differs from the configuration's.
    #[error("tensor {name} has shape {found:?}, config.json calls for {expected:?}")]
    WrongShape {
        /// The tensor's name.
        name: String,
        /// Shape that the configuration requires.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },
    /// A tensor holds NaN or infinite values: the file is damaged or its training diverged.
    #[error("tensor {name} holds values that are not finite; get the weights again")]
    NotFinite {
        /// The tensor's name.
        name: String,
    },
    /// The tokenizer can't be used.
    #[error("the model's tokenizer can't be used: {0}")]
    Tokenizer(#[from] TokenizerError),
    /// The warm-up failed to encode a plain text or picture.
    #[error("the model loads but does not encode: {0}")]
    WarmUp(EncodeError),
    /// The device failed, for example for lack of memory.
    #[error("the device failed while loading: {0}")]
    Device(#[from] candle_core::Error),
}
