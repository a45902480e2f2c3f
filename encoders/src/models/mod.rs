//! The model families, one file each, and the one enum that names them all.

pub use known::{KnownModel, known};
use serde::Serialize;

pub(crate) mod aim;
pub(crate) mod bert;
pub mod clip;
pub(crate) mod combiner;
pub(crate) mod covr;
mod known;
pub(crate) mod openai;
pub(crate) mod sentence;
pub mod sports;
pub(crate) mod text_tower;
pub(crate) mod tiny;
mod transformer;

/// A kind of model that can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Contrastive image and text towers.
    Clip,
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
            Family::Aim => "aim",
            Family::Sports => "sports",
            Family::Sentence => "sentence",
        }
    }

    /// Raised whenever the family's code gives other vectors for the same weights and input, so that
    /// they become another space.
    pub fn version(self) -> u32 {
        match self {
            Family::Clip | Family::Aim | Family::Sports | Family::Sentence => 1,
        }
    }
}
