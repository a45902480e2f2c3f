//! The encoder: a window's spectrogram to one row for every 20 ms.

use std::ops::ControlFlow;

use candle_core::{Result, Tensor};

use super::config::Config;
use crate::LoadError;
use crate::blocks::layers::{Activation, Affine, LayerNorm, Linear};
use crate::blocks::transformer::{AttentionMask, Transformer};
use crate::loading::Weights;
use crate::transcriber::OnStep;

/// Taps of both convolutions.
const TAPS: usize = 3;

/// The loaded encoder.
#[derive(Debug)]
pub(super) struct Encoder {
    bands: usize,
    /// Convolutions over time, as products with three frames side by side.
    first: Linear,
    second: Linear,
    /// (1, positions, width).
    positions: Tensor,
    layers: Transformer,
    norm: LayerNorm,
}

impl Encoder {
    /// # Errors
    /// [`LoadError`] for missing tensors and other shapes.
    pub(super) fn load(weights: &Weights, config: &Config) -> std::result::Result<Encoder, LoadError> {
        let (width, shape) = (config.width, config.encoder());
        let positions = weights.get("encoder.embed_positions.weight", &[config.positions, width])?;
        Ok(Encoder {
            bands: config.bands,
            first: convolution(weights, "encoder.conv1", config.bands, width)?,
            second: convolution(weights, "encoder.conv2", width, width)?,
            positions: positions.reshape((1, config.positions, width))?,
            layers: Transformer::load(weights, "encoder.layers", shape)?,
            norm: LayerNorm::load(weights, "encoder.layer_norm", width, shape.epsilon)?,
        })
    }

    /// (positions, width) of a spectrogram, frame by frame, of twice as many frames; `None` if `on_step` cancelled it.
    pub(super) fn forward(&self, spectrogram: Vec<f32>, on_step: &mut OnStep<'_>) -> Result<Option<Tensor>> {
        let device = self.positions.device();
        let frames = spectrogram.len() / self.bands;
        let x = Tensor::from_vec(spectrogram, (frames, self.bands), device)?;
        let x = x.pad_with_zeros(0, 1, 1)?;
        let taps = (0..TAPS).map(|tap| x.narrow(0, tap, frames)).collect::<Result<Vec<_>>>()?;
        let x = activated(&self.first, &Tensor::cat(&taps, 1)?)?;
        let width = x.dim(1)?;
        let x = x.pad_with_zeros(0, 1, 1)?;
        // Every second frame: its first two taps are neighbours in memory.
        let pairs = x.narrow(0, 0, frames)?.reshape((frames / 2, 2 * width))?;
        let last = x.narrow(0, 2, frames)?.reshape((frames / 2, 2 * width))?.narrow(1, 0, width)?;
        let x = activated(&self.second, &Tensor::cat(&[&pairs, &last], 1)?)?;
        let mut x = x.unsqueeze(0)?.broadcast_add(&self.positions)?;
        for layer in 0..self.layers.depth() {
            if on_step() == ControlFlow::Break(()) {
                return Ok(None);
            }
            x = self.layers.step(layer, &x, AttentionMask::All)?;
        }
        self.norm.forward(&x.squeeze(0)?).map(Some)
    }
}

fn activated(layer: &Linear, rows: &Tensor) -> Result<Tensor> {
    layer.forward_inner(rows, Some(Activation::Gelu))
}

/// Reads `{name}.weight` of (outputs, inputs, taps), and `{name}.bias`: a layer on rows of `taps` frames of `inputs` values.
fn convolution(
    weights: &Weights,
    name: &str,
    inputs: usize,
    outputs: usize,
) -> std::result::Result<Linear, LoadError> {
    let weight = weights.get(&format!("{name}.weight"), &[outputs, inputs, TAPS])?;
    let bias = weights.get(&format!("{name}.bias"), &[outputs])?;
    let rows = weight.transpose(1, 2)?.contiguous()?.reshape((outputs, TAPS * inputs))?;
    Ok(Affine::of_rows(&rows, Some(bias))?.ready(&weights.placement().in_f32())?)
}
