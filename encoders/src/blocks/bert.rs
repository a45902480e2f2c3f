//! BERT (arXiv 1810.04805) as a text tower, and two variants. The text path of BLIP-2's Q-Former (arXiv 2301.12597) has
//! no token types and skips cross-attention. RoBERTa and XLM-RoBERTa (arXiv 1907.11692, 1911.02116) reserve the first
//! rows of the position table.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::cross_attention::{self, CrossAttention};
use super::transformer::{Activation, Around, Attention, AttentionMask, LayerNorm, Linear};
use crate::LoadError;
use crate::loading::Weights;

/// Values of config.json; the defaults are bert-base-uncased's. Vocabulary, positions, layers and width come from the
/// shapes of the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) num_attention_heads: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) layer_norm_eps: f32,
    /// Reserved rows of the position table before the first token's row.
    #[serde(skip)]
    pub(crate) position_offset: usize,
    /// Hidden size of the pictures that cross-attention reads; `None`: no cross-attention.
    #[serde(skip)]
    pub(crate) seen: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            num_attention_heads: 12,
            hidden_act: Activation::Gelu,
            layer_norm_eps: 1e-12,
            position_offset: 0,
            seen: None,
        }
    }
}

/// Upper bound on the layers that the loader looks for.
const MOST_LAYERS: usize = 1000;

/// A text tower.
#[derive(Debug)]
pub(crate) struct Bert {
    /// (vocabulary, width).
    tokens: Tensor,
    /// (longest text, width); includes the embedding of token type 0 where the model has types.
    positions: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

/// Self-attention, optional cross-attention to a picture, and an MLP, each with a residual and a layer norm after it.
#[derive(Debug)]
struct Layer {
    attention: Attention,
    norm1: LayerNorm,
    cross: Option<CrossAttention>,
    up: Linear,
    down: Linear,
    norm2: LayerNorm,
    activation: Activation,
}

impl Bert {
    /// Reads a tower; its tensor names may have any prefix (`bert.`, `Qformer.bert.`).
    ///
    /// # Errors
    /// [`LoadError`] for missing tensors or wrong shapes.
    pub(crate) fn load(config: &Config, weights: &Weights) -> std::result::Result<Self, LoadError> {
        let marker = "embeddings.word_embeddings.weight";
        let missing = || LoadError::MissingTensor { name: marker.to_owned() };
        let prefix = weights.names().find_map(|name| name.strip_suffix(marker)).ok_or_else(missing)?;
        let (vocabulary, width) = rows_and_columns(weights, &format!("{prefix}{marker}"))?;
        if config.num_attention_heads == 0 || width == 0 || width % config.num_attention_heads != 0 {
            let why = format!("{width} values a token are no multiple of num_attention_heads");
            return Err(LoadError::Unsupported(why.into()));
        }
        let norm = format!("{prefix}embeddings.LayerNorm");
        let layer = |number: usize| format!("{prefix}encoder.layer.{number}");
        let has =
            |number: &usize| weights.shape(&format!("{}.output.dense.weight", layer(*number))).is_some();
        let layers = (0..MOST_LAYERS).take_while(has);
        let layers: Vec<Layer> = layers
            .map(|number| Layer::load(config, width, weights, &layer(number)))
            .collect::<std::result::Result<_, _>>()?;
        if layers.is_empty() {
            return Err(LoadError::MissingTensor { name: format!("{}.output.dense.weight", layer(0)) });
        }
        Ok(Bert {
            tokens: weights.get(&format!("{prefix}{marker}"), &[vocabulary, width])?,
            positions: positions(weights, prefix, width, config.position_offset)?,
            norm: LayerNorm::load(weights, &norm, width, config.layer_norm_eps)?,
            layers,
        })
    }

    /// Size of the vocabulary.
    pub(crate) fn vocabulary(&self) -> usize {
        self.tokens.dims()[0]
    }

    /// Longest text, in tokens.
    pub(crate) fn positions(&self) -> usize {
        self.positions.dims()[0]
    }

    /// Hidden size.
    pub(crate) fn width(&self) -> usize {
        self.tokens.dims()[1]
    }

    /// Number of layers.
    pub(super) fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Embeddings after the first layer norm, (rows, width).
    pub(super) fn normed(&self, embeddings: &Tensor) -> Result<Tensor> {
        self.norm.forward(embeddings)
    }

    /// `x`, (sequences * tokens, width), after the self-attention of layer `number`, which must exist.
    pub(super) fn attended(
        &self,
        number: usize,
        x: &Tensor,
        tokens: usize,
        mask: AttentionMask<'_>,
    ) -> Result<Tensor> {
        self.layers[number].attended(x, tokens, mask)
    }

    /// (texts, width): the last layer's first token of each text. All ids must be in the vocabulary; texts must have 1
    /// to `positions()` tokens.
    pub(crate) fn forward(&self, texts: &[&[u32]]) -> Result<Tensor> {
        self.first(texts, None)
    }

    /// Like [`Bert::forward`] with cross-attention to one picture per text; `pictures`: (texts, tokens of a picture,
    /// [`Config::seen`]).
    pub(crate) fn grounded(&self, texts: &[&[u32]], pictures: &Tensor) -> Result<Tensor> {
        self.first(texts, Some(pictures))
    }

    fn first(&self, texts: &[&[u32]], pictures: Option<&Tensor>) -> Result<Tensor> {
        self.hidden(texts, pictures)?.narrow(1, 0, 1)?.squeeze(1)?.contiguous()
    }

    /// (texts, width): the mean of the last layer's tokens of each text; ids as for [`Bert::forward`].
    pub(crate) fn mean(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let hidden = self.hidden(texts, None)?;
        let tokens = hidden.dim(1)?;
        let share = |ids: &&[u32], at: usize| if at < ids.len() { 1.0 / ids.len() as f32 } else { 0.0 };
        let shares: Vec<f32> =
            texts.iter().flat_map(|ids| (0..tokens).map(move |at| share(ids, at))).collect();
        let shares = Tensor::from_vec(shares, (texts.len(), 1, tokens), hidden.device())?;
        shares.matmul(&hidden)?.squeeze(1)
    }

    /// (texts, tokens of the longest, width): the last layer. Rows after a text's end are undefined.
    fn hidden(&self, texts: &[&[u32]], pictures: Option<&Tensor>) -> Result<Tensor> {
        let device = self.tokens.device();
        let tokens = texts.iter().map(|ids| ids.len()).max().unwrap_or(0);
        let padded = texts.iter().flat_map(|ids| (0..tokens).map(|at| ids.get(at).copied().unwrap_or(0)));
        let ids = Tensor::from_vec(padded.collect::<Vec<u32>>(), texts.len() * tokens, device)?;
        let (width, rows) = (self.width(), texts.len() * tokens);
        let x = self.tokens.index_select(&ids, 0)?.reshape((texts.len(), tokens, width))?;
        let x = x.broadcast_add(&self.positions.narrow(0, 0, tokens)?)?;
        let x = self.norm.forward(&x.reshape((rows, width))?)?;
        let lengths: Vec<usize> = texts.iter().map(|ids| ids.len()).collect();
        // The attention mask hides the padding after a text's end.
        let mask = if lengths.iter().all(|it| *it == tokens) {
            AttentionMask::All
        } else {
            AttentionMask::Within(&lengths)
        };
        let x = self.layers.iter().try_fold(x, |x, layer| layer.forward(&x, tokens, mask, pictures))?;
        x.reshape((texts.len(), tokens, width))
    }
}

fn positions(
    weights: &Weights,
    prefix: &str,
    width: usize,
    offset: usize,
) -> std::result::Result<Tensor, LoadError> {
    let name = format!("{prefix}embeddings.position_embeddings.weight");
    let (count, _) = rows_and_columns(weights, &name)?;
    if count <= offset {
        let why = format!("{count} positions, of which the first {offset} are no token's");
        return Err(LoadError::Unsupported(why.into()));
    }
    let positions = weights.get(&name, &[count, width])?.narrow(0, offset, count - offset)?;
    let types = format!("{prefix}embeddings.token_type_embeddings.weight");
    if weights.shape(&types).is_none() {
        return Ok(positions);
    }
    let (kinds, _) = rows_and_columns(weights, &types)?;
    let first = weights.get(&types, &[kinds, width])?.narrow(0, 0, 1)?;
    Ok(positions.broadcast_add(&first)?)
}

fn rows_and_columns(weights: &Weights, name: &str) -> std::result::Result<(usize, usize), LoadError> {
    match weights.shape(name) {
        Some(&[rows, columns]) if rows > 0 => Ok((rows, columns)),
        Some(other) => {
            let (name, found) = (name.to_owned(), other.to_vec());
            Err(LoadError::WrongShape { name, expected: vec![1, 1], found })
        }
        None => Err(LoadError::MissingTensor { name: name.to_owned() }),
    }
}

impl Layer {
    fn load(
        config: &Config,
        width: usize,
        weights: &Weights,
        name: &str,
    ) -> std::result::Result<Self, LoadError> {
        let part = |part: &str| format!("{name}.{part}");
        let norm = |it: &str| LayerNorm::load(weights, &part(it), width, config.layer_norm_eps);
        let linear = |it: &str, inputs, outputs| Linear::load_inner(weights, &part(it), inputs, outputs);
        let names =
            ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"];
        let names = names.map(part);
        let heads = config.num_attention_heads;
        let (inner, _) = rows_and_columns(weights, &part("intermediate.dense.weight"))?;
        let cross = config.seen.map(|seen| {
            let (heads, epsilon) = (config.num_attention_heads, config.layer_norm_eps);
            let sizes = cross_attention::Sizes { width, seen, heads, epsilon };
            CrossAttention::load(weights, &part("crossattention"), sizes)
        });
        Ok(Layer {
            attention: Attention::load(weights, names.each_ref().map(|it| &it[..]), width, heads)?,
            norm1: norm("attention.output.LayerNorm")?,
            cross: cross.transpose()?,
            up: linear("intermediate.dense", width, inner)?,
            down: linear("output.dense", inner, width)?,
            norm2: norm("output.LayerNorm")?,
            activation: config.hidden_act,
        })
    }

    /// `x`: (sequences * tokens, width).
    fn attended(&self, x: &Tensor, tokens: usize, mask: AttentionMask<'_>) -> Result<Tensor> {
        let around = Around { norm: None, residual: Some(x) };
        self.norm1.forward(&self.attention.forward_in(x, tokens, mask, around)?)
    }

    /// `x`: (texts * tokens, width).
    fn forward(
        &self,
        x: &Tensor,
        tokens: usize,
        mask: AttentionMask<'_>,
        pictures: Option<&Tensor>,
    ) -> Result<Tensor> {
        let mut x = self.attended(x, tokens, mask)?;
        if let (Some(cross), Some(pictures)) = (&self.cross, pictures) {
            x = cross.forward(&x, pictures)?;
        }
        let inner = self.up.forward_inner(&x, Some(self.activation))?;
        self.norm2.forward(&self.down.forward_onto(&inner, Some(&x))?)
    }
}
