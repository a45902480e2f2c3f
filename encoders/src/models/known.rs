//! What can be named as a model, for people to choose from.

use serde::Serialize;

/// One entry of `reprise models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownModel {
    /// What to pass as the model; `FOLDER` and `ORG/NAME` stand for the user's own.
    pub name: &'static str,
    /// The family that reads it.
    pub family: &'static str,
    /// What it encodes.
    pub modality: &'static str,
    /// Values per vector, or which field says it.
    pub dimension: &'static str,
    /// Longest text in tokens, or which field says it.
    pub text_tokens: &'static str,
    /// Of the weights that are published for it; the user's own may have another.
    pub licence: &'static str,
    /// The paper, and weights that have this layout.
    pub source: &'static str,
    /// What its vectors were compared with; `unverified` where they were compared with nothing.
    pub verified: &'static str,
    /// What else to know.
    pub note: &'static str,
}

const TRANSFORMERS: &str = "transformers, on small seeded models (docs/encoders.md)";

/// All of them.
pub fn known() -> Vec<KnownModel> {
    vec![
        KnownModel {
            name: "builtin:sports",
            family: "sports",
            modality: "text, frames, composed",
            dimension: "128",
            text_tokens: "80",
            licence: "Apache-2.0, as the program",
            source: "in the binary",
            verified: "on rendered clips that it was not trained on (BENCHMARKS.md)",
            note: "trained on rendered clips of dives and gymnastics, no use on real footage",
        },
        KnownModel {
            name: "builtin:tiny",
            family: "clip",
            modality: "text, frames",
            dimension: "64",
            text_tokens: "77",
            licence: "Apache-2.0, as the program",
            source: "in the binary",
            verified: "as CLIP",
            note: "seeded weights, untrained: sees little more than colour and layout",
        },
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
        },
        KnownModel {
            name: "FILE.pt or FOLDER",
            family: "clip",
            modality: "text, frames",
            dimension: "columns of text_projection",
            text_tokens: "rows of positional_embedding (77)",
            licence: "MIT (OpenAI's weights)",
            source: "arXiv 2103.00020; ViT-B-32.pt and OpenAI's other vision transformers as they are downloaded, CLIP's tokenizer.json beside",
            verified: "open_clip_torch's loader of such files, on a small seeded model (docs/encoders.md)",
            note: "sizes are read off the tensors; no config.json may lie beside",
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
        },
        KnownModel {
            name: "FOLDER or ORG/NAME",
            family: "eva-clip",
            modality: "text, frames",
            dimension: "embed_dim",
            text_tokens: "context_length (77)",
            licence: "MIT (BAAI's weights)",
            source: "arXiv 2303.15389; OpenCLIP's layout with timm_model_name eva02_base_patch16_clip_224, eva02_large_patch14_clip_224 or _336, eva02_enormous_patch14_clip_224, eva_giant_patch14_clip_224",
            verified: "open_clip_torch and timm, on small seeded models (docs/encoders.md)",
            note: "heads and rotary positions go by the name, all other sizes by the weights",
        },
        KnownModel {
            name: "FOLDER or ORG/NAME",
            family: "pe-core",
            modality: "text, frames",
            dimension: "embed_dim",
            text_tokens: "context_length (32 or 72)",
            licence: "Apache-2.0 (Meta's weights)",
            source: "arXiv 2504.13181; OpenCLIP's layout with timm_model_name vit_pe_core_{tiny,small,base,large,gigantic}_*",
            verified: "open_clip_torch and timm, on small seeded models (docs/encoders.md)",
            note: "heads and rotary positions go by the name, all other sizes by the weights",
        },
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
        },
        KnownModel {
            name: "FOLDER or ORG/NAME",
            family: "blip",
            modality: "text, frames",
            dimension: "image_text_hidden_size (256)",
            text_tokens: "rows of the text tower's positions (512)",
            licence: "BSD-3-Clause (Salesforce's weights)",
            source: "arXiv 2201.12086; Salesforce/blip-itm-base-coco and others of BlipForImageTextRetrieval",
            verified: TRANSFORMERS,
            note: "the vectors of its contrastive loss; the matching head and captions are not read; also with the tensor names of BLIP's own code, as model.pth",
        },
        KnownModel {
            name: "FOLDER",
            family: "blip",
            modality: "text, frames, composed",
            dimension: "image_text_hidden_size (256)",
            text_tokens: "rows of the text tower's positions (512)",
            licence: "MIT (CoVR's weights)",
            source: "arXiv 2308.14746; lucas-ventura/CoVR's checkpoint as model.ckpt, BLIP's config.json with composed_queries: {enc_token_id: 30523} in it",
            verified: TRANSFORMERS,
            note: "BLIP-CoVR; a composed query looks at the clip's middle frame, so that of a stored span is decoded",
        },
        KnownModel {
            name: "FOLDER or ORG/NAME",
            family: "blip-2",
            modality: "text, frames",
            dimension: "image_text_hidden_size (256)",
            text_tokens: "rows of the Q-Former's positions (512)",
            licence: "MIT (Salesforce's weights)",
            source: "arXiv 2301.12597; Salesforce/blip2-itm-vit-g and others of Blip2ForImageTextRetrieval",
            verified: TRANSFORMERS,
            note: "a picture's vector is the mean of its 32 queries' unit vectors, where BLIP-2's own score takes the nearest",
        },
        KnownModel {
            name: "FOLDER or ORG/NAME",
            family: "languagebind",
            modality: "text, frames",
            dimension: "projection_dim",
            text_tokens: "max_position_embeddings (77)",
            licence: "MIT (LanguageBind's weights)",
            source: "arXiv 2310.01852; LanguageBind/LanguageBind_Video_FT and others with model_type LanguageBindVideo, tokenizer.json beside",
            verified: "unverified: a module written from the released code, on small seeded models (docs/encoders.md); no released weights",
            note: "8 frames of a clip look at each other; taken at the middles of 8 parts, not from first to last as its code does",
        },
        KnownModel {
            name: "FOLDER",
            family: "aim",
            modality: "frames, composed",
            dimension: "the video tower's width",
            text_tokens: "max_tokens, or as TF-CoVR's code cuts (32; CLIP 77)",
            licence: "of your own training",
            source: "arXiv 2302.03024, 2506.05274; PyTorch checkpoints too",
            verified: "PyTorch modules written from the papers, on small seeded models (docs/encoders.md)",
            note: "TF-CoVR's AIM, text tower and Combiner",
        },
        KnownModel {
            name: "FOLDER or ORG/NAME",
            family: "sentence",
            modality: "text",
            dimension: "hidden_size, or out_features of the last dense layer",
            text_tokens: "max_seq_length",
            licence: "the model's own",
            source: "arXiv 1908.10084; sentence-transformers/all-MiniLM-L6-v2 and others of BERT or XLM-RoBERTa",
            verified: TRANSFORMERS,
            note: "for what is spoken",
        },
    ]
}
