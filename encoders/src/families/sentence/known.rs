//! Sentence encoders.

use crate::families::family::{KnownModel, PublishedModel, TRANSFORMERS};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "FOLDER or ORG/NAME",
    family: "sentence",
    modality: "text",
    dimension: "hidden_size, or out_features of the last dense layer",
    text_tokens: "max_seq_length",
    licence: "the model's own",
    source: "arXiv 1908.10084; sentence-transformers/all-MiniLM-L6-v2 and others of BERT or XLM-RoBERTa",
    verified: TRANSFORMERS,
    note: "for what is spoken",
    published: &[PublishedModel {
        model: "sentence-transformers/all-MiniLM-L6-v2",
        licence: Some("Apache-2.0"),
        bytes: Some(90_868_376),
        purpose: "finds what is spoken by its meaning",
    }],
}];
