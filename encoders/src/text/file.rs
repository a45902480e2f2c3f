//! Reads tokenizer.json.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::IgnoredAny;
use tokenizers::Tokenizer;

use super::TokenizerError;

/// The tokenizer of a tokenizer.json, without its own truncation and padding.
///
/// # Errors
/// [`TokenizerError::Unreadable`] if the file is no JSON, or not what the library `tokenizers` reads.
pub(crate) fn read(json: &[u8]) -> Result<Tokenizer, TokenizerError> {
    let unreadable = |error: tokenizers::Error| TokenizerError::Unreadable(error.into());
    // The library says less about an error of syntax.
    serde_json::from_slice::<IgnoredAny>(json).map_err(|error| unreadable(error.into()))?;
    let mut tokenizer = read_trusting(json).map_err(unreadable)?;
    tokenizer.with_truncation(None).map_err(unreadable)?;
    tokenizer.with_padding(None);
    Ok(tokenizer)
}

/// The library panics at some parts that it does not know, instead of refusing them.
fn read_trusting(json: &[u8]) -> Result<Tokenizer, tokenizers::Error> {
    let read = catch_unwind(AssertUnwindSafe(|| Tokenizer::from_bytes(json)));
    read.unwrap_or_else(|_| Err("the library for tokenizers gave up on a part of it".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a tokenizer of whole words with this normaliser and decoder. `None`: it is readable; otherwise a part of the
    /// error.
    #[track_caller]
    fn check(normalizer: &str, decoder: &str, expected: Option<&str>) {
        let json = format!(
            r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": {normalizer}, "pre_tokenizer": null, "post_processor": null, "decoder": {decoder},
            "model": {{"type": "WordLevel", "unk_token": "a", "vocab": {{"a": 0}}}}}}"#
        );
        let error = read(json.as_bytes()).err().map(|error| error.to_string());
        let is_expected = match (&error, expected) {
            (Some(error), Some(part)) => error.contains(part),
            (error, part) => error.is_none() && part.is_none(),
        };
        assert!(is_expected, "{error:?}");
    }

    #[test]
    fn files_are_read_or_refused_with_a_reason() {
        check("null", "null", None);
        check(r#"{"type": "Lowercase"}"#, r#"{"type": "Fuse"}"#, None);
        check("null", r#"{"type": "Fuse",}"#, "key must be a string".into());
        check("null", r#"{"type": "none of them"}"#, "can't be read".into());
        check(r#"{"type": "Precompiled", "precompiled_charsmap": "!"}"#, "null", "can't be read".into());
    }
}
