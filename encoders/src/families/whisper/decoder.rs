//! The decoder: tokens so far to scores of the next, with attention to the encoder's rows. Several windows go through it
//! side by side.

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

/// Keys and values of windows, layer by layer: (windows * heads, positions, head).
#[derive(Clone)]
pub(super) struct Memory {
    layers: Vec<(Tensor, Tensor)>,
    windows: usize,
    heads: usize,
}

impl Memory {
    /// The windows of all memories, in order.
    pub(super) fn joined(mut memories: Vec<Memory>) -> Result<Memory> {
        let first = memories.first().ok_or_else(|| candle_core::Error::msg("no window"))?;
        let (layers, heads) = (first.layers.len(), first.heads);
        let windows = memories.iter().map(|it| it.windows).sum();
        if memories.len() == 1 {
            return Ok(memories.remove(0));
        }
        let layer = |at: usize| {
            let (keys, values): (Vec<_>, Vec<_>) =
                memories.iter().map(|it| (&it.layers[at].0, &it.layers[at].1)).unzip();
            Ok((Tensor::cat(&keys, 0)?, Tensor::cat(&values, 0)?))
        };
        Ok(Memory { layers: (0..layers).map(layer).collect::<Result<_>>()?, windows, heads })
    }

    /// Some of the windows, in the order of `windows`.
    pub(super) fn of(&self, windows: &[usize]) -> Result<Memory> {
        let part = |all: &Tensor| of_windows(all, windows, self.heads);
        let layer = |(keys, values): &(Tensor, Tensor)| Ok((part(keys)?, part(values)?));
        let layers = self.layers.iter().map(layer).collect::<Result<_>>()?;
        Ok(Memory { layers, windows: windows.len(), heads: self.heads })
    }
}

/// Keys and values of the tokens so far, layer by layer: (windows * heads, tokens, head).
pub(super) struct Cache {
    layers: Vec<KvCache>,
    heads: usize,
    tokens: usize,
}

impl Cache {
    /// Keeps some of the windows, in the order of `windows`.
    pub(super) fn keep(&mut self, windows: &[usize]) -> Result<()> {
        for layer in &mut self.layers {
            if let (Some(keys), Some(values)) = (layer.k()?, layer.v()?) {
                *layer = KvCache::new(1, CACHE_STEP);
                layer.append(
                    &of_windows(&keys, windows, self.heads)?,
                    &of_windows(&values, windows, self.heads)?,
                )?;
            }
        }
        Ok(())
    }
}

/// The rows of some windows, of (windows * heads, rows, head).
fn of_windows(all: &Tensor, windows: &[usize], heads: usize) -> Result<Tensor> {
    let parts = windows.iter().map(|at| all.narrow(0, at * heads, heads)).collect::<Result<Vec<_>>>()?;
    match &parts[..] {
        [one] => one.contiguous(),
        parts => Tensor::cat(parts, 0),
    }
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
        let layers = self.layers.iter().map(|_| KvCache::new(1, CACHE_STEP)).collect();
        Cache { layers, heads: self.shape.heads, tokens: 0 }
    }

    /// Bytes of the memory of one window.
    pub(super) fn memory_bytes(&self, positions: usize) -> usize {
        self.layers.len() * 2 * positions * self.shape.width * size_of::<f32>()
    }

    /// What the layers attend to of one window's rows, (positions, width).
    pub(super) fn memory(&self, rows: &Tensor) -> Result<Memory> {
        let memory = |layer: &Layer| {
            let both = layer.cross_memory.forward(rows)?;
            let width = self.shape.width;
            let part = |at: usize| self.by_head(&both.narrow(1, at * width, width)?, 1);
            Ok((part(0)?, part(1)?))
        };
        let layers = self.layers.iter().map(memory).collect::<Result<_>>()?;
        Ok(Memory { layers, windows: 1, heads: self.shape.heads })
    }

    /// (windows * heads, rows, head) of (windows * rows, width).
    fn by_head(&self, rows: &Tensor, windows: usize) -> Result<Tensor> {
        let Shape { width, heads, .. } = self.shape;
        let (count, head) = (rows.dim(0)? / windows, width / heads);
        let by_head = rows.reshape((windows, count, heads, head))?.transpose(1, 2)?.contiguous()?;
        by_head.reshape((windows * heads, count, head))
    }

    /// The last layer's output of tokens that continue those in the cache, after the final norm: (windows * tokens,
    /// width). `ids` are as many tokens for each window of the memory, window by window. They must be in the vocabulary,
    /// and prompt and text not longer than the model's positions. `followed` is for one window.
    pub(super) fn forward(
        &self,
        ids: &[u32],
        memory: &Memory,
        cache: &mut Cache,
        followed: Option<&mut Followed<'_>>,
    ) -> Result<Tensor> {
        let (device, Shape { width, heads, .. }) = (self.embedding.device(), self.shape);
        let windows = memory.windows;
        let tokens = ids.len() / windows;
        let embedded = self.embedding.index_select(&Tensor::new(ids, device)?, 0)?;
        let embedded = embedded.reshape((windows, tokens, width))?;
        let x = embedded.broadcast_add(&self.positions.narrow(0, cache.tokens, tokens)?)?;
        let mut x = x.reshape((windows * tokens, width))?;
        let mask = if tokens > 1 { Some(mask(tokens, cache.tokens, &x)?) } else { None };
        let mut followed = followed;
        for (at, layer) in self.layers.iter().enumerate() {
            x = self.attend_self(layer, &x, windows, &mut cache.layers[at], mask.as_ref())?;
            let query =
                layer.cross_query.forward_normed(&x, &layer.cross_norm, None)?.to_dtype(DType::F32)?;
            let (keys, values) = &memory.layers[at];
            let shares = shares(&self.by_head(&query, windows)?, keys, None)?;
            if let Some(followed) = followed.as_deref_mut() {
                for [_, head] in followed.heads.iter().filter(|[layer, _]| *layer == at) {
                    followed.weights.push(shares.get(*head)?);
                }
            }
            x = layer.cross_output.forward_onto(&joined(&shares.matmul(values)?, heads)?, Some(&x))?;
            let middle = layer.up.forward_normed(&x, &layer.mlp_norm, Some(Activation::Gelu))?;
            x = layer.down.forward_onto(&middle, Some(&x))?;
        }
        cache.tokens += tokens;
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
        windows: usize,
        cache: &mut KvCache,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let width = self.shape.width;
        let packed = layer.projection.forward_normed(x, &layer.norm, None)?.to_dtype(DType::F32)?;
        let part = |at: usize| self.by_head(&packed.narrow(1, at * width, width)?, windows);
        let (keys, values) = cache.append(&part(1)?, &part(2)?)?;
        let attended = shares(&part(0)?, &keys, mask)?.matmul(&values.contiguous()?)?;
        layer.output.forward_onto(&joined(&attended, self.shape.heads)?, Some(x))
    }
}

/// How much each query attends to each key: (windows * heads, queries, keys).
fn shares(queries: &Tensor, keys: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
    let scores = queries.matmul(&keys.transpose(D::Minus2, D::Minus1)?)?;
    let scores = mask.map_or(Ok(scores.clone()), |mask| scores.broadcast_add(mask))?;
    candle_nn::ops::softmax_last_dim(&scores)
}

/// (windows * rows, width) of (windows * heads, rows, head).
fn joined(by_head: &Tensor, heads: usize) -> Result<Tensor> {
    let (all, rows, head) = by_head.dims3()?;
    let windows = all / heads;
    let by_row = by_head.reshape((windows, heads, rows, head))?.transpose(1, 2)?.contiguous()?;
    by_row.reshape((windows * rows, heads * head))
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
