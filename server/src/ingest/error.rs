//! Errors of an ingest.

use reprise_encoders::EncodeError;
use reprise_encoders::screen_text::TesseractError;
use reprise_encoders::video::VideoError;

use crate::catalog::CatalogError;
use crate::storage::features::FeaturesError;

/// Reason to stop a job before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A user cancelled it.
    Cancelled,
    /// Another worker holds the lease, or the video is gone.
    Lost,
    /// The service is stopping.
    Closing,
}

/// Error of an ingest.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The video could not be decoded.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// A model failed to encode it.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Text on screen can't be read.
    #[error(transparent)]
    Reader(#[from] TesseractError),
    /// The features of its frames could not be written or read.
    #[error(transparent)]
    Features(#[from] FeaturesError),
    /// The catalog could not be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The segmentation cuts the video into too many clips; the caller's fault.
    #[error("the segmentation makes more than {most} clips of this video; ask for longer ones")]
    TooManyClips {
        /// The largest number of clips of one video.
        most: usize,
    },
    /// The job received a stop.
    #[error("stopped: {0:?}")]
    Stopped(Stop),
    /// A task panicked. This is a defect of the service.
    #[error("a part of the job panicked")]
    Panicked(#[from] tokio::task::JoinError),
    /// The video's file is missing.
    #[error("the stored file is gone: {0}")]
    FileGone(String),
}
