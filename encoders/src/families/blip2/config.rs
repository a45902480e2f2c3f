//! BLIP-2 (arXiv 2301.12597): a vision transformer and a Q-Former. The Q-Former's learnt queries attend to a picture;
//! its text path is a BERT with the same self-attention.
//!
//! BLIP-2 compares a text with the nearest of a picture's query vectors. A space keeps one vector per picture: the mean
//! of the unit vectors of all queries.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::blocks::bert::{self, Bert};
use crate::blocks::patches::Sides;
use crate::blocks::q_former::{self, QFormer};
use crate::blocks::transformer::{Activation, Extras, Linear, Shape};
use crate::blocks::two_towers::Texts;
use crate::blocks::vision_transformer::{self, Pooling, Projection};
use crate::families::blip::config as blip;
use crate::loading::Weights;

/// A picture's placeholder in prompts of transformers' `Blip2Processor`; its id exceeds the Q-Former's vocabulary.
pub(crate) const IMAGE_TOKEN: &str = "<image>";

/// Values of config.json; the defaults are those of transformers' `Blip2Config`. The Q-Former's sizes come from the
/// weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    /// Values per vector.
    pub(crate) image_text_hidden_size: usize,
    pub(crate) qformer_config: QFormerConfig,
    pub(crate) vision_config: VisionConfig,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct QFormerConfig {
    pub(crate) num_attention_heads: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VisionConfig {
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) image_size: usize,
    pub(crate) patch_size: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            image_text_hidden_size: 256,
            qformer_config: QFormerConfig::default(),
            vision_config: VisionConfig::default(),
        }
    }
}

impl Default for QFormerConfig {
    fn default() -> Self {
        QFormerConfig { num_attention_heads: 12, hidden_act: Activation::Gelu, layer_norm_eps: 1e-12 }
    }
}

impl Default for VisionConfig {
    fn default() -> Self {
        VisionConfig {
            hidden_size: 1408,
            intermediate_size: 6144,
            num_hidden_layers: 39,
            num_attention_heads: 16,
            image_size: 224,
            patch_size: 14,
            hidden_act: Activation::Gelu,
            layer_norm_eps: 1e-6,
        }
    }
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions of the vision tower.
    pub(crate) fn vision(&self) -> Result<vision_transformer::Config, LoadError> {
        let vision = &self.vision_config;
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
            // The Q-Former attends to tokens of the full hidden size.
            dim: vision.hidden_size,
            patch_bias: true,
            class_token: true,
            norm_before: false,
            rotary: None,
            pooling: Pooling::ClassToken,
            projection: Projection::None,
            joint_frames: None,
        };
        tower.check().map(|()| tower)
    }

    /// The towers of `weights`, which must have passed [`renamed`].
    ///
    /// # Errors
    /// [`LoadError`] for weights without such towers (models for captions or answers).
    pub(crate) fn towers(&self, weights: &Weights) -> Result<(QFormer, Texts), LoadError> {
        let QFormerConfig { num_attention_heads, hidden_act, layer_norm_eps } = self.qformer_config;
        let config =
            bert::Config { num_attention_heads, hidden_act, layer_norm_eps, ..bert::Config::default() };
        let (tower, dim) = (Arc::new(Bert::load(&config, weights)?), self.image_text_hidden_size);
        let projection = Linear::load(weights, "text_projection", tower.width(), dim)?;
        let pictures = q_former::Config {
            vision: self.vision()?,
            heads: num_attention_heads,
            activation: hidden_act,
            epsilon: layer_norm_eps,
            dim,
        };
        let pictures = QFormer::load(pictures, Arc::clone(&tower), weights)?;
        Ok((pictures, Texts::Bert { tower, projection, dim, composed_token: None }))
    }
}

/// Renames the tensors of transformers' `Blip2ForImageTextRetrieval` to the towers' names. The vision tower's names
/// change as BLIP's; the others:
///
/// | BLIP-2 | here |
/// |---|---|
/// | `qformer.layernorm` | `embeddings.LayerNorm` |
/// | `qformer.encoder.layer.N.attention.attention`, `.crossattention.attention` | `encoder.layer.N.attention.self`, `.crossattention.self` |
/// | other `qformer.*` | without `qformer.` |
///
/// # Errors
/// [`LoadError::WrongShape`] for attention weights that do not split into query, key and value.
pub(crate) fn renamed(weights: Weights) -> Result<Weights, LoadError> {
    weights.changed(|name, tensor| {
        let Some(part) = name.strip_prefix("qformer.") else { return blip::vision(name, name, tensor) };
        let new = match part.strip_prefix("layernorm.") {
            Some(kind) => format!("embeddings.LayerNorm.{kind}"),
            None => part.replace("attention.attention.", "attention.self."),
        };
        Ok(vec![(new, tensor)])
    })
}
