//! The list of families: a new family needs a folder in `families/` and a line here.

use crate::families::family::{Family, KnownModel};
use crate::families::{
    aim, blip, blip2, clip, language_bind, open_clip, openai, qwen_vl, sentence, siglip, sports, tiny,
    video_clip_xl, whisper,
};

/// All families, in the order of classification and display.
pub static FAMILIES: &[&dyn Family] = &[
    &sports::Sports,
    &tiny::Tiny,
    &clip::Clip,
    &openai::OpenAi,
    &open_clip::CLIP,
    &open_clip::EVA_CLIP,
    &open_clip::PE_CORE,
    &siglip::Siglip,
    &open_clip::SIGLIP,
    &blip::Blip,
    &blip2::Blip2,
    &language_bind::LanguageBind,
    &video_clip_xl::VideoClipXl,
    &aim::TfCovr,
    &qwen_vl::QwenVlFamily,
    &whisper::Whisper,
    &sentence::Sentences,
];

/// The models that users can choose from.
pub fn known() -> Vec<KnownModel> {
    FAMILIES.iter().flat_map(|family| family.known()).cloned().collect()
}
