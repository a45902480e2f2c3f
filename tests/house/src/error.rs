//! Why the source tree could not be read.

/// The source tree is incomplete or no Rust.
#[derive(Debug, thiserror::Error)]
pub enum HouseError {
    /// cargo did not describe the workspace.
    #[error("cargo metadata failed: {0}")]
    Cargo(String),
    /// cargo can't be started, or a file can't be written.
    #[error("cargo can't be started, or a file can't be written")]
    Io(#[from] std::io::Error),
    /// cargo's description of the workspace has another form than expected.
    #[error("cargo metadata can't be read")]
    Metadata(#[from] serde_json::Error),
    /// No file holds a declared module.
    #[error("no file holds the module `{module}` that {declared_in} declares")]
    Missing {
        /// The module's name.
        module: String,
        /// Path of the file with the declaration.
        declared_in: String,
    },
    /// A file is no Rust.
    #[error("{path} is no Rust")]
    Syntax {
        /// Path of the file.
        path: String,
        /// What the parser says.
        source: syn::Error,
    },
}
