//! Embedders on Qwen-VL: which one a folder holds.
//!
//! | kind | reads | vector at | frames |
//! |---|---|---|---|
//! | GME (arXiv 2412.16855) | pictures, texts, both together | `<\|endoftext\|>` behind the prompt | each alone |
//! | Qwen3-VL-Embedding (2601.04720) | videos, texts, both together | the last token | one a second, at most 64 |
//! | CARE (2501.00513) | videos, texts | the last token: "in one word:" | 32, each twice |

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::Generation;
use crate::LoadError;
use crate::loading::ModelFiles;

/// An embedder's training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmbeddingKind {
    Gme,
    Qwen3,
    Care,
}

/// The key `embedding` of config.json, ours: says the kind of a folder whose name and files do not.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbeddingKey {
    kind: EmbeddingKind,
}

/// The fields of config.json that name the embedder.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Marks {
    embedding: Option<Value>,
    #[serde(rename = "_name_or_path")]
    name_or_path: Option<String>,
}

/// The kind of a folder's embedder; `None`: the model writes texts.
///
/// # Errors
/// [`LoadError::BadFile`] for a key `embedding` of another form.
pub(super) fn recognised(model: &ModelFiles) -> Result<Option<EmbeddingKind>, LoadError> {
    let Some(generation) = model.model_type().and_then(Generation::of) else { return Ok(None) };
    let marks: Marks = model.config().unwrap_or_default();
    if let Some(key) = marks.embedding {
        let key: EmbeddingKey = serde_json::from_value(key)
            .map_err(|error| model.bad("config.json", format!("the key \"embedding\": {error}")))?;
        return Ok(Some(key.kind));
    }
    let names = format!(
        "{} {} {}",
        model.name().short(),
        marks.name_or_path.unwrap_or_default(),
        model.architectures()
    );
    let names = names.to_lowercase();
    let has_any = |files: &[&str]| files.iter().any(|file| model.has(file));
    Ok(match generation {
        Generation::Two if names.contains("gme") || has_any(&GME_FILES) => Some(EmbeddingKind::Gme),
        Generation::Three if names.contains("embedding") || has_any(&QWEN3_FILES) => {
            Some(EmbeddingKind::Qwen3)
        }
        Generation::Two if names.split([' ', '-', '_', '/']).any(|word| word == "care") => {
            Some(EmbeddingKind::Care)
        }
        _ => None,
    })
}

/// A released file that marks GME.
pub(super) const GME_FILES: [&str; 1] = ["gme_inference.py"];
/// Released files that mark Qwen3-VL-Embedding.
pub(super) const QWEN3_FILES: [&str; 3] =
    ["modules.json", "config_sentence_transformers.json", "scripts/qwen3_vl_embedding.py"];
