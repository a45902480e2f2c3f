//! Where a command that loads a model by itself has it run.

use clap::Args;
use reprise_encoders::{DeviceChoice, LoadError, LoadOptions, Loaded, ModelName, Precision, load_with};

/// A device and what it multiplies in.
#[derive(Debug, Clone, Copy, Args)]
pub struct ComputeArgs {
    /// Where the model runs: auto (the first GPU if there is one, else the CPU), cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Numbers that the model multiplies in: f32; on a CPU int8 where it has AVX-512 VNNI; on a GPU bf16 or f16. Another
    /// makes another space
    #[arg(long, env = "REPRISE_PRECISION", default_value = "f32")]
    precision: Precision,
}

impl ComputeArgs {
    /// The model with one encoder.
    ///
    /// # Errors
    /// It does not load, or the device does not multiply so.
    pub fn load(&self, model: &ModelName) -> Result<Loaded, LoadError> {
        let ComputeArgs { device, precision } = *self;
        load_with(model, &LoadOptions { devices: vec![device], precision, ..LoadOptions::default() })
    }
}
