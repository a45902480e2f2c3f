//! The vision transformer (arXiv 2010.11929) of the families with a picture tower; configuration expresses differences.
//!
//! Its tensors have the names of Hugging Face's CLIP; other families rename theirs first.

use candle_core::{Result, Tensor};
use serde::Serialize;

use super::patches::{Patches, Sides};
use super::pixels::PixelBatch;
use super::transformer::{AttentionMask, AttentionPool, LayerNorm, Linear, Rotary, Shape, Transformer};
use crate::LoadError;
use crate::loading::Weights;

/// Name of the patch embedding layer.
pub(crate) const PATCHES: &str = "vision_model.embeddings.patch_embedding";
/// Name of the patch embedding's weight.
pub(crate) const PATCHES_WEIGHT: &str = "vision_model.embeddings.patch_embedding.weight";
/// Name of the temporal embedding, (frames, width), for towers that read a clip as one sequence.
pub(crate) const TIMES: &str = "vision_model.embeddings.temporal_embedding";

/// Upper bound on the frames of a clip.
const MOST_FRAMES: usize = 1024;

/// Dimensions and variants of a vision tower.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) sides: Sides,
    pub(crate) blocks: Shape,
    /// Values per vector.
    pub(crate) dim: usize,
    /// Whether the patch embedding has a bias.
    pub(crate) patch_bias: bool,
    /// Whether a learnt class token, with a position of its own, precedes the patches.
    pub(crate) class_token: bool,
    /// Whether a layer norm precedes the blocks.
    pub(crate) norm_before: bool,
    /// Rotary position embedding, in addition to the learnt positions.
    pub(crate) rotary: Option<Grid>,
    pub(crate) pooling: Pooling,
    pub(crate) projection: Projection,
    /// Frames per clip if a clip is one sequence: a class token, then the patches of all frames.
    pub(crate) joint_frames: Option<usize>,
}

/// How the tokens of a picture become one vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pooling {
    /// The class token.
    ClassToken,
    /// Attention pooling with `heads` heads and an MLP of hidden size `inner`.
    Attention { heads: usize, inner: usize, activation: super::transformer::Activation },
}

/// The output projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Projection {
    /// None: vectors have the tower's hidden size.
    None,
    /// Without a bias.
    Plain,
    /// With a bias.
    Biased,
}

impl Projection {
    /// Floating-point operations for one vector.
    pub(super) fn operations(self, width: usize, dim: usize) -> f64 {
        match self {
            Projection::None => 0.0,
            Projection::Plain | Projection::Biased => 2.0 * width as f64 * dim as f64,
        }
    }

    /// Reads `{name}.weight` of (dim, width), and `{name}.bias` if there is one.
    ///
    /// # Errors
    /// [`LoadError`] for other shapes, or if there is no projection and `dim` differs from `width`.
    pub(super) fn load(
        self,
        weights: &Weights,
        name: &str,
        width: usize,
        dim: usize,
    ) -> std::result::Result<Option<Linear>, LoadError> {
        match self {
            Projection::None if width == dim => Ok(None),
            Projection::None => Err(LoadError::Unsupported(
                format!("a tower of {width} values and no projection to the vectors' {dim}").into(),
            )),
            Projection::Plain => Linear::load_without_bias(weights, name, width, dim).map(Some),
            Projection::Biased => Linear::load(weights, name, width, dim).map(Some),
        }
    }
}

/// The grid of a two-dimensional rotary position embedding. Rows and columns each rotate half of a head's values, with
/// wavelengths from 2 pi up to 2 pi times 10,000.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Grid {
    /// Patches along one side in pretraining; coordinates are scaled to this range.
    pub(crate) reference: usize,
    /// Added to each row and column index before scaling.
    pub(crate) offset: f32,
    /// Whether columns rotate the first half of a head's values and rows the second; otherwise the reverse.
    pub(crate) columns_first: bool,
}

impl Grid {
    /// Angles of `before` tokens without a position (all 0), then of `patches * patches` patches: `size / 2` each.
    fn angles(self, patches: usize, before: usize, size: usize) -> Vec<f32> {
        let bands = size / 4;
        let frequency = |band: usize| 1.0 / 10_000_f32.powf(band as f32 / bands as f32);
        let place = |at: usize| (at as f32 + self.offset) / patches as f32 * self.reference as f32;
        let mut angles = vec![0.0; before * 2 * bands];
        for (row, column) in (0..patches * patches).map(|at| (place(at / patches), place(at % patches))) {
            let axes = if self.columns_first { [column, row] } else { [row, column] };
            angles.extend(axes.iter().flat_map(|place| (0..bands).map(move |band| place * frequency(band))));
        }
        angles
    }
}

/// One tower.
#[derive(Debug)]
pub(crate) struct VisionTransformer {
    config: Config,
    patches: Patches,
    /// (1, 1, width).
    class: Option<Tensor>,
    /// (tokens, width).
    positions: Tensor,
    /// (frames, 1, width).
    times: Option<Tensor>,
    norm_before: Option<LayerNorm>,
    blocks: Transformer,
    norm_after: LayerNorm,
    attention: Option<AttentionPool>,
    projection: Option<Linear>,
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for impossible dimensions.
    pub(crate) fn check(&self) -> std::result::Result<(), LoadError> {
        self.blocks.check()?;
        self.sides.check()?;
        let unsupported = |what: &str| Err(LoadError::Unsupported(what.into()));
        if self.frames().is_some_and(|frames| !(1..=MOST_FRAMES).contains(&frames)) {
            return unsupported("num_frames is out of range");
        }
        if self.joint_frames.is_some() && (!self.class_token || self.rotary.is_some()) {
            return unsupported("clips as one sequence without a class token or with rotary positions");
        }
        if self.dim == 0 {
            return unsupported("a projection_dim of 0");
        }
        if self.rotary.is_some() && !(self.blocks.width / self.blocks.heads).is_multiple_of(4) {
            return unsupported("rotary positions need heads of a multiple of 4 values");
        }
        match self.pooling {
            Pooling::Attention { heads, inner, activation } => {
                Shape { heads, inner, activation, ..self.blocks }.check()
            }
            Pooling::ClassToken if !self.class_token => {
                unsupported("pooling by a class token that is not there")
            }
            Pooling::ClassToken => Ok(()),
        }
    }

    /// Tokens of one picture.
    pub(crate) fn tokens(&self) -> usize {
        self.sides.grid() * self.sides.grid() + usize::from(self.class_token)
    }

    /// Pictures per clip; `None` if the tower encodes each picture alone.
    fn frames(&self) -> Option<usize> {
        self.blocks.extras.frames.or(self.joint_frames)
    }

    /// Floating-point operations of one picture's matrix products.
    pub(crate) fn operations(&self) -> f64 {
        let (width, tokens) = (self.blocks.width as f64, self.tokens() as f64);
        let pictures = self.joint_frames.unwrap_or(1);
        let sequence =
            pictures * (self.tokens() - usize::from(self.class_token)) + usize::from(self.class_token);
        let pixels = (3 * (self.sides.grid() * self.sides.patch).pow(2)) as f64;
        let pooling = match self.pooling {
            Pooling::ClassToken => 0.0,
            // One query attends to keys and values of all tokens; an MLP follows.
            Pooling::Attention { inner, .. } => {
                4.0 * width * ((tokens + 0.5) * width + tokens + inner as f64)
            }
        };
        2.0 * pixels * width
            + self.blocks.operations(sequence) / pictures as f64
            + pooling
            + self.projection.operations(self.blocks.width, self.dim)
    }
}

fn times(weights: &Weights, frames: usize, width: usize) -> std::result::Result<Tensor, LoadError> {
    Ok(weights.get(TIMES, &[frames, width])?.reshape((frames, 1, width))?)
}

impl VisionTransformer {
    /// Reads a tower; `config` must have passed [`Config::check`].
    ///
    /// # Errors
    /// [`LoadError`] for missing tensors or wrong shapes.
    pub(crate) fn load(config: Config, weights: &Weights) -> std::result::Result<Self, LoadError> {
        let Shape { width, heads, epsilon, .. } = config.blocks;
        let get = |name: &str, shape: &[usize]| weights.get(name, shape);
        let norm = |name: &str| LayerNorm::load(weights, name, width, epsilon);
        let class = || -> std::result::Result<Tensor, LoadError> {
            Ok(get("vision_model.embeddings.class_embedding", &[width])?.reshape((1, 1, width))?)
        };
        let mut blocks = Transformer::load(weights, "vision_model.encoder.layers", config.blocks)?;
        if let Some(grid) = config.rotary {
            let before = usize::from(config.class_token);
            let angles = grid.angles(config.sides.grid(), before, width / heads);
            blocks = blocks.rotated(&Rotary::new(&angles, config.tokens(), weights.placement().device())?);
        }
        let attention = match config.pooling {
            Pooling::Attention { heads, inner, activation } => {
                let extras = super::transformer::Extras::default();
                let shape = Shape { heads, inner, activation, extras, ..config.blocks };
                Some(AttentionPool::load(weights, "vision_model.head", shape)?)
            }
            Pooling::ClassToken => None,
        };
        Ok(VisionTransformer {
            patches: Patches::load(weights, PATCHES, width, config.patch_bias, config.sides)?,
            class: config.class_token.then(class).transpose()?,
            positions: get("vision_model.embeddings.position_embedding.weight", &[config.tokens(), width])?,
            times: config.joint_frames.map(|frames| times(weights, frames, width)).transpose()?,
            // The format's own misspelling.
            norm_before: config.norm_before.then(|| norm("vision_model.pre_layrnorm")).transpose()?,
            blocks,
            norm_after: norm("vision_model.post_layernorm")?,
            attention,
            projection: config.projection.load(weights, "visual_projection", width, config.dim)?,
            config,
        })
    }

    /// Tokens of one picture.
    pub(crate) fn tokens(&self) -> usize {
        self.config.tokens()
    }

    /// Floating-point operations of one picture's matrix products.
    pub(crate) fn operations(&self) -> f64 {
        self.config.operations()
    }

    /// Pictures per clip; `None` if the tower encodes each picture alone.
    pub(crate) fn frames(&self) -> Option<usize> {
        self.config.frames()
    }

    /// Whether a clip is one sequence.
    pub(crate) fn is_joint(&self) -> bool {
        self.config.joint_frames.is_some()
    }

    /// Values per vector.
    pub(crate) fn dim(&self) -> usize {
        self.config.dim
    }

    /// (pictures, dim). A tower with [`VisionTransformer::frames`]
    /// gives (clips, dim); without a joint sequence, a clip's vector is the mean of its pictures' vectors.
    pub(crate) fn forward(&self, pixels: &PixelBatch) -> Result<Tensor> {
        let x = self.before_norm(pixels)?;
        let pooled = match &self.attention {
            Some(pool) => pool.forward(&self.norm_after.forward(&x)?)?,
            None => self.norm_after.forward(&x.narrow(1, 0, 1)?.squeeze(1)?)?,
        };
        let rows = self.projection.as_ref().map_or(Ok(pooled.clone()), |last| last.forward(&pooled))?;
        let Some(frames) = self.config.blocks.extras.frames else { return Ok(rows) };
        let (pictures, dim) = rows.dims2()?;
        rows.reshape((pictures / frames, frames, dim))?.mean(1)
    }

    /// (pictures, tokens, width): all tokens after the last layer norm.
    pub(crate) fn hidden(&self, pixels: &PixelBatch) -> Result<Tensor> {
        self.norm_after.forward(&self.before_norm(pixels)?)
    }

    /// (sequences, tokens, width).
    fn before_norm(&self, pixels: &PixelBatch) -> Result<Tensor> {
        let patches = self.patches.forward(pixels)?;
        let mut x = match (&self.times, &self.class) {
            (Some(times), Some(class)) => self.joint(&patches, times, class)?,
            (_, Some(class)) => {
                let (pictures, _, width) = patches.dims3()?;
                let class = class.broadcast_as((pictures, 1, width))?;
                Tensor::cat(&[&class, &patches], 1)?.broadcast_add(&self.positions)?
            }
            (_, None) => patches.broadcast_add(&self.positions)?,
        };
        if let Some(norm) = &self.norm_before {
            x = norm.forward(&x)?;
        }
        self.blocks.forward(x, AttentionMask::All)
    }

    /// Joins (pictures, patches, width) to (clips, 1 + frames * patches, width).
    fn joint(&self, patches: &Tensor, times: &Tensor, class: &Tensor) -> Result<Tensor> {
        let ((pictures, count, width), frames) = (patches.dims3()?, times.dim(0)?);
        let clips = pictures / frames;
        let x = patches.broadcast_add(&self.positions.narrow(0, 1, count)?)?;
        let x = x.reshape((clips, frames, count, width))?.broadcast_add(times)?;
        let first = class.broadcast_add(&self.positions.narrow(0, 0, 1)?)?;
        let first = first.broadcast_as((clips, 1, width))?;
        Tensor::cat(&[&first, &x.reshape((clips, frames * count, width))?], 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the angles of the first token, which has no position, and of the third of 2 by 2 patches; head size 8.
    #[track_caller]
    fn check(grid: Grid, expected: [f32; 4]) {
        let angles = grid.angles(2, 1, 8);
        assert_eq!((angles.len(), &angles[..4]), (5 * 4, &[0.0; 4][..]));
        let off = angles[12..16].iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-6, "{angles:?}");
    }

    #[test]
    fn places_are_stretched_to_those_that_the_model_learnt_with() {
        let grid = Grid { reference: 2, offset: 0.0, columns_first: false };
        check(grid, [1.0, 0.01, 0.0, 0.0]);
        check(Grid { reference: 8, ..grid }, [4.0, 0.04, 0.0, 0.0]);
        check(Grid { columns_first: true, ..grid }, [0.0, 0.0, 1.0, 0.01]);
        check(Grid { offset: 1.0, ..grid }, [2.0, 0.02, 1.0, 0.01]);
    }
}
