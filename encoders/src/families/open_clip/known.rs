//! Models with timm's towers that only OpenCLIP offers.

use crate::families::family::KnownModel;

/// Entries of `reprise models`.
pub(super) const EVA_CLIP: &[KnownModel] = &[KnownModel {
    name: "FOLDER or ORG/NAME",
    family: "eva-clip",
    modality: "text, frames",
    dimension: "embed_dim",
    text_tokens: "context_length (77)",
    licence: "MIT (BAAI's weights)",
    source: "arXiv 2303.15389; OpenCLIP's layout with timm_model_name eva02_base_patch16_clip_224, eva02_large_patch14_clip_224 or _336, eva02_enormous_patch14_clip_224, eva_giant_patch14_clip_224",
    verified: "open_clip_torch and timm, on small seeded models (docs/encoders.md)",
    note: "heads and rotary positions go by the name, all other sizes by the weights",
    published: &[],
}];

/// Entries of `reprise models`.
pub(super) const PE_CORE: &[KnownModel] = &[KnownModel {
    name: "FOLDER or ORG/NAME",
    family: "pe-core",
    modality: "text, frames",
    dimension: "embed_dim",
    text_tokens: "context_length (32 or 72)",
    licence: "Apache-2.0 (Meta's weights)",
    source: "arXiv 2504.13181; OpenCLIP's layout with timm_model_name vit_pe_core_{tiny,small,base,large,gigantic}_*",
    verified: "open_clip_torch and timm, on small seeded models (docs/encoders.md)",
    note: "heads and rotary positions go by the name, all other sizes by the weights",
    published: &[],
}];
