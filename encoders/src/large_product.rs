//! One large matrix product by the kernels that encoders use: what their speed is measured against.

use candle_core::{Result, Tensor};

use crate::EncodeError;
use crate::kernels::{PackedLinear, Precision};
use crate::load::device;

/// Rows and columns of each of the matrices: large enough that nothing but the multiplications counts.
pub const SIDE: usize = 2048;

/// A square product, ready to be multiplied.
#[derive(Debug)]
pub struct LargeProduct {
    rows: Tensor,
    weight: Tensor,
    /// The weight as encoders have it, where this machine is for kernels of our own.
    packed: Option<PackedLinear>,
}

impl LargeProduct {
    /// Of [`SIDE`] rows and columns, on the device that models are loaded onto, multiplied in `precision`.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] when the device fails.
    pub fn new(precision: Precision) -> std::result::Result<Self, EncodeError> {
        LargeProduct::of(precision).map_err(|error| EncodeError::Failed(error.to_string()))
    }

    fn of(precision: Precision) -> Result<Self> {
        let values =
            |salt: usize| (0..SIDE * SIDE).map(move |at| ((at * 7919 + salt) % 2003) as f32 / 1001.0 - 1.0);
        let matrix = |salt| Tensor::from_vec(values(salt).collect::<Vec<_>>(), (SIDE, SIDE), device());
        let weight = matrix(1)?;
        let packed = PackedLinear::new(&weight, None, precision)?;
        Ok(LargeProduct { rows: matrix(2)?, weight, packed })
    }

    /// Operations of one product, two for each multiplication.
    pub fn operations(&self) -> f64 {
        2.0 * (SIDE as f64).powi(3)
    }

    /// Whose loops multiply: `reprise` (kernels of our own) or `candle`.
    pub fn kernels(&self) -> &'static str {
        if self.packed.is_some() { "reprise" } else { "candle" }
    }

    /// Multiplies once; returns when the device is done.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] when the device fails.
    pub fn run(&self) -> std::result::Result<(), EncodeError> {
        self.product().map_err(|error| EncodeError::Failed(error.to_string()))
    }

    fn product(&self) -> Result<()> {
        match &self.packed {
            Some(packed) => packed.forward(&self.rows, None, None)?,
            None => self.rows.matmul(&self.weight)?,
        };
        device().synchronize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(precision: Precision) {
        let product = LargeProduct::new(precision).unwrap();
        product.run().unwrap();
        assert_eq!(product.operations(), 17_179_869_184.0);
        assert!(["reprise", "candle"].contains(&product.kernels()));
    }

    #[test]
    fn a_large_product_runs_in_every_precision() {
        check(Precision::F32);
        check(Precision::Int8);
    }
}
