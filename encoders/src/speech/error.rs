//! Why speech was not written down.

use crate::EncodeError;
use crate::video::VideoError;

/// Why a transcription failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TranscribeError {
    /// The file can't be read.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// The transcriber refuses the options, or failed.
    #[error(transparent)]
    Model(#[from] EncodeError),
}
