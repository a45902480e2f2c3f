//! A storage in a folder of the local disk.

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

    /// Moves a file on the same disk to its name; the move is durable when this returns.
    pub(super) async fn keep(&self, from: &Path, name: &str) -> io::Result<()> {
        let target = self.path(name);
        tokio::fs::rename(from, &target).await?;
        let folder = target.parent().unwrap_or(&self.root);
        File::open(folder).await?.sync_all().await
    }

    /// Removes a file, or a folder with its contents. A missing one is no error.
    pub(super) async fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name);
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

    /// Removes temporary files last written more than `age` ago.
    pub(super) fn sweep_incoming(&self, age: Duration) -> io::Result<()> {
        for entry in std::fs::read_dir(self.path(INCOMING))? {
            let entry = entry?;
            if is_older(&entry.metadata()?, age) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes entries of `folder` that are old enough and named by the id of an unknown video. Returns their number.
    pub(super) fn sweep(&self, folder: &str, swept: &Swept<'_>) -> io::Result<u64> {
        let mut removed = 0;
        for entry in std::fs::read_dir(self.path(folder))? {
            let entry = entry?;
            let name = entry.file_name();
            let stem = name.to_string_lossy();
            let Ok(id) = stem.split('.').next().unwrap_or_default().parse::<Uuid>() else { continue };
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

fn is_older(file: &std::fs::Metadata, age: Duration) -> bool {
    let written = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    written.elapsed().unwrap_or_default() > age
}
