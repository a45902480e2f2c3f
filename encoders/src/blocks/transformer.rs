//! The transformer that the towers share. Inference only: its norms and softmax silently drop gradients.

use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor};
use rayon::prelude::*;

use super::layers::Affine;
pub(crate) use super::layers::{Activation, LayerNorm, Linear};
use crate::LoadError;
pub(crate) use crate::kernels::AttentionMask;
use crate::kernels::{self, Processor, RotaryAngles, RotaryPairs, alone, sharing};
use crate::loading::Weights;

/// Dimensions and variants of a transformer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    /// Hidden size.
    pub(crate) width: usize,
    /// Hidden size of an MLP.
    pub(crate) inner: usize,
    /// Number of blocks.
    pub(crate) layers: usize,
    /// Attention heads; divides `width`.
    pub(crate) heads: usize,
    /// Activation of every MLP.
    pub(crate) activation: Activation,
    /// Epsilon of every layer norm.
    pub(crate) epsilon: f32,
    /// Additions to CLIP's block.
    pub(crate) extras: Extras,
}

/// Additions of some families to CLIP's block; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extras {
    /// A layer norm before attention's output layer (sub-LN, arXiv 2210.06423): `self_attn.norm`.
    pub(crate) attention_norm: bool,
    /// Gated MLP (arXiv 2002.05202): the activated output of `mlp.gate` multiplies the first layer's output. With
    /// [`Activation::Silu`] this is SwiGLU.
    pub(crate) gate: bool,
    /// A layer norm before the MLP's last layer: `mlp.norm`.
    pub(crate) mlp_norm: bool,
    /// The two layer norms follow attention and MLP, inside the residual, instead of preceding them.
    pub(crate) norms_after: bool,
    /// Frames per clip. Before each block, the tokens at one position of a clip's frames attend to each other:
    /// `temporal_embedding`, `temporal_layer_norm1`, `temporal_attn`.
    pub(crate) frames: Option<usize>,
}

impl Shape {
    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions.
    pub(crate) fn check(&self) -> std::result::Result<(), LoadError> {
        let unsupported = |what: &str| Err(LoadError::Unsupported(what.into()));
        if self.heads == 0 || self.width == 0 || !self.width.is_multiple_of(self.heads) {
            return unsupported("hidden_size is not a multiple of num_attention_heads");
        }
        if self.layers > 1000 || self.inner == 0 {
            return unsupported("num_hidden_layers or intermediate_size is out of range");
        }
        Ok(())
    }

    /// Floating-point operations of all blocks' matrix products for one sequence of `tokens` tokens without a mask.
    pub(crate) fn operations(&self, tokens: usize) -> f64 {
        let (tokens, width, inner) = (tokens as f64, self.width as f64, self.inner as f64);
        let attention = |seen: f64| 2.0 * tokens * (4.0 * width * width + 2.0 * seen * width);
        let over_time = self.extras.frames.map_or(0.0, |frames| attention(frames as f64));
        let layers = if self.extras.gate { 3.0 } else { 2.0 };
        self.layers as f64 * (attention(tokens) + over_time + 2.0 * tokens * layers * width * inner)
    }
}

/// Rotary position embedding (RoPE, arXiv 2104.09864): rotates neighbouring values of queries and keys per position.
#[derive(Debug, Clone)]
pub(crate) struct Rotary {
    /// (tokens, half a head's size), for candle's operations; so is `sin`.
    cos: Tensor,
    sin: Tensor,
    /// For the processor's kernels.
    angles: Arc<RotaryAngles>,
}

impl Rotary {
    /// `angles`: token by token, half a head's size each.
    pub(crate) fn new(angles: &[f32], tokens: usize, device: &Device) -> Result<Self> {
        let table = Tensor::from_slice(angles, (tokens, angles.len() / tokens), device)?;
        let angles = Arc::new(RotaryAngles::new(angles, RotaryPairs::Neighbours));
        Ok(Rotary { cos: table.cos()?, sin: table.sin()?, angles })
    }

    /// `x`: (batch, heads, tokens, head size). Rotates in f32, because half precision is too coarse for angles.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let turned = candle_nn::rotary_emb::rope_i(&x.to_dtype(DType::F32)?, &self.cos, &self.sin)?;
        turned.to_dtype(x.dtype())
    }
}

/// Layer norm and residual around attention or an MLP; neither by default.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Around<'a> {
    /// Layer norm of the input.
    pub(crate) norm: Option<&'a LayerNorm>,
    /// Added to the output.
    pub(crate) residual: Option<&'a Tensor>,
}

impl Around<'_> {
    /// The first layer, after the layer norm if there is one.
    fn enter(&self, layer: &Linear, rows: &Tensor, activation: Option<Activation>) -> Result<Tensor> {
        match self.norm {
            Some(norm) => layer.forward_normed(rows, norm, activation),
            None => layer.forward_inner(rows, activation),
        }
    }
}

/// Multi-head self-attention with an optional attention mask.
#[derive(Debug)]
pub(crate) struct Attention {
    /// Queries (already scaled), keys and values in one product.
    qkv: Linear,
    rotary: Option<Rotary>,
    norm: Option<LayerNorm>,
    out: Linear,
    heads: usize,
    processor: Option<Processor>,
    /// Whether the processor's kernels multiply in bf16.
    is_bf16: bool,
}

impl Attention {
    /// Reads the layers `names`: query, key, value, output. `heads` must divide `width`.
    pub(crate) fn load(
        weights: &Weights,
        names: [&str; 4],
        width: usize,
        heads: usize,
    ) -> std::result::Result<Self, LoadError> {
        let [query, key, value, out] = names;
        let affine = |name: &str| Affine::load(weights, name, width, width);
        let query = affine(query)?.scaled(1.0 / ((width / heads) as f64).sqrt())?;
        let qkv = Affine::joined(&[&query, &affine(key)?, &affine(value)?])?;
        let placement = weights.placement();
        let (qkv, out) = (qkv.ready(placement)?, affine(out)?.ready(placement)?);
        let (processor, is_bf16) = (placement.processor(), placement.is_reduced());
        Ok(Attention { qkv, rotary: None, norm: None, out, heads, processor, is_bf16 })
    }

    /// `rows`: (batch * tokens, width), as is the result.
    pub(crate) fn forward(&self, rows: &Tensor, tokens: usize, mask: AttentionMask<'_>) -> Result<Tensor> {
        self.forward_in(rows, tokens, mask, Around::default())
    }

    /// Like [`Attention::forward`], with a layer norm before and a residual.
    pub(crate) fn forward_in(
        &self,
        rows: &Tensor,
        tokens: usize,
        mask: AttentionMask<'_>,
        around: Around<'_>,
    ) -> Result<Tensor> {
        let packed = around.enter(&self.qkv, rows, None)?;
        let mut attended = match self.processor {
            Some(processor) => {
                let angles = self.rotary.as_ref().map(|rotary| &*rotary.angles);
                let (heads, kv_heads) = (self.heads, self.heads);
                let is_bf16 = self.is_bf16;
                kernels::Attention { processor, tokens, heads, kv_heads, mask, angles, scale: 1.0, is_bf16 }
                    .of(&packed)?
            }
            None => self.attended(&packed, tokens, mask)?,
        };
        if let Some(norm) = &self.norm {
            attended = norm.forward(&attended)?;
        }
        self.out.forward_onto(&attended, around.residual)
    }

    /// Attention with candle's operations.
    fn attended(&self, packed: &Tensor, tokens: usize, mask: AttentionMask<'_>) -> Result<Tensor> {
        let (count, across) = packed.dims2()?;
        let (batch, heads, width) = (count / tokens, self.heads, across / 3);
        let qkv = packed.reshape((batch, tokens, 3, heads, width / heads))?;
        let qkv = qkv.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let (mut query, mut key, value) = (qkv.get(0)?, qkv.get(1)?, qkv.get(2)?);
        if let Some(rotary) = &self.rotary {
            (query, key) = (rotary.forward(&query)?, rotary.forward(&key)?);
        }
        let mask = mask_tensor(mask, tokens, packed.device())?;
        attend(&query, &key, &value, mask.as_ref())?.reshape((count, width))
    }
}

/// The additive attention mask, broadcastable to scores of (batch, heads, tokens, tokens); `None` if nothing is masked.
fn mask_tensor(mask: AttentionMask<'_>, tokens: usize, device: &Device) -> Result<Option<Tensor>> {
    let seen = |sees: bool| if sees { 0.0 } else { f32::NEG_INFINITY };
    let mask = match mask {
        AttentionMask::All => return Ok(None),
        AttentionMask::Earlier => {
            let mask = (0..tokens * tokens).map(|at| seen(at % tokens <= at / tokens)).collect();
            Tensor::from_vec::<_, f32>(mask, (tokens, tokens), device)
        }
        AttentionMask::Within(lengths) => {
            let mask = lengths.iter().flat_map(|length| (0..tokens).map(move |at| seen(at < *length)));
            Tensor::from_vec::<_, f32>(mask.collect(), (lengths.len(), 1, 1, tokens), device)
        }
    };
    mask.map(Some)
}

/// (batch, queries, heads, size) of queries, keys and values of (batch, heads, tokens, size), in their type. Adds
/// `mask` to the scores. The softmax runs in f32: sums in half precision would lose small weights.
pub(super) fn attend(query: &Tensor, key: &Tensor, value: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
    let mut scores = query.matmul(&key.t()?)?.to_dtype(DType::F32)?;
    if let Some(mask) = mask {
        scores = scores.broadcast_add(mask)?;
    }
    let shares = candle_nn::ops::softmax_last_dim(&scores)?.to_dtype(value.dtype())?;
    shares.matmul(value)?.transpose(1, 2)?.contiguous()
}

/// Two linear layers with an activation between.
#[derive(Debug)]
pub(crate) struct Mlp {
    up: Linear,
    gate: Option<Linear>,
    norm: Option<LayerNorm>,
    down: Linear,
    activation: Activation,
}

impl Mlp {
    /// Reads `{name}.fc1`, `{name}.fc2`, and the gate and norm that `shape.extras` names.
    fn load(weights: &Weights, name: &str, shape: Shape) -> std::result::Result<Self, LoadError> {
        let Shape { width, inner, epsilon, activation, extras, .. } = shape;
        let linear = |part: &str, inputs, outputs| {
            Linear::load_inner(weights, &format!("{name}.{part}"), inputs, outputs)
        };
        let norm = || LayerNorm::load(weights, &format!("{name}.norm"), inner, epsilon);
        Ok(Mlp {
            up: linear("fc1", width, inner)?,
            gate: extras.gate.then(|| linear("gate", width, inner)).transpose()?,
            norm: extras.mlp_norm.then(norm).transpose()?,
            down: linear("fc2", inner, width)?,
            activation,
        })
    }

    /// (rows, width) to (rows, width).
    fn forward(&self, rows: &Tensor, around: Around<'_>) -> Result<Tensor> {
        let mut middle = match &self.gate {
            Some(gate) => {
                let gate = around.enter(gate, rows, Some(self.activation))?;
                (gate * around.enter(&self.up, rows, None)?)?
            }
            None => around.enter(&self.up, rows, Some(self.activation))?,
        };
        if let Some(norm) = &self.norm {
            middle = norm.forward(&middle)?;
        }
        self.down.forward_onto(&middle, around.residual)
    }
}

/// Temporal attention: each token attends to the tokens at its position in the clip's other frames.
#[derive(Debug)]
struct TimeAttention {
    frames: usize,
    /// Temporal embedding, (frames, 1, width).
    times: Tensor,
    norm: LayerNorm,
    attention: Attention,
}

impl TimeAttention {
    fn load(
        weights: &Weights,
        block: &str,
        shape: Shape,
        frames: usize,
    ) -> std::result::Result<Self, LoadError> {
        let Shape { width, heads, epsilon, .. } = shape;
        let part = |part: &str| format!("{block}.temporal_{part}");
        let names = ["q_proj", "k_proj", "v_proj", "out_proj"].map(|it| part(&format!("attn.{it}")));
        let times = weights.get(&part("embedding"), &[1, frames, width])?;
        Ok(TimeAttention {
            frames,
            times: times.reshape((frames, 1, width))?,
            norm: LayerNorm::load(weights, &part("layer_norm1"), width, epsilon)?,
            attention: Attention::load(weights, names.each_ref().map(|it| &it[..]), width, heads)?,
        })
    }

    /// `x`: (clips * frames, tokens, width).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (pictures, tokens, width) = x.dims3()?;
        let (clips, frames) = (pictures / self.frames, self.frames);
        let x = x.reshape((clips, frames, tokens, width))?.broadcast_add(&self.times)?;
        let rows = x.transpose(1, 2)?.contiguous()?.reshape((pictures * tokens, width))?;
        let change = self.attention.forward(&self.norm.forward(&rows)?, frames, AttentionMask::All)?;
        let change = change.reshape((clips, tokens, frames, width))?.transpose(1, 2)?;
        (x + change)?.reshape((pictures, tokens, width))
    }
}

/// One block: attention, then an MLP, each with a layer norm and a residual.
#[derive(Debug)]
pub(crate) struct Block {
    time: Option<TimeAttention>,
    pub(crate) norm1: LayerNorm,
    pub(crate) attention: Attention,
    pub(crate) norm2: LayerNorm,
    mlp: Mlp,
    norms_after: bool,
}

impl Block {
    pub(crate) fn load(weights: &Weights, name: &str, shape: Shape) -> std::result::Result<Self, LoadError> {
        let Shape { width, heads, epsilon, extras, .. } = shape;
        let part = |part: &str| format!("{name}.{part}");
        let norm = |it: &str| LayerNorm::load(weights, &part(it), width, epsilon);
        let names = ["q_proj", "k_proj", "v_proj", "out_proj"].map(|it| part(&format!("self_attn.{it}")));
        let attention = Attention::load(weights, names.each_ref().map(|it| &it[..]), width, heads)?;
        let inside = extras.attention_norm.then(|| norm("self_attn.norm")).transpose()?;
        let time = extras.frames.map(|frames| TimeAttention::load(weights, name, shape, frames));
        Ok(Block {
            time: time.transpose()?,
            norm1: norm("layer_norm1")?,
            attention: Attention { norm: inside, ..attention },
            norm2: norm("layer_norm2")?,
            mlp: Mlp::load(weights, &part("mlp"), shape)?,
            norms_after: extras.norms_after,
        })
    }

    /// `x`: (batch, tokens, width).
    fn forward(&self, x: &Tensor, mask: AttentionMask<'_>) -> Result<Tensor> {
        let (batch, tokens, width) = x.dims3()?;
        let x = self.time.as_ref().map_or(Ok(x.clone()), |time| time.forward(x))?;
        let x = x.reshape((batch * tokens, width))?;
        let x = match self.norms_after {
            false => {
                let around = Around { norm: Some(&self.norm1), residual: Some(&x) };
                let x = self.attention.forward_in(&x, tokens, mask, around)?;
                self.mlp.forward(&x, Around { norm: Some(&self.norm2), residual: Some(&x) })?
            }
            true => {
                let x = (&x + self.norm1.forward(&self.attention.forward(&x, tokens, mask)?)?)?;
                (&x + self.norm2.forward(&self.mlp(&x)?)?)?
            }
        };
        x.reshape((batch, tokens, width))
    }

    /// (rows, width) to (rows, width).
    pub(crate) fn mlp(&self, rows: &Tensor) -> Result<Tensor> {
        self.mlp.forward(rows, Around::default())
    }
}

/// Attention pooling (arXiv 2106.04560): a learnt query attends to all tokens, then an MLP with a layer norm before it
/// and a residual.
#[derive(Debug)]
pub(crate) struct AttentionPool {
    /// (1, heads, 1, head size), already scaled.
    query: Tensor,
    /// Keys and values in one product.
    kv: Linear,
    out: Linear,
    norm: LayerNorm,
    mlp: Mlp,
}

impl AttentionPool {
    /// Reads `{name}.probe` of (1, 1, width), `{name}.attention.{q,k,v,out}_proj`, `{name}.layernorm` and `{name}.mlp`;
    /// ignores `shape.layers`.
    pub(crate) fn load(weights: &Weights, name: &str, shape: Shape) -> std::result::Result<Self, LoadError> {
        let Shape { width, heads, epsilon, .. } = shape;
        let part = |part: &str| format!("{name}.{part}");
        let affine = |it: &str| Affine::load(weights, &part(&format!("attention.{it}_proj")), width, width);
        let probe = weights.get(&part("probe"), &[1, 1, width])?.reshape((1, width))?;
        let query = affine("q")?.scaled(1.0 / ((width / heads) as f64).sqrt())?;
        let placement = weights.placement();
        let query = query.ready(&placement.in_f32())?.forward(&probe)?;
        Ok(AttentionPool {
            query: query.reshape((1, heads, 1, width / heads))?,
            kv: Affine::joined(&[&affine("k")?, &affine("v")?])?.ready(placement)?,
            out: affine("out")?.ready(placement)?,
            norm: LayerNorm::load(weights, &part("layernorm"), width, epsilon)?,
            mlp: Mlp::load(weights, &part("mlp"), shape)?,
        })
    }

    /// (batch, tokens, width) to (batch, width).
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, tokens, width) = x.dims3()?;
        let (_, heads, _, size) = self.query.dims4()?;
        let kv = self.kv.forward_inner(&x.reshape((batch * tokens, width))?, None)?;
        let kv = kv.reshape((batch, tokens, 2, heads, size))?.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let query = self.query.to_dtype(kv.dtype())?.broadcast_as((batch, heads, 1, size))?.contiguous()?;
        let attended = attend(&query, &kv.get(0)?, &kv.get(1)?, None)?;
        let x = self.out.forward(&attended.reshape((batch, width))?)?;
        self.mlp.forward(&x, Around { norm: Some(&self.norm), residual: Some(&x) })
    }
}

/// Approximate number of rows per thread that pass through a block together on a CPU. Intermediate results then stay
/// in the cache and reuse memory pages. Matrix products take the same number of rows at once anyway, so weights are
/// read no more often.
const ROWS_AT_ONCE: usize = 112;
/// The fewest rows for which a thread reads all weights: threads with fewer share each product.
const FEWEST_ROWS_ALONE: usize = 96;

/// A stack of blocks.
#[derive(Debug)]
pub(crate) struct Transformer {
    blocks: Vec<Block>,
    /// Sequences per clip; `parts` never splits a clip.
    together: usize,
    /// Whether a large batch passes through each block in parts.
    in_parts: bool,
}

impl Transformer {
    /// Reads `{name}.{number}.*`.
    pub(crate) fn load(weights: &Weights, name: &str, shape: Shape) -> std::result::Result<Self, LoadError> {
        let blocks = (0..shape.layers).map(|layer| Block::load(weights, &format!("{name}.{layer}"), shape));
        Ok(Transformer {
            blocks: blocks.collect::<std::result::Result<_, _>>()?,
            together: shape.extras.frames.unwrap_or(1),
            in_parts: weights.placement().processor().is_some(),
        })
    }

    /// Applies `rotary` to the queries and keys of every block.
    pub(crate) fn rotated(mut self, rotary: &Rotary) -> Self {
        self.blocks.iter_mut().for_each(|block| block.attention.rotary = Some(rotary.clone()));
        self
    }

    /// `x`: (batch, tokens, width).
    pub(crate) fn forward(&self, x: Tensor, mask: AttentionMask<'_>) -> Result<Tensor> {
        let (batch, tokens, _) = x.dims3()?;
        let threads = if self.in_parts { sharing() } else { 1 };
        let Some(shares) = shares(batch, tokens, self.together, threads) else { return self.pass(x, mask) };
        let one = |&(first, last): &(usize, usize)| {
            alone(|| self.pass(x.narrow(0, first, last - first)?, mask.part(first, last)))
        };
        let passed: Vec<Tensor> = shares.par_iter().map(one).collect::<Result<_>>()?;
        Tensor::cat(&passed, 0)
    }

    /// Passes `x` of (batch, tokens, width) through all blocks, in parts that the threads share.
    fn pass(&self, x: Tensor, mask: AttentionMask<'_>) -> Result<Tensor> {
        let mut parts = Vec::new();
        for (first, last) in self.parts(&x)? {
            parts.push((x.narrow(0, first, last - first)?, mask.part(first, last)));
        }
        drop(x);
        // Block by block, so that all parts use its weights while they are in the cache.
        for block in &self.blocks {
            for (x, mask) in &mut parts {
                *x = block.forward(x, *mask)?;
            }
        }
        match &parts[..] {
            [(x, _)] => Ok(x.clone()),
            parts => Tensor::cat(&parts.iter().map(|(x, _)| x).collect::<Vec<_>>(), 0),
        }
    }

    /// The number of blocks.
    pub(crate) fn depth(&self) -> usize {
        self.blocks.len()
    }

    /// Block `at` alone, which must exist, for callers that do something between blocks. `x`: (batch, tokens, width).
    pub(crate) fn step(&self, at: usize, x: &Tensor, mask: AttentionMask<'_>) -> Result<Tensor> {
        self.blocks[at].forward(x, mask)
    }

    /// Ranges of sequences that pass through a block together.
    fn parts(&self, x: &Tensor) -> Result<Vec<(usize, usize)>> {
        let (batch, tokens, _) = x.dims3()?;
        Ok(match self.in_parts {
            true => parts(batch, tokens, self.together, ROWS_AT_ONCE * sharing()),
            false => vec![(0, batch)],
        })
    }
}

/// Cuts `batch` sequences of `tokens` tokens into ranges of similar length with at most `most` rows. A clip of
/// `together` sequences stays whole, even if it exceeds `most`.
fn parts(batch: usize, tokens: usize, together: usize, most: usize) -> Vec<(usize, usize)> {
    if batch == 0 || !batch.is_multiple_of(together) {
        return vec![(0, batch)];
    }
    let clips = batch / together;
    let at_once = (most / (tokens * together).max(1)).max(1);
    even(clips, clips.div_ceil(at_once), together)
}

/// A range of sequences for each thread, which encodes them alone. `None` if the threads should share each product
/// instead: they would have too few rows, or one of them much more than another.
fn shares(batch: usize, tokens: usize, together: usize, threads: usize) -> Option<Vec<(usize, usize)>> {
    let clips = batch / together;
    let rows = clips / threads * together * tokens;
    // The longest share may exceed the mean by a seventh.
    let are_even = clips.div_ceil(threads) * threads * 7 <= clips * 8;
    let are_worthwhile = threads > 1 && batch.is_multiple_of(together) && rows >= FEWEST_ROWS_ALONE;
    (are_even && are_worthwhile).then(|| even(clips, threads, together))
}

/// Cuts clips of `together` sequences into `pieces` ranges of sequences.
fn even(clips: usize, pieces: usize, together: usize) -> Vec<(usize, usize)> {
    let clip = |piece: usize| piece * clips / pieces * together;
    (0..pieces).map(|piece| (clip(piece), clip(piece + 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(batch: usize, tokens: usize, together: usize, expected: &[(usize, usize)]) {
        assert_eq!(parts(batch, tokens, together, 200), expected);
    }

    #[test]
    fn sequences_pass_in_parts_of_so_many_rows_and_clips_stay_whole() {
        check(0, 50, 1, &[(0, 0)]);
        check(3, 50, 1, &[(0, 3)]);
        check(8, 50, 1, &[(0, 4), (4, 8)]);
        check(5, 50, 1, &[(0, 2), (2, 5)]);
        check(2, 257, 1, &[(0, 1), (1, 2)]);
        check(16, 50, 8, &[(0, 8), (8, 16)]);
        check(16, 5, 8, &[(0, 16)]);
        check(3, 500, 2, &[(0, 3)]);
    }
    #[track_caller]
    fn check_shares(
        batch: usize,
        tokens: usize,
        together: usize,
        threads: usize,
        expected: &[(usize, usize)],
    ) {
        assert_eq!(shares(batch, tokens, together, threads).unwrap_or_default(), expected);
    }

    #[test]
    fn threads_have_sequences_of_their_own_where_those_are_many_and_alike() {
        check_shares(8, 50, 1, 2, &[(0, 4), (4, 8)]);
        check_shares(7, 50, 1, 2, &[(0, 3), (3, 7)]);
        check_shares(5, 50, 1, 2, &[]);
        check_shares(8, 50, 1, 1, &[]);
        check_shares(8, 16, 1, 2, &[]);
        check_shares(2, 257, 1, 2, &[(0, 1), (1, 2)]);
        check_shares(2, 257, 1, 4, &[]);
        check_shares(16, 50, 8, 2, &[(0, 8), (8, 16)]);
        check_shares(24, 50, 8, 2, &[]);
        check_shares(9, 50, 8, 2, &[]);
        check_shares(0, 50, 1, 2, &[]);
    }
}
