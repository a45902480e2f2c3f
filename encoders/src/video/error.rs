//! Why a video could not be read.

use crate::Cause;

/// Why a video could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VideoError {
    /// The file is not video (text, empty, audio only, damaged beyond use); the caller's fault.
    #[error("not a video that can be decoded: {0}")]
    NotVideo(String),
    /// The file is no image of a known format, or damaged; the caller's fault.
    #[error("not an image that can be decoded: {0}")]
    NotImage(String),
    /// The file is no media, or its sound is damaged beyond use; the caller's fault.
    #[error("its sound can't be read: {0}")]
    NotAudio(String),
    /// The span holds no frame; the caller's fault.
    #[error("no frame between {start_ms} and {end_ms} ms; the video ends at {duration_ms} ms")]
    EmptySpan {
        /// Requested start, in milliseconds.
        start_ms: i64,
        /// Requested end, in milliseconds.
        end_ms: i64,
        /// End of the video, in milliseconds.
        duration_ms: i64,
    },
    /// Time, memory or picture size exceeds the limit.
    #[error("over the limit: {0}")]
    OverLimit(String),
    /// ffmpeg is missing or does not start; a fault of the installation.
    #[error("ffmpeg could not be run: {0}")]
    Ffmpeg(#[source] Cause),
}
