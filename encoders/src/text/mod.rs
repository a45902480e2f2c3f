//! Text to token ids: the tokenizer, and overlapping windows (chunks) of long texts.

use tokenizers::Tokenizer as Inner;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{Lowercase, NFC, NormalizerWrapper, Replace, Sequence, Strip};

use crate::Cause;
use clean::Cleaning;

pub(crate) mod clean;
pub(crate) mod file;
pub mod normalise;
mod window;

/// Windows that one text may be cut into, unless the caller sets another bound.
pub const MAX_WINDOWS: usize = 128;

/// The token ids of one text or window, with special tokens, not padded, never longer than the model's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// Token ids.
    pub ids: Vec<u32>,
}

/// How to handle a text over the model's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// One window per sentence, or per few sentences where there are many; no token is lost.
    #[default]
    Window,
    /// Keep the first window.
    Truncate,
    /// Return an error.
    Error,
}

/// One chunk of a text. Positions count the text's tokens without special tokens; the end is exclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The first token.
    pub start_token: usize,
    /// The end token (exclusive).
    pub end_token: usize,
    /// The encoder's input.
    pub tokens: Tokens,
}

/// A text, split for the encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// At least one; an empty text gives one window with special tokens alone.
    pub windows: Vec<Window>,
    /// Tokens of the text, without special tokens.
    pub tokens_total: usize,
    /// Tokens that lie in a window.
    pub tokens_used: usize,
    /// Whether tokens were cut off.
    pub truncated: bool,
}

/// Why a text could not be split; the caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The text exceeds the limit, and the caller asked for an error.
    #[error("the text has {tokens} tokens, the model takes {limit}")]
    TooLong {
        /// Tokens of the text.
        tokens: usize,
        /// Tokens that the model takes.
        limit: usize,
    },
    /// The text needs more windows than the caller allows.
    #[error("the text needs {windows} windows, at most {limit} are allowed")]
    TooManyWindows {
        /// Windows needed.
        windows: usize,
        /// Windows allowed.
        limit: usize,
    },
    /// The tokenizer has no token for a part of the text.
    #[error("the model's tokenizer can't read the text: {0}")]
    Unreadable(#[source] Cause),
}

/// Special token ids from the model's configuration, for tokenizers that add none themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Specials {
    /// Precedes every text.
    pub bos: Option<u32>,
    /// Follows every text.
    pub eos: Option<u32>,
}

/// Why a tokenizer cannot be used; the model's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenizerError {
    /// tokenizer.json cannot be read.
    #[error("tokenizer.json can't be read: {0}")]
    Unreadable(#[source] Cause),
    /// The tokenizer cannot encode the model's prompt.
    #[error("the model's prompt can't be read: {0}")]
    Prompt(#[source] Cause),
    /// The special tokens, alone or with the prompt, leave no room for text.
    #[error("{specials} special tokens fill the model's {limit} positions")]
    NoRoom {
        /// Special tokens around a text.
        specials: usize,
        /// Positions of the model.
        limit: usize,
    },
}

/// A model's tokenizer and its limits.
///
/// Some sentence encoders mark queries and passages with different prompts before the text. The prompt precedes every
/// window and counts against the model's limit, but not in window positions or totals.
pub struct Tokenizer {
    inner: Inner,
    before: Vec<u32>,
    after: Vec<u32>,
    max_tokens: usize,
    /// Applied first, before the prompt.
    cleaning: Cleaning,
    normalising: Normalising,
    query_prompt: Prompt,
    passage_prompt: Prompt,
}

/// Which texts are normalised before tokenization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Normalising {
    None,
    /// All texts, by [`normalise::normalise`]; modification texts are also truncated.
    All,
    /// Modification texts, by [`normalise::clean_modification`].
    Modifications {
        /// The most tokens that are kept, special tokens included.
        max_tokens: usize,
    },
}

/// The prompt before all texts of one kind; empty for most models.
#[derive(Default)]
struct Prompt {
    /// The prompt with its final space.
    text: String,
    /// Token ids of the prompt without its final space. Some tokenizers attach the space to the next token, others
    /// drop it.
    ids: Vec<u32>,
}

impl Tokenizer {
    /// Reads a tokenizer.json for a model of `max_tokens` positions.
    ///
    /// The file's post-processor defines the special tokens; if it adds none, `specials` applies. The file's truncation
    /// and padding are ignored, because windows and batches handle them.
    ///
    /// # Errors
    /// The file cannot be read or leaves no room for text.
    pub fn from_json(json: &[u8], specials: Specials, max_tokens: usize) -> Result<Self, TokenizerError> {
        let unreadable = |error: tokenizers::Error| TokenizerError::Unreadable(error.into());
        let inner = file::read(json)?;
        let (mut before, mut after) = specials_of(&inner).map_err(unreadable)?;
        if before.is_empty() && after.is_empty() {
            before.extend(specials.bos);
            after.extend(specials.eos);
        }
        let count = before.len() + after.len();
        if max_tokens <= count {
            return Err(TokenizerError::NoRoom { specials: count, limit: max_tokens });
        }
        let (query_prompt, passage_prompt) = (Prompt::default(), Prompt::default());
        let (cleaning, normalising) = (Cleaning::None, Normalising::None);
        Ok(Tokenizer {
            inner,
            before,
            after,
            max_tokens,
            cleaning,
            normalising,
            query_prompt,
            passage_prompt,
        })
    }

    /// Applies [`normalise::clean_modification`] to every modification text, as models of CoVR require, and keeps
    /// `max_tokens` of its tokens, special tokens included.
    #[must_use]
    pub(crate) fn cleaning_modifications(self, max_tokens: usize) -> Self {
        Tokenizer { normalising: Normalising::Modifications { max_tokens }, ..self }
    }

    /// Applies [`normalise`] to every text, as models of TF-CoVR require.
    #[must_use]
    pub fn normalising(self) -> Self {
        Tokenizer { normalising: Normalising::All, ..self }
    }

    /// Cleans every text first, as the released tokenizer of the weights does.
    #[must_use]
    pub(crate) fn cleaned(self, cleaning: Cleaning) -> Self {
        Tokenizer { cleaning, ..self }
    }

    /// The cleaning set by [`Tokenizer::cleaned`]. It affects vectors, so it is part of a space's identity.
    pub(crate) fn cleaning(&self) -> Cleaning {
        self.cleaning
    }

    /// Reads special tokens in texts as ordinary letters.
    #[must_use]
    pub(crate) fn plain(mut self) -> Self {
        self.inner.set_encode_special_tokens(true);
        self
    }

    /// The special tokens behind every text.
    pub(crate) fn after(&self) -> &[u32] {
        &self.after
    }

    /// Puts `before` and `after` around every text, inside the tokenizer's own special tokens.
    ///
    /// # Errors
    /// [`TokenizerError::NoRoom`].
    pub(crate) fn within(mut self, before: &[u32], after: &[u32]) -> Result<Self, TokenizerError> {
        self.before.extend_from_slice(before);
        self.after.splice(..0, after.iter().copied());
        let specials = self.before.len() + self.after.len();
        match self.max_tokens > specials {
            true => Ok(self),
            false => Err(TokenizerError::NoRoom { specials, limit: self.max_tokens }),
        }
    }

    /// Lower-cases every text.
    ///
    /// # Errors
    /// A vocabulary whose added tokens cannot be lower-cased.
    pub(crate) fn lower_case(self) -> Result<Self, TokenizerError> {
        self.normalising_before(vec![Lowercase.into()])
    }

    /// Canonicalises texts as OpenCLIP does for SigLIP: NFC, underscores become spaces, ASCII punctuation and curly
    /// quotes are removed, lower case, single spaces, none at the ends.
    ///
    /// # Errors
    /// As [`Tokenizer::lower_case`].
    pub(crate) fn canonical(self) -> Result<Self, TokenizerError> {
        let replaced = |pattern: &str, with: &str| {
            let replace = Replace::new(ReplacePattern::Regex(pattern.to_owned()), with);
            replace.map(NormalizerWrapper::from).map_err(|error| TokenizerError::Unreadable(error.into()))
        };
        self.normalising_before(vec![
            NFC.into(),
            replaced("_", " ")?,
            replaced(r"[!-/:-@\[-`{-~\x{2bc}\x{2018}-\x{201f}]", "")?,
            Lowercase.into(),
            replaced(r"\s+", " ")?,
            Strip::new(true, true).into(),
        ])
    }

    /// Adds steps before the normaliser of tokenizer.json.
    fn normalising_before(mut self, steps: Vec<NormalizerWrapper>) -> Result<Self, TokenizerError> {
        let then = self.inner.get_normalizer().cloned();
        let all = Sequence::new(steps.into_iter().chain(then).collect());
        let changed = self.inner.with_normalizer(Some(all)).map(|_| ());
        changed.map_err(|error| TokenizerError::Unreadable(error.into()))?;
        Ok(self)
    }

    /// The id of `token` in the vocabulary.
    pub(crate) fn id_of(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Adds the `query` prompt before queries and the `passage` prompt before passages.
    ///
    /// # Errors
    /// A prompt that cannot be encoded or leaves no room for text.
    pub fn with_prompts(mut self, query: &str, passage: &str) -> Result<Self, TokenizerError> {
        let read = |prompt: &str| -> Result<Prompt, TokenizerError> {
            let ids = self.content(prompt.trim_end());
            let ids = ids.map_err(|error| TokenizerError::Prompt(error.into()))?;
            Ok(Prompt { text: prompt.to_owned(), ids })
        };
        let (query, passage) = (read(query)?, read(passage)?);
        let specials = self.before.len() + self.after.len() + query.ids.len().max(passage.ids.len());
        if self.max_tokens <= specials {
            return Err(TokenizerError::NoRoom { specials, limit: self.max_tokens });
        }
        (self.query_prompt, self.passage_prompt) = (query, passage);
        Ok(self)
    }

    /// Positions of the model, with special tokens.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Whether every text has special tokens on both sides.
    pub(crate) fn encloses(&self) -> bool {
        !self.before.is_empty() && !self.after.is_empty()
    }

    /// One more than the largest token id.
    pub fn id_bound(&self) -> usize {
        let largest = self.inner.get_vocab(true).into_values().max();
        largest.map_or(0, |id| id as usize + 1)
    }

    /// As [`Tokenizer::id_bound`], but without `token` if it is an added special token that stands for something other
    /// than text.
    pub(crate) fn id_bound_without(&self, token: &str) -> usize {
        let added = self.inner.get_added_tokens_decoder();
        let is_left_out = |id: u32| added.get(&id).is_some_and(|it| it.special && it.content == token);
        let ids = self.inner.get_vocab(true).into_values().filter(|id| !is_left_out(*id));
        ids.max().map_or(0, |id| id as usize + 1)
    }

    /// All token ids of `text`, with special tokens, of any length.
    ///
    /// # Errors
    /// [`TextError::Unreadable`].
    pub fn ids(&self, text: &str) -> Result<Vec<u32>, TextError> {
        Ok(self.with_specials(&[], &self.content(text)?).ids)
    }

    /// Splits a query into windows of at most the model's limit: one window if the text fits, otherwise one per
    /// sentence. Sentences are merged if there would be more than `max_windows`. Sentences over the limit are split
    /// into windows that overlap by a quarter.
    ///
    /// # Errors
    /// [`TextError`], also when `max_windows` is 0.
    pub fn windows(&self, text: &str, overflow: Overflow, max_windows: usize) -> Result<Windows, TextError> {
        self.cut(text, &self.query_prompt, overflow, max_windows)
    }

    /// Splits a passage into windows. Differs from [`Tokenizer::windows`] only for models with separate prompts for
    /// queries and passages.
    ///
    /// # Errors
    /// [`TextError`], also when `max_windows` is 0.
    pub fn passages(&self, text: &str, overflow: Overflow, max_windows: usize) -> Result<Windows, TextError> {
        self.cut(text, &self.passage_prompt, overflow, max_windows)
    }

    fn cut(
        &self,
        text: &str,
        prompt: &Prompt,
        overflow: Overflow,
        max_windows: usize,
    ) -> Result<Windows, TextError> {
        let (ids, sentences) = self.content_after(prompt, text)?;
        let room = self.max_tokens - self.before.len() - self.after.len() - prompt.ids.len();
        if overflow == Overflow::Error && ids.len() > room {
            return Err(TextError::TooLong { tokens: ids.len(), limit: room });
        }
        let seen = if overflow == Overflow::Truncate { &ids[..ids.len().min(room)] } else { &ids[..] };
        let spans = match seen.len() <= room {
            true => std::iter::once(0..seen.len()).collect(),
            false => window::by_sentence(&sentences, room, max_windows),
        };
        if spans.len() > max_windows {
            return Err(TextError::TooManyWindows { windows: spans.len(), limit: max_windows });
        }
        let windows = spans.into_iter().map(|span| Window {
            start_token: span.start,
            end_token: span.end,
            tokens: self.with_specials(&prompt.ids, &seen[span]),
        });
        let (windows, tokens_total, tokens_used) = (windows.collect(), ids.len(), seen.len());
        Ok(Windows { windows, tokens_total, tokens_used, truncated: tokens_used < tokens_total })
    }

    /// The modification text of a composed query: one window, truncated at the model's limit.
    ///
    /// # Errors
    /// [`TextError::Unreadable`].
    pub fn modification(&self, text: &str) -> Result<Windows, TextError> {
        match self.normalising {
            Normalising::All => self.windows(&normalise::normalise_modification(text), Overflow::Truncate, 1),
            Normalising::Modifications { max_tokens } => {
                let text = self.windows(&normalise::clean_modification(text), Overflow::Truncate, 1)?;
                Ok(self.shortened(text, max_tokens))
            }
            Normalising::None => self.windows(text, Overflow::Truncate, 1),
        }
    }

    /// Cuts the only window of a text without a prompt at `limit` tokens, special tokens included.
    fn shortened(&self, mut text: Windows, limit: usize) -> Windows {
        let room = limit.saturating_sub(self.before.len() + self.after.len());
        if let Some(window) = text.windows.first_mut().filter(|it| it.end_token - it.start_token > room) {
            let content = &window.tokens.ids[self.before.len()..self.before.len() + room];
            window.tokens = self.with_specials(&[], content);
            window.end_token = window.start_token + room;
            (text.tokens_used, text.truncated) = (room, true);
        }
        text
    }

    /// The ids of `text` after the prompt, and the number of ids up to the end of each sentence. The prompt is needed
    /// because tokenizers treat a space before the first token differently.
    fn content_after(&self, prompt: &Prompt, text: &str) -> Result<(Vec<u32>, Vec<usize>), TextError> {
        let joined = format!("{}{}", prompt.text, self.cleaning.apply(text));
        let read = if self.normalising == Normalising::All { normalise::normalise(&joined) } else { joined };
        let encoding = self.inner.encode(read.as_str(), false);
        let encoding = encoding.map_err(|error| TextError::Unreadable(error.into()))?;
        let Some(ids) = encoding.get_ids().strip_prefix(&prompt.ids[..]) else {
            let ids = self.content(text)?;
            return Ok((ids.clone(), vec![ids.len()]));
        };
        let starts: Vec<usize> = encoding.get_offsets().iter().map(|(start, _)| *start).collect();
        let tokens_before = |end| starts.partition_point(|start| *start < end);
        let ends =
            window::sentence_ends(&read).map(|end| tokens_before(end).saturating_sub(prompt.ids.len()));
        Ok((ids.to_vec(), ends.collect()))
    }

    fn content(&self, text: &str) -> Result<Vec<u32>, TextError> {
        let text = &*self.cleaning.apply(text);
        let encoding = match self.normalising {
            Normalising::All => self.inner.encode_fast(normalise::normalise(text), false),
            Normalising::Modifications { .. } | Normalising::None => self.inner.encode_fast(text, false),
        };
        let encoding = encoding.map_err(|error| TextError::Unreadable(error.into()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Whether the vocabulary lacks `word`: the word is unknown, or is encoded only as single letters.
    pub fn misses(&self, word: &str) -> bool {
        let unknown = self.content("\u{fffc}").unwrap_or_default();
        // `encode_fast` would leave out the pieces' texts.
        let Ok(encoding) = self.inner.encode(word, false) else { return true };
        let marks = |piece: &str| piece.trim_start_matches("##").trim_end_matches("</w>").to_owned();
        let is_letter = |piece: &String| {
            let mut letters = marks(piece).chars().filter(|it| !"▁Ġ".contains(*it)).collect::<Vec<_>>();
            let last = letters.pop();
            letters.is_empty() && last.is_some_and(char::is_alphabetic)
        };
        let pieces = encoding.get_tokens();
        let is_spelt = pieces.len() > 1 && pieces.iter().any(is_letter);
        pieces.is_empty() || is_spelt || (unknown.len() == 1 && encoding.get_ids() == unknown)
    }

    fn with_specials(&self, prompt: &[u32], content: &[u32]) -> Tokens {
        Tokens { ids: [&self.before[..], prompt, content, &self.after[..]].concat() }
    }
}

/// The special tokens that the tokenizer's post-processor adds before and after a text.
fn specials_of(inner: &Inner) -> tokenizers::Result<(Vec<u32>, Vec<u32>)> {
    let encoding = inner.encode("a", true)?;
    let (ids, mask) = (encoding.get_ids(), encoding.get_special_tokens_mask());
    let before = mask.iter().take_while(|special| **special == 1).count();
    let after = mask[before..].iter().rev().take_while(|special| **special == 1).count();
    Ok((ids[..before].to_vec(), ids[ids.len() - after..].to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A tokenizer of whole words (`unknown` for others), with four positions for text between `[1 ... 2]`.
    fn tokenizer(post_processor: &str) -> Tokenizer {
        let json = format!(
            r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": null, "pre_tokenizer": {{"type": "Whitespace"}}, "post_processor": {post_processor},
            "decoder": null, "model": {{"type": "WordLevel", "unk_token": "unknown",
            "vocab": {{"unknown": 0, "begin": 1, "end": 2, "a": 3, "b": 4, "c": 5}}}}}}"#
        );
        let specials = Specials { bos: Some(1), eos: Some(2) };
        Tokenizer::from_json(json.as_bytes(), specials, 6).unwrap()
    }

    const BERT: &str = r#"{"type": "BertProcessing", "cls": ["begin", 1], "sep": ["end", 2]}"#;

    #[track_caller]
    fn check(text: &str, overflow: Overflow, max_windows: usize, expected: Result<&[&[u32]], TextError>) {
        for post_processor in [BERT, "null"] {
            let got = tokenizer(post_processor).windows(text, overflow, max_windows);
            let got =
                got.map(|it| it.windows.into_iter().map(|window| window.tokens.ids).collect::<Vec<_>>());
            assert_eq!(got, expected.clone().map(|windows| windows.iter().map(|ids| ids.to_vec()).collect()));
        }
    }

    #[test]
    fn a_text_that_fits_is_one_window() {
        check("a b c z", Overflow::Window, 1, Ok(&[&[1, 3, 4, 5, 0, 2]]));
    }

    #[test]
    fn an_empty_text_is_one_window_of_specials() {
        check("", Overflow::Window, 1, Ok(&[&[1, 2]]));
    }

    #[test]
    fn a_long_text_is_cut_into_windows_that_overlap_by_a_quarter() {
        check("a b c a b", Overflow::Window, 2, Ok(&[&[1, 3, 4, 5, 3, 2], &[1, 3, 4, 2]]));
    }

    #[test]
    fn truncation_keeps_the_first_window() {
        check("a b c a b", Overflow::Truncate, 1, Ok(&[&[1, 3, 4, 5, 3, 2]]));
    }

    #[test]
    fn modification_texts_have_a_limit_of_their_own() {
        let tokenizer = tokenizer(BERT).cleaning_modifications(4);
        let cut = tokenizer.modification("a b c").unwrap();
        assert_eq!(cut.windows[0].tokens.ids, [1, 3, 4, 2]);
        assert_eq!((cut.tokens_used, cut.tokens_total, cut.truncated), (2, 3, true));
        assert_eq!(tokenizer.modification("a b").unwrap().windows[0].tokens.ids, [1, 3, 4, 2]);
        assert!(!tokenizer.modification("a b").unwrap().truncated);
    }

    #[test]
    fn a_long_text_is_an_error_where_asked_for() {
        check("a b c a b", Overflow::Error, 9, Err(TextError::TooLong { tokens: 5, limit: 4 }));
    }

    #[test]
    fn too_many_windows_are_an_error() {
        check("a b c a b", Overflow::Window, 1, Err(TextError::TooManyWindows { windows: 2, limit: 1 }));
    }

    #[test]
    fn a_prompt_stands_in_every_window_and_counts_nowhere() {
        let prompted = tokenizer(BERT).with_prompts("c ", "b b ").unwrap();
        let ids = |windows: Windows| windows.windows.into_iter().map(|it| it.tokens.ids).collect::<Vec<_>>();
        let query = prompted.windows("a b c a", Overflow::Window, 2).unwrap();
        assert_eq!((query.tokens_total, query.windows[1].start_token), (4, 3));
        assert_eq!(ids(query), [vec![1, 5, 3, 4, 5, 2], vec![1, 5, 3, 2]]);
        let passage = prompted.passages("a c", Overflow::Window, 1).unwrap();
        assert_eq!(ids(passage), [vec![1, 4, 4, 3, 5, 2]]);
        let plain = tokenizer(BERT);
        let (asked, stored) =
            (plain.windows("a b", Overflow::Window, 1), plain.passages("a b", Overflow::Window, 1));
        assert_eq!(asked, stored);
        let error = tokenizer(BERT).with_prompts("a a a a", "").err().unwrap();
        assert_eq!(error, TokenizerError::NoRoom { specials: 6, limit: 6 });
    }

    #[test]
    fn a_modification_says_that_it_was_cut() {
        let windows = tokenizer(BERT).modification("a b c a b").unwrap();
        assert_eq!((windows.windows.len(), windows.tokens_total, windows.tokens_used), (1, 5, 4));
        assert!(windows.truncated);
    }

    #[test]
    fn a_file_that_is_no_tokenizer_is_an_error() {
        let error = Tokenizer::from_json(b"{}", Specials::default(), 6).err();
        assert!(matches!(error, Some(TokenizerError::Unreadable(_))), "{error:?}");
    }

    #[test]
    fn specials_that_fill_the_model_are_an_error() {
        let json = serde_json::to_vec(&tokenizer(BERT).inner).unwrap();
        let error = Tokenizer::from_json(&json, Specials::default(), 2).err();
        assert_eq!(error, Some(TokenizerError::NoRoom { specials: 2, limit: 2 }));
    }

    proptest! {
        #[test]
        fn windows_hold_every_token_of_any_text(words in prop::collection::vec("[abcz]", 0..60)) {
            let (tokenizer, text) = (tokenizer(BERT), words.join(" "));
            let ids = tokenizer.ids(&text).unwrap();
            let windows = tokenizer.windows(&text, Overflow::Window, usize::MAX).unwrap();
            prop_assert_eq!((windows.tokens_total, windows.tokens_used), (words.len(), words.len()));
            let mut seen = vec![false; words.len()];
            for window in &windows.windows {
                let content = &window.tokens.ids[1..window.tokens.ids.len() - 1];
                prop_assert_eq!(content, &ids[1 + window.start_token..1 + window.end_token]);
                seen[window.start_token..window.end_token].fill(true);
            }
            prop_assert!(seen.into_iter().all(|seen| seen));
        }
    }
}
