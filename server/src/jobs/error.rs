//! Errors of a job.

use std::error::Error;

use super::need::Need;
use crate::catalog::CatalogError;

/// Error of a job. The kind of job decides whether another attempt may succeed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Another worker holds the lease, or a user cancelled the job. The result is dropped.
    #[error("the job is no longer this worker's")]
    NotHeld,
    /// The service is stopping. The job returns to the queue, and the attempt does not count.
    #[error("the service is stopping")]
    Stopping,
    /// This process does not meet a need of the job. It returns to the queue, for another process; the attempt does not
    /// count.
    #[error("this process does not meet a need of the job: {0:?}")]
    Unmet(Need),
    /// Every attempt would fail, e.g. because of the file.
    #[error(transparent)]
    Final(Box<dyn Error + Send + Sync>),
    /// The next attempt may succeed.
    #[error(transparent)]
    Passing(Box<dyn Error + Send + Sync>),
}

impl JobError {
    /// An error that every attempt would have.
    pub fn last(error: impl Into<Box<dyn Error + Send + Sync>>) -> JobError {
        JobError::Final(error.into())
    }

    /// An error that the next attempt may not have.
    pub fn passing(error: impl Into<Box<dyn Error + Send + Sync>>) -> JobError {
        JobError::Passing(error.into())
    }
}

impl From<CatalogError> for JobError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::LeaseLost => JobError::NotHeld,
            CatalogError::Conflict(_)
            | CatalogError::ConflictOf { .. }
            | CatalogError::Invalid(_)
            | CatalogError::OverQuota(_) => JobError::last(error),
            _ => JobError::passing(error),
        }
    }
}
