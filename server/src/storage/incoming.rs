//! Files being received, and content hashes.

use std::fs::TryLockError;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// Creates an empty file and locks it. The lock tells a sweep that the file's process lives; it ends with the process.
pub(super) fn create_locked(path: &Path) -> io::Result<std::fs::File> {
    reprise_faults::at("storage: create")?;
    let file = std::fs::File::create_new(path)?;
    match file.try_lock() {
        Ok(()) => {}
        // Some network folders have no locks. The sweep's waiting time alone protects the file there.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) => return Err(io::Error::other("a new file is locked by somebody")),
    }
    Ok(file)
}

/// A file being received; removed on drop.
pub struct IncomingFile {
    path: PathBuf,
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl IncomingFile {
    /// Creates an empty file at `path`; fails if a file exists there.
    pub(super) async fn create(path: PathBuf) -> io::Result<IncomingFile> {
        let file = File::from_std(create_locked(&path)?);
        Ok(IncomingFile { path, file, hash: Sha256::new(), bytes: 0 })
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk failed or is full.
    pub async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
        reprise_faults::at("storage: write")?;
        self.file.write_all(piece).await
    }

    /// Completes the file: its bytes are durable when this returns.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn finish(mut self) -> io::Result<Received> {
        self.file.flush().await?;
        reprise_faults::at("storage: sync")?;
        self.file.sync_all().await?;
        let content_hash = hex(&self.hash.finalize_reset());
        let path = std::mem::take(&mut self.path);
        let lock = self.file.try_clone().await?.into_std().await;
        Ok(Received { path, content_hash, bytes: self.bytes, _lock: lock })
    }
}

impl Drop for IncomingFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A complete file under a temporary name; removed on drop, unless the storage keeps it.
pub struct Received {
    path: PathBuf,
    content_hash: String,
    bytes: u64,
    _lock: std::fs::File,
}

impl Received {
    /// A complete and durable file. `lock` keeps a sweep away.
    pub(super) fn of(path: PathBuf, read: Fingerprint, lock: std::fs::File) -> Received {
        Received { path, content_hash: read.content_hash, bytes: read.bytes, _lock: lock }
    }

    /// Its temporary path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// SHA-256 of its bytes, 64 hex digits.
    pub fn content_hash(&self) -> &str {
        &self.content_hash
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // The storage has renamed a kept file, so this removes nothing then.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A temporary file that another program writes; removed on drop.
pub struct Scratch {
    path: PathBuf,
    lock: std::fs::File,
}

impl Scratch {
    /// Creates an empty file at `path`; fails if a file exists there.
    pub(super) fn create(path: PathBuf) -> io::Result<Scratch> {
        let lock = create_locked(&path)?;
        Ok(Scratch { path, lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Completes the file: its bytes are durable when this returns.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn finish(mut self) -> io::Result<Received> {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || {
            reprise_faults::at("storage: sync")?;
            std::fs::File::open(&path)?.sync_all()?;
            fingerprint(&path)
        });
        let Fingerprint { content_hash, bytes } = read.await.map_err(io::Error::other)??;
        let lock = self.lock.try_clone()?;
        Ok(Received { path: std::mem::take(&mut self.path), content_hash, bytes, _lock: lock })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The content hash and the size in bytes of a file.
pub struct Fingerprint {
    /// SHA-256, 64 hex digits.
    pub content_hash: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// Computes the fingerprint of a file, reading it in pieces. Blocks.
///
/// # Errors
/// The file can't be read.
pub fn fingerprint(path: &Path) -> io::Result<Fingerprint> {
    let (mut file, mut hash) = (std::fs::File::open(path)?, Sha256::new());
    let (mut piece, mut bytes) = (vec![0; 1 << 20], 0);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(Fingerprint { content_hash: hex(&hash.finalize()), bytes });
        }
        hash.update(&piece[..read]);
        bytes += read as u64;
    }
}

/// SHA-256 of `bytes`, 64 hex digits.
pub fn hash_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
