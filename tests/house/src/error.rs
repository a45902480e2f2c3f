//! Errors of reading the source tree.

/// The source tree is incomplete or not valid Rust.
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
    /// A file is not valid Rust.
    #[error("{path} is no Rust")]
    Syntax {
        /// Path of the file.
        path: String,
        /// The parser's message.
        source: syn::Error,
    },
}
