//! Errors of the catalog.

use reprise_encoders::Cause;

/// Error of a catalog call.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The row's state forbids the change; the caller's fault. The text gives the reason.
    #[error("{0}")]
    Conflict(String),
    /// The given data is invalid; the caller's fault. The text gives the reason.
    #[error("{0}")]
    Invalid(#[source] Cause),
    /// The worker no longer holds the job; it must drop its result.
    #[error("the job's lease was lost or the job was cancelled")]
    LeaseLost,
    /// The database failed or can't be reached; the operator must act.
    #[error("the database failed: {0}")]
    Database(#[source] Cause),
    /// A stored row can't be read back; ours.
    #[error("stored data is damaged: {0}")]
    Damaged(#[source] Cause),
}
