//! VideoCLIP-XL's models.

use crate::families::family::KnownModel;

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "FOLDER",
    family: "videoclip-xl",
    modality: "text, frames",
    dimension: "columns of text_projection (768)",
    text_tokens: "rows of positional_embedding (248)",
    licence: "the model's own",
    source: "arXiv 2410.00741; alibaba-pai/VideoCLIP-XL's or -v2's checkpoint as pytorch_model.bin, CLIP's tokenizer.json, and a config.json of {\"model_type\": \"videoclip-xl\"}",
    verified: "VideoCLIP-XL's released modules, on a small seeded model (docs/encoders.md)",
    note: "8 frames of a clip are one sequence; each (count / 8)-th from the first, as its code does",
    published: &[],
}];
