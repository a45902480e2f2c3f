//! reprise-encoders: pixels and words to vectors.
//!
//! Decodes video, cuts it into clips, samples frames, and turns frames and texts into vectors of an
//! embedding space. Knows no HTTP (but for the model hub, in [`mod@load`]), no SQL and no index.
#![warn(missing_docs)]

pub mod batch;
pub mod corpus;
pub mod device;
pub mod encoder;
mod kernels;
pub mod large_product;
pub mod load;
pub mod models;
pub mod npy;
mod placement;
pub mod pool;
pub mod preprocess;
mod resize;
pub mod rows;
pub mod text;
pub mod train;
pub mod video;
mod weights;

pub use device::{DeviceChoice, UsableDevice, threads, usable_devices};
pub use encoder::{
    Abilities, Clip, EncodeError, Encoder, Frame, FrameSize, Input, Scaling, Source, Space, TrainedOn,
};
pub use load::{DEFAULT_MODEL, LoadError, LoadOptions, Loaded, ModelName, load, load_with};
pub use placement::Precision;
pub use pool::{Permit, Pool};
