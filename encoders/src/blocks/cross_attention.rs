//! Attention of a text's tokens, or of learnt queries, to the tokens of a picture, as BLIP (arXiv 2201.12086) and
//! BLIP-2's Q-Former (arXiv 2301.12597) have it between a layer's self-attention and its MLP.

use candle_core::{Result, Tensor};

use super::layers::Affine;
use super::transformer::{LayerNorm, Linear, attend};
use crate::LoadError;
use crate::loading::Weights;

/// The numbers that shape it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sizes {
    /// Values per token that looks.
    pub(crate) width: usize,
    /// Values per token that is looked at.
    pub(crate) seen: usize,
    /// Attention heads; divides `width`.
    pub(crate) heads: usize,
    /// Of the layer norm.
    pub(crate) epsilon: f32,
}

/// Attention to another sequence's tokens, with a residual around and its norm after.
#[derive(Debug)]
pub(crate) struct CrossAttention {
    /// Already scaled.
    query: Linear,
    /// Keys and values by one product.
    kv: Linear,
    out: Linear,
    norm: LayerNorm,
    heads: usize,
}

impl CrossAttention {
    /// Reads `{name}.self.{query,key,value}`, `{name}.output.dense` and `{name}.output.LayerNorm`.
    ///
    /// # Errors
    /// [`LoadError`] for weights that have no such layers.
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

    /// `x`: (sequences * tokens, width), sequence after sequence, and so the result; `seen`: (sequences, tokens that
    /// are looked at, their width).
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
