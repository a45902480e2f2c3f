//! The merger: the patches of a merged token, joined, to one input of the decoder.

use candle_core::{Result, Tensor};

use super::config::{Generation, VisionConfig};
use super::layers::Norm;
use crate::LoadError;
use crate::blocks::layers::{Activation, Linear};
use crate::loading::Weights;

/// A norm and two linear layers with an exact GELU between them.
#[derive(Debug)]
pub(super) struct Merger {
    norm: Norm,
    /// Whether patches are joined before the norm, as in DeepStack's mergers.
    joins_first: bool,
    first: Linear,
    second: Linear,
    /// Width of the joined patches.
    joined: usize,
}

/// The names of a merger's parts.
struct Names {
    norm: &'static str,
    first: &'static str,
    second: &'static str,
}

impl Merger {
    /// The tower's last merger.
    pub(super) fn load(
        weights: &Weights,
        config: &VisionConfig,
        generation: Generation,
    ) -> std::result::Result<Merger, LoadError> {
        let names = match generation {
            Generation::Two | Generation::TwoFive => Names { norm: "ln_q", first: "mlp.0", second: "mlp.2" },
            Generation::Three => THREE,
        };
        let is_rms = generation == Generation::TwoFive;
        let norm = Norm::load(weights, &format!("visual.merger.{}", names.norm), config.width, is_rms)?;
        Merger::with(weights, "visual.merger", &names, config, PlacedNorm { norm, joins_first: false })
    }

    /// DeepStack's merger `level`.
    pub(super) fn deepstack(
        weights: &Weights,
        config: &VisionConfig,
        level: usize,
    ) -> std::result::Result<Merger, LoadError> {
        let name = format!("visual.deepstack_merger_list.{level}");
        let width = config.width * config.merged();
        let norm = Norm::load(weights, &format!("{name}.{}", THREE.norm), width, false)?;
        Merger::with(weights, &name, &THREE, config, PlacedNorm { norm, joins_first: true })
    }

    fn with(
        weights: &Weights,
        name: &str,
        names: &Names,
        config: &VisionConfig,
        norm: PlacedNorm,
    ) -> std::result::Result<Merger, LoadError> {
        let joined = config.width * config.merged();
        let layer =
            |part: &str, outputs| Linear::load_inner(weights, &format!("{name}.{part}"), joined, outputs);
        Ok(Merger {
            norm: norm.norm,
            joins_first: norm.joins_first,
            first: layer(names.first, joined)?,
            second: layer(names.second, config.output)?,
            joined,
        })
    }

    /// (patches, width) to (merged tokens, output).
    pub(super) fn forward(&self, patches: &Tensor) -> Result<Tensor> {
        let join = |x: &Tensor| x.contiguous()?.reshape(((), self.joined));
        let rows = match self.joins_first {
            true => self.norm.forward(&join(patches)?)?,
            false => join(&self.norm.forward(patches)?)?,
        };
        self.second.forward(&self.first.forward_inner(&rows, Some(Activation::Gelu))?)
    }
}

const THREE: Names = Names { norm: "norm", first: "linear_fc1", second: "linear_fc2" };

/// A norm, before or after joining.
struct PlacedNorm {
    norm: Norm,
    joins_first: bool,
}
