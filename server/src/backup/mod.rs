//! Backups: a folder with all rows and stored files of a library, the same for both databases (docs/backup.md).
//!
//! [`write()`] makes one while servers run, [`Backup::open`] and [`Backup::check`] read one, and [`restore`] fills an empty
//! database and data folder. Knows neither HTTP nor engines: the first start after a restore fills the engine.

mod check;
mod lease;
mod manifest;
mod restore;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::catalog::CatalogError;

pub use check::{Backup, Damage};
pub use manifest::{FORMAT, Manifest, Media, Stretch, TableEntry, VideoEntry};
pub use restore::{Restored, Target, restore};
pub use write::{Request, Written, write};

/// Folder of the rows, in a backup.
const TABLES: &str = "tables";
/// Folder of the media files, in a backup.
const MEDIA: &str = "media";
/// The file with the rows of all videos.
const VIDEOS: &str = "tables/videos.jsonl";
/// Bytes that are read or written at once.
const PIECE_BYTES: usize = 1 << 20;

/// Why a backup can't be made, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder to write is there already; the operator must name another, or remove it.
    #[error("{0} is there already: name another folder, or remove it")]
    Exists(PathBuf),
    /// The lease ran out, for example in a suspended machine: a purge may have removed files. The operator must start
    /// again.
    #[error("the backup was held up for too long, and files of deleted videos may be gone: start it again")]
    Overtaken,
    /// The folder holds no backup, or its manifest is damaged.
    #[error("{folder} holds no whole backup: {why}")]
    NoBackup {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        why: String,
    },
    /// Another version of the program wrote it; the operator must use another reprise. The text says which.
    #[error("{0}")]
    Version(String),
    /// Parts are damaged; nothing was written. The operator may restore the rest.
    #[error(
        "the backup is damaged, and nothing was restored:\n  {}\n--skip-damaged restores the rest",
        listed(.0)
    )]
    Damaged(Vec<Damage>),
    /// Rows without which nothing else can be restored are damaged.
    #[error("nothing can be restored without {0}, which is damaged")]
    Essential(String),
    /// The file of a video changed while it was read; the operator should look at the disk.
    #[error("the file of video {0} changed while it was restored: start again")]
    Changed(Uuid),
    /// The catalog refused or failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The disk failed or is full.
    #[error("{path} can't be read or written")]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// A task panicked; an internal fault.
    #[error("a task of the backup panicked")]
    Panicked(#[from] tokio::task::JoinError),
}

impl BackupError {
    /// A step of work at `path` that a test may make fail.
    fn fault(place: &'static str, path: &Path) -> Result<(), BackupError> {
        reprise_faults::at(place).map_err(BackupError::disk(path))
    }

    fn disk(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> BackupError {
        let path = path.into();
        move |error| BackupError::Disk { path, error }
    }
}

fn listed(damages: &[Damage]) -> String {
    damages.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
}
