//! BLIP-2's Q-Former (arXiv 2301.12597) as a picture tower. Learnt queries attend to a vision transformer's tokens.
//! They share their self-attention with the text path.

use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::bert::Bert;
use super::cross_attention::{self, CrossAttention};
use super::layers::divided_by_norm;
use super::pixels::PixelBatch;
use super::transformer::{Activation, AttentionMask, LayerNorm, Linear};
use super::vision_transformer::{self, VisionTransformer};
use crate::LoadError;
use crate::loading::Weights;

/// Dimensions of the tower; its hidden size comes from the weights' shapes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// The vision tower whose tokens the queries attend to.
    pub(crate) vision: vision_transformer::Config,
    /// Attention heads.
    pub(crate) heads: usize,
    /// Activation of every MLP.
    pub(crate) activation: Activation,
    /// Epsilon of every layer norm.
    pub(crate) epsilon: f32,
    /// Values per vector.
    pub(crate) dim: usize,
}

/// The picture tower.
#[derive(Debug)]
pub(crate) struct QFormer {
    vision: VisionTransformer,
    /// The text tower, whose self-attention the queries share.
    texts: Arc<Bert>,
    /// (queries, width), after the text tower's first layer norm.
    queries: Tensor,
    layers: Vec<QueryLayer>,
    projection: Linear,
    dim: usize,
}

/// The parts of a layer that only the queries use, beside the shared self-attention.
#[derive(Debug)]
struct QueryLayer {
    cross: Option<CrossAttention>,
    up: Linear,
    down: Linear,
    norm: LayerNorm,
    activation: Activation,
}

impl QFormer {
    /// Reads the tower of `weights`; `texts` is the text tower whose self-attention it shares.
    ///
    /// # Errors
    /// [`LoadError`] for missing tensors or wrong shapes.
    pub(crate) fn load(
        config: Config,
        texts: Arc<Bert>,
        weights: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        let (name, width, dim) = ("query_tokens", texts.width(), config.dim);
        let Some(&[1, queries, _]) = weights.shape(name) else {
            return Err(LoadError::MissingTensor { name: name.to_owned() });
        };
        let tokens = weights.get(name, &[1, queries, width])?.reshape((queries, width))?;
        let layer = |number| QueryLayer::load(&config, width, weights, &format!("encoder.layer.{number}"));
        let layers = (0..texts.layers()).map(layer).collect::<std::result::Result<Vec<_>, _>>()?;
        if layers.iter().all(|layer| layer.cross.is_none()) {
            let name = "qformer.encoder.layer.0.crossattention.attention.query.weight".to_owned();
            return Err(LoadError::MissingTensor { name });
        }
        Ok(QFormer {
            vision: VisionTransformer::load(config.vision, weights)?,
            queries: texts.normed(&tokens)?,
            texts,
            layers,
            projection: Linear::load(weights, "vision_projection", width, dim)?,
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

    /// Encodes pictures to (pictures, dim): the mean of the queries' unit vectors.
    pub(crate) fn forward(&self, pixels: &PixelBatch) -> Result<Tensor> {
        let seen = self.vision.hidden(pixels)?;
        let (pictures, (queries, width)) = (seen.dim(0)?, self.queries.dims2()?);
        let mut x = self.queries.broadcast_as((pictures, queries, width))?.contiguous()?;
        x = x.reshape((pictures * queries, width))?;
        for (number, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&self.texts.attended(number, &x, queries, AttentionMask::All)?, &seen)?;
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
        let Config { heads, activation, epsilon, .. } = *config;
        let part = |part: &str| format!("{name}.{part}");
        let up = part("intermediate_query.dense");
        let missing = || LoadError::MissingTensor { name: format!("{up}.weight") };
        let inner = weights.shape(&format!("{up}.weight")).and_then(<[usize]>::first);
        let inner = inner.copied().ok_or_else(missing)?;
        let seen = config.vision.dim;
        // Not every layer has cross-attention.
        let has_cross = weights.shape(&part("crossattention.self.query.weight")).is_some();
        let sizes = cross_attention::Sizes { width, seen, heads, epsilon };
        let cross = has_cross.then(|| CrossAttention::load(weights, &part("crossattention"), sizes));
        Ok(QueryLayer {
            cross: cross.transpose()?,
            up: Linear::load_inner(weights, &up, width, inner)?,
            down: Linear::load_inner(weights, &part("output_query.dense"), inner, width)?,
            norm: LayerNorm::load(weights, &part("output_query.LayerNorm"), width, epsilon)?,
            activation,
        })
    }

    /// `x`: (pictures * queries, width), after self-attention. `seen`, the pictures' tokens: (pictures, tokens, the
    /// vision tower's width).
    fn forward(&self, x: &Tensor, seen: &Tensor) -> Result<Tensor> {
        let x = self.cross.as_ref().map_or(Ok(x.clone()), |cross| cross.forward(x, seen))?;
        let inner = self.up.forward_inner(&x, Some(self.activation))?;
        self.norm.forward(&self.down.forward_onto(&inner, Some(&x))?)
    }
}
