//! Why an export was not made.

use std::io;

use reprise_encoders::video::VideoError;

use crate::catalog::CatalogError;
use crate::ingest::Stop;

/// Why an export was not made; nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The job was told to stop.
    #[error("the export was stopped")]
    Stopped(Stop),
    /// No range can be exported; the caller's fault, or that of the files.
    #[error("no range is left to export: {0}")]
    NothingLeft(String),
    /// The file would be larger than the server allows; the caller should ask for less.
    #[error("the export has more than {most} bytes, the most that this server makes (--max-export-bytes)")]
    TooLarge {
        /// The limit in bytes.
        most: u64,
    },
    /// It takes longer than the server allows; the caller should ask for less.
    #[error(
        "the export takes more than {minutes} minutes, the most that this server gives (--export-minutes)"
    )]
    TooLong {
        /// The limit in minutes.
        minutes: f64,
    },
    /// Its timecode would begin anew; the caller should ask for less.
    #[error("the export is longer than 24 hours, which timecode can't count")]
    TooLongForTimecode,
    /// ffmpeg failed at a range.
    #[error("range {range}")]
    Video {
        /// The range's place in the request, from 0.
        range: usize,
        /// The cause.
        #[source]
        error: VideoError,
    },
    /// A table could not be written; ours.
    #[error("the list can't be written")]
    List(#[source] io::Error),
    /// The disk failed or is full.
    #[error("a file can't be stored or read")]
    Storage(#[from] io::Error),
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A task panicked; ours.
    #[error("a task of the export panicked")]
    Panicked(#[from] tokio::task::JoinError),
}
