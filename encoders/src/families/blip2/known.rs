//! BLIP-2's models.

use crate::families::family::{KnownModel, PublishedModel, SEES, TRANSFORMERS};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "FOLDER or ORG/NAME",
    family: "blip-2",
    modality: "text, frames",
    dimension: "image_text_hidden_size (256)",
    text_tokens: "rows of the Q-Former's positions (512)",
    licence: "MIT (Salesforce's weights)",
    source: "arXiv 2301.12597; Salesforce/blip2-itm-vit-g and others of Blip2ForImageTextRetrieval",
    verified: TRANSFORMERS,
    note: "a picture's vector is the mean of its 32 queries' unit vectors, where BLIP-2's own score takes the nearest",
    published: &[PublishedModel {
        model: "Salesforce/blip2-itm-vit-g",
        licence: Some("MIT"),
        bytes: None,
        purpose: SEES,
    }],
}];
