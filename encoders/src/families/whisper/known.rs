//! Whisper models.

use crate::families::family::{KnownModel, TRANSFORMERS};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "FOLDER or ORG/NAME",
    family: "whisper",
    modality: "speech",
    dimension: "none: it writes text",
    text_tokens: "max_target_positions (448)",
    licence: "Apache-2.0 or MIT",
    source: "arXiv 2212.04356 and 2311.00430; e.g. openai/whisper-base",
    verified: TRANSFORMERS,
    note: "for `reprise transcribe`; tiny to large-v3 and turbo, distil, English alone (.en)",
    // They can't be added as spaces.
    published: &[],
}];
