//! Cross-attention from a text's tokens, or from learnt queries, to a picture's tokens. BLIP (arXiv 2201.12086) and
//! BLIP-2's Q-Former (arXiv 2301.12597) have it between a layer's self-attention and its MLP.

use candle_core::{Result, Tensor};

use super::layers::Affine;
use super::transformer::{LayerNorm, Linear, attend};
use crate::LoadError;
use crate::loading::Weights;

/// Dimensions of a cross-attention layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sizes {
    /// Hidden size of the queries.
    pub(crate) width: usize,
    /// Hidden size of the sequence that gives keys and values.
    pub(crate) seen: usize,
    /// Attention heads; divides `width`.
    pub(crate) heads: usize,
    /// Epsilon of the layer norm.
    pub(crate) epsilon: f32,
}

/// Cross-attention with a residual and a layer norm after it.
#[derive(Debug)]
pub(crate) struct CrossAttention {
    /// Already scaled by `1 / sqrt(head size)`.
    query: Linear,
    /// Keys and values in one product.
    kv: Linear,
    out: Linear,
    norm: LayerNorm,
    heads: usize,
}

impl CrossAttention {
    /// Reads `{name}.self.{query,key,value}`, `{name}.output.dense` and `{name}.output.LayerNorm`.
    ///
    /// # Errors
    /// [`LoadError`] for missing tensors or wrong shapes.
    pub(crate) fn load(weights: &Weights, name: &str, sizes: Sizes) -> std::result::Result<Self, LoadError> {
        let Sizes { width, seen, heads, epsilon } = sizes;
        let affine = |part: &str, inputs| Affine::load(weights, &format!("{name}.{part}"), inputs, width);
        let query = affine("self.query", width)?.scaled(1.0 / ((width / heads) as f64).sqrt())?;
        let kv = Affine::joined(&[&affine("self.key", seen)?, &affine("self.value", seen)?])?;
        let placement = weights.placement();
        Ok(CrossAttention {
            query: query.ready(placement)?,
            kv: kv.ready(placement)?,
            out: affine("output.dense", width)?.ready(placement)?,
            norm: LayerNorm::load(weights, &format!("{name}.output.LayerNorm"), width, epsilon)?,
            heads,
        })
    }

    /// `x`: (sequences * queries, width). `seen`, the input of keys and values: (sequences, tokens, [`Sizes::seen`]).
    /// Returns the shape of `x`.
    pub(crate) fn forward(&self, x: &Tensor, seen: &Tensor) -> Result<Tensor> {
        let ((rows, width), (batch, tokens, across)) = (x.dims2()?, seen.dims3()?);
        let (heads, size) = (self.heads, width / self.heads);
        let query = self.query.forward_inner(x, None)?.reshape((batch, rows / batch, heads, size))?;
        let kv = self.kv.forward_inner(&seen.reshape((batch * tokens, across))?, None)?;
        let kv = kv.reshape((batch, tokens, 2, heads, size))?.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let attended = attend(&query.transpose(1, 2)?.contiguous()?, &kv.get(0)?, &kv.get(1)?, None)?;
        self.norm.forward(&self.out.forward_onto(&attended.reshape((rows, width))?, Some(x))?)
    }
}
