//! The small built-in family: clips of sports, texts, and clips changed by texts, in one space.
//!
//! TF-CoVR-Base (arXiv 2506.05274) at a hundredth of its size: a frame encoder with AIM's adapters, a
//! temporal transformer over 16 frames, a text transformer with words of its own, and a gated fusion.
//! A folder of this family holds config.json (`model_type` "reprise-sports"), model.safetensors,
//! tokenizer.json and preprocessor_config.json; `reprise train` writes it.

mod config;
pub(crate) mod encoder;
pub(crate) mod frames;
mod known;
pub(crate) mod language;
pub(crate) mod layers;
mod load;
pub(crate) mod operations;
pub(crate) mod parameters;
pub(crate) mod parts;
pub(crate) mod pretrained;
pub(crate) mod temporal;

pub use config::{Config, FusionInputs, StemLayer, TimeModel};
pub(crate) use load::Sports;

#[cfg(test)]
pub(crate) mod tests;
