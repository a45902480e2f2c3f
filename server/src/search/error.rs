//! Errors of a search.

use reprise_encoders::EncodeError;
use reprise_encoders::video::VideoError;
use tokio::task::JoinError;

use crate::catalog::CatalogError;
use crate::storage::features::FeaturesError;
use crate::vectors::EngineError;

/// Error of a search.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// A part of the request is invalid.
    #[error("{detail}")]
    Invalid {
        /// JSON pointer into the request.
        pointer: String,
        /// The reason.
        detail: String,
    },
    /// No space has this id or name.
    #[error("no loaded space is called `{0}`")]
    NoSuchSpace(String),
    /// The space can't answer this kind of query.
    #[error("{detail}")]
    SpaceCannot {
        /// JSON pointer into the request: the space that it names, or else what no space answers.
        pointer: String,
        /// The reason.
        detail: String,
    },
    /// The query names a video or clip that does not exist.
    #[error("there is no {what} {id}")]
    NotFound {
        /// JSON pointer into the request.
        pointer: String,
        /// `video`, `clip`, or `file of video`. A file used in place may have been moved.
        what: &'static str,
        /// Its id.
        id: uuid::Uuid,
    },
    /// The cursor's space is gone; the client should search again.
    #[error("the search that this cursor belongs to can't be continued; search again")]
    CursorGone,
    /// Another version of the service made the cursor; the client should search again.
    #[error("another version of the service made this cursor; search again")]
    CursorOutdated,
    /// The file can't be decoded.
    #[error("{error}")]
    Video {
        /// JSON pointer to what names the file in the request, or the name of its part.
        pointer: String,
        /// The reason.
        error: VideoError,
    },
    /// The encoder refused or failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] EngineError),
    /// The stored features of frames can't be read.
    #[error(transparent)]
    Features(#[from] FeaturesError),
    /// A task of the search panicked.
    #[error(transparent)]
    Task(#[from] JoinError),
    /// The cursor can't be written.
    #[error("the cursor can't be written")]
    Cursor(#[source] serde_json::Error),
    /// A defect of the service.
    #[error("{0}")]
    Internal(&'static str),
}

/// The caller sets the pointer.
impl From<VideoError> for SearchError {
    fn from(error: VideoError) -> SearchError {
        SearchError::Video { pointer: String::new(), error }
    }
}

impl SearchError {
    /// An invalid part of the request.
    pub fn invalid(pointer: &str, detail: impl Into<String>) -> SearchError {
        SearchError::Invalid { pointer: pointer.to_owned(), detail: detail.into() }
    }

    /// A space that can't answer what this part of the request asks of it.
    pub(super) fn cannot(pointer: &str, detail: impl Into<String>) -> SearchError {
        SearchError::SpaceCannot { pointer: pointer.to_owned(), detail: detail.into() }
    }

    /// A video or clip that does not exist. The caller sets the pointer.
    pub(super) fn missing(what: &'static str, id: uuid::Uuid) -> SearchError {
        SearchError::NotFound { pointer: String::new(), what, id }
    }
}
