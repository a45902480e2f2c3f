//! reprise-encoders: vectors of video frames and texts.
//!
//! Decodes video, cuts it into clips, samples frames, and encodes frames and texts in an embedding space. Uses no SQL,
//! no index, and no HTTP except for the model hub in `hub`.
#![warn(missing_docs)]

mod area;
pub mod batch;
mod blocks;
mod cause;
mod cores;
pub mod corpus;
mod device;
pub mod encoder;
pub mod families;
pub mod generator;
mod hub;
mod kernels;
pub mod large_product;
mod loading;
pub mod pool;
pub mod preprocess;
mod random;
pub mod registry;
mod resize;
pub mod sample;
pub mod screen_text;
pub mod speech;
pub mod text;
pub mod transcriber;
pub mod video;
mod wide;

pub use area::{Lift, SizeRule};
pub use cause::{Cause, with_causes};
pub use cores::{OneCore, on_cores};
pub use device::{DeviceChoice, Placement, Precision, PrecisionError, UsableDevice, threads, usable_devices};
pub use encoder::{
    Abilities, Clip, EncodeError, Encoder, Frame, FrameSize, Input, Scaling, Source, Space, TrainedOn,
};
pub use hub::{CachedModel, Repository, cached_models};
pub use loading::{
    DEFAULT_MODEL, DownloadProgress, Downloaded, Embedder, LoadError, LoadOptions, ModelFiles, ModelName,
};
pub use pool::{Permit, Pool};
pub use registry::{load, load_generator, load_transcriber, load_with};
