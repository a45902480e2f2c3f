//! Why rows could not be made, read or written.

use std::path::PathBuf;

use reprise_encoders::Cause;

/// Rows that can't be made, read or written; the file's fault, or the disk's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{why}", path.display(), if path.as_os_str().is_empty() { "" } else { ": " })]
pub struct RowsError {
    /// The file; empty for rows that came from no file.
    pub path: PathBuf,
    /// What happened.
    #[source]
    pub why: Cause,
}
