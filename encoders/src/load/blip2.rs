//! A folder with a BLIP-2 model to encoders, in the layout of transformers' `Blip2ForImageTextRetrieval`:
//!
//! ```text
//! config.json               "model_type": "blip-2"
//! preprocessor_config.json
//! tokenizer.json            BERT's
//! model.safetensors         or its parts, pytorch_model.bin, ...
//! ```
//!
//! Models that write captions or answers have no vectors of texts, and are refused: by their `architectures`, or else
//! for want of the weights.

use serde_json::Value;

use super::identity::Identity;
use super::two_towers::{self, Parts};
use super::{Files, LoadError, LoadOptions, Loaded, ModelName};
use crate::models::Family;
use crate::models::blip2::{self, Config};
use crate::models::pictures::Pictures;
use crate::models::two_towers::TwoTowers;
use crate::preprocess::Preprocessing;
use crate::text::{Specials, Tokenizer};

/// The class whose weights are read.
const ARCHITECTURE: &str = "Blip2ForImageTextRetrieval";

/// Whether the `architectures` of a config.json have vectors; known before many gigabytes are read.
///
/// # Errors
/// [`LoadError::Unsupported`] for other classes.
pub(super) fn check_architectures(architectures: &Value) -> Result<(), LoadError> {
    let Some(named) = architectures.as_array() else { return Ok(()) };
    if named.iter().any(|class| class == ARCHITECTURE) {
        return Ok(());
    }
    let why = format!("architectures {architectures}; of BLIP-2's {ARCHITECTURE} is");
    Err(LoadError::Unsupported(why))
}

/// # Errors
/// [`LoadError`] for files that do not belong together.
pub(super) fn load(name: &ModelName, files: Files, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let config: Config = files.parsed()?;
    let preprocessing = Preprocessing::from_blip_json(&files.preprocessor)
        .map_err(|why| files.bad("preprocessor_config.json", why))?;
    two_towers::check_side(&preprocessing, &config.vision()?)?;
    let identity = Identity::of(&files);
    let (pictures, text) = config.towers(&blip2::renamed(files.weights)?)?;
    let tokenizer = Tokenizer::from_json(&files.tokenizer, Specials::default(), text.longest())?;
    let parts = Parts {
        family: Family::Blip2,
        identity,
        config: serde_json::json!(config),
        towers: TwoTowers { vision: Pictures::QFormer(pictures), text },
        tokenizer,
        preprocessing,
    };
    two_towers::load(name, parts, options)
}
