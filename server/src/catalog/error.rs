//! Why the catalog refused or failed.

use reprise_encoders::Cause;

/// Why the catalog did not do it.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The state of the thing forbids it; the caller's fault. The text says what and why.
    #[error("{0}")]
    Conflict(String),
    /// What was to be stored is not valid; the caller's fault. The text says what is wrong with it.
    #[error("{0}")]
    Invalid(#[source] Cause),
    /// The worker no longer holds the job; it must drop its result.
    #[error("the job's lease was lost or the job was cancelled")]
    LeaseLost,
    /// The database failed or can't be reached; the operator's concern.
    #[error("the database failed: {0}")]
    Database(#[source] Cause),
    /// A stored row can't be read back; ours.
    #[error("stored data is damaged: {0}")]
    Damaged(#[source] Cause),
}
