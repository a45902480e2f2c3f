//! The decoder: Qwen2's, and Qwen3's with norms of queries and keys. Sequences of a batch lie one after the other
//! without padding; each attends to itself only.

use candle_core::{Result, Tensor};

use super::attention::{Heads, Projected};
use super::cache::{Cache, LayerCache};
use super::config::{Config, Generation, TextConfig};
use super::layers::{Gated, Pause, RmsNorm, unbiased, unbiased_rows};
use super::rotary::{Angles, MultiRotary, Position};
use crate::LoadError;
use crate::blocks::embedding_rows::EmbeddingRows;
use crate::blocks::layers::{Activation, Affine, Linear};
use crate::device::Placement;
use crate::loading::Weights;

/// The loaded decoder, without its head.
#[derive(Debug)]
pub(super) struct Decoder {
    config: TextConfig,
    placement: Placement,
    embedding: EmbeddingRows,
    layers: Vec<Layer>,
    norm: RmsNorm,
    rotary: MultiRotary,
}

#[derive(Debug)]
struct Layer {
    input_norm: RmsNorm,
    /// Queries, keys and values.
    projection: Linear,
    /// Qwen3-VL: norms of queries and keys, over a head.
    head_norms: Option<[RmsNorm; 2]>,
    output: Linear,
    middle_norm: RmsNorm,
    mlp: Gated,
}

/// The decoder's input: the tokens of all sequences of a batch, one after the other.
pub(super) struct Batch {
    /// (tokens, width).
    pub(super) rows: Tensor,
    /// Tokens of each sequence, at least one.
    pub(super) lengths: Vec<usize>,
    /// Of each token.
    pub(super) positions: Vec<Position>,
    /// What DeepStack adds to visual tokens.
    pub(super) deepstack: Option<Deepstack>,
}

/// Features that are added after the first layers.
pub(super) struct Deepstack {
    /// The tokens that stand for pictures and videos, u32.
    pub(super) tokens: Tensor,
    /// For each of the first layers, (tokens, width).
    pub(super) levels: Vec<Tensor>,
}

impl Decoder {
    /// # Errors
    /// [`LoadError`] for missing tensors and other shapes.
    pub(super) fn load(config: &Config, weights: &Weights) -> std::result::Result<Decoder, LoadError> {
        let text = &config.text;
        let layer = |at| Layer::load(weights, text, config.generation, at);
        Ok(Decoder {
            config: text.clone(),
            placement: weights.placement().clone(),
            embedding: EmbeddingRows::new(embeddings(weights, text)?, weights.placement())?,
            layers: (0..text.depth).map(layer).collect::<std::result::Result<_, _>>()?,
            norm: RmsNorm::load(weights, "model.norm", text.width, text.epsilon)?,
            rotary: MultiRotary::new(text, config.generation),
        })
    }

    /// (ids, width) of these ids, which must be in the vocabulary.
    pub(super) fn embed(&self, ids: &[u32]) -> Result<Tensor> {
        self.embedding.of(ids, self.placement.device())
    }

    /// Whether the processor computes, and no GPU.
    pub(super) fn is_on_cpu(&self) -> bool {
        self.placement.device().is_cpu()
    }

    /// An empty cache of one sequence.
    pub(super) fn cache(&self) -> Cache {
        Cache::new(self.layers.len(), self.config.kv_heads, &self.placement)
    }

    /// The last layer's output of all tokens, (tokens, width), before the final norm. `caches` has one
    /// cache for each sequence: the tokens continue what it holds, and are added to it.
    pub(super) fn forward(
        &self,
        batch: &Batch,
        caches: Option<&mut [Cache]>,
        pause: Pause<'_>,
    ) -> Result<Tensor> {
        let angles = self.rotary.angles(&batch.positions, self.placement.device())?;
        let (mut x, mut caches) = (batch.rows.clone(), caches);
        for (at, layer) in self.layers.iter().enumerate() {
            pause();
            let projected = self.project(layer, &x, &angles)?;
            let attended = match caches.as_deref_mut() {
                Some(caches) => {
                    let kept = caches.iter_mut().map(|cache| &mut cache.layers[at]);
                    self.attend_kept(&projected, &batch.lengths, kept)?
                }
                None => projected.attend(&batch.lengths, true, &self.placement)?,
            };
            x = layer.output.forward_onto(&attended, Some(&x))?;
            x = layer.mlp.forward_onto(&layer.middle_norm.forward(&x)?, &x, pause)?;
            if let Some(deepstack) = &batch.deepstack
                && let Some(level) = deepstack.levels.get(at)
            {
                x = x.index_add(&deepstack.tokens, level, 0)?;
            }
        }
        Ok(x)
    }

    /// The final norm.
    pub(super) fn normed(&self, rows: &Tensor) -> Result<Tensor> {
        self.norm.forward(rows)
    }

    fn project(&self, layer: &Layer, x: &Tensor, angles: &Angles) -> Result<Projected> {
        let TextConfig { heads, kv_heads, head, .. } = self.config;
        let mut packed = layer.projection.forward(&layer.input_norm.forward(x)?)?;
        if let Some([of_queries, of_keys]) = &layer.head_norms {
            let part = |first: usize, heads: usize| packed.narrow(1, first * head, heads * head);
            let normed = |norm: &RmsNorm, rows: Tensor| {
                norm.forward(&rows.contiguous()?.reshape(((), head))?)?.reshape(rows.shape())
            };
            let (queries, keys) = (part(0, heads)?, part(heads, kv_heads)?);
            let values = part(heads + kv_heads, kv_heads)?;
            packed = Tensor::cat(&[normed(of_queries, queries)?, normed(of_keys, keys)?, values], 1)?;
        }
        let heads = Heads { queries: heads, kv: kv_heads, size: head };
        Ok(Projected { packed, heads, angles: angles.clone() })
    }

    /// Attention of each sequence's tokens to those in its cache and to themselves.
    fn attend_kept<'a>(
        &self,
        projected: &Projected,
        lengths: &[usize],
        caches: impl Iterator<Item = &'a mut LayerCache>,
    ) -> Result<Tensor> {
        let (mut outputs, mut first) = (Vec::new(), 0);
        for (count, cache) in lengths.iter().zip(caches) {
            outputs.push(cache.attend(projected, first, *count, &self.placement)?);
            first += count;
        }
        match outputs.len() {
            1 => Ok(outputs.remove(0)),
            _ => Tensor::cat(&outputs, 0),
        }
    }
}

impl Layer {
    fn load(
        weights: &Weights,
        config: &TextConfig,
        generation: Generation,
        at: usize,
    ) -> std::result::Result<Layer, LoadError> {
        let TextConfig { width, middle, heads, kv_heads, head, epsilon, .. } = *config;
        let name = |part: &str| format!("model.layers.{at}.{part}");
        let norm = |part: &str, width| RmsNorm::load(weights, &name(part), width, epsilon);
        let layer = |part: &str, inputs, outputs| unbiased(weights, &name(part), inputs, outputs);
        let three = generation == Generation::Three;
        let projection = |part: &str, heads: usize| match three {
            true => unbiased_rows(weights, &name(part), width, heads * head),
            false => Affine::load(weights, &name(part), width, heads * head),
        };
        let projections = [
            projection("self_attn.q_proj", heads)?,
            projection("self_attn.k_proj", kv_heads)?,
            projection("self_attn.v_proj", kv_heads)?,
        ];
        let projection = Affine::joined(&projections.iter().collect::<Vec<_>>())?;
        let head_norms = match three {
            true => Some([norm("self_attn.q_norm", head)?, norm("self_attn.k_norm", head)?]),
            false => None,
        };
        Ok(Layer {
            input_norm: norm("input_layernorm", width)?,
            projection: projection.ready(weights.placement())?,
            head_norms,
            output: layer("self_attn.o_proj", heads * head, width)?,
            middle_norm: norm("post_attention_layernorm", width)?,
            mlp: Gated {
                gate: layer("mlp.gate_proj", width, middle)?,
                up: layer("mlp.up_proj", width, middle)?,
                down: layer("mlp.down_proj", middle, width)?,
                activation: Activation::Silu,
            },
        })
    }
}

/// (vocabulary, width).
fn embeddings(weights: &Weights, text: &TextConfig) -> std::result::Result<Tensor, LoadError> {
    weights.get("model.embed_tokens.weight", &[text.vocabulary, text.width])
}

/// The layer that scores all tokens of the vocabulary.
#[derive(Debug)]
pub(super) struct Head(Linear);

impl Head {
    /// Reads `lm_head.weight`; a tied head has the embedding's weights.
    ///
    /// # Errors
    /// [`LoadError`] for missing tensors and other shapes.
    pub(super) fn load(config: &Config, weights: &Weights) -> std::result::Result<Head, LoadError> {
        let (name, text) = ("lm_head.weight", &config.text);
        let is_tied = config.tied.unwrap_or(weights.shape(name).is_none());
        let rows = match is_tied {
            true => embeddings(weights, text)?,
            false => weights.get(name, &[text.vocabulary, text.width])?,
        };
        Ok(Head(Affine::of_rows(&rows, None)?.ready(weights.placement())?))
    }

    /// Scores of (rows, width), which the final norm has normalised: (rows, vocabulary).
    pub(super) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        self.0.forward(rows)
    }
}
