//! Where a model's layers run and in which numbers they multiply.

use candle_core::{DType, Device};

use super::choice::name;
use super::precision::{Precision, PrecisionError};
use crate::kernels::Processor;

/// Where a model's tensors lie, and how its layers multiply.
///
/// What goes into layers and comes out is in 32-bit floats in any case, and so are norms, residuals and the layers at
/// either end of a tower.
#[derive(Debug, Clone)]
pub struct Placement {
    device: Device,
    precision: Precision,
    /// Whose kernels multiply; `None`: candle's operations do.
    processor: Option<Processor>,
}

impl Default for Placement {
    /// On the CPU, in 32-bit floats.
    fn default() -> Self {
        Placement::on_cpu(Precision::F32)
    }
}

impl Placement {
    /// # Errors
    /// [`PrecisionError`] where this kind of device does not multiply in these numbers.
    pub(crate) fn new(device: Device, precision: Precision) -> Result<Self, PrecisionError> {
        let why = match (device.is_cpu(), precision) {
            (true, Precision::F32 | Precision::Int8) => return Ok(Placement::on_cpu(precision)),
            (false, Precision::F32 | Precision::Bf16 | Precision::F16) => {
                return Ok(Placement { device, precision, processor: None });
            }
            (true, Precision::Bf16 | Precision::F16) => {
                "halves of floats are faster on a GPU alone, a CPU without AMX takes longer for them; give f32 or int8"
            }
            (false, Precision::Int8) => {
                "bytes are multiplied on the CPU alone; give bf16, f16 or f32, or the CPU as the device"
            }
        };
        Err(PrecisionError { precision, device: name(&device), why })
    }

    /// What a device multiplies in.
    pub(crate) fn precisions(device: &Device) -> Vec<Precision> {
        let can = |precision: &Precision| Placement::new(device.clone(), *precision).is_ok();
        Precision::ALL.into_iter().filter(can).collect()
    }

    fn on_cpu(precision: Precision) -> Self {
        Placement { device: Device::Cpu, precision, processor: Processor::detect() }
    }

    /// As layers run on a GPU, but on the CPU: by candle's operations, in half floats too.
    #[cfg(test)]
    pub(crate) fn as_on_a_gpu(precision: Precision) -> Self {
        Placement { device: Device::Cpu, precision, processor: None }
    }

    /// The same place, in 32-bit floats.
    pub(crate) fn in_f32(&self) -> Self {
        Placement { precision: Precision::F32, ..self.clone() }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// The processor whose kernels multiply; `None`: candle's operations do, on tensors of [`Placement::float`].
    pub(crate) fn processor(&self) -> Option<Processor> {
        self.processor
    }

    /// The type of weights that candle's operations multiply.
    pub(crate) fn float(&self) -> DType {
        match self.precision {
            Precision::F32 | Precision::Int8 => DType::F32,
            Precision::Bf16 => DType::BF16,
            Precision::F16 => DType::F16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, on_the_cpu: Result<&str, &str>) {
        let placed = name
            .parse()
            .map_err(|why: String| why)
            .and_then(|precision| Placement::new(Device::Cpu, precision).map_err(|error| error.to_string()));
        match (placed, on_the_cpu) {
            (Ok(placement), Ok(expected)) => assert_eq!(placement.precision().name(), expected),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn what_a_cpu_does_not_multiply_in_is_an_error_that_says_why() {
        check("f32", Ok("f32"));
        check("int8", Ok("int8"));
        check(
            "bf16",
            Err("models can't multiply in bf16 on cpu: halves of floats are faster on a GPU alone"),
        );
        check("f16", Err("give f32 or int8"));
        check("fp16", Err("give f32, int8, bf16 or f16"));
    }
}
