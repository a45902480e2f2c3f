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
//! What texts are padded with is the tokenizer's matter: its `pad_token`, or else what tokenizer.json pads with, or else
//! config.json's `pad_token_id`; on the right unless `padding_side` says left, or no side is said and `tokenizer_class`
//! is transformers' own for SigLIP 2, which pads on the left. Texts become lower case where `do_lower_case` says so: both were trained on such.

use serde::Deserialize;
use serde_json::json;

use super::identity::Identity;
use super::two_towers::{self, Parts};
use super::{Files, LoadError, LoadOptions, Loaded, ModelName};
use crate::models::Family;
use crate::models::siglip::{self, Config};
use crate::models::text_transformer::Side;
use crate::preprocess::Preprocessing;
use crate::text::{Specials, Tokenizer};

/// What a tokenizer does beside tokenizer.json.
pub(super) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

#[derive(Debug, Default, Deserialize)]
struct TokenizerConfig {
    pad_token: Option<Token>,
    padding_side: Option<Side>,
    tokenizer_class: Option<String>,
    #[serde(default)]
    do_lower_case: Option<bool>,
}

impl TokenizerConfig {
    fn side(&self) -> Side {
        let pads_left =
            self.tokenizer_class.as_deref().is_some_and(|class| class.starts_with("Siglip2Tokenizer"));
        self.padding_side.unwrap_or(if pads_left { Side::Left } else { Side::Right })
    }
}

/// A token by itself or with how it is matched.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Token {
    Plain(String),
    Described { content: String },
}

/// The part of a tokenizer.json that is about padding.
#[derive(Debug, Deserialize)]
struct TokenizerFile {
    padding: Option<Padding>,
}

#[derive(Debug, Deserialize)]
struct Padding {
    pad_id: u32,
}

/// # Errors
/// [`LoadError`] for files that do not belong together.
pub(super) fn load(name: &ModelName, files: Files, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let config: Config = files.parsed()?;
    let preprocessing = Preprocessing::from_siglip_json(&files.preprocessor)
        .map_err(|why| files.bad("preprocessor_config.json", why))?;
    let vision = config.vision()?;
    two_towers::check_side(&preprocessing, &vision)?;
    let beside: TokenizerConfig = files.optional(TOKENIZER_CONFIG)?.unwrap_or_default();
    let longest = config.text_config.max_position_embeddings;
    let tokenizer = Tokenizer::from_json(&files.tokenizer, Specials::default(), longest)?;
    let side = beside.side();
    let pad = padding(&tokenizer, &beside, &files, &config)?;
    let lower_case = beside.do_lower_case == Some(true);
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

/// The id that texts are padded with.
fn padding(
    tokenizer: &Tokenizer,
    beside: &TokenizerConfig,
    files: &Files,
    config: &Config,
) -> Result<u32, LoadError> {
    if let Some(Token::Plain(token) | Token::Described { content: token }) = &beside.pad_token {
        let unknown =
            || files.bad(TOKENIZER_CONFIG, format!("tokenizer.json does not know its pad_token {token:?}"));
        return tokenizer.id_of(token).ok_or_else(unknown);
    }
    let file: TokenizerFile = serde_json::from_slice(&files.tokenizer)
        .map_err(|error| files.bad("tokenizer.json", error.to_string()))?;
    let id = file.padding.map(|padding| padding.pad_id).or(config.text_config.pad_token_id);
    id.ok_or_else(|| LoadError::MissingFile {
        model: files.folder.display().to_string(),
        file: format!("{TOKENIZER_CONFIG} with a pad_token"),
    })
}
