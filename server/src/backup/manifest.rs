//! The manifest of a backup: its versions, and the place, length and hash of every part.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::archive::Positions;

/// The format that this version writes and reads.
pub const FORMAT: u32 = 1;
/// The manifest's file.
pub(super) const FILE: &str = "manifest.json";
/// The file with the manifest's SHA-256, as `sha256sum` writes it.
pub(super) const HASH_FILE: &str = "manifest.sha256";
/// Longest manifest that is read, in bytes: about a million videos.
pub(super) const MOST_BYTES: u64 = 1 << 30;

/// All parts of a backup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`] of the version that wrote it.
    pub format: u32,
    /// Number of the newest migration of the database.
    pub schema: i64,
    /// Version of the program that wrote it.
    pub reprise: String,
    /// Kind of the database: `sqlite` or `postgres`.
    pub database: String,
    /// Time of its rows, RFC 3339.
    pub taken_at: String,
    /// The last numbers that the database had given out.
    pub positions: Positions,
    /// Tables of the library as a whole.
    pub tables: Vec<TableEntry>,
    /// Tables with rows in the file of videos: names and columns, without a place.
    pub tables_of_videos: Vec<Columns>,
    /// Videos, in order of id.
    pub videos: Vec<VideoEntry>,
}

/// The two numbers that every version writes.
#[derive(Debug, Deserialize)]
pub(super) struct Versions {
    pub(super) format: u32,
    pub(super) schema: i64,
}

/// The columns of a table, in the order of a row's values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    /// The table.
    pub name: String,
    /// Its columns.
    pub columns: Vec<String>,
}

/// A table of the library as a whole, in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// Its columns.
    #[serde(flatten)]
    pub of: Columns,
    /// Its file, relative to the backup.
    pub file: String,
    /// Its lines.
    pub rows: Stretch,
}

/// Some whole lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stretch {
    /// Number of lines.
    pub count: u64,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// SHA-256, 64 hex digits.
    pub sha256: String,
}

/// A video: its rows and its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoEntry {
    /// Its id.
    pub id: Uuid,
    /// Its title, for people.
    pub title: String,
    /// Its lines in the file of videos.
    pub rows: Stretch,
    /// Its file.
    pub media: Media,
}

/// The file of a video.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Media {
    /// It lies in the backup.
    Copied {
        /// Its file, relative to the backup.
        file: String,
        /// Its name in the storage.
        stored_as: String,
        /// Its size in bytes.
        bytes: u64,
        /// SHA-256, 64 hex digits.
        sha256: String,
    },
    /// It is a user's own file, which stayed in its place.
    InPlace {
        /// Its absolute path.
        path: String,
    },
    /// It was gone or damaged when the backup was made.
    Lost {
        /// The reason.
        why: String,
    },
}
