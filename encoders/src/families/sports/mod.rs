//! The small built-in family: clips of sports, texts and composed queries in one embedding space.
//!
//! TF-CoVR-Base (arXiv 2506.05274) at a hundredth of its size: a frame encoder with AIM's adapters, a temporal
//! transformer over 16 frames, a text transformer with its own vocabulary, and a gated fusion. A folder of this family
//! holds config.json (`model_type` "reprise-sports"), model.safetensors, tokenizer.json and preprocessor_config.json;
//! `reprise train` writes it.

mod config;
mod encoder;
mod frames;
mod known;
mod language;
mod layers;
mod load;
mod operations;
mod parameters;
mod parts;
pub(crate) mod pretrained;
mod temporal;

pub use config::{Config, FusionInputs, StemLayer, TimeModel};
pub(crate) use load::Sports;

/// The family's trainable parts, for `reprise train`.
pub mod training {
    pub use super::encoder::{FRAMES_PER_PASS, pixels};
    pub use super::frames::FrameEncoder;
    pub use super::language::{EncodedText, Fusion, PaddedTexts, TextEncoder};
    pub use super::layers::{Linear, Norm, unit};
    pub use super::parameters::{ForInference, Parameters, Start};
    pub use super::temporal::{ClipEncoder, Encoded};
    pub use crate::device::default_device;
}

#[cfg(test)]
mod tests;
