//! Layers that the tower and the decoder share.

use candle_core::{DType, Result, Tensor};

use crate::LoadError;
use crate::blocks::layers::{Activation, Affine, LayerNorm, Linear};
use crate::loading::Weights;

/// Root mean square norm; computes in f32.
#[derive(Debug)]
pub(super) struct RmsNorm {
    weight: Tensor,
    epsilon: f32,
}

impl RmsNorm {
    /// Reads `{name}.weight` of `width` values.
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        width: usize,
        epsilon: f32,
    ) -> std::result::Result<Self, LoadError> {
        Ok(RmsNorm { weight: weights.get(&format!("{name}.weight"), &[width])?, epsilon })
    }

    /// Normalises the last dimension.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::rms_norm(&x.to_dtype(DType::F32)?.contiguous()?, &self.weight, self.epsilon)
    }
}

/// The norm of a tower: RMS norm in Qwen2.5-VL, layer norm in the others.
#[derive(Debug)]
pub(super) enum Norm {
    Layer(LayerNorm),
    Rms(RmsNorm),
}

/// Epsilon of the tower's norms in all three models.
const EPSILON: f32 = 1e-6;

impl Norm {
    pub(super) fn load(
        weights: &Weights,
        name: &str,
        width: usize,
        is_rms: bool,
    ) -> std::result::Result<Self, LoadError> {
        Ok(match is_rms {
            true => Norm::Rms(RmsNorm::load(weights, name, width, EPSILON)?),
            false => Norm::Layer(LayerNorm::load(weights, name, width, EPSILON)?),
        })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Norm::Layer(norm) => norm.forward(x),
            Norm::Rms(norm) => norm.forward(x),
        }
    }
}

/// Reads `{name}.weight` of (outputs, inputs), without a bias, in the model's precision.
pub(super) fn unbiased(
    weights: &Weights,
    name: &str,
    inputs: usize,
    outputs: usize,
) -> std::result::Result<Linear, LoadError> {
    Ok(unbiased_rows(weights, name, inputs, outputs)?.ready(weights.placement())?)
}

/// Like [`unbiased`], but the layer can still be joined with others.
pub(super) fn unbiased_rows(
    weights: &Weights,
    name: &str,
    inputs: usize,
    outputs: usize,
) -> std::result::Result<Affine, LoadError> {
    let weight = weights.get(&format!("{name}.weight"), &[outputs, inputs])?;
    Ok(Affine::of_rows(&weight, None)?)
}

/// Called between the steps of a long pass: other work may go first.
pub(super) type Pause<'a> = &'a dyn Fn();

/// Most rows of one step of an MLP: bounds its memory, and the time between two pauses.
const ROWS: usize = 512;

/// A gated MLP: `down(activation(gate(x)) * up(x))`.
#[derive(Debug)]
pub(super) struct Gated {
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
    pub(super) activation: Activation,
}

impl Gated {
    /// The MLP's output plus `residual`, (rows, width), some rows after the other.
    pub(super) fn forward_onto(&self, rows: &Tensor, residual: &Tensor, pause: Pause<'_>) -> Result<Tensor> {
        in_steps(rows, residual, pause, |rows, residual| {
            let gate = self.gate.forward_inner(rows, Some(self.activation))?;
            self.down.forward_onto(&self.up.forward_times(rows, &gate)?, Some(residual))
        })
    }
}

/// Runs `step` on at most [`ROWS`] rows of input and residual after the other, with a pause before each.
pub(super) fn in_steps(
    rows: &Tensor,
    residual: &Tensor,
    pause: Pause<'_>,
    step: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let all = rows.dim(0)?;
    if all <= ROWS {
        return step(rows, residual);
    }
    let steps = all.div_ceil(ROWS);
    let part = |at: usize| {
        pause();
        let (first, last) = (at * all / steps, (at + 1) * all / steps);
        step(&rows.narrow(0, first, last - first)?, &residual.narrow(0, first, last - first)?)
    };
    Tensor::cat(&(0..steps).map(part).collect::<Result<Vec<_>>>()?, 0)
}
