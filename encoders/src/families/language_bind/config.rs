//! LanguageBind's video tower (arXiv 2310.01852): CLIP's vision tower with temporal attention before each block.
//!
//! Compared with the released module (docs/encoders.md).

use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::blocks::vision_transformer;
use crate::families::clip::config as clip;

/// Values of config.json beside CLIP's; the defaults are the released code's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    vision_config: VisionConfig,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct VisionConfig {
    add_time_attn: bool,
    num_frames: usize,
    clip_type: Option<String>,
    lora_r: usize,
}

impl Default for VisionConfig {
    fn default() -> Self {
        VisionConfig { add_time_attn: true, num_frames: 8, clip_type: None, lora_r: 0 }
    }
}

impl Config {
    /// The vision tower of `clip` with temporal attention.
    ///
    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions of the vision tower, and for unsupported variants.
    pub(crate) fn vision(&self, clip: &clip::Config) -> Result<vision_transformer::Config, LoadError> {
        let VisionConfig { add_time_attn, num_frames, clip_type, lora_r } = &self.vision_config;
        let unsupported = |what: &str| Err(LoadError::Unsupported(what.into()));
        if !add_time_attn {
            return unsupported("add_time_attn false; such a model is CLIP");
        }
        if clip_type.as_deref() == Some("vl_new") {
            return unsupported("clip_type vl_new, whose patches have a depth in time");
        }
        if *lora_r > 0 {
            return unsupported("lora_r over 0; take the merged or fully tuned weights");
        }
        let mut tower = clip.vision()?;
        tower.blocks.extras.frames = Some(*num_frames);
        tower.check().map(|()| tower)
    }
}
