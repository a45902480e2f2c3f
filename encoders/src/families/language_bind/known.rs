//! LanguageBind's models.

use crate::families::family::{KnownModel, PublishedModel};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "FOLDER or ORG/NAME",
    family: "languagebind",
    modality: "text, frames",
    dimension: "projection_dim",
    text_tokens: "max_position_embeddings (77)",
    licence: "MIT (LanguageBind's weights)",
    source: "arXiv 2310.01852; LanguageBind/LanguageBind_Video_FT and others with model_type LanguageBindVideo, tokenizer.json beside",
    verified: "LanguageBind's released module, on a small seeded model (docs/encoders.md)",
    note: "8 frames of a clip look at each other; taken evenly from first to last, as its code does",
    published: &[PublishedModel {
        model: "LanguageBind/LanguageBind_Video_FT",
        licence: Some("MIT"),
        bytes: None,
        purpose: "finds moments by a text or a clip, and sees the order of frames",
    }],
}];
