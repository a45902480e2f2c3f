//! Text padding for SigLIP's kind of model, whose towers also attend to the padding. Settings come from
//! tokenizer_config.json and tokenizer.json.
//!
//! The padding token is tokenizer_config.json's `pad_token`, else tokenizer.json's padding id, else the id in the
//! model's configuration. It stands on the side that `padding_side` names. Without that setting, it stands on the left
//! if `tokenizer_class` is transformers' class for Gemma or SigLIP 2, otherwise on the right.

use std::path::Path;

use serde::Deserialize;

use super::text_transformer::Side;
use crate::text::Tokenizer;
use crate::{Cause, LoadError};

/// The tokenizer's settings beside tokenizer.json.
pub(crate) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// How texts are padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Padding {
    /// The id of the padding token.
    pub(crate) id: u32,
    /// The side that the padding stands on.
    pub(crate) side: Side,
    /// Whether texts are lower-cased before tokenization.
    pub(crate) lower_case: bool,
}

#[derive(Debug, Default, Deserialize)]
struct TokenizerConfig {
    pad_token: Option<Token>,
    padding_side: Option<Side>,
    tokenizer_class: Option<String>,
    #[serde(default)]
    do_lower_case: Option<bool>,
}

/// A token as a plain string, or as an object with matching rules.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Token {
    Plain(String),
    Described { content: String },
}

/// The padding section of tokenizer.json.
#[derive(Debug, Deserialize)]
struct TokenizerFile {
    padding: Option<FilePadding>,
}

#[derive(Debug, Deserialize)]
struct FilePadding {
    pad_id: u32,
}

impl Padding {
    /// The padding of the model in `folder`. `json` is its tokenizer.json, `stated` the id of its configuration.
    ///
    /// # Errors
    /// [`LoadError::BadFile`] for unreadable files, [`LoadError::MissingFile`] if no file names a padding token.
    pub(crate) fn of(
        folder: &Path,
        json: &[u8],
        tokenizer: &Tokenizer,
        stated: Option<u32>,
    ) -> Result<Padding, LoadError> {
        let bad = |file: &str, why: Cause| LoadError::BadFile { path: folder.join(file), why };
        let beside: TokenizerConfig = match std::fs::read(folder.join(TOKENIZER_CONFIG)) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| bad(TOKENIZER_CONFIG, error.into()))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => TokenizerConfig::default(),
            Err(error) => return Err(bad(TOKENIZER_CONFIG, error.into())),
        };
        let id = match &beside.pad_token {
            Some(Token::Plain(token) | Token::Described { content: token }) => {
                let why = || format!("tokenizer.json does not know its pad_token {token:?}");
                tokenizer.id_of(token).ok_or_else(|| bad(TOKENIZER_CONFIG, why().into()))?
            }
            None => {
                let file: TokenizerFile =
                    serde_json::from_slice(json).map_err(|error| bad("tokenizer.json", error.into()))?;
                let missing = || LoadError::MissingFile {
                    model: folder.display().to_string(),
                    file: format!("{TOKENIZER_CONFIG} with a pad_token"),
                };
                file.padding.map(|padding| padding.pad_id).or(stated).ok_or_else(missing)?
            }
        };
        Ok(Padding { id, side: beside.side(), lower_case: beside.do_lower_case == Some(true) })
    }
}

/// Name prefixes of transformers' tokenizer classes that pad on the left; each class also has a variant in `Fast`.
const PAD_LEFT: [&str; 2] = ["GemmaTokenizer", "Siglip2Tokenizer"];

impl TokenizerConfig {
    fn side(&self) -> Side {
        let class = self.tokenizer_class.as_deref().unwrap_or_default();
        let pads_left = PAD_LEFT.iter().any(|name| class.starts_with(name));
        self.padding_side.unwrap_or(if pads_left { Side::Left } else { Side::Right })
    }
}
