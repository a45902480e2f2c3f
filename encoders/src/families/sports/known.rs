//! The built-in sports model.

use crate::families::family::{KnownModel, PublishedModel};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "builtin:sports",
    family: "sports",
    modality: "text, frames, composed",
    dimension: "128",
    text_tokens: "80",
    licence: "Apache-2.0, as the program",
    source: "in the binary",
    verified: "on rendered clips that it was not trained on (BENCHMARKS.md)",
    note: "trained on rendered clips of dives and gymnastics, no use on real footage",
    published: &[PublishedModel {
        model: "builtin:sports",
        licence: Some("Apache-2.0"),
        bytes: Some(super::pretrained::WEIGHTS.len() as u64),
        purpose: "shows the service at work on rendered clips of sports",
    }],
}];
