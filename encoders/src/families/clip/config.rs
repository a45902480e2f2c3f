//! CLIP (arXiv 2103.00020) and models that differ only in sizes: MetaCLIP (arXiv 2309.16671), OpenCLIP's own towers,
//! Long-CLIP (arXiv 2403.15378).

use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::blocks::patches::Sides;
use crate::blocks::text_transformer::{self, Reading};
use crate::blocks::transformer::{Activation, Extras, Shape};
use crate::blocks::vision_transformer::{self, Pooling, Projection};

/// Values of config.json; the defaults are those of transformers' `CLIPConfig`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) projection_dim: usize,
    pub(crate) text_config: TextConfig,
    pub(crate) vision_config: VisionConfig,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TextConfig {
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) max_position_embeddings: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
    pub(crate) bos_token_id: Option<u32>,
    pub(crate) eos_token_id: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VisionConfig {
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) num_channels: usize,
    pub(crate) image_size: usize,
    pub(crate) patch_size: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
}

impl Default for Config {
    fn default() -> Self {
        let (text_config, vision_config) = (TextConfig::default(), VisionConfig::default());
        Config { projection_dim: 512, text_config, vision_config }
    }
}

impl Default for TextConfig {
    fn default() -> Self {
        TextConfig {
            vocab_size: 49_408,
            hidden_size: 512,
            intermediate_size: 2048,
            num_hidden_layers: 12,
            num_attention_heads: 8,
            max_position_embeddings: 77,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
            bos_token_id: Some(49_406),
            eos_token_id: 49_407,
        }
    }
}

impl Default for VisionConfig {
    fn default() -> Self {
        VisionConfig {
            hidden_size: 768,
            intermediate_size: 3072,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            num_channels: 3,
            image_size: 224,
            patch_size: 32,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
        }
    }
}

/// Older files state this wrong id. For them the largest id of a text is its end.
pub(crate) const LEGACY_EOS: u32 = 2;

impl TextConfig {
    /// The tower, with vectors of `dim` values. It finds the end of a text as transformers' `CLIPTextModel` does.
    pub(crate) fn tower(&self, dim: usize) -> text_transformer::Config {
        let reading = match self.eos_token_id {
            LEGACY_EOS => Reading::LargestId,
            id => Reading::EndOfText(id),
        };
        text_transformer::Config {
            vocabulary: self.vocab_size,
            longest: self.max_position_embeddings,
            blocks: Shape {
                width: self.hidden_size,
                inner: self.intermediate_size,
                layers: self.num_hidden_layers,
                heads: self.num_attention_heads,
                activation: self.hidden_act,
                epsilon: self.layer_norm_eps,
                extras: Extras::default(),
            },
            dim,
            reading,
            projection: Projection::Plain,
        }
    }

    /// Special tokens for a tokenizer that adds none itself.
    pub(crate) fn specials(&self) -> crate::text::Specials {
        let legacy = self.eos_token_id == LEGACY_EOS;
        let known = |id: Option<u32>| id.filter(|_| !legacy);
        crate::text::Specials { bos: known(self.bos_token_id), eos: known(Some(self.eos_token_id)) }
    }
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions of the vision tower.
    pub(crate) fn vision(&self) -> Result<vision_transformer::Config, LoadError> {
        let vision = &self.vision_config;
        if vision.num_channels != 3 {
            return Err(LoadError::Unsupported("num_channels other than 3".into()));
        }
        let tower = vision_transformer::Config {
            sides: Sides { image: vision.image_size, patch: vision.patch_size },
            blocks: Shape {
                width: vision.hidden_size,
                inner: vision.intermediate_size,
                layers: vision.num_hidden_layers,
                heads: vision.num_attention_heads,
                activation: vision.hidden_act,
                epsilon: vision.layer_norm_eps,
                extras: Extras::default(),
            },
            dim: self.projection_dim,
            patch_bias: false,
            class_token: true,
            norm_before: true,
            rotary: None,
            pooling: Pooling::ClassToken,
            projection: Projection::Plain,
            joint_frames: None,
        };
        tower.check().map(|()| tower)
    }

    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions of the text tower.
    pub(crate) fn text(&self) -> Result<text_transformer::Config, LoadError> {
        let tower = self.text_config.tower(self.projection_dim);
        tower.check().map(|()| tower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the GFLOP of one picture, and of texts of 77 and 248 tokens.
    #[track_caller]
    fn check(vision_config: VisionConfig, expected: [f64; 3]) {
        let config = Config { vision_config, ..Config::default() };
        let text = config.text().unwrap();
        let found = [config.vision().unwrap().operations(), text.operations(77), text.operations(248)];
        let tenths = found.map(|operations| (operations / 1e8).round() / 10.0);
        assert_eq!(tenths, expected);
    }

    #[test]
    fn operations_follow_from_the_shape() {
        let base = VisionConfig::default();
        check(base.clone(), [8.8, 6.0, 20.2]);
        check(VisionConfig { patch_size: 16, ..base.clone() }, [35.1, 6.0, 20.2]);
        let large = VisionConfig {
            hidden_size: 1024,
            intermediate_size: 4096,
            num_hidden_layers: 24,
            num_attention_heads: 16,
            patch_size: 14,
            ..base
        };
        check(large, [162.0, 6.0, 20.2]);
    }
}
