//! The vision tower: patches of pictures and videos to inputs of the decoder. Attention stays within a temporal patch;
//! in Qwen2.5-VL, within a window except for some layers.

use candle_core::{Result, Tensor};

use super::attention::{Heads, Projected};
use super::config::{Config, Generation, VisionConfig};
use super::grid::{Grid, Visual};
use super::layers::{Gated, Norm, Pause, in_steps};
use super::merger::Merger;
use super::rotary::{Angles, tower_angles};
use super::tower_positions::LearnedPositions;
use super::windows::Windows;
use crate::LoadError;
use crate::blocks::layers::{Activation, Linear};
use crate::device::Placement;
use crate::loading::Weights;

/// The loaded tower.
#[derive(Debug)]
pub(super) struct Tower {
    config: VisionConfig,
    placement: Placement,
    patches: Linear,
    /// Qwen3-VL.
    positions: Option<LearnedPositions>,
    blocks: Vec<Block>,
    merger: Merger,
    /// A merger for each of `config.deepstack`.
    levels: Vec<Merger>,
}

/// The tower's output for all merged tokens of its inputs, in order.
#[derive(Debug)]
pub(super) struct TowerOutput {
    /// (patches, width): the last layer's output, window after window in Qwen2.5-VL. The decoder does not use it.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the reference's"))]
    pub(super) hidden: Tensor,
    /// (tokens, output).
    pub(super) features: Tensor,
    /// DeepStack's features, (tokens, output) each.
    pub(super) levels: Vec<Tensor>,
}

#[derive(Debug)]
struct Block {
    first_norm: Norm,
    projection: Linear,
    output: Linear,
    second_norm: Norm,
    mlp: Mlp,
}

#[derive(Debug)]
enum Mlp {
    Plain { first: Linear, second: Linear, activation: Activation },
    Gated(Gated),
}

impl Tower {
    /// # Errors
    /// [`LoadError`] for missing tensors and other shapes.
    pub(super) fn load(config: &Config, weights: &Weights) -> std::result::Result<Tower, LoadError> {
        let (vision, generation) = (&config.vision, config.generation);
        let levels = 0..vision.deepstack.len();
        let positions =
            vision.positions.map(|side| LearnedPositions::load(weights, side, vision.width)).transpose()?;
        let block = |at| Block::load(weights, vision, generation, at);
        Ok(Tower {
            config: vision.clone(),
            placement: weights.placement().clone(),
            patches: patch_layer(weights, vision, generation)?,
            positions,
            blocks: (0..vision.depth).map(block).collect::<std::result::Result<_, _>>()?,
            merger: Merger::load(weights, vision, generation)?,
            levels: levels
                .map(|level| Merger::deepstack(weights, vision, level))
                .collect::<std::result::Result<_, _>>()?,
        })
    }

    /// Encodes all `visuals`, at least one, whose patches must fit their grids.
    pub(super) fn forward(&self, visuals: &[&Visual], pause: Pause<'_>) -> Result<TowerOutput> {
        let grids: Vec<Grid> = visuals.iter().map(|visual| visual.grid).collect();
        let values: Vec<f32> = visuals.iter().flat_map(|visual| visual.patches.iter().copied()).collect();
        let rows = Tensor::from_vec(
            values,
            (grids.iter().map(Grid::patches).sum::<usize>(), self.config.patch_values()),
            self.placement.device(),
        )?;
        let mut x = self.patches.forward(&rows)?;
        if let Some(positions) = &self.positions {
            x = (x + positions.of(&grids, self.config.merge)?)?;
        }
        let layout = Layout::of(&grids, &self.config);
        x = layout.arranged(&x, self.config.merged())?;
        let head = self.config.width / self.config.heads;
        let angles = tower_angles(&layout.places, head, self.placement.device())?;
        let mut levels = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            pause();
            let attended = self.attended(block, &x, &angles, layout.lengths(&self.config, at))?;
            x = block.mlp.forward_onto(&block.second_norm.forward(&attended)?, &attended, pause)?;
            if let Some(level) = self.config.deepstack.iter().position(|layer| *layer == at) {
                levels.push(self.levels[level].forward(&x)?);
            }
        }
        let features = layout.restored(&self.merger.forward(&x)?)?;
        Ok(TowerOutput { hidden: x, features, levels })
    }

    fn attended(&self, block: &Block, x: &Tensor, angles: &Angles, lengths: &[usize]) -> Result<Tensor> {
        let VisionConfig { heads, width, .. } = self.config;
        let packed = block.projection.forward(&block.first_norm.forward(x)?)?;
        let heads = Heads { queries: heads, kv: heads, size: width / heads };
        let projected = Projected { packed, heads, angles: angles.clone() };
        let attended = projected.attend(lengths, false, &self.placement)?;
        block.output.forward_onto(&attended, Some(x))
    }
}

/// The patch embedding: one matrix product, because a patch's values follow the kernel's order.
fn patch_layer(
    weights: &Weights,
    config: &VisionConfig,
    generation: Generation,
) -> std::result::Result<Linear, LoadError> {
    let name = "visual.patch_embed.proj";
    let (width, patch) = (config.width, config.patch);
    let kernel = weights.get(&format!("{name}.weight"), &[width, 3, 2, patch, patch])?;
    let bias = match generation {
        Generation::Three => Some(weights.get(&format!("{name}.bias"), &[width])?),
        Generation::Two | Generation::TwoFive => None,
    };
    Ok(Linear::of_pixels(weights.placement(), &kernel.flatten_from(1)?, bias)?)
}

impl Block {
    fn load(
        weights: &Weights,
        config: &VisionConfig,
        generation: Generation,
        at: usize,
    ) -> std::result::Result<Block, LoadError> {
        let (name, width, middle) = (format!("visual.blocks.{at}"), config.width, config.middle);
        let is_rms = generation == Generation::TwoFive;
        let norm = |part: &str| Norm::load(weights, &format!("{name}.{part}"), width, is_rms);
        let layer = |part: &str, inputs, outputs| {
            Linear::load_inner(weights, &format!("{name}.{part}"), inputs, outputs)
        };
        let plain = |first: &str, second: &str| {
            let (first, second) = (layer(first, width, middle)?, layer(second, middle, width)?);
            Ok::<_, LoadError>(Mlp::Plain { first, second, activation: config.activation })
        };
        Ok(Block {
            first_norm: norm("norm1")?,
            projection: layer("attn.qkv", width, 3 * width)?,
            output: layer("attn.proj", width, width)?,
            second_norm: norm("norm2")?,
            mlp: match generation {
                Generation::Two => plain("mlp.fc1", "mlp.fc2")?,
                Generation::Three => plain("mlp.linear_fc1", "mlp.linear_fc2")?,
                Generation::TwoFive => Mlp::Gated(Gated {
                    gate: layer("mlp.gate_proj", width, middle)?,
                    up: layer("mlp.up_proj", width, middle)?,
                    down: layer("mlp.down_proj", middle, width)?,
                    activation: config.activation,
                }),
            },
        })
    }
}

impl Mlp {
    fn forward_onto(&self, rows: &Tensor, residual: &Tensor, pause: Pause<'_>) -> Result<Tensor> {
        match self {
            Mlp::Gated(gated) => gated.forward_onto(rows, residual, pause),
            Mlp::Plain { first, second, activation } => in_steps(rows, residual, pause, |rows, residual| {
                second.forward_onto(&first.forward_inner(rows, Some(*activation))?, Some(residual))
            }),
        }
    }
}

/// The order of patches in the layers, and the sequences within which they attend.
struct Layout {
    /// Row and column of each patch, in the layers' order.
    places: Vec<[usize; 2]>,
    /// Patches of each temporal patch.
    full: Vec<usize>,
    windows: Option<Windows>,
    /// Patches of each window.
    windowed: Vec<usize>,
}

impl Layout {
    fn of(grids: &[Grid], config: &VisionConfig) -> Layout {
        let mut places = Vec::new();
        for grid in grids {
            let once = grid.places(config.merge);
            (0..grid.frames).for_each(|_| places.extend_from_slice(&once));
        }
        let full = grids.iter().flat_map(|grid| std::iter::repeat_n(grid.area(), grid.frames)).collect();
        let windows = config.windows.as_ref().map(|it| Windows::of(grids, config.merge, it.side));
        let merged = config.merged();
        let mut windowed = Vec::new();
        if let Some(windows) = &windows {
            let of_token = |token: &u32| places[*token as usize * merged..][..merged].to_vec();
            places = windows.order.iter().flat_map(of_token).collect();
            windowed.extend(windows.lengths.iter().map(|tokens| tokens * merged));
        }
        Layout { places, full, windows, windowed }
    }

    /// The sequences of layer `at`, in patches.
    fn lengths(&self, config: &VisionConfig, at: usize) -> &[usize] {
        match &config.windows {
            Some(windows) if !windows.full_layers.contains(&at) => &self.windowed,
            _ => &self.full,
        }
    }

    /// (patches, width) in the layers' order.
    fn arranged(&self, x: &Tensor, merged: usize) -> Result<Tensor> {
        let Some(windows) = &self.windows else { return Ok(x.clone()) };
        let (patches, width) = x.dims2()?;
        let tokens = x.reshape((patches / merged, merged * width))?;
        let order = Tensor::new(&windows.order[..], x.device())?;
        tokens.index_select(&order, 0)?.reshape((patches, width))
    }

    /// (tokens, output) in the inputs' order.
    fn restored(&self, features: &Tensor) -> Result<Tensor> {
        let Some(windows) = &self.windows else { return Ok(features.clone()) };
        features.index_select(&Tensor::new(&windows.inverse()[..], features.device())?, 0)
    }
}
