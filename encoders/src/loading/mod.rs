//! The loading code that all families share: names, files, weights, identity, errors.

mod embedder;
mod error;
pub(crate) mod folder;
mod identity;
pub(crate) mod memory;
mod model_files;
mod name;
mod options;
mod progress;
mod weights;

pub use embedder::Embedder;
pub use error::LoadError;
pub(crate) use identity::{FamilyId, Identity, SpaceName, add_cleaning};
pub use model_files::ModelFiles;
pub(crate) use model_files::{CONFIG, PretrainedFiles};
pub use name::{DEFAULT_MODEL, ModelName};
pub(crate) use name::{Source, is_model_file};
pub use options::LoadOptions;
pub use progress::{DownloadProgress, Downloaded};
pub(crate) use weights::{Weights, is_torchscript};
