//! Embedders on Qwen-VL: which one a folder holds, and the prompts that it reads a vector after.
//!
//! | kind | reads | vector at | frames |
//! |---|---|---|---|
//! | GME (arXiv 2412.16855) | pictures, texts, both together | `<\|endoftext\|>` behind the prompt | each alone |
//! | Qwen3-VL-Embedding (2601.04720) | videos, texts, both together | the last token | one a second, at most 64 |
//! | CARE (2501.00513) | videos, texts | the last token: "in one word:" | 32, each twice |

use serde::{Deserialize, Serialize};

use super::config::{Config, Generation};
use super::grid::Visual;
use super::prompt::{PromptTokenizer, block};
use super::template::{ChatTemplate, Piece, Turn};
use crate::generator::Role;
use crate::loading::ModelFiles;
use crate::{EncodeError, LoadError};

/// An embedder's training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmbeddingKind {
    Gme,
    Qwen3,
    Care,
}

/// The key `embedding` of config.json, ours: says the kind of a folder, and other instructions than the default ones.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct EmbeddingKey {
    kind: Option<EmbeddingKind>,
    /// The system message of stored pictures and videos.
    document: Option<String>,
    /// The system message of text queries.
    text: Option<String>,
    /// The system message of composed queries.
    composed: Option<String>,
}

/// The fields of config.json that name the embedder.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Marks {
    embedding: Option<EmbeddingKey>,
    #[serde(rename = "_name_or_path")]
    name_or_path: Option<String>,
}

/// The kind of a folder's embedder and its key; `None`: the model writes texts.
pub(super) fn recognised(model: &ModelFiles) -> Option<(EmbeddingKind, EmbeddingKey)> {
    let generation = Generation::of(model.model_type()?)?;
    let marks: Marks = model.config().unwrap_or_default();
    let key = marks.embedding.unwrap_or_default();
    let names = format!(
        "{} {} {}",
        model.name().short(),
        marks.name_or_path.unwrap_or_default(),
        model.architectures()
    );
    let names = names.to_lowercase();
    let has_any = |files: &[&str]| files.iter().any(|file| model.has(file));
    let kind = key.kind.or(match generation {
        Generation::Two if names.contains("gme") || has_any(&GME_FILES) => Some(EmbeddingKind::Gme),
        Generation::Three if names.contains("embedding") || has_any(&QWEN3_FILES) => {
            Some(EmbeddingKind::Qwen3)
        }
        Generation::Two if names.split([' ', '-', '_', '/']).any(|word| word == "care") => {
            Some(EmbeddingKind::Care)
        }
        _ => None,
    })?;
    Some((kind, key))
}

/// A released file that marks GME.
pub(super) const GME_FILES: [&str; 1] = ["gme_inference.py"];
/// Released files that mark Qwen3-VL-Embedding.
pub(super) const QWEN3_FILES: [&str; 3] =
    ["modules.json", "config_sentence_transformers.json", "scripts/qwen3_vl_embedding.py"];

/// The texts around what is encoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Prompts {
    pub(crate) kind: EmbeddingKind,
    pub(super) text: Around,
    pub(super) document: Around,
    pub(super) composed: Around,
}

/// A prompt's text before and after its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Around {
    pub(super) before: String,
    pub(super) after: String,
}

const HELPFUL: &str = "You are a helpful assistant.";
/// GME's example for text queries.
const FIND_IMAGE: &str = "Find an image that matches the given text.";
const REPRESENT: &str = "Represent the user's input.";

/// Stands for the content while a template is rendered; no template contains it.
const CONTENT: &str = "\u{fffc}";

impl Prompts {
    /// The prompts of a kind, by the folder's template.
    ///
    /// # Errors
    /// [`LoadError::Unsupported`] if the template fails or leaves texts out.
    pub(super) fn new(
        kind: EmbeddingKind,
        key: &EmbeddingKey,
        template: &ChatTemplate,
    ) -> Result<Prompts, LoadError> {
        let instruction =
            |own: &Option<String>, default: Option<&str>| own.as_deref().or(default).map(with_full_stop);
        let around = |system: Option<String>, word: &str| {
            let around = Around::new(system.as_deref(), word, template);
            around.map_err(|error| LoadError::Unsupported(error.into()))
        };
        let of = |own: &Option<String>, gme: &str, word: &str| match kind {
            EmbeddingKind::Gme => {
                let mut around = around(instruction(own, Some(gme)), "")?;
                around.after.push_str("<|endoftext|>");
                Ok(around)
            }
            EmbeddingKind::Qwen3 => around(instruction(own, Some(REPRESENT)), ""),
            EmbeddingKind::Care => around(instruction(own, Some(HELPFUL)), word),
        };
        Ok(Prompts {
            kind,
            text: of(&key.text, FIND_IMAGE, "\nSummary above sentence in one word:")?,
            document: of(&key.document, HELPFUL, "\nSummary above video in one word:")?,
            composed: of(&key.composed, FIND_IMAGE, "\nSummary above sentence in one word:")?,
        })
    }

    /// Whether frames are read one by one, as pictures.
    pub(crate) fn reads_pictures(&self) -> bool {
        self.kind == EmbeddingKind::Gme
    }

    /// Whether the model was trained on pictures or videos together with texts.
    pub(crate) fn composes(&self) -> bool {
        self.kind != EmbeddingKind::Care
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

impl Around {
    fn new(system: Option<&str>, word: &str, template: &ChatTemplate) -> Result<Around, EncodeError> {
        let user = Turn { role: Role::User, pieces: vec![Piece::Text(format!("{CONTENT}{word}"))] };
        let system = system.map(|text| Turn::text(Role::System, text));
        let turns: Vec<Turn> = system.into_iter().chain([user]).collect();
        let prompt = template.render(&turns)?;
        match prompt.split_once(CONTENT) {
            Some((before, after)) => Ok(Around { before: before.to_owned(), after: after.to_owned() }),
            None => Err(EncodeError::BadInput("the chat template leaves the user's text out".into())),
        }
    }
}

/// The ids around what is encoded.
#[derive(Debug, Clone)]
pub(super) struct PromptIds {
    /// Before a text; a text's ids begin with them.
    pub(super) text: Vec<u32>,
    document: Vec<u32>,
    document_end: Vec<u32>,
    composed: Vec<u32>,
    /// The prompt of an empty text.
    empty: Vec<u32>,
    /// What Qwen3-VL-Embedding reads instead.
    null: Option<Vec<u32>>,
    /// Behind every prompt, by the tokenizer's post-processor.
    end: Vec<u32>,
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
        let text = |text: &str| -> Result<Vec<u32>, EncodeError> {
            Ok([tokenizer.ids(&format!("{before}{text}{after}"))?, end.to_vec()].concat())
        };
        Ok(PromptIds {
            empty: text("")?,
            null: (prompts.kind == EmbeddingKind::Qwen3).then(|| text("NULL")).transpose()?,
            text: tokenizer.ids(before)?,
            document: tokenizer.ids(&prompts.document.before)?,
            document_end: tokenizer.ids(&prompts.document.after)?,
            composed: tokenizer.ids(&prompts.composed.before)?,
            end: end.to_vec(),
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
        Ok([&self.document[..], &visual, &self.document_end, &self.end].concat())
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
        let content = text
            .strip_prefix(&self.text[..])
            .ok_or_else(|| EncodeError::BadInput("a modification text without this model's prompt".into()))?;
        let visual = tokenizer.ids(&block(visual, config))?;
        Ok([&self.composed[..], &visual, content].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(kind: EmbeddingKind, generation: Generation) -> Prompts {
        Prompts::new(kind, &EmbeddingKey::default(), &ChatTemplate::plain(generation)).unwrap()
    }

    #[test]
    fn prompts_are_the_released_ones() {
        let gme = prompts(EmbeddingKind::Gme, Generation::Two);
        let system = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n";
        assert_eq!(gme.document.before, system);
        assert_eq!(gme.document.after, "<|im_end|>\n<|im_start|>assistant\n<|endoftext|>");
        assert!(gme.text.before.contains(FIND_IMAGE) && gme.reads_pictures() && gme.composes());
        let qwen3 = prompts(EmbeddingKind::Qwen3, Generation::Three);
        let system = "<|im_start|>system\nRepresent the user's input.<|im_end|>\n<|im_start|>user\n";
        assert_eq!(qwen3.text.before, system);
        assert_eq!(qwen3.text.after, "<|im_end|>\n<|im_start|>assistant\n");
        let care = prompts(EmbeddingKind::Care, Generation::Two);
        assert!(care.text.after.starts_with("\nSummary above sentence in one word:<|im_end|>"));
        assert!(care.document.after.starts_with("\nSummary above video in one word:<|im_end|>"));
        assert!(!care.composes());
    }

    #[test]
    fn an_instruction_ends_with_punctuation() {
        assert_eq!(
            ["find it", "find it!", " find it。 ", ""].map(with_full_stop),
            ["find it.", "find it!", "find it。", ""]
        );
    }
}
