//! Why a job did not succeed, and what follows.

use std::error::Error;

use crate::catalog::CatalogError;

/// Why a job did not succeed. The kind of job says whether another attempt may go better.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Another worker has the job, or a user cancelled it: its result is dropped.
    #[error("the job is no longer this worker's")]
    NotHeld,
    /// The service is stopping: the job is handed back, and the attempt does not count.
    #[error("the service is stopping")]
    Stopping,
    /// Every attempt would fail alike, e.g. because of the file.
    #[error(transparent)]
    Final(Box<dyn Error + Send + Sync>),
    /// The next attempt may go better.
    #[error(transparent)]
    Passing(Box<dyn Error + Send + Sync>),
}

impl JobError {
    /// An error that every attempt would meet.
    pub fn last(error: impl Into<Box<dyn Error + Send + Sync>>) -> JobError {
        JobError::Final(error.into())
    }

    /// An error that the next attempt may not meet.
    pub fn passing(error: impl Into<Box<dyn Error + Send + Sync>>) -> JobError {
        JobError::Passing(error.into())
    }
}

impl From<CatalogError> for JobError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::LeaseLost => JobError::NotHeld,
            CatalogError::Conflict(_) | CatalogError::Invalid(_) => JobError::last(error),
            _ => JobError::passing(error),
        }
    }
}
