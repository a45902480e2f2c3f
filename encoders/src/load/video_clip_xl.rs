//! A folder with VideoCLIP-XL to encoders. The checkpoint is linked to or renamed; the configuration is ours, because
//! there is none:
//!
//! ```text
//! config.json         {"model_type": "videoclip-xl"}
//! tokenizer.json      CLIP's
//! pytorch_model.bin   VideoCLIP-XL.bin or VideoCLIP-XL-v2.bin; or model.safetensors, model.pt, ...
//! ```
//!
//! Sizes are read off the tensors, with heads of 64 values and quick_gelu. Frames are squashed to the model's square,
//! bilinear, as the released code does (whose filter differs: it does not look at all pixels that it shrinks). It takes
//! the first frame of each of equal parts; here they are the middles.

use std::path::Path;

use serde_json::json;

use super::identity::Identity;
use super::two_towers::{self, Parts};
use super::{LoadError, LoadOptions, Loaded, ModelName, folder};
use crate::models::{Family, openai_sizes, video_clip_xl};
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
    let mut identity = Identity::new(placement);
    let weights = video_clip_xl::renamed(identity.weights(path, folder::STEM, name)?)?;
    let json = folder::read_file(path, &name.to_string(), "tokenizer.json")?;
    identity.add(&json);
    let clip = openai_sizes::config(&weights)?;
    let (vision, text) = (video_clip_xl::vision(&clip, &weights)?, clip.text()?);
    let tokenizer = Tokenizer::from_json(&json, clip.text_config.specials(), text.longest)?;
    let preprocessing = preprocessing(vision.sides.image)
        .map_err(|why| LoadError::BadFile { path: path.join("config.json"), why })?;
    let parts = Parts {
        family: Family::VideoClipXl,
        identity,
        config: json!(clip),
        towers: two_towers::towers(vision, text, &weights)?,
        tokenizer,
        preprocessing,
    };
    two_towers::load(name, parts, options)
}

/// With ImageNet's mean and deviation.
fn preprocessing(side: usize) -> Result<Preprocessing, String> {
    let preprocessor = json!({
        "size": {"height": side, "width": side},
        "do_center_crop": false,
        "resample": 2,
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    });
    Preprocessing::from_json(preprocessor.to_string().as_bytes())
}
