//! Pools the features of a clip's frames to one vector: a temporal transformer, or a baseline with less temporal
//! information.

use candle_core::{Result, Tensor};

use super::config::{Config, TimeModel};
use super::layers::{Block, Linear, Norm, Shape};
use super::parameters::{Parameters, Start};
use crate::LoadError;

/// Encodes frame features (clips, frames, width) to (clips, dim). It first standardises each feature by the mean and
/// deviation over the training clips.
#[derive(Debug, Clone)]
pub struct ClipEncoder {
    mean: Tensor,
    deviation: Tensor,
    transformer: Option<Temporal>,
}

#[derive(Debug, Clone)]
struct Temporal {
    input: Linear,
    /// (frames, width).
    positions: Tensor,
    blocks: Vec<Block>,
    norm: Norm,
    output: Linear,
}

/// Encoded clips and frames.
pub struct Encoded {
    /// (clips, dim).
    pub clips: Tensor,
    /// (clips, frames, width): the frames before pooling.
    pub frames: Tensor,
}

impl ClipEncoder {
    /// `config` must have passed [`Config::check`].
    ///
    /// # Errors
    /// As [`Parameters::get`].
    pub fn new(parameters: &mut dyn Parameters, config: &Config) -> std::result::Result<Self, LoadError> {
        let transformer = match config.time {
            TimeModel::Mean => None,
            _ => Some(Temporal::new(parameters, config)?),
        };
        let mean = parameters.get("features.mean", &[config.width], Start::Constant(0.0))?;
        let deviation = parameters.get("features.deviation", &[config.width], Start::Constant(1.0))?;
        Ok(ClipEncoder { mean, deviation, transformer })
    }

    /// `features`: (clips, frames, width).
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward(&self, features: &Tensor) -> Result<Encoded> {
        let scaled = features.broadcast_sub(&self.mean)?.broadcast_div(&self.deviation)?;
        match &self.transformer {
            Some(transformer) => transformer.forward(&scaled),
            None => Ok(Encoded { clips: scaled.mean(1)?, frames: scaled }),
        }
    }
}

impl Temporal {
    fn new(parameters: &mut dyn Parameters, config: &Config) -> std::result::Result<Self, LoadError> {
        let width = config.width;
        let shape = Shape { width, inner: config.inner, heads: config.heads, adapters: false };
        let block = |layer: usize, parameters: &mut dyn Parameters| {
            Block::new(parameters, &format!("temporal.blocks.{layer}"), shape)
        };
        Ok(Temporal {
            input: Linear::new(parameters, "temporal.input", 2 * width, width)?,
            positions: parameters.get("temporal.positions", &[config.frames, width], Start::Noise(0.02))?,
            blocks: (0..config.temporal_layers)
                .map(|layer| block(layer, parameters))
                .collect::<std::result::Result<_, _>>()?,
            norm: Norm::new(parameters, "temporal.norm", width)?,
            output: Linear::new(parameters, "temporal.output", width, config.dim)?,
        })
    }

    fn forward(&self, features: &Tensor) -> Result<Encoded> {
        let (_, frames, _) = features.dims3()?;
        let first = features.narrow(1, 0, 1)?.zeros_like()?;
        let change = (features.narrow(1, 1, frames - 1)? - features.narrow(1, 0, frames - 1)?)?;
        let change = Tensor::cat(&[&first, &change], 1)?;
        let x = self.input.forward(&Tensor::cat(&[features, &change], 2)?)?;
        let mut x = x.broadcast_add(&self.positions)?;
        for block in &self.blocks {
            x = block.forward(&x, None)?;
        }
        let frames = self.norm.forward(&x)?;
        Ok(Encoded { clips: self.output.forward(&frames.mean(1)?)?, frames })
    }
}
