//! Errors of reading, writing and building rows.

use std::path::PathBuf;

use reprise_encoders::Cause;

/// Rows that can't be made, read or written; the file's fault, or the disk's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{why}", path.display(), if path.as_os_str().is_empty() { "" } else { ": " })]
pub struct RowsError {
    /// Path of the file; empty for rows without a file.
    pub path: PathBuf,
    /// The error.
    #[source]
    pub why: Cause,
}
