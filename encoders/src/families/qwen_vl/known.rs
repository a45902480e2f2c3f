//! Embedders on Qwen-VL.

use crate::families::family::{KnownModel, PublishedModel, TRANSFORMERS};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "FOLDER or ORG/NAME",
    family: "qwen-vl",
    modality: "text, frames, composed",
    dimension: "hidden_size (1536 to 4096)",
    text_tokens: "1800 (GME), 8192 (Qwen3-VL-Embedding), 2048 (CARE)",
    licence: "Apache-2.0 (GME-2B)",
    source: "arXiv 2412.16855 (GME), 2601.04720 (Qwen3-VL-Embedding), 2501.00513 (CARE)",
    verified: TRANSFORMERS,
    note: "one prompt of pictures, videos and texts; minutes a clip on a CPU",
    published: &[
        PublishedModel {
            model: "Alibaba-NLP/gme-Qwen2-VL-2B-Instruct",
            licence: Some("Apache-2.0"),
            bytes: None,
            purpose: PURPOSE,
        },
        PublishedModel { model: "Qwen/Qwen3-VL-Embedding-2B", licence: None, bytes: None, purpose: PURPOSE },
    ],
}];

const PURPOSE: &str = "finds moments by a text, a clip, or a clip and a text together";
