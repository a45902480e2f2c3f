//! Training of the sports family: losses, optimiser, training loop with checkpoints, and stages. Takes clips,
//! labels and texts as values; reads no CSV.
//!
//! Stage 0 ([`frames`]) trains the frame encoder on single frames with the renderer's exact labels. Stage 1
//! ([`clips`]) trains the temporal transformer on cached frame features. Stage 2 ([`composed`]) trains the text
//! transformer and the fusion on frozen clip vectors. Stages 1 and 2 are TF-CoVR's (arXiv 2506.05274). Stage 0
//! makes them affordable on a CPU.
//!
//! The random draws of a step depend on seed, step and shard alone. So a run resumed from a checkpoint ends
//! with the same bits as an uninterrupted one.

use std::path::PathBuf;

use reprise_encoders::{Cause, EncodeError, LoadError, video::VideoError};

pub mod augment;
pub mod clips;
pub mod composed;
mod curve;
pub mod embeddings;
pub mod examples;
pub mod features;
pub mod folder;
pub mod footage;
pub mod frames;
pub mod loss;
mod optimizer;
mod random;
mod run;
pub(crate) mod store;
pub mod vocabulary;

pub use random::Random;
pub use run::{Progress, Settings};

#[cfg(test)]
mod tests;

/// Why a training ended early.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The training data can't be used; the caller's fault.
    #[error("the training data can't be used: {0}")]
    Data(#[source] Cause),
    /// A file can't be read or written.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        #[source]
        why: Cause,
    },
    /// The picture of the loss can't be drawn or written.
    #[error("the picture of the loss can't be written")]
    Picture(#[source] anyhow::Error),
    /// The folder holds the checkpoint of a run with other data or settings.
    #[error("{path} is the checkpoint of a run with other data or settings; remove it, or write elsewhere")]
    OtherRun {
        /// Path of the checkpoint.
        path: PathBuf,
    },
    /// The loss is not finite; a lower learning rate may help.
    #[error("the loss is {loss} at step {step}; lower the learning rate")]
    Diverged {
        /// The failed step.
        step: usize,
        /// Its loss.
        loss: f32,
    },
    /// The progress function stopped the training; the checkpoint stays.
    #[error("stopped at step {step}; the same command goes on from the checkpoint")]
    Stopped {
        /// The first step that was not taken.
        step: usize,
    },
    /// A clip can't be decoded.
    #[error("a clip can't be decoded: {0}")]
    Video(#[from] VideoError),
    /// A frame can't be read by the model.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A model of an earlier stage can't be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The device failed, e.g. for lack of memory.
    #[error("the device failed: {0}")]
    Device(#[from] candle_core::Error),
}

impl TrainError {
    fn file(path: &std::path::Path, why: impl Into<Cause>) -> Self {
        TrainError::File { path: path.to_owned(), why: why.into() }
    }
}
