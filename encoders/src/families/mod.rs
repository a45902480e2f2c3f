//! The model families, one folder each: configuration, weights, model, known models.

pub mod aim;
pub(crate) mod blip;
pub(crate) mod blip2;
pub(crate) mod clip;
pub mod family;
pub(crate) mod language_bind;
pub(crate) mod open_clip;
pub(crate) mod openai;
pub(crate) mod qwen_vl;
pub(crate) mod sentence;
pub(crate) mod siglip;
pub mod sports;
pub(crate) mod tiny;
pub(crate) mod video_clip_xl;
pub(crate) mod whisper;
