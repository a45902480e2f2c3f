//! The text transformer that families in CLIP's manner share; how they differ is data.
//!
//! Its tensors have the names of Hugging Face's CLIP; families with other names change them first.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::transformer::{AttentionMask, LayerNorm, Linear, Shape, Transformer};
use super::vision_transformer::Projection;
use crate::LoadError;
use crate::loading::Weights;

/// How one tower is built.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Entries of the vocabulary.
    pub(crate) vocabulary: usize,
    /// Longest text in tokens, specials included.
    pub(crate) longest: usize,
    pub(crate) blocks: Shape,
    /// Values per vector.
    pub(crate) dim: usize,
    pub(crate) reading: Reading,
    pub(crate) projection: Projection,
}

/// Which tokens a token sees, and where a text's vector is read off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reading {
    /// No token sees a later one; read at the first token of this id, or else at the first token.
    EndOfText(u32),
    /// No token sees a later one; read at the first of the largest ids.
    LargestId,
    /// Every text is filled up to the longest with the id `pad`, all tokens see all, and it is read at the last.
    LastOfPadded {
        /// What it is filled up with.
        pad: u32,
        /// Where.
        side: Side,
    },
}

/// Where padding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    /// Before the text.
    Left,
    /// Behind it.
    Right,
}

impl Reading {
    /// Where the vector of `ids`, padded or not, is read off.
    pub(crate) fn at(self, ids: &[u32]) -> usize {
        let end = match self {
            Reading::EndOfText(id) => Some(id),
            Reading::LargestId => ids.iter().max().copied(),
            Reading::LastOfPadded { .. } => return ids.len().saturating_sub(1),
        };
        ids.iter().position(|id| Some(*id) == end).unwrap_or(0)
    }

    /// `ids`, filled up or cut to so many `tokens`.
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
    /// [`LoadError::Unsupported`] for numbers that make no tower.
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

    /// Floating-point operations of the products of a text that is read with so many tokens, padding among them.
    pub(crate) fn operations(&self, tokens: usize) -> f64 {
        self.blocks.operations(tokens) + self.projection.operations(self.blocks.width, self.dim)
    }
}

impl TextTransformer {
    /// Reads a tower; `config` must have passed [`Config::check`].
    ///
    /// # Errors
    /// [`LoadError`] for weights that are no such tower.
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

    /// How it is built.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Tokens that a text of so many costs.
    pub(crate) fn cost(&self, tokens: usize) -> usize {
        match self.config.reading {
            Reading::LastOfPadded { .. } => self.config.longest,
            Reading::EndOfText(_) | Reading::LargestId => tokens,
        }
    }

    /// Floating-point operations of the products of a text of so many tokens.
    pub(crate) fn operations(&self, tokens: usize) -> f64 {
        self.config.operations(self.cost(tokens))
    }

    /// (texts, dim); all ids are in the vocabulary, no text is empty or too long.
    pub(crate) fn forward(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let reading = self.config.reading;
        let (tokens, ends) = match reading {
            Reading::LastOfPadded { .. } => (self.config.longest, vec![self.config.longest - 1; texts.len()]),
            Reading::EndOfText(_) | Reading::LargestId => {
                let ends: Vec<usize> = texts.iter().map(|ids| reading.at(ids)).collect();
                // No token sees a later one, so nothing after the last end of text matters.
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
