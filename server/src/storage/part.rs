//! The file of a resumable upload: written in parts, by one caller at a time.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use super::incoming::{Received, fingerprint};

/// The file of a resumable upload, locked for one caller. The lock ends with this value, or with its process.
pub struct PartFile {
    path: PathBuf,
    file: File,
}

impl PartFile {
    /// Opens or creates the file at `path`.
    pub(super) async fn open(path: PathBuf) -> io::Result<PartFile> {
        reprise_faults::at("storage: open a part")?;
        let opened = path.clone();
        let file = tokio::task::spawn_blocking(move || {
            let file =
                std::fs::File::options().create(true).truncate(false).read(true).write(true).open(&opened)?;
            match file.try_lock() {
                Ok(()) => name_durably(&file, &opened).map(|()| file),
                Err(TryLockError::Error(error)) => Err(error),
                Err(TryLockError::WouldBlock) => Err(io::Error::from(io::ErrorKind::WouldBlock)),
            }
        });
        Ok(PartFile { path, file: File::from_std(file.await.map_err(io::Error::other)??) })
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata().await?.len())
    }

    /// Drops everything behind the first `length` bytes. The next piece is written there.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn cut(&mut self, length: u64) -> io::Result<()> {
        reprise_faults::at("storage: cut a part")?;
        self.file.set_len(length).await?;
        self.file.seek(io::SeekFrom::Start(length)).await?;
        Ok(())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk failed or is full.
    pub async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        reprise_faults::at("storage: write a part")?;
        self.file.write_all(piece).await
    }

    /// Makes the written bytes durable.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn sync(&mut self) -> io::Result<()> {
        self.file.flush().await?;
        reprise_faults::at("storage: sync a part")?;
        self.file.sync_all().await
    }

    /// The complete file under a second name. Where the file system has no links, the file itself is moved.
    pub(super) async fn receive(&self, to: PathBuf) -> io::Result<Received> {
        let (from, lock) = (self.path.clone(), self.file.try_clone().await?.into_std().await);
        let received = tokio::task::spawn_blocking(move || {
            reprise_faults::at("storage: receive a part")?;
            let read = fingerprint(&from)?;
            if std::fs::hard_link(&from, &to).is_err() {
                std::fs::rename(&from, &to)?;
            }
            Ok(Received::of(to, read, lock))
        });
        received.await.map_err(io::Error::other)?
    }
}

/// Makes the name of a new file durable, so that its bytes can be found after a power failure.
fn name_durably(file: &std::fs::File, path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if file.metadata()?.len() == 0 => std::fs::File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}
