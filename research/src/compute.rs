//! The device and precision of a command that loads a model itself.

use clap::Args;
use reprise_encoders::generator::Generator;
use reprise_encoders::transcriber::Transcriber;
use reprise_encoders::{
    DeviceChoice, Embedder, LoadError, LoadOptions, ModelName, Precision, load_generator, load_transcriber,
    load_with,
};

/// A device and the precision of its matrix products.
#[derive(Debug, Clone, Copy, Args)]
pub struct ComputeArgs {
    /// Device of the model: auto (the first GPU if there is one, else the CPU), cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceChoice::Auto)]
    device: DeviceChoice,
    /// Precision of matrix products: f32; on a CPU also int8 (fastest with AVX-512 VNNI) or bf16 (fast with AMX or AMD's
    /// AVX512-BF16); on a GPU also bf16 or f16. Each precision is a space of its own
    #[arg(long, env = "REPRISE_PRECISION", default_value = "f32")]
    precision: Precision,
}

/// What models that read take of a video. Each setting makes a space of its own.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct FrameArgs {
    /// Frames per second that the model samples [default: 2 for image models, 1 for models that read]
    #[arg(long, value_name = "RATE", value_parser = LoadOptions::parse_frame_rate)]
    pub frames_per_second: Option<f64>,
    /// Most frames of a clip for models that read, 1 to 64 [default: 64; 32 for CARE]
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub frames_per_clip: Option<u8>,
    /// Values of a vector, for models trained for shorter ones (Qwen3-VL-Embedding) [default: all]
    #[arg(long, value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub dim: Option<u32>,
    /// How large frames are.
    #[command(flatten)]
    pub size: FrameSizeArgs,
}

/// How large the frames are that models that read take.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct FrameSizeArgs {
    /// Largest area of a frame, in pixels, for models that read [default: that of the model's paper]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u64).range(1024..=16_777_216))]
    pub max_pixels: Option<u64>,
}

impl ComputeArgs {
    /// Loads the model with one encoder and these frames.
    ///
    /// # Errors
    /// As [`ComputeArgs::load`].
    pub fn load_with(&self, model: &ModelName, frames: &FrameArgs) -> Result<Embedder, LoadError> {
        let FrameArgs { frames_per_second, frames_per_clip, dim, size: FrameSizeArgs { max_pixels } } =
            *frames;
        let (frames_per_clip, dim) = (frames_per_clip.map(usize::from), dim.map(|dim| dim as usize));
        let options = self.options();
        load_with(model, &LoadOptions { frames_per_second, frames_per_clip, max_pixels, dim, ..options })
    }

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

    /// Loads the model to write down speech.
    ///
    /// # Errors
    /// As [`ComputeArgs::load`], also for models that write down no speech.
    pub fn load_transcriber(&self, model: &ModelName) -> Result<Box<dyn Transcriber>, LoadError> {
        load_transcriber(model, &self.options())
    }

    fn options(&self) -> LoadOptions {
        let ComputeArgs { device, precision } = *self;
        LoadOptions { devices: vec![device], precision, ..LoadOptions::default() }
    }
}
