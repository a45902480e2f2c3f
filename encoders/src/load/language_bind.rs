//! A folder with LanguageBind's video model to encoders:
//!
//! ```text
//! config.json         "model_type": "LanguageBindVideo"
//! tokenizer.json      CLIP's
//! model.safetensors   or its parts, pytorch_model.bin, ...
//! ```
//!
//! Frames are made as the released code makes them: the short side resized to the model's, bilinear, and the middle cut
//! out. It takes the first and the last frame of a video and those between at equal steps; here they are the middles of
//! equal parts.

use std::path::Path;

use serde_json::json;

use super::identity::Identity;
use super::two_towers::{self, Parts};
use super::{LoadError, LoadOptions, Loaded, ModelName, folder};
use crate::models::clip;
use crate::models::{Family, language_bind};
use crate::placement::Placement;
use crate::preprocess::Preprocessing;
use crate::text::Tokenizer;

/// # Errors
/// [`LoadError`] for files that are missing, can't be read or do not belong together.
pub(super) fn load(
    name: &ModelName,
    path: &Path,
    options: &LoadOptions,
    placement: &Placement,
) -> Result<Loaded, LoadError> {
    let model = name.to_string();
    let bad = |why: String| LoadError::BadFile { path: path.join("config.json"), why };
    let bytes = folder::read_file(path, &model, "config.json")?;
    let clip: clip::Config = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    let video: language_bind::Config =
        serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    let (vision, text) = (video.vision(&clip)?, clip.text()?);
    let side = vision.sides.image;
    let preprocessor = json!({"size": side, "crop_size": side, "resample": 2}).to_string();
    let preprocessing = Preprocessing::from_json(preprocessor.as_bytes()).map_err(bad)?;
    two_towers::check_side(&preprocessing, &vision)?;
    let mut identity = Identity::new(placement);
    let weights = identity.weights(path, folder::STEM, name)?;
    let json = folder::read_file(path, &model, "tokenizer.json")?;
    identity.add(&json);
    let parts = Parts {
        family: Family::LanguageBind,
        identity,
        config: json!({"clip": clip, "video": video}),
        tokenizer: Tokenizer::from_json(&json, clip.text_config.specials(), text.longest)?,
        towers: two_towers::towers(vision, text, &weights)?,
        preprocessing,
    };
    two_towers::load(name, parts, options)
}
