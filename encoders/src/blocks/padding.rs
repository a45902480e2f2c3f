//! What texts are padded with by models that read the padding too, SigLIP's kind: the tokenizer's matter, in the files
//! tokenizer_config.json and tokenizer.json.
//!
//! The padding is tokenizer_config.json's `pad_token`, or else what tokenizer.json pads with, or else what the model's own
//! configuration states; on the right unless `padding_side` says left, or no side is said and `tokenizer_class` is
//! transformers' own for Gemma or SigLIP 2, which pad on the left.

use std::path::Path;

use serde::Deserialize;

use super::text_transformer::Side;
use crate::text::Tokenizer;
use crate::{Cause, LoadError};

/// What a tokenizer does beside tokenizer.json.
pub(crate) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// How texts are filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Padding {
    /// The id that they are filled up with.
    pub(crate) id: u32,
    /// Where.
    pub(crate) side: Side,
    /// Whether texts become lower case before.
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
    padding: Option<FilePadding>,
}

#[derive(Debug, Deserialize)]
struct FilePadding {
    pad_id: u32,
}

impl Padding {
    /// That of the model in `folder`, whose tokenizer.json holds `json`; `stated` is what its configuration says.
    ///
    /// # Errors
    /// [`LoadError::BadFile`] for files that can't be read, [`LoadError::MissingFile`] where nothing says it.
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

/// How the names of transformers' classes begin that pad on the left: each with a second one in `Fast`.
const PAD_LEFT: [&str; 2] = ["GemmaTokenizer", "Siglip2Tokenizer"];

impl TokenizerConfig {
    fn side(&self) -> Side {
        let class = self.tokenizer_class.as_deref().unwrap_or_default();
        let pads_left = PAD_LEFT.iter().any(|name| class.starts_with(name));
        self.padding_side.unwrap_or(if pads_left { Side::Left } else { Side::Right })
    }
}
