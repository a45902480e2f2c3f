//! LanguageBind's video tower (arXiv 2310.01852): CLIP whose vision tower attends along time before each block.
//!
//! Unverified: written from the facts of the released code, compared with a module that was written from them too.

use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::blocks::vision_transformer;
use crate::families::clip::config as clip;

/// What config.json says beside CLIP's; what it leaves out is as in the released code.
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
    /// The vision tower of `clip` with attention along time.
    ///
    /// # Errors
    /// [`LoadError::Unsupported`] for numbers that make no vision tower, and for the variants that are not read.
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
