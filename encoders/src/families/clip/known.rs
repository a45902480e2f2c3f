//! CLIP's models in all layouts.

use crate::families::family::{KnownModel, PublishedModel, SEES, TRANSFORMERS};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[
    KnownModel {
        name: "FOLDER or ORG/NAME",
        family: "clip",
        modality: "text, frames",
        dimension: "projection_dim",
        text_tokens: "max_position_embeddings",
        licence: "MIT (OpenAI's weights)",
        source: "arXiv 2103.00020; openai/clip-vit-base-patch32[@revision] and others with model_type clip",
        verified: TRANSFORMERS,
        note: "also with the tensor names of OpenAI's code, as model.pt",
        published: &[PublishedModel {
            model: "openai/clip-vit-base-patch32",
            licence: Some("MIT"),
            bytes: None,
            purpose: SEES,
        }],
    },
    KnownModel {
        name: "FILE.pt or FOLDER",
        family: "clip",
        modality: "text, frames",
        dimension: "columns of text_projection",
        text_tokens: "rows of positional_embedding (77)",
        licence: "MIT (OpenAI's weights)",
        source: "arXiv 2103.00020; ViT-B-32.pt and OpenAI's other vision transformers as they are downloaded (TorchScript archives), CLIP's tokenizer.json beside",
        verified: "open_clip_torch's loader of such files, on a small seeded model (docs/encoders.md)",
        note: "sizes are read off the tensors; no config.json may lie beside",
        published: &[],
    },
    KnownModel {
        name: "FOLDER or ORG/NAME",
        family: "clip",
        modality: "text, frames",
        dimension: "embed_dim",
        text_tokens: "context_length",
        licence: "MIT (OpenCLIP's weights), CC-BY-NC-4.0 (MetaCLIP's)",
        source: "arXiv 2212.07143, 2309.16671; open_clip_config.json beside open_clip_model.safetensors or open_clip_pytorch_model.bin",
        verified: "open_clip_torch, on small seeded models (docs/encoders.md)",
        note: "OpenCLIP's own vision transformers (ViT-B-32 to ViT-bigG-14, quick_gelu or gelu); other settings are refused by name",
        published: &[],
    },
    KnownModel {
        name: "FOLDER or ORG/NAME",
        family: "clip",
        modality: "text, frames",
        dimension: "projection_dim",
        text_tokens: "max_position_embeddings (248)",
        licence: "Apache-2.0 (Long-CLIP's weights)",
        source: "arXiv 2403.15378; as Hugging Face has CLIP, or longclip-B.pt as model.pt beside CLIP's config.json with 248 positions",
        verified: "transformers with the two tables of positions joined as in the released code, on small seeded models (docs/encoders.md)",
        note: "Long-CLIP",
        published: &[],
    },
];
