//! The frame encoder, from a picture to a vector: a convolutional stem and transformer blocks with AIM's adapters.

use candle_core::{Result, Tensor};

use super::config::Config;
use super::layers::{Block, Linear, Norm, Shape};
use super::operations::ConvPatches;
use super::parameters::{Parameters, Start};
use crate::LoadError;

/// One convolution: a matrix product over gathered windows.
#[derive(Debug, Clone)]
struct Convolution {
    windows: ConvPatches,
    linear: Linear,
}

/// Encodes each picture alone.
#[derive(Debug, Clone)]
pub struct FrameEncoder {
    stem: Vec<Convolution>,
    /// Layer norm after the last convolution. There is none between convolutions: over few channels it would hide how
    /// light a surface is, and training took longer with it.
    norm_stem: Norm,
    /// (1, 1, width).
    class: Tensor,
    /// (tokens, width).
    positions: Tensor,
    norm_before: Norm,
    blocks: Vec<Block>,
    norm_after: Norm,
}

impl FrameEncoder {
    /// `config` must have passed [`Config::check`].
    ///
    /// # Errors
    /// As [`Parameters::get`].
    pub fn new(parameters: &mut dyn Parameters, config: &Config) -> std::result::Result<Self, LoadError> {
        let width = config.width;
        let (mut side, mut channels, mut stem) = (config.image_size, 3, Vec::new());
        for (number, layer) in config.stem.iter().enumerate() {
            let windows = ConvPatches { side, kernel: layer.kernel, stride: layer.stride };
            let name = format!("frame.stem.{number}");
            let size = (layer.kernel * layer.kernel * channels, layer.channels);
            let linear = Linear::new(parameters, &name, size.0, size.1)?;
            stem.push(Convolution { windows, linear });
            (side, channels) = (windows.out(), layer.channels);
        }
        let noise = Start::Noise(0.02);
        let shape = Shape { width, inner: config.inner, heads: config.heads, adapters: true };
        let block = |layer: usize, parameters: &mut dyn Parameters| {
            Block::new(parameters, &format!("frame.blocks.{layer}"), shape)
        };
        Ok(FrameEncoder {
            stem,
            norm_stem: Norm::new(parameters, "frame.norm_stem", width)?,
            class: parameters.get("frame.class", &[width], noise)?.reshape((1, 1, width))?,
            positions: parameters.get("frame.positions", &[side * side + 1, width], noise)?,
            norm_before: Norm::new(parameters, "frame.norm_before", width)?,
            blocks: (0..config.frame_layers)
                .map(|layer| block(layer, parameters))
                .collect::<std::result::Result<_, _>>()?,
            norm_after: Norm::new(parameters, "frame.norm_after", width)?,
        })
    }

    /// Encodes pixels (frames, side * side, 3) to (frames, width).
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let mut x = pixels.clone();
        for (number, layer) in self.stem.iter().enumerate() {
            let gathered = layer.windows.gather(&x)?;
            x = match number + 1 < self.stem.len() {
                true => layer.linear.forward_relu(&gathered)?,
                false => self.norm_stem.forward(&layer.linear.forward(&gathered)?)?,
            };
        }
        let (frames, _, width) = x.dims3()?;
        let class = self.class.broadcast_as((frames, 1, width))?;
        let x = Tensor::cat(&[&class, &x], 1)?.broadcast_add(&self.positions)?;
        let mut x = self.norm_before.forward(&x)?;
        for block in &self.blocks {
            x = block.forward(&x, None)?;
        }
        let tokens = x.dim(1)?;
        let class = x.narrow(1, 0, 1)?.squeeze(1)?;
        let patches = x.narrow(1, 1, tokens - 1)?.mean(1)?;
        self.norm_after.forward(&(class + patches)?)
    }
}
