//! LanguageBind's models.

use crate::families::family::KnownModel;

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "FOLDER or ORG/NAME",
    family: "languagebind",
    modality: "text, frames",
    dimension: "projection_dim",
    text_tokens: "max_position_embeddings (77)",
    licence: "MIT (LanguageBind's weights)",
    source: "arXiv 2310.01852; LanguageBind/LanguageBind_Video_FT and others with model_type LanguageBindVideo, tokenizer.json beside",
    verified: "unverified: a module written from the released code, on small seeded models (docs/encoders.md)",
    note: "8 frames of a clip look at each other; taken at the middles of 8 parts, not from first to last as its code does",
}];
