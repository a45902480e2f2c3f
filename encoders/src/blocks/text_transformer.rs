//! The text transformer of CLIP-like families; configuration values express their differences.
//!
//! Its tensors have the names of Hugging Face's CLIP; other families rename theirs first.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::transformer::{AttentionMask, LayerNorm, Linear, Shape, Transformer};
use super::vision_transformer::Projection;
use crate::LoadError;
use crate::loading::Weights;

/// Dimensions and variants of a text tower.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Size of the vocabulary.
    pub(crate) vocabulary: usize,
    /// Longest text in tokens, specials included.
    pub(crate) longest: usize,
    pub(crate) blocks: Shape,
    /// Values per vector.
    pub(crate) dim: usize,
    pub(crate) reading: Reading,
    pub(crate) projection: Projection,
}

/// The attention mask, and the position whose hidden state becomes the text's vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reading {
    /// Causal mask; reads the first token with this id, or the first token if there is none.
    EndOfText(u32),
    /// Causal mask; reads the first token with the largest id.
    LargestId,
    /// No mask; pads every text to the longest and reads the last position.
    LastOfPadded {
        /// The id of the padding token.
        pad: u32,
        /// The side that the padding stands on.
        side: Side,
    },
}

/// The side that padding stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    /// Before the text.
    Left,
    /// After the text.
    Right,
}

impl Reading {
    /// The position in `ids`, padded or not, whose hidden state becomes the vector.
    pub(crate) fn at(self, ids: &[u32]) -> usize {
        let end = match self {
            Reading::EndOfText(id) => Some(id),
            Reading::LargestId => ids.iter().max().copied(),
            Reading::LastOfPadded { .. } => return ids.len().saturating_sub(1),
        };
        ids.iter().position(|id| Some(*id) == end).unwrap_or(0)
    }

    /// `ids`, padded or truncated to `tokens`.
    fn padded(self, ids: &[u32], tokens: usize) -> impl Iterator<Item = u32> {
        let missing = tokens.saturating_sub(ids.len());
        let (before, pad) = match self {
            Reading::LastOfPadded { pad, side: Side::Left } => (missing, pad),
            Reading::LastOfPadded { pad, side: Side::Right } => (0, pad),
            Reading::EndOfText(_) | Reading::LargestId => (0, 0),
        };
        (0..tokens).map(move |at| at.checked_sub(before).and_then(|at| ids.get(at)).copied().unwrap_or(pad))
    }
}

/// One tower.
#[derive(Debug)]
pub(crate) struct TextTransformer {
    config: Config,
    /// (vocabulary, width).
    tokens: Tensor,
    /// (longest, width).
    positions: Tensor,
    blocks: Transformer,
    norm: LayerNorm,
    projection: Option<Linear>,
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions.
    pub(crate) fn check(&self) -> std::result::Result<(), LoadError> {
        self.blocks.check()?;
        if self.vocabulary == 0 || self.longest == 0 {
            return Err(LoadError::Unsupported("a vocab_size or max_position_embeddings of 0".into()));
        }
        if self.dim == 0 {
            return Err(LoadError::Unsupported("a projection_dim of 0".into()));
        }
        match self.reading {
            Reading::LastOfPadded { pad, .. } if pad as usize >= self.vocabulary => {
                Err(LoadError::Unsupported(format!("texts are padded with {pad}, which is no token").into()))
            }
            _ => Ok(()),
        }
    }

    /// Floating-point operations of the matrix products for a text of `tokens` tokens, padding included.
    pub(crate) fn operations(&self, tokens: usize) -> f64 {
        self.blocks.operations(tokens) + self.projection.operations(self.blocks.width, self.dim)
    }
}

impl TextTransformer {
    /// Reads a tower; `config` must have passed [`Config::check`].
    ///
    /// # Errors
    /// [`LoadError`] for missing tensors or wrong shapes.
    pub(crate) fn load(config: Config, weights: &Weights) -> std::result::Result<Self, LoadError> {
        let Shape { width, epsilon, .. } = config.blocks;
        let get = |name: &str, rows: usize| {
            weights.get(&format!("text_model.embeddings.{name}.weight"), &[rows, width])
        };
        let norm = "text_model.final_layer_norm";
        Ok(TextTransformer {
            tokens: get("token_embedding", config.vocabulary)?,
            positions: get("position_embedding", config.longest)?,
            blocks: Transformer::load(weights, "text_model.encoder.layers", config.blocks)?,
            norm: LayerNorm::load(weights, norm, width, epsilon)?,
            projection: config.projection.load(weights, "text_projection", width, config.dim)?,
            config,
        })
    }

    /// Its configuration.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Cost of a text of `tokens` tokens: the padded length, if the tower pads.
    pub(crate) fn cost(&self, tokens: usize) -> usize {
        match self.config.reading {
            Reading::LastOfPadded { .. } => self.config.longest,
            Reading::EndOfText(_) | Reading::LargestId => tokens,
        }
    }

    /// Floating-point operations of the matrix products for a text of `tokens` tokens.
    pub(crate) fn operations(&self, tokens: usize) -> f64 {
        self.config.operations(self.cost(tokens))
    }

    /// Encodes texts to (texts, dim). All ids must be in the vocabulary. No text may be empty or too long.
    pub(crate) fn forward(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let reading = self.config.reading;
        let (tokens, ends) = match reading {
            Reading::LastOfPadded { .. } => (self.config.longest, vec![self.config.longest - 1; texts.len()]),
            Reading::EndOfText(_) | Reading::LargestId => {
                let ends: Vec<usize> = texts.iter().map(|ids| reading.at(ids)).collect();
                // The causal mask makes tokens after the last end of text irrelevant.
                (ends.iter().max().map_or(0, |end| end + 1), ends)
            }
        };
        let device = self.tokens.device();
        let padded = texts.iter().flat_map(|ids| reading.padded(ids, tokens));
        let ids = Tensor::from_vec(padded.collect::<Vec<u32>>(), texts.len() * tokens, device)?;
        let rows: Vec<u32> =
            ends.iter().enumerate().map(|(text, end)| (text * tokens + end) as u32).collect();
        let rows = Tensor::from_vec(rows, texts.len(), device)?;
        let width = self.config.blocks.width;
        let embedded = self.tokens.index_select(&ids, 0)?.reshape((texts.len(), tokens, width))?;
        let x = embedded.broadcast_add(&self.positions.narrow(0, 0, tokens)?)?;
        let x = match reading {
            Reading::LastOfPadded { .. } => self.blocks.forward(x, AttentionMask::All)?,
            _ => self.blocks.forward(x, AttentionMask::Earlier)?,
        };
        let read = x.reshape((texts.len() * tokens, width))?.index_select(&rows, 0)?;
        let read = self.norm.forward(&read)?;
        self.projection.as_ref().map_or(Ok(read.clone()), |projection| projection.forward(&read))
    }
}
