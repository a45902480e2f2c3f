//! Patch embedding: one linear layer makes a token of each square patch of a picture.

use candle_core::{Device, Result, Tensor};

use super::pixels::PixelBatch;
use super::transformer::Linear;
use crate::LoadError;
use crate::loading::Weights;

/// A patch embedding.
#[derive(Debug)]
pub(crate) struct Patches {
    layer: Linear,
    device: Device,
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
        let patch = sides.patch;
        let weight = weights.get(&format!("{name}.weight"), &[width, 3, patch, patch])?;
        let bias = has_bias.then(|| weights.get(&format!("{name}.bias"), &[width])).transpose()?;
        let layer = Linear::of_pixels(weights.placement(), &weight.flatten_from(1)?, bias)?;
        Ok(Patches { layer, device: weights.placement().device().clone(), patch })
    }

    /// Maps pictures to (pictures, patches, width).
    pub(crate) fn forward(&self, pixels: &PixelBatch) -> Result<Tensor> {
        let embedded = self.layer.forward(&pixels.patches(self.patch, &self.device)?)?;
        let ((rows, width), pictures) = (embedded.dims2()?, pixels.pictures());
        embedded.reshape((pictures, rows / pictures, width))
    }
}
