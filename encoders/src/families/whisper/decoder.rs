//! The decoder: tokens so far to scores of the next, with attention to the encoder's rows.

use candle_core::{D, DType, Result, Tensor};
use candle_nn::kv_cache::KvCache;

use super::config::Config;
use crate::LoadError;
use crate::blocks::layers::{Activation, Affine, LayerNorm, Linear};
use crate::blocks::transformer::Shape;
use crate::loading::Weights;

/// Tokens by which the cache grows.
const CACHE_STEP: usize = 64;

/// The loaded decoder with its head.
#[derive(Debug)]
pub(super) struct Decoder {
    shape: Shape,
    /// (vocabulary, width).
    embedding: Tensor,
    /// (longest, width).
    positions: Tensor,
    layers: Vec<Layer>,
    norm: LayerNorm,
    head: Linear,
}

#[derive(Debug)]
struct Layer {
    norm: LayerNorm,
    /// Queries (already scaled), keys and values.
    projection: Linear,
    output: Linear,
    cross_norm: LayerNorm,
    /// Already scaled.
    cross_query: Linear,
    /// Keys and values of the encoder's rows.
    cross_memory: Linear,
    cross_output: Linear,
    mlp_norm: LayerNorm,
    up: Linear,
    down: Linear,
}

/// Keys and values of a window, layer by layer: (heads, positions, head).
pub(super) struct Memory(Vec<(Tensor, Tensor)>);

/// Keys and values of the tokens so far, layer by layer.
pub(super) struct Cache {
    layers: Vec<KvCache>,
    tokens: usize,
}

/// Collects the cross-attention of some heads, layer and head: each (tokens, positions).
pub(super) struct Followed<'a> {
    pub(super) heads: &'a [[usize; 2]],
    pub(super) weights: Vec<Tensor>,
}

impl Decoder {
    /// # Errors
    /// [`LoadError`] for missing tensors and other shapes.
    pub(super) fn load(weights: &Weights, config: &Config) -> std::result::Result<Decoder, LoadError> {
        let (width, shape) = (config.width, config.decoder());
        let embedding = weights.get("decoder.embed_tokens.weight", &[config.vocabulary, width])?;
        let layer = |at| Layer::load(weights, &format!("decoder.layers.{at}"), shape);
        Ok(Decoder {
            shape,
            positions: weights.get("decoder.embed_positions.weight", &[config.longest, width])?,
            layers: (0..shape.layers).map(layer).collect::<std::result::Result<_, _>>()?,
            norm: LayerNorm::load(weights, "decoder.layer_norm", width, shape.epsilon)?,
            head: Affine::of_rows(&embedding, None)?.ready(weights.placement())?,
            embedding,
        })
    }

    /// An empty cache.
    pub(super) fn cache(&self) -> Cache {
        Cache { layers: self.layers.iter().map(|_| KvCache::new(1, CACHE_STEP)).collect(), tokens: 0 }
    }

    /// What the layers attend to of the encoder's rows, (positions, width).
    pub(super) fn memory(&self, rows: &Tensor) -> Result<Memory> {
        let memory = |layer: &Layer| {
            let both = layer.cross_memory.forward(rows)?;
            let width = self.shape.width;
            let part = |at: usize| self.by_head(&both.narrow(1, at * width, width)?);
            Ok((part(0)?, part(1)?))
        };
        self.layers.iter().map(memory).collect::<Result<_>>().map(Memory)
    }

    /// (heads, rows, head) of (rows, width).
    fn by_head(&self, rows: &Tensor) -> Result<Tensor> {
        let Shape { width, heads, .. } = self.shape;
        rows.reshape((rows.dim(0)?, heads, width / heads))?.transpose(0, 1)?.contiguous()
    }

    /// The last layer's output of tokens that continue those in the cache, after the final norm: (tokens, width). The ids
    /// must be in the vocabulary, and prompt and text not longer than the model's positions.
    pub(super) fn forward(
        &self,
        ids: &[u32],
        memory: &Memory,
        cache: &mut Cache,
        followed: Option<&mut Followed<'_>>,
    ) -> Result<Tensor> {
        let device = self.embedding.device();
        let embedded = self.embedding.index_select(&Tensor::new(ids, device)?, 0)?;
        let mut x = (embedded + self.positions.narrow(0, cache.tokens, ids.len())?)?;
        let mask = if ids.len() > 1 { Some(mask(ids.len(), cache.tokens, &x)?) } else { None };
        let mut followed = followed;
        for (at, layer) in self.layers.iter().enumerate() {
            x = self.attend_self(layer, &x, &mut cache.layers[at], mask.as_ref())?;
            let query =
                layer.cross_query.forward_normed(&x, &layer.cross_norm, None)?.to_dtype(DType::F32)?;
            let (keys, values) = &memory.0[at];
            let shares = shares(&self.by_head(&query)?, keys, None)?;
            if let Some(followed) = followed.as_deref_mut() {
                for [_, head] in followed.heads.iter().filter(|[layer, _]| *layer == at) {
                    followed.weights.push(shares.get(*head)?);
                }
            }
            x = layer.cross_output.forward_onto(&joined(&shares.matmul(values)?)?, Some(&x))?;
            let middle = layer.up.forward_normed(&x, &layer.mlp_norm, Some(Activation::Gelu))?;
            x = layer.down.forward_onto(&middle, Some(&x))?;
        }
        cache.tokens += ids.len();
        self.norm.forward(&x)
    }

    /// Scores of all tokens after each of the rows: (rows, vocabulary).
    pub(super) fn scores(&self, rows: &Tensor) -> Result<Tensor> {
        self.head.forward(rows)
    }

    fn attend_self(
        &self,
        layer: &Layer,
        x: &Tensor,
        cache: &mut KvCache,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let width = self.shape.width;
        let packed = layer.projection.forward_normed(x, &layer.norm, None)?.to_dtype(DType::F32)?;
        let part = |at: usize| self.by_head(&packed.narrow(1, at * width, width)?);
        let (keys, values) = cache.append(&part(1)?, &part(2)?)?;
        let attended = shares(&part(0)?, &keys, mask)?.matmul(&values.contiguous()?)?;
        layer.output.forward_onto(&joined(&attended)?, Some(x))
    }
}

/// How much each query attends to each key: (heads, queries, keys).
fn shares(queries: &Tensor, keys: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
    let scores = queries.matmul(&keys.transpose(D::Minus2, D::Minus1)?)?;
    let scores = mask.map_or(Ok(scores.clone()), |mask| scores.broadcast_add(mask))?;
    candle_nn::ops::softmax_last_dim(&scores)
}

/// (rows, width) of (heads, rows, head).
fn joined(by_head: &Tensor) -> Result<Tensor> {
    by_head.transpose(0, 1)?.contiguous()?.flatten_from(1)
}

/// 0 where one of `count` tokens after `past` ones may attend, else minus infinity: (count, past + count).
fn mask(count: usize, past: usize, like: &Tensor) -> Result<Tensor> {
    let all = past + count;
    let value = |at: usize| if at % all <= past + at / all { 0.0 } else { f32::NEG_INFINITY };
    Tensor::from_vec((0..count * all).map(value).collect(), (count, all), like.device())
}

impl Layer {
    fn load(weights: &Weights, name: &str, shape: Shape) -> std::result::Result<Layer, LoadError> {
        let Shape { width, inner, heads, epsilon, .. } = shape;
        let placement = weights.placement();
        let part = |part: &str| format!("{name}.{part}");
        let norm = |it: &str| LayerNorm::load(weights, &part(it), width, epsilon);
        let affine = |it: &str| Affine::load(weights, &part(it), width, width);
        let scale = 1.0 / ((width / heads) as f64).sqrt();
        let joined = |layers: &[&Affine]| Affine::joined(layers)?.ready(placement);
        let query = affine("self_attn.q_proj")?.scaled(scale)?;
        Ok(Layer {
            norm: norm("layer_norm1")?,
            projection: joined(&[&query, &affine("self_attn.k_proj")?, &affine("self_attn.v_proj")?])?,
            output: affine("self_attn.out_proj")?.ready(placement)?,
            cross_norm: norm("encoder_attn_layer_norm")?,
            cross_query: affine("encoder_attn.q_proj")?.scaled(scale)?.ready(placement)?,
            cross_memory: joined(&[&affine("encoder_attn.k_proj")?, &affine("encoder_attn.v_proj")?])?,
            cross_output: affine("encoder_attn.out_proj")?.ready(placement)?,
            mlp_norm: norm("layer_norm2")?,
            up: Linear::load_inner(weights, &part("mlp.fc1"), width, inner)?,
            down: Linear::load_inner(weights, &part("mlp.fc2"), inner, width)?,
        })
    }
}
