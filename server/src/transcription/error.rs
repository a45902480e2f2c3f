//! Errors of a transcription.

use reprise_encoders::EncodeError;
use reprise_encoders::speech::TranscribeError;
use reprise_encoders::video::VideoError;

use crate::catalog::CatalogError;
use crate::ingest::Stop;
use crate::subtitles::MAX_CUES;

/// Longest text of a transcript, in bytes: a day of speech has about 1.5 million.
pub(super) const LONGEST_TEXT: usize = 8 << 20;

/// Why a transcription ended without a result. Its finished windows are kept.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptionError {
    /// The job was stopped.
    #[error("the transcription was stopped")]
    Stopped(Stop),
    /// This process writes down no speech.
    #[error("this server was started without --transcribe and without --transcribe-url")]
    NoTranscriber,
    /// The ingest of the video has failed.
    #[error("the video is not searchable: its ingest has failed")]
    NotReady,
    /// The video's file is missing.
    #[error("the stored file is gone: {0}")]
    FileGone(String),
    /// The file's sound can't be decoded.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// The model or the service failed.
    #[error(transparent)]
    Model(#[from] EncodeError),
    /// The model or the service wrote more than anybody says.
    #[error("the transcript has more than {MAX_CUES} lines or {LONGEST_TEXT} bytes of text")]
    TooLong,
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The kept windows can't be read. This is a defect of the service.
    #[error("a finished window can't be stored or read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A task panicked. This is a defect of the service.
    #[error("a part of the job panicked")]
    Panicked(#[from] tokio::task::JoinError),
}

impl From<TranscribeError> for TranscriptionError {
    fn from(error: TranscribeError) -> Self {
        match error {
            TranscribeError::Video(error) => TranscriptionError::Video(error),
            TranscribeError::Model(error) => TranscriptionError::Model(error),
        }
    }
}
