//! BLIP (arXiv 2201.12086) as far as its vectors go: the vision transformer and BERT that were trained to agree on
//! pictures and their captions. What looks at a picture while it reads (the matching head, captions) is not read.

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use super::bert::{self, Bert};
use super::openai::thirds;
use super::patches::Sides;
use super::transformer::{Activation, Extras, Linear, Shape};
use super::two_towers::Texts;
use super::vision_transformer::{self, Pooling, Projection};
use crate::LoadError;
use crate::weights::Weights;

/// What config.json says; what it leaves out is as in transformers' `BlipConfig`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    /// Values per vector.
    pub(crate) image_text_hidden_size: usize,
    pub(crate) text_config: TextConfig,
    pub(crate) vision_config: VisionConfig,
}

/// How wide the tower is and what it holds is read off the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TextConfig {
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
        let (text_config, vision_config) = (TextConfig::default(), VisionConfig::default());
        Config { image_text_hidden_size: 256, text_config, vision_config }
    }
}

impl Default for TextConfig {
    fn default() -> Self {
        TextConfig { num_attention_heads: 8, hidden_act: Activation::Gelu, layer_norm_eps: 1e-12 }
    }
}

impl Default for VisionConfig {
    fn default() -> Self {
        VisionConfig {
            hidden_size: 768,
            intermediate_size: 3072,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            image_size: 384,
            patch_size: 16,
            hidden_act: Activation::Gelu,
            layer_norm_eps: 1e-5,
        }
    }
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for numbers that make no vision tower.
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
            dim: self.image_text_hidden_size,
            patch_bias: true,
            class_token: true,
            norm_before: false,
            rotary: None,
            pooling: Pooling::ClassToken,
            projection: Projection::Biased,
        };
        tower.check().map(|()| tower)
    }

    /// The text tower of `weights`.
    ///
    /// # Errors
    /// [`LoadError`] for weights that have none: those of models that write captions or answers.
    pub(crate) fn texts(&self, weights: &Weights) -> Result<Texts, LoadError> {
        let TextConfig { num_attention_heads, hidden_act, layer_norm_eps } = self.text_config;
        let config = bert::Config { num_attention_heads, hidden_act, layer_norm_eps, position_offset: 0 };
        let words = "text_encoder.embeddings.word_embeddings.weight";
        if weights.shape(words).is_none() {
            return Err(LoadError::MissingTensor { name: words.to_owned() });
        }
        let (tower, dim) = (Bert::load(&config, weights)?, self.image_text_hidden_size);
        let projection = Linear::load(weights, "text_proj", (tower.width(), dim))?;
        Ok(Texts::Bert { tower, projection, dim })
    }
}

/// The tensors of transformers' `BlipForImageTextRetrieval` by the names that the vision tower reads:
///
/// | BLIP | here |
/// |---|---|
/// | `vision_model.embeddings.class_embedding`, `.position_embedding`, with axes of length 1 | without, the second `.weight` |
/// | `vision_model.encoder.layers.N.self_attn.qkv` | `self_attn.{q,k,v}_proj`, a third each |
/// | `vision_model.encoder.layers.N.self_attn.projection` | `self_attn.out_proj` |
/// | `vision_proj` | `visual_projection` |
///
/// # Errors
/// [`LoadError::WrongShape`] for attention weights that can't be cut into query, key and value.
pub(crate) fn renamed(weights: Weights) -> Result<Weights, LoadError> {
    weights.changed(|name, tensor: Tensor| {
        match name {
            "vision_model.embeddings.class_embedding" => {
                return Ok(vec![(name.to_owned(), tensor.flatten_all()?)]);
            }
            "vision_model.embeddings.position_embedding" if tensor.rank() == 3 => {
                return Ok(vec![(format!("{name}.weight"), tensor.flatten_to(1)?)]);
            }
            _ => {}
        }
        if let Some(part) = name.strip_prefix("vision_proj.") {
            return Ok(vec![(format!("visual_projection.{part}"), tensor)]);
        }
        if let Some((attention, part)) = name.split_once(".self_attn.") {
            let attention = format!("{attention}.self_attn");
            if let Some(kind) = part.strip_prefix("qkv.") {
                return thirds(&attention, kind, name, &tensor);
            }
            if let Some(kind) = part.strip_prefix("projection.") {
                return Ok(vec![(format!("{attention}.out_proj.{kind}"), tensor)]);
            }
        }
        Ok(vec![(name.to_owned(), tensor)])
    })
}
