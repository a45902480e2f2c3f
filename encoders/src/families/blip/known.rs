//! BLIP's models.

use crate::families::family::{KnownModel, PublishedModel, SEES, TRANSFORMERS};

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[
    KnownModel {
        name: "FOLDER or ORG/NAME",
        family: "blip",
        modality: "text, frames",
        dimension: "image_text_hidden_size (256)",
        text_tokens: "rows of the text tower's positions (512)",
        licence: "BSD-3-Clause (Salesforce's weights)",
        source: "arXiv 2201.12086; Salesforce/blip-itm-base-coco and others of BlipForImageTextRetrieval",
        verified: TRANSFORMERS,
        note: "the vectors of its contrastive loss; the matching head and captions are not read; also with the tensor names of BLIP's own code, as model.pth (layer_norm_eps of vision_config 1e-6)",
        published: &[PublishedModel {
            model: "Salesforce/blip-itm-base-coco",
            licence: Some("BSD-3-Clause"),
            bytes: None,
            purpose: SEES,
        }],
    },
    KnownModel {
        name: "FOLDER",
        family: "blip",
        modality: "text, frames, composed",
        dimension: "image_text_hidden_size (256)",
        text_tokens: "rows of the text tower's positions (512)",
        licence: "MIT (CoVR's weights)",
        source: "arXiv 2308.14746; lucas-ventura/CoVR's checkpoint as model.ckpt, BLIP's config.json with composed_queries: {enc_token_id: 30523} and layer_norm_eps of vision_config 1e-6 in it",
        verified: TRANSFORMERS,
        note: "BLIP-CoVR; a composed query looks at the clip's middle frame, so that of a stored span is decoded",
        published: &[],
    },
];
