//! Why an ingest ended without a result.

use reprise_encoders::EncodeError;
use reprise_encoders::video::VideoError;

use super::progress::Stop;
use crate::catalog::CatalogError;
use crate::storage::features::FeaturesError;

/// Why an ingest ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The video could not be decoded.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// A model could not encode it.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The features of its frames could not be kept or read.
    #[error(transparent)]
    Features(#[from] FeaturesError),
    /// The catalog could not be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The job was told to stop.
    #[error("stopped: {0:?}")]
    Stopped(Stop),
    /// A task panicked; ours.
    #[error("a part of the job panicked")]
    Panicked(#[from] tokio::task::JoinError),
    /// The video's file is not where it was stored.
    #[error("the stored file is gone: {0}")]
    FileGone(String),
}
