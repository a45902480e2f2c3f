//! Tower and decoder together: prompts with pictures and videos to hidden states.

use std::result::Result as StdResult;

use candle_core::{Result, Tensor};

use super::cache::Cache;
use super::config::Config;
use super::decoder::{Batch, Decoder, Deepstack};
use super::grid::Visual;
use super::layers::Pause;
use super::positions::{Positions, kind};
use super::tower::Tower;
use crate::loading::Weights;
use crate::{EncodeError, LoadError};

/// The loaded model, without its head.
#[derive(Debug)]
pub(crate) struct QwenVl {
    pub(super) config: Config,
    pub(super) tower: Tower,
    pub(super) decoder: Decoder,
}

/// One prompt.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    ids: Vec<u32>,
    visuals: Vec<Visual>,
    positions: Positions,
}

impl Sequence {
    /// `ids` with as many pads as `visuals` have tokens, in the same order.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for ids outside the vocabulary, and if pads and visuals do not match.
    pub(crate) fn new(
        ids: Vec<u32>,
        visuals: Vec<Visual>,
        config: &Config,
    ) -> StdResult<Sequence, EncodeError> {
        let positions = Positions::of(&ids, &visuals, config)?;
        let (vocabulary, longest) = (config.text.vocabulary, config.text.longest);
        crate::blocks::checks::check_ids(&[&ids[..]], vocabulary, longest)?;
        let values = config.vision.patch_values();
        let fits = |visual: &Visual| visual.patches.len() == visual.grid.patches() * values;
        if !visuals.iter().all(fits) {
            return Err(EncodeError::BadInput("patches that do not fit their grid".into()));
        }
        Ok(Sequence { ids, visuals, positions })
    }

    /// The same prompt with other positions, as many as it has tokens.
    pub(crate) fn with_positions(self, positions: Positions) -> Sequence {
        Sequence { positions, ..self }
    }

    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    pub(crate) fn positions(&self) -> &Positions {
        &self.positions
    }
}

impl QwenVl {
    /// Reads weights under their published names and those of transformers 5.
    ///
    /// # Errors
    /// [`LoadError`] for missing tensors and other shapes.
    pub(crate) fn load(config: Config, weights: &Weights) -> StdResult<QwenVl, LoadError> {
        let (tower, decoder) = (Tower::load(&config, weights)?, Decoder::load(&config, weights)?);
        weights.check_taken(&["visual", "model"], &["rotary_emb", "rotary_pos_emb"])?;
        Ok(QwenVl { config, tower, decoder })
    }

    /// Hidden states of all tokens of the batch, one sequence after the other, before the final norm: (tokens, width).
    /// `caches` as in [`Decoder::forward`].
    pub(super) fn hidden(
        &self,
        batch: &[&Sequence],
        caches: Option<&mut [Cache]>,
        pause: Pause<'_>,
    ) -> Result<Tensor> {
        let ids: Vec<u32> = batch.iter().flat_map(|sequence| sequence.ids.iter().copied()).collect();
        let visuals: Vec<&Visual> = batch.iter().flat_map(|sequence| &sequence.visuals).collect();
        let (mut rows, mut deepstack) = (self.decoder.embed(&ids)?, None);
        if !visuals.is_empty() {
            let output = self.tower.forward(&visuals, pause)?;
            let (order, tokens) = self.merged_order(&ids);
            let device = rows.device().clone();
            let table = Tensor::cat(&[&rows, &output.features], 0)?;
            rows = table.index_select(&Tensor::new(&order[..], &device)?, 0)?;
            if !output.levels.is_empty() {
                let tokens = Tensor::new(&tokens[..], &device)?;
                deepstack = Some(Deepstack { tokens, levels: output.levels });
            }
        }
        let batch = Batch {
            rows,
            lengths: batch.iter().map(|sequence| sequence.ids.len()).collect(),
            positions: batch.iter().flat_map(|it| it.positions.of_tokens.iter().copied()).collect(),
            deepstack,
        };
        self.decoder.forward(&batch, caches, pause)
    }

    /// The row of each token in the table of embeddings, then features; and the tokens that features replace. Visuals
    /// come in the order of their tokens, whatever their kind.
    fn merged_order(&self, ids: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let (mut order, mut tokens) = (Vec::with_capacity(ids.len()), Vec::new());
        for (at, id) in ids.iter().enumerate() {
            match kind(*id, &self.config) {
                Some(_) => {
                    order.push((ids.len() + tokens.len()) as u32);
                    tokens.push(at as u32);
                }
                None => order.push(at as u32),
            }
        }
        (order, tokens)
    }

    /// The hidden state of each sequence's last token after the final norm, (sequences, width).
    pub(super) fn last_hidden(&self, batch: &[&Sequence], pause: Pause<'_>) -> Result<Tensor> {
        let hidden = self.hidden(batch, None, pause)?;
        self.last_rows(&hidden, batch.iter().map(|sequence| sequence.ids.len()))
    }

    /// The last row of each sequence after the final norm.
    pub(super) fn last_rows(&self, hidden: &Tensor, lengths: impl Iterator<Item = usize>) -> Result<Tensor> {
        let ends = lengths.scan(0, |end, length| {
            *end += length as u32;
            Some(*end - 1)
        });
        let ends: Vec<u32> = ends.collect();
        self.decoder.normed(&hidden.index_select(&Tensor::new(&ends[..], hidden.device())?, 0)?)
    }
}

/// The weights under the names that this family reads: `visual.*`, `model.*`, `lm_head.*`. Qwen3-VL and transformers 5
/// keep both parts under `model`.
pub(super) fn renamed(weights: Weights) -> Weights {
    let moved = ["model.visual.", "model.language_model.", "language_model.model."];
    let to = ["visual.", "model.", "model."];
    weights.renamed(|name| {
        let renamed =
            moved.iter().zip(to).find_map(|(from, to)| Some(format!("{to}{}", name.strip_prefix(from)?)));
        renamed.unwrap_or_else(|| name.to_owned())
    })
}
