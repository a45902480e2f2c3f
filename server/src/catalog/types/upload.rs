//! Resumable uploads.

use std::time::Duration;

use uuid::Uuid;

/// How much of unfinished uploads a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadBounds {
    /// Number of unfinished uploads.
    pub uploads: i64,
    /// Bytes of the whole files of unfinished uploads.
    pub bytes: i64,
    /// Number of unfinished uploads of one API key.
    pub uploads_of_key: i64,
    /// Bytes of the whole files of unfinished uploads of one API key.
    pub bytes_of_key: i64,
    /// How long an upload lasts after its last change.
    pub lasts: Duration,
}

/// An upload to begin.
#[derive(Debug, Clone)]
pub struct NewPartialUpload {
    /// Size of the whole file, in bytes.
    pub length: i64,
    /// What the client says of the file, as it sent it.
    pub metadata: String,
    /// The client's idempotency key.
    pub repeat_key: Option<String>,
    /// The bounds that it must keep.
    pub bounds: UploadBounds,
}

/// What a complete upload has become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedUpload {
    /// The video.
    pub video: Uuid,
    /// The job that makes it searchable.
    pub job: Option<Uuid>,
    /// Whether its bytes were stored already.
    pub duplicate: bool,
}

/// An upload that arrives in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialUpload {
    /// Its id.
    pub id: Uuid,
    /// Size of the whole file, in bytes.
    pub length: i64,
    /// Bytes that have arrived and are durable, from the file's start.
    pub received: i64,
    /// As in [`NewPartialUpload`].
    pub metadata: String,
    /// As in [`NewPartialUpload`].
    pub repeat_key: Option<String>,
    /// What it has become, once the whole file has arrived.
    pub made: Option<FinishedUpload>,
    /// Time of its expiry, in Unix milliseconds.
    pub expires_at_ms: i64,
}
