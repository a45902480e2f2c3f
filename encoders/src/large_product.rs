//! One large matrix product with the encoders' kernels: the reference for their speed.

use candle_core::{Result, Tensor};

use crate::blocks::layers::Linear;
use crate::device::{self, Placement, Precision};
use crate::{DeviceChoice, EncodeError, LoadError};

/// Rows and columns of each matrix: large enough that the multiplications dominate.
pub const SIDE: usize = 2048;

/// A square matrix product.
#[derive(Debug)]
pub struct LargeProduct {
    rows: Tensor,
    /// The same kind of layer as inside towers.
    layer: Linear,
}

impl LargeProduct {
    /// A product with [`SIDE`] rows and columns on the device of `choice`, in `precision`.
    ///
    /// # Errors
    /// [`LoadError::Precision`] if the device does not support it, [`LoadError::Device`] if the device fails.
    pub fn new(choice: DeviceChoice, precision: Precision) -> std::result::Result<Self, LoadError> {
        let (device, _) = device::open(&[choice]);
        let placement = Placement::new(device, precision)?;
        let values =
            |salt: usize| (0..SIDE * SIDE).map(move |at| ((at * 7919 + salt) % 2003) as f32 / 1001.0 - 1.0);
        let matrix =
            |salt| Tensor::from_vec(values(salt).collect::<Vec<_>>(), (SIDE, SIDE), placement.device());
        let rows = matrix(2)?.to_dtype(placement.float())?;
        Ok(LargeProduct { rows, layer: Linear::without_bias(&placement, &matrix(1)?)? })
    }

    /// Floating-point operations of one product, two per multiplication.
    pub fn operations(&self) -> f64 {
        2.0 * (SIDE as f64).powi(3)
    }

    /// The implementation in use: `reprise` (our kernels) or `candle`.
    pub fn kernels(&self) -> &'static str {
        match self.layer {
            Linear::Packed(_) => "reprise",
            Linear::Plain(_) => "candle",
        }
    }

    /// Multiplies once; returns when the device has finished.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] if the device fails.
    pub fn run(&self) -> std::result::Result<(), EncodeError> {
        self.product().map_err(|error| EncodeError::Failed(error.into()))
    }

    fn product(&self) -> Result<()> {
        self.layer.forward_inner(&self.rows, None)?;
        self.rows.device().synchronize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(precision: Precision) {
        let product = LargeProduct::new(DeviceChoice::Cpu, precision).unwrap();
        product.run().unwrap();
        assert_eq!(product.operations(), 17_179_869_184.0);
        assert!(["reprise", "candle"].contains(&product.kernels()));
    }

    #[test]
    fn a_large_product_runs_in_every_precision() {
        check(Precision::F32);
        check(Precision::Int8);
        check(Precision::Bf16);
    }
}
