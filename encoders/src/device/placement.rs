//! The device and precision of a model's layers.

use candle_core::{DType, Device};

use super::choice::name;
use super::precision::{Precision, PrecisionError};
use crate::kernels::Processor;

/// The device of a model's tensors, and the precision of its matrix products.
///
/// Inputs and outputs of layers are always f32, and so are norms, residuals and the first and last layers of a tower. Only
/// patches are multiplied in bf16 where kernels run a model of bf16 or int8.
#[derive(Debug, Clone)]
pub struct Placement {
    device: Device,
    precision: Precision,
    /// The processor whose kernels run the products; `None`: candle's operations run them.
    processor: Option<Processor>,
}

impl Default for Placement {
    /// The CPU, in f32.
    fn default() -> Self {
        Placement::on_cpu(Precision::F32)
    }
}

impl Placement {
    /// # Errors
    /// [`PrecisionError`] if the device does not support the precision.
    pub(crate) fn new(device: Device, precision: Precision) -> Result<Self, PrecisionError> {
        let why = match (device.is_cpu(), precision) {
            (true, Precision::F32 | Precision::Int8 | Precision::Bf16) => {
                return Ok(Placement::on_cpu(precision));
            }
            (false, Precision::F32 | Precision::Bf16 | Precision::F16) => {
                return Ok(Placement { device, precision, processor: None });
            }
            (true, Precision::F16) => {
                "16-bit floats of IEEE 754 are multiplied on a GPU alone; give bf16, int8 or f32"
            }
            (false, Precision::Int8) => {
                "bytes are multiplied on the CPU alone; give bf16, f16 or f32, or the CPU as the device"
            }
        };
        Err(PrecisionError { precision, device: name(&device), why })
    }

    /// The precisions that a device supports.
    pub(crate) fn precisions(device: &Device) -> Vec<Precision> {
        let can = |precision: &Precision| Placement::new(device.clone(), *precision).is_ok();
        Precision::ALL.into_iter().filter(can).collect()
    }

    fn on_cpu(precision: Precision) -> Self {
        Placement { device: Device::Cpu, precision, processor: Processor::detect() }
    }

    /// A GPU's code path on the CPU: candle's operations, also in half precision.
    #[cfg(test)]
    pub(crate) fn as_on_a_gpu(precision: Precision) -> Self {
        Placement { device: Device::Cpu, precision, processor: None }
    }

    /// The same device, in f32.
    pub(crate) fn in_f32(&self) -> Self {
        Placement { precision: Precision::F32, ..self.clone() }
    }

    /// The same device, for the layer that reads pixels: in bf16 if the model [is reduced](Placement::is_reduced), as pixels
    /// have eight bits; else in f32.
    pub(crate) fn for_pixels(&self) -> Self {
        match self.is_reduced() {
            true => Placement { precision: Precision::Bf16, ..self.clone() },
            false => self.in_f32(),
        }
    }

    /// Whether kernels run the model in bf16 or int8. Patches and the attention of towers are then multiplied in bf16,
    /// but for Qwen-VL's attention.
    pub(crate) fn is_reduced(&self) -> bool {
        self.processor.is_some() && matches!(self.precision, Precision::Bf16 | Precision::Int8)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// The processor whose kernels run the products; `None`: candle runs them, on tensors of [`Placement::float`].
    pub(crate) fn processor(&self) -> Option<Processor> {
        self.processor
    }

    /// The type of weights in candle's operations.
    pub(crate) fn float(&self) -> DType {
        match self.precision {
            Precision::F32 | Precision::Int8 => DType::F32,
            // candle multiplies no bf16 on a CPU.
            Precision::Bf16 if self.device.is_cpu() => DType::F32,
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
        check("bf16", Ok("bf16"));
        check(
            "f16",
            Err(
                "models can't multiply in f16 on cpu: 16-bit floats of IEEE 754 are multiplied on a GPU alone",
            ),
        );
        check("f16", Err("give bf16, int8 or f32"));
        check("fp16", Err("give f32, int8, bf16 or f16"));
    }
}
