//! Errors of an ingest.

use reprise_encoders::EncodeError;
use reprise_encoders::video::VideoError;

use super::progress::Stop;
use crate::catalog::CatalogError;
use crate::storage::features::FeaturesError;

/// Error of an ingest.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The video could not be decoded.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// A model failed to encode it.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The features of its frames could not be written or read.
    #[error(transparent)]
    Features(#[from] FeaturesError),
    /// The catalog could not be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
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
