//! A folder with a BLIP model to encoders, in the layout of transformers' `BlipForImageTextRetrieval`:
//!
//! ```text
//! config.json               "model_type": "blip"
//! preprocessor_config.json
//! tokenizer.json            BERT's
//! model.safetensors         or its parts, pytorch_model.bin, model.ckpt, ...
//! ```
//!
//! The weights may have the names of the released code, too (then `layer_norm_eps` of `vision_config` must be 1e-6).
//! BLIP-CoVR (arXiv 2308.14746) is told by a key of our own in config.json, for its tensors are those of any BLIP whose
//! text tower can look at pictures:
//!
//! ```text
//! "composed_queries": {"enc_token_id": 30523}
//! ```
//!
//! Its composed queries look at the frame in the middle of the clip, and modification texts are cleaned as in its code.

use super::identity::Identity;
use super::two_towers::{self, Parts};
use super::{Files, LoadError, LoadOptions, Loaded, ModelName};
use crate::models::Family;
use crate::models::blip::{self, Config};
use crate::models::pictures::Pictures;
use crate::models::two_towers::TwoTowers;
use crate::models::vision_transformer::VisionTransformer;
use crate::preprocess::Preprocessing;
use crate::text::{Specials, Tokenizer};

/// # Errors
/// [`LoadError`] for files that do not belong together.
pub(super) fn load(name: &ModelName, files: Files, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let config: Config = files.parsed()?;
    let preprocessing = Preprocessing::from_blip_json(&files.preprocessor)
        .map_err(|why| files.bad("preprocessor_config.json", why))?;
    let vision = config.vision()?;
    two_towers::check_side(&preprocessing, &vision)?;
    config.check_released(&files.weights)?;
    let identity = Identity::of(&files);
    let weights = blip::renamed(files.weights)?;
    let text = config.texts(&weights)?;
    let tokenizer = Tokenizer::from_json(&files.tokenizer, Specials::default(), text.longest())?;
    let tokenizer = if config.composed_queries.is_some() { tokenizer.cleaning() } else { tokenizer };
    let parts = Parts {
        family: Family::Blip,
        identity,
        config: serde_json::json!(config),
        towers: TwoTowers { vision: Pictures::Transformer(VisionTransformer::load(vision, &weights)?), text },
        tokenizer,
        preprocessing,
    };
    two_towers::load(name, parts, options)
}
