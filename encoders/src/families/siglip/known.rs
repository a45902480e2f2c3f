//! SigLIP's models in both layouts.

use crate::families::family::{KnownModel, PublishedModel, SEES, TRANSFORMERS};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[
    KnownModel {
        name: "FOLDER or ORG/NAME",
        family: "siglip",
        modality: "text, frames",
        dimension: "hidden_size of vision_config",
        text_tokens: "max_position_embeddings (64)",
        licence: "Apache-2.0 (Google's weights)",
        source: "arXiv 2303.15343, 2502.14786; google/siglip-base-patch16-224, google/siglip2-base-patch16-224 and others with model_type siglip",
        verified: TRANSFORMERS,
        note: "pictures are squashed; SigLIP 2's NaFlex models (model_type siglip2) are refused",
        published: &[
            PublishedModel {
                model: "google/siglip-base-patch16-224",
                licence: Some("Apache-2.0"),
                bytes: Some(812_672_320),
                purpose: SEES,
            },
            PublishedModel {
                model: "google/siglip2-base-patch16-224",
                licence: Some("Apache-2.0"),
                bytes: None,
                purpose: SEES,
            },
        ],
    },
    KnownModel {
        name: "FOLDER or ORG/NAME",
        family: "siglip",
        modality: "text, frames",
        dimension: "embed_dim",
        text_tokens: "context_length (64)",
        licence: "Apache-2.0 (Google's weights)",
        source: "arXiv 2303.15343, 2502.14786; timm/ViT-B-16-SigLIP, timm/ViT-B-16-SigLIP2 and others in OpenCLIP's layout with timm_model_name vit_{base,large,so400m,giantopt}_patch*_siglip_*",
        verified: "open_clip_torch and timm, on small seeded models (docs/encoders.md)",
        note: "texts lose case and punctuation as in OpenCLIP; what else ftfy mends there, and HTML, stays as it is",
        published: &[
            PublishedModel {
                model: "timm/ViT-B-16-SigLIP",
                licence: Some("Apache-2.0"),
                bytes: None,
                purpose: SEES,
            },
            PublishedModel {
                model: "timm/ViT-B-16-SigLIP2",
                licence: Some("Apache-2.0"),
                bytes: None,
                purpose: SEES,
            },
        ],
    },
];
