//! The pixels of pictures on their way into a vision tower: bytes until they are where the tower computes.

use candle_core::{DType, Device, Result, Tensor};
use rayon::prelude::*;

use crate::preprocess::Preprocessing;
use crate::{EncodeError, Frame};

/// Preprocessed pictures of one size.
#[derive(Debug)]
pub(crate) struct PixelBatch {
    /// `[pictures, side, side, 3]`.
    bytes: Vec<u8>,
    side: usize,
    /// Factor for the bytes; then subtracted, and the divisor, per channel.
    scale: f32,
    mean: [f32; 3],
    std: [f32; 3],
}

impl PixelBatch {
    /// Preprocesses frames, on all threads of the current pool.
    ///
    /// # Errors
    /// As [`Preprocessing::append`].
    ///
    /// # Panics
    /// If the crop is not square.
    pub(crate) fn new(
        preprocessing: &Preprocessing,
        frames: &[&Frame],
    ) -> std::result::Result<Self, EncodeError> {
        let Preprocessing { crop: (width, height), scale, mean, std, .. } = *preprocessing;
        assert_eq!(width, height, "towers read square pictures");
        let side = width as usize;
        let mut bytes = vec![0; frames.len() * side * side * 3];
        let one = |(frame, into): (&&Frame, &mut [u8])| preprocessing.crop_into(frame, into);
        let each = bytes.par_chunks_exact_mut(side * side * 3);
        frames.par_iter().zip(each).try_for_each(one)?;
        Ok(PixelBatch { bytes, side, scale, mean, std })
    }

    /// Number of pictures.
    pub(crate) fn pictures(&self) -> usize {
        self.bytes.len() / (self.side * self.side * 3)
    }

    /// Cuts square patches, row by row: (pictures * patches, 3 * patch * patch), channel by channel. Drops the pixels
    /// right of and below the last whole patch.
    pub(super) fn patches(&self, patch: usize, device: &Device) -> Result<Tensor> {
        let (grid, values) = (self.side / patch, 3 * patch * patch);
        let rows = self.pictures() * grid * grid;
        match device.is_cpu() {
            true => Tensor::from_vec(self.cut(patch), (rows, values), device),
            false => self.cut_on(patch, device),
        }
    }

    fn cut(&self, patch: usize) -> Vec<f32> {
        let (side, grid) = (self.side, self.side / patch);
        let tables: [[f32; 256]; 3] = std::array::from_fn(|channel| {
            let value = |byte: u8| (f32::from(byte) * self.scale - self.mean[channel]) / self.std[channel];
            std::array::from_fn(|byte| value(byte as u8))
        });
        let mut patches = vec![0.0; self.pictures() * grid * grid * 3 * patch * patch];
        let pictures = self.bytes.par_chunks_exact(side * side * 3);
        let each = patches.par_chunks_exact_mut((grid * grid * 3 * patch * patch).max(1));
        pictures.zip(each).for_each(|(picture, patches)| {
            for (at, patch_values) in patches.chunks_exact_mut(3 * patch * patch).enumerate() {
                let (top, left) = (at / grid * patch, at % grid * patch);
                for (line, values) in patch_values.chunks_exact_mut(patch).enumerate() {
                    let (channel, row) = (line / patch, line % patch);
                    let start = ((top + row) * side + left) * 3;
                    let pixels = picture[start..start + 3 * patch].chunks_exact(3);
                    for (value, pixel) in values.iter_mut().zip(pixels) {
                        *value = tables[channel][usize::from(pixel[channel])];
                    }
                }
            }
        });
        patches
    }

    /// As [`PixelBatch::cut`], by the device, which is sent the bytes: a quarter of the floats.
    fn cut_on(&self, patch: usize, device: &Device) -> Result<Tensor> {
        let (pictures, side, grid) = (self.pictures(), self.side, self.side / patch);
        let bytes = Tensor::from_slice(&self.bytes, (pictures, side, side, 3), device)?;
        let whole = bytes.narrow(1, 0, grid * patch)?.narrow(2, 0, grid * patch)?;
        let channels = |values: &[f32; 3]| Tensor::new(values, device);
        let values = whole.to_dtype(DType::F32)?.affine(f64::from(self.scale), 0.0)?;
        let values = values.broadcast_sub(&channels(&self.mean)?)?.broadcast_div(&channels(&self.std)?)?;
        let values =
            values.reshape(&[pictures, grid, patch, grid, patch, 3])?.permute(&[0, 1, 3, 5, 2, 4][..])?;
        values.reshape((pictures * grid * grid, 3 * patch * patch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameSize;
    use crate::preprocess::{Middle, Resampling};

    fn batch(side: u32, frames: usize) -> PixelBatch {
        let preprocessing = Preprocessing {
            size: FrameSize::Exact { width: side, height: side },
            resampling: Resampling::Bicubic,
            crop: (side, side),
            middle: Middle::Down,
            scale: 1.0 / 255.0,
            mean: [0.48, 0.46, 0.41],
            std: [0.27, 0.26, 0.28],
        };
        let frames: Vec<Frame> = (0..frames)
            .map(|number| {
                let rgb: Vec<u8> =
                    (0..side * side * 3).map(|at| (at * 7919 % 251) as u8 + number as u8).collect();
                Frame { time_ms: 0, width: side, height: side, rgb: rgb.into() }
            })
            .collect();
        PixelBatch::new(&preprocessing, &frames.iter().collect::<Vec<_>>()).unwrap()
    }

    /// Both ways to cut, beside the definition.
    #[track_caller]
    fn check(side: u32, patch: usize) {
        let batch = batch(side, 2);
        let (side, grid) = (side as usize, side as usize / patch);
        let (here, there) = (batch.cut(patch), batch.cut_on(patch, &Device::Cpu).unwrap());
        assert_eq!(there.dims(), [2 * grid * grid, 3 * patch * patch]);
        let there: Vec<f32> = there.flatten_all().unwrap().to_vec1().unwrap();
        assert_eq!(here, there, "on the CPU and by the device's operations");
        for (at, got) in here.iter().enumerate() {
            let (inside, rest) = (at % (patch * patch), at / (patch * patch));
            let (channel, rest) = (rest % 3, rest / 3);
            let (cell, picture) = (rest % (grid * grid), rest / (grid * grid));
            let row = cell / grid * patch + inside / patch;
            let column = cell % grid * patch + inside % patch;
            let byte = batch.bytes[((picture * side + row) * side + column) * 3 + channel];
            let expected = (f32::from(byte) / 255.0 - batch.mean[channel]) / batch.std[channel];
            assert!((got - expected).abs() < 1e-6, "{at}: {got} for {expected}");
        }
    }

    #[test]
    fn patches_are_cut_row_by_row_and_normalised_by_channel() {
        check(8, 4);
        // The last column and row are no whole patch.
        check(7, 3);
        check(5, 5);
    }
}
