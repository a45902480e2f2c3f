//! The device and precision of a command that loads a model itself.

use clap::Args;
use reprise_encoders::generator::Generator;
use reprise_encoders::{
    DeviceChoice, Embedder, LoadError, LoadOptions, ModelName, Precision, load_generator, load_with,
};

/// A device and the precision of its matrix products.
#[derive(Debug, Clone, Copy, Args)]
pub struct ComputeArgs {
    /// Device of the model: auto (the first GPU if there is one, else the CPU), cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Precision of matrix products: f32; on a CPU with AVX-512 VNNI also int8; on a GPU also bf16 or f16. Each
    /// precision is a space of its own
    #[arg(long, env = "REPRISE_PRECISION", default_value = "f32")]
    precision: Precision,
}

impl ComputeArgs {
    /// Loads the model with one encoder.
    ///
    /// # Errors
    /// The model does not load, or the device lacks the precision.
    pub fn load(&self, model: &ModelName) -> Result<Embedder, LoadError> {
        load_with(model, &self.options())
    }

    /// Loads the model to write texts.
    ///
    /// # Errors
    /// As [`ComputeArgs::load`], also for models that write no texts.
    pub fn load_generator(&self, model: &ModelName) -> Result<Box<dyn Generator>, LoadError> {
        load_generator(model, &self.options())
    }

    fn options(&self) -> LoadOptions {
        let ComputeArgs { device, precision } = *self;
        LoadOptions { devices: vec![device], precision, ..LoadOptions::default() }
    }
}
