//! The model families, one file each, and the one enum that names them all.

pub use known::{KnownModel, known};
use serde::Serialize;

pub(crate) mod aim;
pub(crate) mod bert;
pub(crate) mod blip;
pub(crate) mod blip2;
pub(crate) mod clip;
pub(crate) mod combiner;
pub(crate) mod covr;
mod cross_attention;
mod known;
pub(crate) mod language_bind;
pub(crate) mod layers;
pub(crate) mod openai;
pub(crate) mod openai_sizes;
mod patches;
pub(crate) mod pictures;
pub(crate) mod sentence;
pub(crate) mod siglip;
pub mod sports;
pub(crate) mod text_tower;
pub(crate) mod text_transformer;
pub(crate) mod timm;
pub(crate) mod tiny;
pub(crate) mod transformer;
pub(crate) mod two_towers;
pub(crate) mod video_clip_xl;
pub(crate) mod vision_transformer;

/// A kind of model that can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Contrastive image and text towers.
    Clip,
    /// Image and text towers that were trained with a sigmoid for each pair.
    Siglip,
    /// EVA-CLIP: OpenCLIP's text tower beside an EVA or EVA-02 vision tower.
    EvaClip,
    /// The Perception Encoder's image and text towers.
    PeCore,
    /// BLIP's vision transformer and BERT.
    Blip,
    /// BLIP-2's vision transformer and Q-Former.
    Blip2,
    /// LanguageBind's video and text towers.
    LanguageBind,
    /// VideoCLIP-XL's video and text towers.
    VideoClipXl,
    /// AIM, with TF-CoVR's text towers and Combiner.
    Aim,
    /// The small built-in family: clips, texts and composed queries.
    Sports,
    /// BERT-type encoders of sentences, for what is spoken.
    Sentence,
}

impl Family {
    /// The family that reads a config.json of this `model_type`.
    pub fn of(model_type: &str) -> Option<Family> {
        match model_type {
            "clip" => Some(Family::Clip),
            "siglip" => Some(Family::Siglip),
            "blip" => Some(Family::Blip),
            blip2::MODEL_TYPE => Some(Family::Blip2),
            language_bind::MODEL_TYPE => Some(Family::LanguageBind),
            video_clip_xl::MODEL_TYPE => Some(Family::VideoClipXl),
            "aim" => Some(Family::Aim),
            sports::MODEL_TYPE => Some(Family::Sports),
            "bert" | "roberta" | "xlm-roberta" | "camembert" => Some(Family::Sentence),
            _ => None,
        }
    }

    /// Its name in a space's description.
    pub fn name(self) -> &'static str {
        match self {
            Family::Clip => "clip",
            Family::Siglip => "siglip",
            Family::EvaClip => "eva-clip",
            Family::PeCore => "pe-core",
            Family::Blip => "blip",
            Family::Blip2 => "blip-2",
            Family::LanguageBind => "languagebind",
            Family::VideoClipXl => "videoclip-xl",
            Family::Aim => "aim",
            Family::Sports => "sports",
            Family::Sentence => "sentence",
        }
    }

    /// Raised whenever the family's code gives other vectors for the same weights and input, so that
    /// they become another space.
    pub fn version(self) -> u32 {
        match self {
            Family::Clip | Family::Siglip | Family::EvaClip | Family::PeCore | Family::Blip => 1,
            Family::Blip2
            | Family::LanguageBind
            | Family::VideoClipXl
            | Family::Aim
            | Family::Sports
            | Family::Sentence => 1,
        }
    }
}
