//! The built-in model without training.

use crate::families::family::{KnownModel, PublishedModel};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "builtin:tiny",
    family: "clip",
    modality: "text, frames",
    dimension: "64",
    text_tokens: "77",
    licence: "Apache-2.0, as the program",
    source: "in the binary",
    verified: "as CLIP",
    note: "seeded weights, untrained: sees little more than colour and layout",
    published: &[PublishedModel {
        model: "builtin:tiny",
        licence: Some("Apache-2.0"),
        bytes: Some(0),
        purpose: "tests the service; its weights are made at each start",
    }],
}];
