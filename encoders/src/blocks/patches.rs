//! Patch embedding: one linear layer makes a token of each square patch of a picture.

use candle_core::{Device, Result, Tensor};

use super::transformer::Linear;
use crate::LoadError;
use crate::loading::Weights;

/// A patch embedding.
#[derive(Debug)]
pub(crate) struct Patches {
    layer: Linear,
    device: Device,
    image: usize,
    patch: usize,
}

/// Side lengths of pictures and of patches, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) image: usize,
    pub(crate) patch: usize,
}

impl Sides {
    /// Patches along one side.
    pub(crate) fn grid(self) -> usize {
        self.image.checked_div(self.patch).unwrap_or(0)
    }

    /// # Errors
    /// [`LoadError::Unsupported`] if the patch side is 0 or exceeds the picture's.
    pub(crate) fn check(self) -> std::result::Result<(), LoadError> {
        match self.grid() {
            0 => Err(LoadError::Unsupported("a patch_size of 0 or over image_size".into())),
            _ => Ok(()),
        }
    }
}

impl Patches {
    /// Reads `{name}.weight` of (width, 3, patch, patch), and `{name}.bias` if it `has_bias`; `sides` must have passed
    /// [`Sides::check`].
    pub(crate) fn load(
        weights: &Weights,
        name: &str,
        width: usize,
        has_bias: bool,
        sides: Sides,
    ) -> std::result::Result<Self, LoadError> {
        let Sides { image, patch } = sides;
        let weight = weights.get(&format!("{name}.weight"), &[width, 3, patch, patch])?;
        let bias = has_bias.then(|| weights.get(&format!("{name}.bias"), &[width])).transpose()?;
        let layer = Linear::of_rows(weights.placement(), &weight.flatten_from(1)?, bias)?;
        Ok(Patches { layer, device: weights.placement().device().clone(), image, patch })
    }

    /// Maps pixels (pictures, 3, image, image), in one slice, to (pictures, patches, width).
    pub(crate) fn forward(&self, pixels: &[f32]) -> Result<Tensor> {
        let pictures = pixels.len() / (3 * self.image * self.image);
        let patches = cut(pixels, self.image, self.patch);
        let values = 3 * self.patch * self.patch;
        let rows = patches.len() / values;
        let patches = Tensor::from_vec(patches, (rows, values), &self.device)?;
        let embedded = self.layer.forward(&patches)?;
        let (rows, width) = embedded.dims2()?;
        embedded.reshape((pictures, rows / pictures, width))
    }
}

/// Square patches, row by row: each `3 * patch * patch` values, channel by channel. Drops the pixels right of and below
/// the last whole patch.
fn cut(pixels: &[f32], side: usize, patch: usize) -> Vec<f32> {
    let grid = side / patch;
    let mut patches = Vec::with_capacity(pixels.len());
    for picture in pixels.chunks_exact(3 * side * side) {
        for (top, left) in (0..grid * grid).map(|at| (at / grid * patch, at % grid * patch)) {
            for (channel, row) in (0..3 * patch).map(|at| (at / patch, at % patch)) {
                let start = (channel * side + top + row) * side + left;
                patches.extend_from_slice(&picture[start..start + patch]);
            }
        }
    }
    patches
}
