//! A storage in a folder of the local disk.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::fs::File;
use uuid::Uuid;

use super::{INCOMING, Swept};

/// The folder. File names in it are relative paths with `/` as separator.
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Creates the folder with these subfolders.
    pub(super) fn open(root: &Path, folders: &[&str]) -> io::Result<Folder> {
        for folder in folders {
            std::fs::create_dir_all(root.join(folder))?;
        }
        Ok(Folder { root: root.canonicalize()? })
    }

    /// The path of a name; an absolute path stays as it is.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Bytes that this process may still write.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        let system = rustix::fs::statvfs(&self.root)?;
        Ok(system.f_bavail.saturating_mul(system.f_frsize))
    }

    /// Moves a file on the same disk to its name; the move is durable when this returns.
    pub(super) async fn keep(&self, from: &Path, name: &str) -> io::Result<()> {
        let target = self.path(name);
        reprise_faults::at("storage: rename")?;
        tokio::fs::rename(from, &target).await?;
        reprise_faults::at("storage: sync a folder")?;
        let folder = target.parent().unwrap_or(&self.root);
        File::open(folder).await?.sync_all().await
    }

    /// Removes a file, or a folder with its contents. A missing one is no error.
    pub(super) async fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name);
        reprise_faults::at("storage: remove")?;
        let removed = match tokio::fs::symlink_metadata(&path).await {
            Ok(found) if found.is_dir() => tokio::fs::remove_dir_all(&path).await,
            Ok(_) => tokio::fs::remove_file(&path).await,
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes temporary files that were last written more than `age` ago and that no process holds a lock on. Returns their
    /// number.
    pub(super) fn sweep_incoming(&self, age: Duration) -> io::Result<u64> {
        let mut removed = 0;
        for entry in std::fs::read_dir(self.path(INCOMING))? {
            let entry = entry?;
            // Its owner may remove it at any time.
            let Ok(file) = std::fs::File::open(entry.path()) else { continue };
            if is_older(&file.metadata()?, age) && file.try_lock().is_ok() {
                std::fs::remove_file(entry.path())?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The ids that name files of `folder` last written more than `age` ago.
    pub(super) fn ids(&self, folder: &str, age: Duration) -> io::Result<Vec<Uuid>> {
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(self.path(folder))? {
            let entry = entry?;
            let Some(id) = id_of(&entry.file_name()) else { continue };
            if is_older(&entry.metadata()?, age) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// The names of everything in `folder` that was last written more than `age` ago.
    pub(super) fn old_files(&self, folder: &str, age: Duration) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.path(folder))? {
            let entry = entry?;
            // It may be removed at any time.
            if entry.metadata().is_ok_and(|found| is_older(&found, age)) {
                names.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
        Ok(names)
    }

    /// Removes entries of `folder` that are old enough and named by the id of an unknown video. Returns their number.
    pub(super) fn sweep(&self, folder: &str, swept: &Swept<'_>) -> io::Result<u64> {
        let mut removed = 0;
        for entry in std::fs::read_dir(self.path(folder))? {
            let entry = entry?;
            let Some(id) = id_of(&entry.file_name()) else { continue };
            if !is_older(&entry.metadata()?, swept.age) || (swept.is_known)(id) {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => std::fs::remove_dir_all(entry.path())?,
                false => std::fs::remove_file(entry.path())?,
            }
            removed += 1;
        }
        Ok(removed)
    }
}

/// The id before the first dot of a file's name.
fn id_of(name: &OsStr) -> Option<Uuid> {
    name.to_string_lossy().split('.').next().unwrap_or_default().parse().ok()
}

fn is_older(file: &std::fs::Metadata, age: Duration) -> bool {
    let written = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    written.elapsed().unwrap_or_default() > age
}
