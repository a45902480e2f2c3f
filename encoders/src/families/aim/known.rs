//! TF-CoVR's models.

use crate::families::family::KnownModel;

/// Entries of `reprise models`.
pub(super) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "FOLDER",
    family: "aim",
    modality: "frames, composed",
    dimension: "the video tower's width",
    text_tokens: "max_tokens, or as TF-CoVR's code cuts (32; CLIP 77)",
    licence: "of your own training",
    source: "arXiv 2302.03024, 2506.05274; PyTorch checkpoints too",
    verified: "AIM's and TF-CoVR's released modules, on small seeded models (docs/encoders.md)",
    note: "TF-CoVR's AIM, text tower and Combiner",
    published: &[],
}];
