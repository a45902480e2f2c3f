//! The files of a snapshot, written with a checksum that reading verifies.

use std::error::Error;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::SnapshotError;
use crate::disk;

/// The lock file of a snapshot's writer.
const LOCK: &str = ".writer";
/// How long to wait for the lock, and how often to try.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// A file's entry in the manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredFile {
    pub(super) name: String,
    bytes: u64,
    sha256: String,
}

pub(super) fn write_file(
    folder: &Path,
    name: String,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<StoredFile, SnapshotError> {
    let path = folder.join(&name);
    let write_all = || -> io::Result<(u64, String)> {
        disk::step()?;
        let mut hashing = Hashing { inner: File::create(&path)?, hash: Sha256::new(), bytes: 0 };
        let mut buffered = BufWriter::with_capacity(1 << 20, &mut hashing);
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        disk::step()?;
        hashing.inner.sync_all()?;
        Ok((hashing.bytes, hex(&hashing.hash.finalize())))
    };
    let (bytes, sha256) = write_all().map_err(io_at(&path))?;
    Ok(StoredFile { name, bytes, sha256 })
}

/// Reads and verifies a whole small file.
pub(super) fn read_whole(folder: &Path, stored: &StoredFile) -> Result<Vec<u8>, SnapshotError> {
    let mut part = open_part(folder, stored, stored.bytes)?;
    let mut bytes = Vec::new();
    part.0.read_to_end(&mut bytes).map_err(|error| damaged(&stored.name, error))?;
    part.finish(stored)?;
    Ok(bytes)
}

/// A file that is hashed while it is read.
pub(super) struct Part(BufReader<Hashing<File>>);

pub(super) fn open_part(folder: &Path, stored: &StoredFile, bytes: u64) -> Result<Part, SnapshotError> {
    if stored.name.contains(['/', '\\']) {
        return Err(damaged(&stored.name, "a file name that is a path"));
    }
    let path = folder.join(&stored.name);
    let file = File::open(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => damaged(&stored.name, "is missing"),
        _ => SnapshotError::Io { path: path.clone(), source },
    })?;
    let length = file.metadata().map_err(io_at(&path))?.len();
    if length != bytes || stored.bytes != bytes {
        return Err(damaged(&stored.name, format!("has {length} bytes, not {bytes}")));
    }
    let hashing = Hashing { inner: file, hash: Sha256::new(), bytes: 0 };
    Ok(Part(BufReader::with_capacity(1 << 20, hashing)))
}

impl Part {
    pub(super) fn read(&mut self, stored: &StoredFile, buffer: &mut [u8]) -> Result<(), SnapshotError> {
        self.0.read_exact(buffer).map_err(|error| damaged(&stored.name, error))
    }

    pub(super) fn finish(self, stored: &StoredFile) -> Result<(), SnapshotError> {
        if hex(&self.0.into_inner().hash.finalize()) == stored.sha256 {
            return Ok(());
        }
        Err(damaged(&stored.name, "its checksum is another"))
    }
}

/// A file and the hash of the bytes read or written.
struct Hashing<F> {
    inner: F,
    hash: Sha256,
    bytes: u64,
}

impl Write for Hashing<File> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        disk::step()?;
        let written = self.inner.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Read for Hashing<File> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

pub(super) fn read_part(folder: &Path, name: &str) -> Result<Vec<u8>, SnapshotError> {
    let path = folder.join(name);
    fs::read(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => damaged(name, "is missing"),
        _ => SnapshotError::Io { path, source },
    })
}

/// Locks `dir` for writing a snapshot, because several servers may share a folder. Dropping the file, or the end of the
/// process, releases the lock.
///
/// # Errors
/// [`SnapshotError::Io`] of kind `WouldBlock` if another server writes for longer than [`PATIENCE`].
pub(super) fn only_writer(dir: &Path) -> Result<File, SnapshotError> {
    let path = dir.join(LOCK);
    let file = File::create(&path).map_err(io_at(&path))?;
    match locked(|| file.try_lock()) {
        true => Ok(file),
        false => {
            let why = "another server is writing a snapshot here; the next try may find it done";
            Err(io_at(&path)(io::Error::new(io::ErrorKind::WouldBlock, why)))
        }
    }
}

/// Keeps other servers from writing under `dir`, and so from removing files that are being read. Dropping the file
/// releases the lock. `None` if no snapshot was ever written there, or if another server keeps writing.
pub(super) fn no_writer(dir: &Path) -> Option<File> {
    let file = File::open(dir.join(LOCK)).ok()?;
    locked(|| file.try_lock_shared()).then_some(file)
}

/// Whether the lock was taken in time. Some network file systems have no locks: servers that share such a folder may
/// have to repeat work that the other one disturbed.
fn locked(try_lock: impl Fn() -> Result<(), TryLockError>) -> bool {
    let begun = Instant::now();
    loop {
        match try_lock() {
            Ok(()) | Err(TryLockError::Error(_)) => return true,
            Err(TryLockError::WouldBlock) if begun.elapsed() > PATIENCE => return false,
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
}

/// The finished snapshots under `dir`, oldest first.
pub(super) fn numbered(dir: &Path) -> Result<Vec<(u64, PathBuf)>, SnapshotError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(io_at(dir))? {
        let entry = entry.map_err(io_at(dir))?;
        if let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            found.push((number, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn write_synced(path: &Path, content: &[u8]) -> Result<(), SnapshotError> {
    let write = || -> io::Result<()> {
        disk::step()?;
        let mut file = File::create(path)?;
        disk::step()?;
        file.write_all(content)?;
        disk::step()?;
        file.sync_all()
    };
    write().map_err(io_at(path))
}

/// Syncs a folder, so that its file names survive a power cut.
pub(super) fn sync_folder(path: &Path) -> Result<(), SnapshotError> {
    disk::step().and_then(|()| disk::sync_folder(path)).map_err(io_at(path))
}

pub(super) fn remove_folder(path: &Path) -> Result<(), SnapshotError> {
    disk::step().map_err(io_at(path))?;
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at(path)(error)),
        _ => Ok(()),
    }
}

pub(super) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    let path = path.to_owned();
    move |source| SnapshotError::Io { path, source }
}

pub(super) fn damaged(file: &str, reason: impl Into<Box<dyn Error + Send + Sync>>) -> SnapshotError {
    SnapshotError::Damaged { file: file.to_owned(), reason: reason.into() }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
