//! The result of ingesting one file.

use std::path::PathBuf;

use serde_json::Value;

/// The result of ingesting one file.
pub(crate) struct Outcome {
    pub(crate) file: PathBuf,
    pub(crate) state: String,
    pub(crate) detail: Option<String>,
    pub(crate) video: Value,
}

impl Outcome {
    pub(crate) fn without_video(file: PathBuf, state: &str, detail: String) -> Outcome {
        Outcome { file, state: state.to_owned(), detail: Some(detail), video: Value::Null }
    }

    /// The outcome as a line of text.
    pub(crate) fn line(&self) -> String {
        let name = self.file.display();
        match &self.detail {
            Some(detail) => format!("{:<10} {name}: {detail}", self.state),
            None => format!("{:<10} {name}", self.state),
        }
    }
}
