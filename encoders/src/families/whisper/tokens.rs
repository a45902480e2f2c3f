//! The tokenizer and its special tokens. Timestamps are the ids after `<|notimestamps|>`, in steps of 20 ms.

use tokenizers::Tokenizer as Inner;

use super::config::Config;
use crate::text;
use crate::{EncodeError, LoadError};

/// Milliseconds of a timestamp's step.
pub(super) const STEP_MS: i64 = 20;

/// A language and its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Language {
    /// E.g. `de`.
    pub(super) code: String,
    pub(super) token: u32,
}

/// The tokenizer with the ids that the model was trained with.
#[derive(Debug)]
pub(super) struct Tokens {
    inner: Inner,
    /// Ends a text; the ids of texts are below.
    pub(super) end: u32,
    pub(super) start: u32,
    /// Comes before text of the window before.
    pub(super) previous: u32,
    transcribe: u32,
    pub(super) no_speech: Option<u32>,
    pub(super) no_timestamps: u32,
    /// In the order of ids; empty for models of English alone.
    pub(super) languages: Vec<Language>,
}

impl Tokens {
    /// # Errors
    /// [`LoadError::Tokenizer`] for an unreadable file, [`LoadError::Unsupported`] if a special token is missing or an id
    /// lies outside the vocabulary.
    pub(super) fn from_json(
        json: &[u8],
        config: &Config,
        is_multilingual: bool,
    ) -> Result<Tokens, LoadError> {
        let mut inner = text::file::read(json)?;
        // Special tokens that users write are letters.
        inner.set_encode_special_tokens(true);
        let id = |token: &str| {
            let missing = || LoadError::Unsupported(format!("tokenizer.json has no token {token}").into());
            inner.token_to_id(token).ok_or_else(missing)
        };
        let (start, transcribe) = (id("<|startoftranscript|>")?, id("<|transcribe|>")?);
        let no_speech = ["<|nospeech|>", "<|nocaptions|>"].into_iter().find_map(|it| inner.token_to_id(it));
        let tokens = Tokens {
            end: id("<|endoftext|>")?,
            start,
            previous: id("<|startofprev|>")?,
            transcribe,
            no_speech,
            no_timestamps: id("<|notimestamps|>")?,
            languages: if is_multilingual { languages(&inner, start..transcribe) } else { Vec::new() },
            inner,
        };
        tokens.check(config.vocabulary, is_multilingual)?;
        Ok(tokens)
    }

    fn check(&self, vocabulary: usize, is_multilingual: bool) -> Result<(), LoadError> {
        let unsupported = |why: String| Err(LoadError::Unsupported(why.into()));
        let bound = self.inner.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        if bound > vocabulary || self.first_time() as usize >= vocabulary {
            return unsupported(format!(
                "tokenizer.json gives {bound} ids, the model has {vocabulary} tokens"
            ));
        }
        let specials = [self.start, self.previous, self.transcribe, self.no_timestamps];
        if specials.iter().any(|id| *id <= self.end) {
            return unsupported("special tokens of tokenizer.json come before <|endoftext|>".into());
        }
        if specials.iter().any(|id| *id >= self.first_time()) {
            return unsupported("special tokens of tokenizer.json come after <|notimestamps|>".into());
        }
        if is_multilingual && self.languages.is_empty() {
            return unsupported("tokenizer.json has no tokens of languages".into());
        }
        Ok(())
    }

    /// The token of time 0.
    pub(super) fn first_time(&self) -> u32 {
        self.no_timestamps + 1
    }

    /// Steps from the window's start, if the token is a timestamp.
    pub(super) fn time(&self, token: u32) -> Option<u32> {
        token.checked_sub(self.first_time())
    }

    /// What a text begins with: `<|startoftranscript|>`, and in models of several languages the language and the task.
    pub(super) fn beginning(&self, language: Option<&Language>) -> Vec<u32> {
        match language {
            Some(language) => vec![self.start, language.token, self.transcribe],
            None => vec![self.start],
        }
    }

    pub(super) fn language(&self, code: &str) -> Option<&Language> {
        self.languages.iter().find(|it| it.code == code)
    }

    /// The ids of text that a window reads before its own, without special tokens.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for what the tokenizer can't read.
    pub(super) fn before(&self, text: &str) -> Result<Vec<u32>, EncodeError> {
        let encoding = self.inner.encode_fast(format!(" {}", text.trim()), false);
        let encoding = encoding.map_err(|error| EncodeError::BadInput(error.into()))?;
        Ok(encoding.get_ids().iter().copied().filter(|id| *id < self.end).collect())
    }

    /// The text of ids, without special tokens and timestamps.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] for ids that the tokenizer can't turn into text.
    pub(super) fn text(&self, ids: &[u32]) -> Result<String, EncodeError> {
        let letters: Vec<u32> = ids.iter().copied().filter(|id| *id < self.end).collect();
        self.inner.decode(&letters, false).map_err(|error| EncodeError::Failed(error.into()))
    }
}

/// The tokens in `range` that look like a language: `<|de|>`, `<|haw|>`.
fn languages(inner: &Inner, range: std::ops::Range<u32>) -> Vec<Language> {
    let language = |token: u32| {
        let name = inner.id_to_token(token)?;
        let code = name.strip_prefix("<|")?.strip_suffix("|>")?;
        let is_code = (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase());
        is_code.then(|| Language { code: code.to_owned(), token })
    };
    range.filter_map(language).collect()
}
