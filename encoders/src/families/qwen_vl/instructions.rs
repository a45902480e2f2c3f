//! The prompts that an embedder reads a vector after: the released ones, or those of `prompts.json` in the model's folder:
//!
//! ```text
//! {
//!   "text": {"system": "Find a clip.", "user": "{text}"},
//!   "clip": {"user": "{clip}\nSummary above video in one word:"},
//!   "composed": {"user": "{clip}{text}"}
//! }
//! ```
//!
//! What is left out stays as released. `text` is a text query, `clip` a stored clip or a query by clip, `composed` a clip
//! with a modification text.

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::embedding::EmbeddingKind;
use super::grid::Visual;
use super::prompt::{PromptTokenizer, block};
use super::template::{ChatTemplate, Piece, Turn};
use crate::EncodeError;
use crate::generator::Role;

/// Name of the file.
pub(super) const PROMPTS: &str = "prompts.json";

/// The contents of [`PROMPTS`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PromptFile {
    text: Messages,
    clip: Messages,
    composed: Messages,
}

/// The messages of a prompt; `None` stays as released.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Messages {
    system: Option<String>,
    /// With a placeholder for each part of the input.
    user: Option<String>,
}

/// Released messages of a prompt.
struct Released {
    system: &'static str,
    user: &'static str,
}

/// What stands for a part of an input in [`PROMPTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placeholder {
    Clip,
    Text,
}

impl Placeholder {
    fn name(self) -> &'static str {
        match self {
            Placeholder::Clip => "{clip}",
            Placeholder::Text => "{text}",
        }
    }

    /// Stands for the part while a template is rendered; no template contains it.
    fn mark(self) -> &'static str {
        match self {
            Placeholder::Clip => "\u{fffc}",
            Placeholder::Text => "\u{fffb}",
        }
    }
}

const HELPFUL: &str = "You are a helpful assistant.";
/// GME's example for text queries.
const FIND_IMAGE: &str = "Find an image that matches the given text.";
const REPRESENT: &str = "Represent the user's input.";

const PLAIN_TEXT: &str = "{text}";
const PLAIN_CLIP: &str = "{clip}";
const PLAIN_BOTH: &str = "{clip}{text}";
const ONE_WORD_OF_TEXT: &str = "{text}\nSummary above sentence in one word:";
const ONE_WORD_OF_CLIP: &str = "{clip}\nSummary above video in one word:";
/// CARE names no prompt for both; this is that of E5-V (arXiv 2407.12580), which it follows, for a video.
const ONE_WORD_OF_BOTH: &str =
    "{clip}\nModify this video with \"{text}\", describe modified video in one word:";

/// The texts around what is encoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Prompts {
    pub(crate) kind: EmbeddingKind,
    pub(super) text: Around,
    /// Of stored clips and of queries by clip.
    pub(super) document: Around,
    pub(super) composed: AroundBoth,
}

/// A prompt's text before and after its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Around {
    pub(super) before: String,
    pub(super) after: String,
}

/// A prompt's text around a picture or video and a text behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AroundBoth {
    pub(super) before: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) between: String,
    pub(super) after: String,
}

impl Prompts {
    /// The prompts of a kind, by the folder's template.
    ///
    /// # Errors
    /// The fault, in plain words, for placeholders that are missing or twice there and templates that fail or leave texts
    /// out.
    pub(super) fn new(
        kind: EmbeddingKind,
        file: &PromptFile,
        template: &ChatTemplate,
    ) -> Result<Prompts, String> {
        let released = |system, user| Released { system, user };
        let [text, clip, composed] = match kind {
            EmbeddingKind::Gme => [
                released(FIND_IMAGE, PLAIN_TEXT),
                released(HELPFUL, PLAIN_CLIP),
                released(FIND_IMAGE, PLAIN_BOTH),
            ],
            EmbeddingKind::Qwen3 => {
                [PLAIN_TEXT, PLAIN_CLIP, PLAIN_BOTH].map(|user| released(REPRESENT, user))
            }
            EmbeddingKind::Care => {
                [ONE_WORD_OF_TEXT, ONE_WORD_OF_CLIP, ONE_WORD_OF_BOTH].map(|user| released(HELPFUL, user))
            }
        };
        let end = if kind == EmbeddingKind::Gme { "<|endoftext|>" } else { "" };
        let rendered = |name: &str, messages: &Messages, released: Released, parts: &[Placeholder]| {
            let prompt = messages.or(released).rendered(template, parts);
            prompt.map(|it| it + end).map_err(|why| format!("the prompt \"{name}\": {why}"))
        };
        let text = rendered("text", &file.text, text, &[Placeholder::Text])?;
        let clip = rendered("clip", &file.clip, clip, &[Placeholder::Clip])?;
        let both = [Placeholder::Clip, Placeholder::Text];
        let composed = rendered("composed", &file.composed, composed, &both)?;
        let (before, rest) = split(&composed, Placeholder::Clip)?;
        let (between, after) = split(rest, Placeholder::Text)?;
        let owned = |text: &str| text.to_owned();
        Ok(Prompts {
            kind,
            text: Around::of(&text, Placeholder::Text)?,
            document: Around::of(&clip, Placeholder::Clip)?,
            composed: AroundBoth { before: owned(before), between: owned(between), after: owned(after) },
        })
    }

    /// Whether frames are read one by one, as pictures.
    pub(crate) fn reads_pictures(&self) -> bool {
        self.kind == EmbeddingKind::Gme
    }
}

impl Messages {
    fn or(&self, released: Released) -> Messages {
        Messages {
            system: Some(self.system.clone().unwrap_or_else(|| released.system.to_owned())),
            user: Some(self.user.clone().unwrap_or_else(|| released.user.to_owned())),
        }
    }

    /// The whole prompt, with the marks of `parts` in this order.
    fn rendered(&self, template: &ChatTemplate, parts: &[Placeholder]) -> Result<String, String> {
        let mut user = self.user.clone().unwrap_or_default();
        let all = format!("{user}{}", self.system.as_deref().unwrap_or_default());
        if [Placeholder::Clip, Placeholder::Text].iter().any(|part| all.contains(part.mark())) {
            return Err(
                "it has one of the characters U+FFFB and U+FFFC, which stand for the input".to_owned()
            );
        }
        for part in [Placeholder::Clip, Placeholder::Text] {
            let (found, wanted) = (user.matches(part.name()).count(), usize::from(parts.contains(&part)));
            if found != wanted {
                return Err(format!(
                    "its user message has {} {found} times instead of {wanted}",
                    part.name()
                ));
            }
            user = user.replace(part.name(), part.mark());
        }
        let places: Vec<_> = parts.iter().map(|part| user.find(part.mark())).collect();
        if !places.is_sorted() {
            return Err("{clip} stands before {text}".to_owned());
        }
        // A prompt without a system message is one with an empty one in the file.
        let system = self.system.as_deref().map(with_full_stop).filter(|text| !text.is_empty());
        let system = system.map(|text| Turn::text(Role::System, &text));
        let user = Turn { role: Role::User, pieces: vec![Piece::Text(user)] };
        let turns: Vec<Turn> = system.into_iter().chain([user]).collect();
        template.render(&turns).map_err(|error| error.to_string())
    }
}

/// The text before and after a mark.
fn split(prompt: &str, at: Placeholder) -> Result<(&str, &str), String> {
    prompt.split_once(at.mark()).ok_or_else(|| "the chat template leaves the user's text out".to_owned())
}

impl Around {
    fn of(prompt: &str, content: Placeholder) -> Result<Around, String> {
        let (before, after) = split(prompt, content)?;
        Ok(Around { before: before.to_owned(), after: after.to_owned() })
    }
}

/// Qwen3-VL-Embedding's code ends every instruction with punctuation.
fn with_full_stop(instruction: &str) -> String {
    let instruction = instruction.trim();
    match instruction.chars().last() {
        Some(last) if !last.is_ascii_punctuation() && !"。！？；：，、".contains(last) => {
            format!("{instruction}.")
        }
        _ => instruction.to_owned(),
    }
}

/// The ids around what is encoded.
#[derive(Debug, Clone)]
pub(super) struct PromptIds {
    /// Before a text; a text's ids begin with them.
    pub(super) text: Vec<u32>,
    /// Behind a text; a text's ids end with them.
    text_end: Vec<u32>,
    document: Vec<u32>,
    document_end: Vec<u32>,
    composed: Vec<u32>,
    composed_between: Vec<u32>,
    composed_end: Vec<u32>,
    /// The prompt of an empty text.
    empty: Vec<u32>,
    /// What Qwen3-VL-Embedding reads instead.
    null: Option<Vec<u32>>,
}

impl PromptIds {
    /// `end`: what the tokenizer's post-processor adds behind a prompt.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for prompts that the tokenizer can't read.
    pub(super) fn new(
        prompts: &Prompts,
        tokenizer: &PromptTokenizer,
        end: &[u32],
    ) -> Result<PromptIds, EncodeError> {
        let Around { before, after } = &prompts.text;
        let ended = |text: &str| tokenizer.ids(text).map(|ids| [ids, end.to_vec()].concat());
        let text = |text: &str| ended(&format!("{before}{text}{after}"));
        let AroundBoth { before: composed, between, after: composed_end } = &prompts.composed;
        Ok(PromptIds {
            empty: text("")?,
            null: (prompts.kind == EmbeddingKind::Qwen3).then(|| text("NULL")).transpose()?,
            text: tokenizer.ids(before)?,
            text_end: ended(after)?,
            document: tokenizer.ids(&prompts.document.before)?,
            document_end: ended(&prompts.document.after)?,
            composed: tokenizer.ids(composed)?,
            composed_between: tokenizer.ids(between)?,
            composed_end: ended(composed_end)?,
        })
    }

    /// The prompt of a text, whose ids have their prompt already.
    pub(super) fn of_text(&self, ids: &[u32]) -> Vec<u32> {
        let null = self.null.as_ref().filter(|_| ids == self.empty);
        null.map_or_else(|| ids.to_vec(), Vec::clone)
    }

    /// The prompt of a stored picture or video.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for what the tokenizer can't read.
    pub(super) fn document(
        &self,
        visual: &Visual,
        tokenizer: &PromptTokenizer,
        config: &Config,
    ) -> Result<Vec<u32>, EncodeError> {
        let visual = tokenizer.ids(&block(visual, config))?;
        Ok([&self.document[..], &visual, &self.document_end].concat())
    }

    /// The prompt of a picture or video and the ids of a text with its prompt.
    ///
    /// # Errors
    /// As [`PromptIds::document`].
    pub(super) fn composed(
        &self,
        visual: &Visual,
        text: &[u32],
        tokenizer: &PromptTokenizer,
        config: &Config,
    ) -> Result<Vec<u32>, EncodeError> {
        let content =
            text.strip_prefix(&self.text[..]).and_then(|text| text.strip_suffix(&self.text_end[..]));
        let content = content
            .ok_or_else(|| EncodeError::BadInput("a modification text without this model's prompt".into()))?;
        let visual = tokenizer.ids(&block(visual, config))?;
        let parts = [&self.composed[..], &visual, &self.composed_between, content, &self.composed_end];
        Ok(parts.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Generation;
    use super::*;

    fn prompts(kind: EmbeddingKind, generation: Generation, file: &str) -> Result<Prompts, String> {
        let file: PromptFile = serde_json::from_str(file).map_err(|error| error.to_string())?;
        Prompts::new(kind, &file, &ChatTemplate::plain(generation))
    }

    #[test]
    fn prompts_are_the_released_ones() {
        let gme = prompts(EmbeddingKind::Gme, Generation::Two, "{}").unwrap();
        let system = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n";
        let end = "<|im_end|>\n<|im_start|>assistant\n<|endoftext|>";
        assert_eq!((&gme.document.before[..], &gme.document.after[..]), (system, end));
        assert!(gme.text.before.contains(FIND_IMAGE) && gme.reads_pictures());
        assert_eq!((&gme.composed.between[..], &gme.composed.after[..]), ("", end));
        let qwen3 = prompts(EmbeddingKind::Qwen3, Generation::Three, "{}").unwrap();
        let system = "<|im_start|>system\nRepresent the user's input.<|im_end|>\n<|im_start|>user\n";
        assert_eq!(qwen3.text.before, system);
        assert_eq!(qwen3.text.after, "<|im_end|>\n<|im_start|>assistant\n");
        let care = prompts(EmbeddingKind::Care, Generation::Two, "{}").unwrap();
        assert!(care.text.after.starts_with("\nSummary above sentence in one word:<|im_end|>"));
        assert!(care.document.after.starts_with("\nSummary above video in one word:<|im_end|>"));
        assert_eq!(care.composed.between, "\nModify this video with \"");
        assert!(care.composed.after.starts_with("\", describe modified video in one word:<|im_end|>"));
    }

    #[test]
    fn a_file_changes_the_prompts_that_it_names() {
        let file =
            r#"{"text": {"system": "find it"}, "composed": {"system": "", "user": "{clip} but {text}!"}}"#;
        let changed = prompts(EmbeddingKind::Qwen3, Generation::Three, file).unwrap();
        let released = prompts(EmbeddingKind::Qwen3, Generation::Three, "{}").unwrap();
        assert_eq!(changed.document, released.document);
        assert!(changed.text.before.contains("find it."));
        let AroundBoth { before, between, after } = &changed.composed;
        assert_eq!((&before[..], &between[..]), ("<|im_start|>user\n", " but "));
        assert!(after.starts_with("!<|im_end|>"), "{after}");
    }

    #[test]
    fn a_file_with_a_fault_is_refused_and_says_which() {
        let check = |file: &str, fault: &str| {
            let refused = prompts(EmbeddingKind::Care, Generation::Two, file).unwrap_err();
            assert!(refused.contains(fault), "{refused}");
        };
        check(r#"{"text": {"user": "In one word:"}}"#, "{text} 0 times instead of 1");
        check(r#"{"clip": {"user": "{clip} and {clip}"}}"#, "{clip} 2 times instead of 1");
        check(r#"{"clip": {"user": "{clip} {text}"}}"#, "{text} 1 times instead of 0");
        check(r#"{"composed": {"user": "{text} {clip}"}}"#, "{clip} stands before {text}");
        check(r#"{"composed": {"user": "{clip}"}}"#, "\"composed\"");
        check(r#"{"text": {"system": "\ufffc"}}"#, "U+FFFC");
        check(r#"{"clip": {"user": "{clip}\ufffb"}}"#, "U+FFFB");
        check(r#"{"txt": {}}"#, "unknown field `txt`");
        check(r#"{"text": {"system": 7}}"#, "invalid type");
    }

    #[test]
    fn an_instruction_ends_with_punctuation() {
        assert_eq!(
            ["find it", "find it!", " find it。 ", ""].map(with_full_stop),
            ["find it.", "find it!", "find it。", ""]
        );
    }
}
