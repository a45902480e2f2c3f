//! Embedders on Qwen-VL.
//!
//! Licences and numbers of parameters are those of MTEB's list of models (mteb/models/model_implementations); MCG-NJU/CaRe-7B
//! is the model of CaReBench's README, which states neither. GME's files are f32, Qwen3-VL-Embedding's are bf16. The times are
//! computed for one core with AVX-512 in int8 (docs/encoders.md).

use crate::families::family::{KnownModel, PublishedModel, TRANSFORMERS};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "FOLDER or ORG/NAME",
    family: "qwen-vl",
    modality: "text, frames, composed",
    dimension: "hidden_size (1536 to 4096)",
    text_tokens: "1800 (GME), 8192 (Qwen3-VL-Embedding), the context (CARE)",
    licence: "Apache-2.0 (GME, Qwen3-VL-Embedding), unknown (CARE)",
    source: "arXiv 2412.16855 (GME), 2601.04720 (Qwen3-VL-Embedding), 2501.00513 (CARE)",
    verified: TRANSFORMERS,
    note: "one prompt of pictures, videos and texts; minutes a clip on a CPU",
    published: &[
        PublishedModel {
            model: "Alibaba-NLP/gme-Qwen2-VL-2B-Instruct",
            licence: Some("Apache-2.0"),
            bytes: Some(2_208_985_600 * 4),
            purpose: "answers a text, a clip, or a clip and a change on real footage; reads a frame a second, each \
                      about 9 s on a CPU core",
        },
        PublishedModel {
            model: "Alibaba-NLP/gme-Qwen2-VL-7B-Instruct",
            licence: Some("Apache-2.0"),
            bytes: Some(8_291_375_616 * 4),
            purpose: "answers a text, a clip, or a clip and a change on real footage; reads a frame a second, each \
                      about 20 s on a CPU core",
        },
        PublishedModel {
            model: "Qwen/Qwen3-VL-Embedding-2B",
            licence: Some("Apache-2.0"),
            bytes: Some(2_127_532_032 * 2),
            purpose: "answers a text, a clip, or a clip and a change on real footage; reads a clip as one video, 8 \
                      frames in about 16 s on a CPU core",
        },
        PublishedModel {
            model: "Qwen/Qwen3-VL-Embedding-8B",
            licence: Some("Apache-2.0"),
            bytes: Some(8_144_793_840 * 2),
            purpose: "answers a text, a clip, or a clip and a change on real footage; reads a clip as one video, 8 \
                      frames in about 50 s on a CPU core",
        },
        PublishedModel {
            model: "MCG-NJU/CaRe-7B",
            licence: None,
            bytes: None,
            purpose: "answers long texts about what happens and where, a clip, or both by the prompt of E5-V; about \
                      7 minutes a clip on a CPU core",
        },
    ],
}];
