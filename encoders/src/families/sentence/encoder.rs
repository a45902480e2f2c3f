//! Sentence encoders of sentence-transformers (arXiv 1908.10084): a BERT-type tower, mean or first-token pooling, then
//! optional dense layers and normalisation. They take texts only.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::blocks::bert::Bert;
use crate::blocks::checks::check_ids;
use crate::blocks::checks::failed;
use crate::blocks::layers::divided_by_norm;
use crate::loading::Weights;
use crate::text::Tokens;
use crate::{EncodeError, Encoder, Input, LoadError, Space};

/// Default number of texts in one pass: bounds memory for any batch.
const TEXTS_PER_PASS: usize = 32;

/// How the tokens of a text become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pooling {
    /// The mean of all tokens, special tokens and prompt included.
    Mean,
    /// The first token.
    Cls,
}

/// The activation after a dense layer, by the last part of its PyTorch name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum DenseActivation {
    Tanh,
    Identity,
}

/// One step after pooling; the steps run in order.
#[derive(Debug)]
pub(super) enum Step {
    Dense(Dense),
    /// L2 normalisation.
    Normalize,
}

/// A linear layer with an activation, applied to pooled vectors.
#[derive(Debug)]
pub(super) struct Dense {
    /// (inputs, outputs).
    weight: Tensor,
    bias: Option<Tensor>,
    activation: DenseActivation,
}

impl Dense {
    /// Reads `linear.weight` of (outputs, inputs), and `linear.bias` if there is one.
    ///
    /// # Errors
    /// [`LoadError`] for other shapes.
    pub(super) fn load(
        weights: &Weights,
        inputs: usize,
        outputs: usize,
        activation: DenseActivation,
    ) -> std::result::Result<Self, LoadError> {
        let weight = weights.get("linear.weight", &[outputs, inputs])?;
        let name = "linear.bias";
        let bias = weights.shape(name).map(|_| weights.get(name, &[outputs])).transpose()?;
        Ok(Dense { weight: weight.t()?.contiguous()?, bias, activation })
    }

    fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        let rows = rows.matmul(&self.weight)?;
        let rows = match &self.bias {
            Some(bias) => rows.broadcast_add(bias)?,
            None => rows,
        };
        match self.activation {
            DenseActivation::Tanh => rows.tanh(),
            DenseActivation::Identity => Ok(rows),
        }
    }
}

/// The parts that all encoders of a device share.
#[derive(Debug)]
pub(super) struct Sentence {
    pub(super) tower: Bert,
    pub(super) pooling: Pooling,
    pub(super) steps: Vec<Step>,
    /// Longest text in tokens, special tokens and prompt included; at most the tower's positions.
    pub(super) longest: usize,
}

impl Sentence {
    /// Encodes texts to (texts, dim). The ids must have passed [`check_ids`].
    fn forward(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let pooled = match self.pooling {
            Pooling::Mean => self.tower.mean(texts)?,
            Pooling::Cls => self.tower.forward(texts)?,
        };
        self.steps.iter().try_fold(pooled, |rows, step| match step {
            Step::Dense(dense) => dense.forward(&rows),
            Step::Normalize => divided_by_norm(&rows),
        })
    }

    /// One vector per text, in order; at most `per_pass` texts in one pass. Sorts texts by length, because padding
    /// costs as much as text.
    fn vectors(&self, texts: &[&[u32]], per_pass: usize) -> std::result::Result<Vec<Vec<f32>>, EncodeError> {
        check_ids(texts, self.tower.vocabulary(), self.longest)?;
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|at| texts[*at].len());
        let mut vectors = vec![Vec::new(); texts.len()];
        let mut left = &order[..];
        while let Some(&shortest) = left.first() {
            let most = 2 * texts[shortest].len();
            let alike = left.iter().take(per_pass).take_while(|at| texts[**at].len() <= most).count();
            let (these, rest) = left.split_at(alike);
            let chosen: Vec<&[u32]> = these.iter().map(|at| texts[*at]).collect();
            let rows = self.forward(&chosen).and_then(|rows| rows.to_vec2::<f32>());
            for (at, row) in these.iter().zip(rows.map_err(failed)?) {
                vectors[*at] = row;
            }
            left = rest;
        }
        Ok(vectors)
    }
}

/// One sentence encoder as an [`Encoder`].
#[derive(Clone)]
pub(super) struct SentenceEncoder {
    model: Arc<Sentence>,
    space: Space,
    texts_per_pass: usize,
}

impl SentenceEncoder {
    pub(super) fn new(model: Arc<Sentence>, space: Space) -> Self {
        SentenceEncoder { model, space, texts_per_pass: TEXTS_PER_PASS }
    }

    fn unsupported(&self, what: &'static str) -> EncodeError {
        EncodeError::Unsupported { space: self.space.name.clone(), what }
    }
}

impl Encoder for SentenceEncoder {
    fn space(&self) -> &Space {
        &self.space
    }

    fn cost(&self, input: &Input) -> usize {
        match input {
            Input::Text(Tokens { ids }) => ids.len(),
            // `encode` refuses other inputs.
            _ => 1,
        }
    }

    fn bound_pass(&mut self, cost: usize) {
        self.texts_per_pass = (cost / self.model.longest.max(1)).max(1);
    }

    fn share(&self) -> Box<dyn Encoder> {
        Box::new(self.clone())
    }

    fn encode(&mut self, batch: &[Input]) -> std::result::Result<Vec<Vec<f32>>, EncodeError> {
        let text = |input| match input {
            &Input::Text(Tokens { ref ids }) => Ok(&ids[..]),
            Input::Frames(_) | Input::Frame(_) | Input::Features(_) => Err(self.unsupported("videos")),
            Input::Composed { .. } => Err(self.unsupported("composed queries")),
        };
        let texts: Vec<&[u32]> = batch.iter().map(text).collect::<std::result::Result<_, _>>()?;
        self.model.vectors(&texts, self.texts_per_pass)
    }
}
