//! BLIP-2 (arXiv 2301.12597) as far as its vectors go: a vision transformer, and a Q-Former, whose learnt queries read a
//! picture and which reads texts as BERT does, with the same self-attention.
//!
//! A picture has a vector a query there, and its contrastive score is the nearest one's. A space keeps one vector: the
//! mean of them all, each of norm 1.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::bert::{self, Bert};
use super::blip;
use super::combiner::divided_by_norm;
use super::cross_attention::{self, CrossAttention};
use super::patches::Sides;
use super::transformer::{Activation, Extras, LayerNorm, Linear, Shape, Sight};
use super::two_towers::Texts;
use super::vision_transformer::{self, Pooling, Projection, VisionTransformer};
use crate::LoadError;
use crate::weights::Weights;

/// `model_type` in config.json.
pub(crate) const MODEL_TYPE: &str = "blip-2";

/// Where transformers' `Blip2Processor` puts a picture's tokens into a prompt; an id beyond the Q-Former's.
pub(crate) const IMAGE_TOKEN: &str = "<image>";

/// What config.json says; what it leaves out is as in transformers' `Blip2Config`. How wide the Q-Former is and what it
/// holds is read off the weights.
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
    /// [`LoadError::Unsupported`] for numbers that make no vision tower.
    pub(crate) fn vision(&self) -> std::result::Result<vision_transformer::Config, LoadError> {
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
            // The Q-Former reads its tokens as they are.
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

    /// The towers of `weights`, which have the names of [`renamed`].
    ///
    /// # Errors
    /// [`LoadError`] for weights that have none: those of models that write captions or answers.
    pub(crate) fn towers(&self, weights: &Weights) -> std::result::Result<(QFormer, Texts), LoadError> {
        let QFormerConfig { num_attention_heads, hidden_act, layer_norm_eps } = self.qformer_config;
        let config =
            bert::Config { num_attention_heads, hidden_act, layer_norm_eps, ..bert::Config::default() };
        let (tower, dim) = (Arc::new(Bert::load(&config, weights)?), self.image_text_hidden_size);
        let projection = Linear::load(weights, "text_projection", (tower.width(), dim))?;
        let pictures = QFormer::load(self, Arc::clone(&tower), weights)?;
        Ok((pictures, Texts::Bert { tower, projection, dim, composed_token: None }))
    }
}

/// The tower of pictures.
#[derive(Debug)]
pub(crate) struct QFormer {
    vision: VisionTransformer,
    /// Whose self-attention is the queries' too.
    texts: Arc<Bert>,
    /// (queries, width), after the norm that texts go through too.
    queries: Tensor,
    layers: Vec<QueryLayer>,
    projection: Linear,
    dim: usize,
}

/// What the queries have in a layer beside the self-attention that they share with texts.
#[derive(Debug)]
struct QueryLayer {
    cross: Option<CrossAttention>,
    up: Linear,
    down: Linear,
    norm: LayerNorm,
    activation: Activation,
}

impl QFormer {
    fn load(config: &Config, texts: Arc<Bert>, weights: &Weights) -> std::result::Result<Self, LoadError> {
        let (name, width, dim) = ("query_tokens", texts.width(), config.image_text_hidden_size);
        let Some(&[1, queries, _]) = weights.shape(name) else {
            return Err(LoadError::MissingTensor { name: name.to_owned() });
        };
        let tokens = weights.get(name, &[1, queries, width])?.reshape((queries, width))?;
        let layer = |number| QueryLayer::load(config, width, weights, &format!("encoder.layer.{number}"));
        let layers = (0..texts.layers()).map(layer).collect::<std::result::Result<Vec<_>, _>>()?;
        if layers.iter().all(|layer| layer.cross.is_none()) {
            let name = "qformer.encoder.layer.0.crossattention.attention.query.weight".to_owned();
            return Err(LoadError::MissingTensor { name });
        }
        Ok(QFormer {
            vision: VisionTransformer::load(config.vision()?, weights)?,
            queries: texts.normed(&tokens)?,
            texts,
            layers,
            projection: Linear::load(weights, "vision_projection", (width, dim))?,
            dim,
        })
    }

    /// Tokens of one picture.
    pub(crate) fn tokens(&self) -> usize {
        self.vision.tokens()
    }

    /// Values per vector.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// (pictures, dim) of (pictures, 3, side, side) pixels, picture after picture in one slice.
    pub(crate) fn forward(&self, pixels: &[f32]) -> Result<Tensor> {
        let seen = self.vision.hidden(pixels)?;
        let (pictures, (queries, width)) = (seen.dim(0)?, self.queries.dims2()?);
        let mut x = self.queries.broadcast_as((pictures, queries, width))?.contiguous()?;
        x = x.reshape((pictures * queries, width))?;
        for (number, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&self.texts.attended(number, &x, queries, Sight::All)?, &seen)?;
        }
        let units = divided_by_norm(&self.projection.forward(&x)?)?;
        units.reshape((pictures, queries, self.dim))?.mean(1)
    }
}

impl QueryLayer {
    fn load(
        config: &Config,
        width: usize,
        weights: &Weights,
        name: &str,
    ) -> std::result::Result<Self, LoadError> {
        let QFormerConfig { num_attention_heads: heads, hidden_act, layer_norm_eps: epsilon } =
            config.qformer_config;
        let part = |part: &str| format!("{name}.{part}");
        let up = part("intermediate_query.dense");
        let missing = || LoadError::MissingTensor { name: format!("{up}.weight") };
        let inner = weights.shape(&format!("{up}.weight")).and_then(<[usize]>::first);
        let inner = inner.copied().ok_or_else(missing)?;
        let seen = config.vision_config.hidden_size;
        // Every so many layers only.
        let has_cross = weights.shape(&part("crossattention.self.query.weight")).is_some();
        let sizes = cross_attention::Sizes { width, seen, heads, epsilon };
        let cross = has_cross.then(|| CrossAttention::load(weights, &part("crossattention"), sizes));
        Ok(QueryLayer {
            cross: cross.transpose()?,
            up: Linear::load_inner(weights, &up, (width, inner))?,
            down: Linear::load_inner(weights, &part("output_query.dense"), (inner, width))?,
            norm: LayerNorm::load(weights, &part("output_query.LayerNorm"), width, epsilon)?,
            activation: hidden_act,
        })
    }

    /// `x`: (pictures * queries, width), after self-attention; `seen`: (pictures, tokens, width of the vision tower).
    fn forward(&self, x: &Tensor, seen: &Tensor) -> Result<Tensor> {
        let x = self.cross.as_ref().map_or(Ok(x.clone()), |cross| cross.forward(x, seen))?;
        let inner = self.up.forward_inner(&x, Some(self.activation))?;
        self.norm.forward(&self.down.forward_onto(&inner, Some(&x))?)
    }
}

/// The tensors of transformers' `Blip2ForImageTextRetrieval` by the names that the towers read: the vision tower's as
/// BLIP's, and
///
/// | BLIP-2 | here |
/// |---|---|
/// | `qformer.layernorm` | `embeddings.LayerNorm` |
/// | `qformer.encoder.layer.N.attention.attention`, `.crossattention.attention` | `encoder.layer.N.attention.self`, `.crossattention.self` |
/// | other `qformer.*` | without `qformer.` |
///
/// # Errors
/// [`LoadError::WrongShape`] for attention weights that can't be cut into query, key and value.
pub(crate) fn renamed(weights: Weights) -> std::result::Result<Weights, LoadError> {
    weights.changed(|name, tensor| {
        let Some(part) = name.strip_prefix("qformer.") else { return blip::vision(name, name, tensor) };
        let new = match part.strip_prefix("layernorm.") {
            Some(kind) => format!("embeddings.LayerNorm.{kind}"),
            None => part.replace("attention.attention.", "attention.self."),
        };
        Ok(vec![(new, tensor)])
    })
}
