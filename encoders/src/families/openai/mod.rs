//! Loads a single file of OpenAI's CLIP, or of a model traced in the same way:
//!
//! ```text
//! ViT-B-32.pt      a TorchScript archive
//! tokenizer.json   CLIP's, beside it
//! ```
//!
//! There is no configuration. The tensors' shapes give the sizes, as in OpenAI's `build_model`. Heads have 64 values
//! and the activation is quick_gelu. Preprocessing is OpenAI's `_transform`. OpenAI's code brings its vocabulary; here
//! tokenizer.json is required.
//!
//! A bare state_dict is refused: OpenCLIP's have the same names and shapes, but their activation and head size are
//! unknown.

pub(crate) mod sizes;

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::blocks::assembly::{Parts, assemble, spread, towers};
use crate::blocks::openai_names;
use crate::device::Placement;
use crate::families::clip;
use crate::families::family::{Family, Model, Verdict};
use crate::hub::Repository;
use crate::loading::{
    CONFIG, Identity, LoadError, LoadOptions, ModelFiles, folder, is_model_file, is_torchscript,
};
use crate::preprocess::Preprocessing;
use crate::text::Tokenizer;
use crate::text::clean::Cleaning;
use crate::{Cause, TrainedOn};

/// The reason for refusing a file that holds only tensors.
const STATE_DICT: &str = "it is a state_dict, which does not say its activation and heads; put it into a folder as \
                          model.pt with the config.json of its model beside";

/// CLIP in OpenAI's format; its spaces are CLIP's.
pub(crate) struct OpenAi;

impl Family for OpenAi {
    fn name(&self) -> &'static str {
        clip::ID.name
    }

    fn version(&self) -> u32 {
        clip::ID.version
    }

    fn reads(&self, model: &ModelFiles) -> Verdict {
        match file(model) {
            Some(_) => Verdict::Yes,
            None => Verdict::No,
        }
    }

    fn download(&self, _: &Repository) -> Result<(), LoadError> {
        Err(LoadError::Unsupported("OpenAI's own files are loaded from folders".into()))
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        let file = file(model).ok_or_else(|| model.missing(CONFIG.to_owned()))?;
        let bad = |why: Cause| LoadError::BadFile { path: file.clone(), why };
        let mut identity = Identity::new(on);
        let weights = identity.weights_of(std::slice::from_ref(&file))?;
        if !is_torchscript(&file) {
            return Err(bad(STATE_DICT.into()));
        }
        let weights = openai_names::text(openai_names::vision(openai_names::long(weights)?)?)?;
        let config = sizes::config(&weights)?;
        let (vision, text) = (config.vision()?, config.text()?);
        let side = vision.sides.image;
        let preprocessing = Preprocessing::from_open_clip(&json!({}), side as u32).map_err(bad)?;
        let json = tokenizer(model, &file)?;
        identity.add(&json);
        let tokenizer = Tokenizer::from_json(&json, config.text_config.specials(), text.longest)?
            .cleaned(Cleaning::FtfyHtml);
        let parts = Parts {
            family: clip::ID,
            identity,
            towers: towers(vision, text, &weights)?,
            config: json!(config),
            tokenizer,
            foreign_token: None,
            preprocessing,
            trained_on: TrainedOn::Unstated,
            sampler: spread,
        };
        Ok(Model::Embedder(assemble(model.name(), parts, options)?))
    }
}

/// The model's file: the one that the user named, or the only one in a folder without a config.json.
fn file(model: &ModelFiles) -> Option<PathBuf> {
    if let Some(file) = model.file() {
        return Some(file.to_owned());
    }
    if model.built_in().is_some() || model.has(CONFIG) {
        return None;
    }
    let entries = std::fs::read_dir(model.folder()).ok()?;
    let mut files = entries.flatten().map(|entry| entry.path()).filter(|path| is_model_file(path));
    files.next().filter(|_| files.next().is_none())
}

/// The contents of tokenizer.json beside the file; the error for a missing file names a source.
fn tokenizer(model: &ModelFiles, file: &Path) -> Result<Vec<u8>, LoadError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder::read_file(folder, &model.name().to_string(), folder::TOKENIZER).map_err(|error| match error {
        LoadError::MissingFile { model, file } => {
            let file = format!("{file} beside it; copy that of openai/clip-vit-base-patch32 into the folder");
            LoadError::MissingFile { model, file }
        }
        other => other,
    })
}
