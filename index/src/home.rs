//! Where an index stores its segments.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::budget::Budget;
use crate::disk;
use crate::sealed::{Linked, Sealed, SegmentError, Source, Stored};
use crate::unfinished;

/// The folder of the segments, inside the snapshots' folder.
const SEGMENTS: &str = "segments";
const EXTENSION: &str = "segment";

/// Where segments lie: their folder, and the memory that they may take.
#[derive(Default)]
pub(crate) struct Home {
    /// `None` for an index in memory.
    folder: Option<PathBuf>,
    /// Read lock: a segment is being stored and put in place. Write lock: unused segments are being removed. Without
    /// the lock, the removal could delete a stored segment before it is in place.
    changing: RwLock<()>,
    pub(crate) budget: Arc<Budget>,
}

impl Home {
    /// A home in `folder` (`None`: in memory), with a budget for links and codes.
    pub(crate) fn new(folder: Option<&Path>, budget: Budget) -> Home {
        Home { folder: folder.map(Path::to_owned), changing: RwLock::new(()), budget: Arc::new(budget) }
    }

    /// The lock to hold while a segment is stored and put in place.
    pub(crate) fn change(&self) -> RwLockReadGuard<'_, ()> {
        // Recursive, so that it does not queue behind a waiting writer: small segments would wait until a large one is
        // stored.
        self.changing.read_recursive()
    }

    /// The lock to hold while segments are removed or listed for a snapshot: meanwhile no segment is put in place.
    pub(crate) fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.changing.write()
    }

    /// An empty file without a name, which the system frees with its last user; `None` without a folder.
    pub(crate) fn scratch(&self) -> Option<io::Result<File>> {
        let folder = self.folder.as_ref()?;
        Some(next_path(folder).and_then(|path| unfinished::nameless(&path)))
    }

    /// Stores a linked segment if the index has a folder. It is kept in memory if the disk refuses it. Call during
    /// [`Home::change`].
    pub(crate) fn store<S: Source>(&self, linked: Linked<S>) -> Result<Sealed, SegmentError> {
        let Some(folder) = &self.folder else { return linked.keep(&self.budget) };
        let path = match next_path(folder) {
            Ok(path) => path,
            Err(error) => {
                tracing::warn!(%error, folder = %folder.display(), "an index segment stays in memory");
                return linked.keep(&self.budget);
            }
        };
        let refused = match linked.store(&path, &self.budget) {
            Ok(sealed) => return Ok(sealed),
            Err(refused) => *refused,
        };
        match refused {
            (_, SegmentError::Unreadable) => Err(SegmentError::Unreadable),
            (linked, error) => {
                tracing::warn!(%error, path = %path.display(), "an index segment stays in memory");
                linked.keep(&self.budget)
            }
        }
    }
}

/// The file of a segment for a snapshot under `folder`: its present file, if that lies there, or a new one.
pub(crate) fn stored_under(folder: &Path, sealed: &Sealed) -> Result<Stored, (PathBuf, io::Error)> {
    if let Some(stored) = sealed.stored()
        && stored.path.parent() == Some(&folder.join(SEGMENTS))
        && stored.path.exists()
    {
        return Ok(stored);
    }
    let path = next_path(folder).map_err(|error| (folder.to_owned(), error))?;
    match sealed.write(&path) {
        Ok(checksum) => {
            let stored = Stored { path, checksum };
            sealed.is_stored(stored.clone());
            Ok(stored)
        }
        Err(error) => Err((path, io::Error::other(error))),
    }
}

/// The path of a segment that a manifest names.
pub(crate) fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(SEGMENTS).join(name)
}

/// Removes all segments under `folder` except `needed`, and the unfinished files of killed servers. Files that the system
/// refuses to remove stay until the next call.
///
/// A segment that another server still searches stays mapped; that server's next snapshot writes it again.
pub(crate) fn remove_others(folder: &Path, needed: &HashSet<String>) {
    let Ok(entries) = fs::read_dir(folder.join(SEGMENTS)) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if unfinished::is_unfinished(&path) {
            unfinished::remove_if_abandoned(&path);
        } else if !name.to_str().is_some_and(|name| needed.contains(name)) && disk::step().is_ok() {
            let _ = fs::remove_file(path);
        }
    }
}

/// The path of a new segment: a number, so that the newest sorts last, and a random suffix, because several servers may
/// number files in one folder at once.
fn next_path(folder: &Path) -> io::Result<PathBuf> {
    let segments = folder.join(SEGMENTS);
    disk::step()?;
    fs::create_dir_all(&segments)?;
    let mut highest = 0;
    for entry in fs::read_dir(&segments)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.split('-').next()?.parse::<u64>().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    let suffix = RandomState::new().build_hasher().finish();
    Ok(segments.join(format!("{:012}-{suffix:016x}.{EXTENSION}", highest + 1)))
}
