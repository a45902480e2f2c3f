//! SigLIP (arXiv 2303.15343) and SigLIP 2 (arXiv 2502.14786) with a fixed resolution. Pictures use attention pooling,
//! texts the last position of the padded text. The sigmoid's scale and bias do not affect vectors.

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::blocks::openai_names::thirds;
use crate::blocks::patches::Sides;
use crate::blocks::text_transformer::{self, Reading, Side};
use crate::blocks::transformer::{Activation, Extras, Shape};
use crate::blocks::vision_transformer::{self, Pooling, Projection};
use crate::loading::Weights;

/// Values of config.json; the defaults are those of transformers' `SiglipConfig`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
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
    /// Values per vector; `None`: `hidden_size`.
    pub(crate) projection_size: Option<usize>,
    pub(crate) pad_token_id: Option<u32>,
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
    pub(crate) vision_use_head: bool,
}

impl Default for TextConfig {
    fn default() -> Self {
        TextConfig {
            vocab_size: 32_000,
            hidden_size: 768,
            intermediate_size: 3072,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            max_position_embeddings: 64,
            hidden_act: Activation::GeluNew,
            layer_norm_eps: 1e-6,
            projection_size: None,
            pad_token_id: None,
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
            patch_size: 16,
            hidden_act: Activation::GeluNew,
            layer_norm_eps: 1e-6,
            vision_use_head: true,
        }
    }
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions of the vision tower.
    pub(crate) fn vision(&self) -> Result<vision_transformer::Config, LoadError> {
        let vision = &self.vision_config;
        let unsupported = |what: &str| Err(LoadError::Unsupported(what.into()));
        if vision.num_channels != 3 {
            return unsupported("num_channels other than 3");
        }
        if !vision.vision_use_head {
            return unsupported("vision_use_head false, which leaves no vector of a picture");
        }
        let blocks = Shape {
            width: vision.hidden_size,
            inner: vision.intermediate_size,
            layers: vision.num_hidden_layers,
            heads: vision.num_attention_heads,
            activation: vision.hidden_act,
            epsilon: vision.layer_norm_eps,
            extras: Extras::default(),
        };
        let tower = vision_transformer::Config {
            sides: Sides { image: vision.image_size, patch: vision.patch_size },
            blocks,
            dim: vision.hidden_size,
            patch_bias: true,
            class_token: false,
            norm_before: false,
            rotary: None,
            pooling: Pooling::Attention {
                heads: blocks.heads,
                inner: blocks.inner,
                activation: blocks.activation,
            },
            projection: Projection::None,
            joint_frames: None,
        };
        tower.check().map(|()| tower)
    }

    /// The text tower; texts are padded with the id `pad` on this `side`.
    ///
    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions of the text tower.
    pub(crate) fn text(&self, pad: u32, side: Side) -> Result<text_transformer::Config, LoadError> {
        let text = &self.text_config;
        let tower = text_transformer::Config {
            vocabulary: text.vocab_size,
            longest: text.max_position_embeddings,
            blocks: Shape {
                width: text.hidden_size,
                inner: text.intermediate_size,
                layers: text.num_hidden_layers,
                heads: text.num_attention_heads,
                activation: text.hidden_act,
                epsilon: text.layer_norm_eps,
                extras: Extras::default(),
            },
            dim: text.projection_size.unwrap_or(text.hidden_size),
            reading: Reading::LastOfPadded { pad, side },
            projection: Projection::Biased,
        };
        tower.check().map(|()| tower)
    }
}

/// Renames SigLIP's tensors to the towers' names:
///
/// | SigLIP | here |
/// |---|---|
/// | `text_model.head` | `text_projection` |
/// | `vision_model.head.attention.in_proj_*` | `vision_model.head.attention.{q,k,v}_proj.*`, a third each |
///
/// # Errors
/// [`LoadError::WrongShape`] for attention weights that do not split into query, key and value.
pub(crate) fn renamed(weights: Weights) -> Result<Weights, LoadError> {
    weights.changed(|name, tensor: Tensor| {
        if let Some(part) = name.strip_prefix("text_model.head.") {
            return Ok(vec![(format!("text_projection.{part}"), tensor)]);
        }
        match name.strip_prefix("vision_model.head.attention.in_proj_") {
            Some(kind) => thirds("vision_model.head.attention", kind, name, &tensor),
            None => Ok(vec![(name.to_owned(), tensor)]),
        }
    })
}
