//! Errors of the catalog.

/// Why the catalog refused a call or failed.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The row's state forbids the change; the caller's fault. The text gives the reason.
    #[error("{0}")]
    Conflict(String),
    /// The given data is invalid; the caller's fault. The text gives the reason.
    #[error("{0}")]
    Invalid(String),
    /// The worker no longer holds the job; it must drop its result.
    #[error("the job's lease was lost or the job was cancelled")]
    LeaseLost,
    /// The database failed or can't be reached; the operator must act.
    #[error("the database failed: {0}")]
    Database(String),
    /// A stored row can't be read; an internal fault.
    #[error("stored data is damaged: {0}")]
    Damaged(String),
}
