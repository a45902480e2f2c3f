//! What can be named as a model, for people to choose from.

use serde::Serialize;

/// One line of `reprise models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownModel {
    /// What to pass as the model; `FOLDER` and `ORG/NAME` stand for the user's own.
    pub name: &'static str,
    /// The family that reads it.
    pub family: &'static str,
    /// What it encodes.
    pub modality: &'static str,
    /// How it was verified, and what to know.
    pub note: &'static str,
}

/// All of them.
pub fn known() -> Vec<KnownModel> {
    let clip = |name, note| KnownModel { name, family: "clip", modality: "text, frames", note };
    let sentence = |name, note| KnownModel { name, family: "sentence", modality: "text", note };
    vec![
        KnownModel {
            name: "builtin:sports",
            family: "sports",
            modality: "text, frames, composed",
            note: "in the binary; trained on rendered clips of dives and gymnastics, no use on real footage",
        },
        clip(
            "builtin:tiny",
            "seeded weights in the binary; untrained: sees little more than colour and layout",
        ),
        clip("FOLDER", "a Hugging Face CLIP folder; verified against transformers on small seeded models"),
        KnownModel {
            name: "FOLDER",
            family: "aim",
            modality: "frames, composed",
            note: "TF-CoVR's AIM, text tower and Combiner, from PyTorch checkpoints too; verified on small seeded models",
        },
        sentence(
            "FOLDER",
            "BERT or XLM-RoBERTa as sentence-transformers saves them; verified on small seeded models",
        ),
        clip("ORG/NAME", "a Hugging Face CLIP repository, e.g. openai/clip-vit-base-patch32[@revision]"),
        sentence(
            "ORG/NAME",
            "a sentence-transformers repository, e.g. sentence-transformers/all-MiniLM-L6-v2",
        ),
    ]
}
