//! One file of OpenAI's CLIP, or of a model that was traced as those are, to encoders:
//!
//! ```text
//! ViT-B-32.pt      a TorchScript archive
//! tokenizer.json   CLIP's, beside it
//! ```
//!
//! There is no configuration: sizes are read off the tensors' shapes as OpenAI's `build_model` does it, with heads of 64
//! values and quick_gelu; pictures are resized and cropped as in its `_transform`. OpenAI finds its vocabulary by
//! itself; here its tokenizer.json is needed.
//!
//! A state_dict alone is refused: OpenCLIP's have the same names and shapes, and say neither which activation they were
//! trained with nor how large a head is.

use std::path::Path;

use serde_json::json;

use super::identity::Identity;
use super::two_towers::{self, Parts};
use super::{LoadError, LoadOptions, Loaded, ModelName, folder};
use crate::models::{Family, openai, openai_sizes};
use crate::placement::Placement;
use crate::preprocess::Preprocessing;
use crate::text::Tokenizer;
use crate::weights;

/// How such files' names end.
const ENDING: &str = "pt";
/// Why a file with nothing but tensors is refused.
const STATE_DICT: &str = "it is a state_dict, which does not say its activation and heads; put it into a folder as \
                          model.pt with the config.json of its model beside";

/// Whether `path` is a file that is named like one of OpenAI's.
pub(super) fn is_file(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(ENDING))
}

/// The only such file of a folder.
pub(super) fn only_file(folder: &Path) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut files = entries.flatten().map(|entry| entry.path()).filter(|path| is_file(path));
    files.next().filter(|_| files.next().is_none())
}

/// # Errors
/// [`LoadError`] for files that are missing, can't be read or are no such model.
pub(super) fn load(
    name: &ModelName,
    file: &Path,
    options: &LoadOptions,
    placement: &Placement,
) -> Result<Loaded, LoadError> {
    let bad = |why: String| LoadError::BadFile { path: file.to_owned(), why };
    let mut identity = Identity::new(placement);
    let weights = identity.weights_of(&[file.to_owned()])?;
    if !weights::is_torchscript(file) {
        return Err(bad(STATE_DICT.to_owned()));
    }
    let weights = openai::text(openai::vision(openai::long(weights)?)?)?;
    let config = openai_sizes::config(&weights)?;
    let (vision, text) = (config.vision()?, config.text()?);
    let side = vision.sides.image;
    let preprocessing = Preprocessing::from_open_clip(&json!({}), side as u32).map_err(bad)?;
    let json = tokenizer(name, file)?;
    identity.add(&json);
    let tokenizer = Tokenizer::from_json(&json, config.text_config.specials(), text.longest)?;
    let parts = Parts {
        family: Family::Clip,
        identity,
        towers: two_towers::towers(vision, text, &weights)?,
        config: json!(config),
        tokenizer,
        preprocessing,
    };
    two_towers::load(name, parts, options)
}

/// The contents of the tokenizer.json beside the file; if there is none, an error that says where to get it.
fn tokenizer(name: &ModelName, file: &Path) -> Result<Vec<u8>, LoadError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder::read_file(folder, &name.to_string(), "tokenizer.json").map_err(|error| match error {
        LoadError::MissingFile { model, file } => {
            let file = format!("{file} beside it; copy that of openai/clip-vit-base-patch32 into the folder");
            LoadError::MissingFile { model, file }
        }
        other => other,
    })
}
