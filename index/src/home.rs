//! The folder in which an index stores its segments.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::disk;
use crate::sealed::{PARTIAL, Sealed, Stored};

/// The folder of the segments under the one of the snapshots.
const SEGMENTS: &str = "segments";
const EXTENSION: &str = "segment";
/// How long nobody takes to write one.
const ABANDONED: Duration = Duration::from_secs(3_600);

/// Where segments are stored; nowhere for an index that lives in memory alone.
#[derive(Default)]
pub(crate) struct Home {
    folder: Option<PathBuf>,
    /// Held by all who store a segment and put it in place, and by one alone who removes those that nobody needs: one that
    /// is stored but not yet in place would look as if nobody needed it.
    changing: RwLock<()>,
}

impl Home {
    pub(crate) fn at(folder: &Path) -> Home {
        Home { folder: Some(folder.to_owned()), changing: RwLock::new(()) }
    }

    /// To be held while a segment is stored and put in place.
    pub(crate) fn change(&self) -> RwLockReadGuard<'_, ()> {
        // Not behind one who waits for the right to remove: small segments would wait for a large one that is being stored.
        self.changing.read_recursive()
    }

    /// To be held while segments are removed or listed for a snapshot: none is put in place meanwhile.
    pub(crate) fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.changing.write()
    }

    /// Stores a segment if there is a place; it stays in memory if the disk refuses it. To be called during
    /// [`Home::change`].
    pub(crate) fn store(&self, sealed: Sealed) -> Sealed {
        let Some(folder) = &self.folder else { return sealed };
        let path = match next_path(folder) {
            Ok(path) => path,
            Err(error) => {
                tracing::warn!(%error, folder = %folder.display(), "an index segment stays in memory");
                return sealed;
            }
        };
        sealed.store(&path).unwrap_or_else(|refused| {
            let (sealed, error) = *refused;
            tracing::warn!(%error, path = %path.display(), "an index segment stays in memory");
            sealed
        })
    }
}

/// The file of a segment for a snapshot under `folder`: the one it has, if it lies there, or a new one.
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

/// The segment of a name that a manifest gives.
pub(crate) fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(SEGMENTS).join(name)
}

/// Removes all segments under `folder` but those of these names; what the system refuses is left for the next time. One that
/// another server still searches stays mapped, and is written again by that server's next snapshot.
pub(crate) fn remove_others(folder: &Path, needed: &HashSet<String>) {
    let Ok(entries) = fs::read_dir(folder.join(SEGMENTS)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_needed =
            name.to_str().is_some_and(|name| needed.contains(name) || is_being_written(name, &entry));
        if !is_needed && disk::step().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether another server may be at it: what a killed one left is older.
fn is_being_written(name: &str, entry: &fs::DirEntry) -> bool {
    let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
    name.ends_with(PARTIAL) && age().is_some_and(|age| age < ABANDONED)
}

/// A path for one more segment: numbered, so that the newest comes last, and with a suffix of its own, because several
/// servers may share a folder and number at once.
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
