//! A folder with a BLIP model to encoders, in the layout of transformers' `BlipForImageTextRetrieval`:
//!
//! ```text
//! config.json               "model_type": "blip"
//! preprocessor_config.json
//! tokenizer.json            BERT's
//! model.safetensors         or its parts, pytorch_model.bin, ...
//! ```

use super::identity::Identity;
use super::two_towers::{self, Parts};
use super::{Files, LoadError, LoadOptions, Loaded, ModelName};
use crate::models::Family;
use crate::models::blip::{self, Config};
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
    let identity = Identity::of(&files);
    let weights = blip::renamed(files.weights)?;
    let text = config.texts(&weights)?;
    let tokenizer = Tokenizer::from_json(&files.tokenizer, Specials::default(), text.longest())?;
    let parts = Parts {
        family: Family::Blip,
        identity,
        config: serde_json::json!(config),
        towers: TwoTowers { vision: VisionTransformer::load(vision, &weights)?, text },
        tokenizer,
        preprocessing,
    };
    two_towers::load(name, parts, options)
}
