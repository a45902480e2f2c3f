//! A folder with a CLIP model to encoders, in Hugging Face's layout:
//!
//! ```text
//! config.json               "model_type": "clip"
//! preprocessor_config.json
//! tokenizer.json
//! model.safetensors         or its parts, model.pt, pytorch_model.bin, ...
//! ```
//!
//! The weights may have the names of OpenAI's code, too: MetaCLIP's and Long-CLIP's released checkpoints are linked to as
//! `model.pt`. Long-CLIP's are told by their second table of positions; its config.json says
//! `"max_position_embeddings": 248`.

use super::identity::Identity;
use super::two_towers::{self, Parts};
use super::{Files, LoadError, LoadOptions, Loaded, ModelName};
use crate::models::clip::Config;
use crate::models::{Family, openai};
use crate::preprocess::Preprocessing;
use crate::text::Tokenizer;

/// # Errors
/// [`LoadError`] for files that do not belong together.
pub(super) fn load(name: &ModelName, files: Files, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let config: Config = files.parsed()?;
    let (vision, text) = (config.vision()?, config.text()?);
    let preprocessing = Preprocessing::from_json(&files.preprocessor)
        .map_err(|why| files.bad("preprocessor_config.json", why))?;
    two_towers::check_side(&preprocessing, &vision)?;
    let tokenizer = Tokenizer::from_json(&files.tokenizer, config.text_config.specials(), text.longest)?;
    let identity = Identity::of(&files);
    let weights = openai::text(openai::vision(openai::long(files.weights)?)?)?;
    let parts = Parts {
        family: Family::Clip,
        identity,
        config: serde_json::json!(config),
        towers: two_towers::towers(vision, text, &weights)?,
        tokenizer,
        preprocessing,
    };
    two_towers::load(name, parts, options)
}
