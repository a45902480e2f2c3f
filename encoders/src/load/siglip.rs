//! A folder with a SigLIP or SigLIP 2 model of a fixed resolution to encoders, in Hugging Face's layout:
//!
//! ```text
//! config.json               "model_type": "siglip"
//! preprocessor_config.json
//! tokenizer.json
//! tokenizer_config.json     "pad_token", "do_lower_case"
//! model.safetensors         or its parts, pytorch_model.bin, ...
//! ```
//!
//! What texts are padded with is the tokenizer's matter ([`Padding`]), or else config.json's `pad_token_id`. Texts become
//! lower case where `do_lower_case` says so: both were trained on such.

use serde_json::json;

use super::identity::Identity;
use super::padding::Padding;
use super::two_towers::{self, Parts};
use super::{Files, LoadError, LoadOptions, Loaded, ModelName};
use crate::models::Family;
use crate::models::siglip::{self, Config};
use crate::preprocess::Preprocessing;
use crate::text::{Specials, Tokenizer};

/// # Errors
/// [`LoadError`] for files that do not belong together.
pub(super) fn load(name: &ModelName, files: Files, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let config: Config = files.parsed()?;
    let preprocessing = Preprocessing::from_siglip_json(&files.preprocessor)
        .map_err(|why| files.bad("preprocessor_config.json", why))?;
    let vision = config.vision()?;
    two_towers::check_side(&preprocessing, &vision)?;
    let longest = config.text_config.max_position_embeddings;
    let tokenizer = Tokenizer::from_json(&files.tokenizer, Specials::default(), longest)?;
    let stated = config.text_config.pad_token_id;
    let Padding { id: pad, side, lower_case } =
        Padding::of(&files.folder, &files.tokenizer, &tokenizer, stated)?;
    let tokenizer = if lower_case { tokenizer.lower_case()? } else { tokenizer };
    let (text, identity) = (config.text(pad, side)?, Identity::of(&files));
    let parts = Parts {
        family: Family::Siglip,
        identity,
        config: json!({"model": config, "pad": pad, "side": side, "lower_case": lower_case}),
        towers: two_towers::towers(vision, text, &siglip::renamed(files.weights)?)?,
        tokenizer,
        preprocessing,
    };
    two_towers::load(name, parts, options)
}
