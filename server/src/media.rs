//! The files of the data folder: stored videos, uploads on their way in, and pictures made on demand.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

/// The folders under the data folder, and who is making which file now.
pub struct MediaStore {
    root: PathBuf,
    making: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// A kind of file that is made from a video when first asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derived {
    /// A JPEG of a span's middle.
    Thumbnail,
    /// A short MP4 of a span.
    Preview,
    /// An MP4 of a whole video that browsers play.
    Rendition,
}

impl Derived {
    fn folder(self) -> &'static str {
        match self {
            Derived::Thumbnail => "thumbnails",
            Derived::Preview => "previews",
            Derived::Rendition => "renditions",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Derived::Thumbnail => "jpg",
            Derived::Preview | Derived::Rendition => "mp4",
        }
    }
}

/// A file on its way in; removed unless it is kept.
pub struct Incoming {
    path: PathBuf,
    file: File,
    hash: Sha256,
    bytes: u64,
}

/// A file that came in whole and is on disk for good, under a temporary name that dies with this value.
pub struct Received {
    path: PathBuf,
    /// SHA-256, 64 hex digits.
    pub content_hash: String,
    /// Its size.
    pub bytes: u64,
}

impl MediaStore {
    /// Makes the folders and clears what an earlier process left half received.
    ///
    /// # Errors
    /// The data folder can't be written.
    pub fn open(root: &Path) -> io::Result<MediaStore> {
        for folder in ["videos", "incoming", "thumbnails", "previews", "renditions", "features"] {
            std::fs::create_dir_all(root.join(folder))?;
        }
        let store = MediaStore { root: root.canonicalize()?, making: Mutex::default() };
        store.sweep_incoming()?;
        Ok(store)
    }

    /// Files that no process has touched for a day belong to no one.
    fn sweep_incoming(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(self.root.join("incoming"))? {
            let entry = entry?;
            let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
            if age.as_secs() > 24 * 3600 {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Starts receiving a file.
    ///
    /// # Errors
    /// The data folder can't be written.
    pub async fn receive(&self) -> io::Result<Incoming> {
        let path = self.root.join("incoming").join(Uuid::now_v7().to_string());
        let file = File::create_new(&path).await?;
        Ok(Incoming { path, file, hash: Sha256::new(), bytes: 0 })
    }

    /// Moves a received file to its place; durable when this returns. The answer is relative to the root.
    ///
    /// # Errors
    /// The disk failed; the file is where it was.
    pub async fn keep(&self, received: Received, id: Uuid, file_name: &str) -> io::Result<String> {
        let relative = format!("videos/{id}{}", safe_extension(file_name));
        let target = self.root.join(&relative);
        tokio::fs::rename(&received.path, &target).await?;
        File::open(self.root.join("videos")).await?.sync_all().await?;
        Ok(relative)
    }

    /// Where a video's file is: ours under the root, or the user's own.
    pub fn path_of(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// Where a derived file is or will be.
    pub fn derived(&self, kind: Derived, id: Uuid) -> PathBuf {
        self.root.join(kind.folder()).join(format!("{id}.{}", kind.extension()))
    }

    /// The folder of what models' frame stages made of a video.
    pub fn features(&self, video: Uuid) -> PathBuf {
        self.root.join("features").join(video.to_string())
    }

    /// A temporary name beside `target`, for a file that is renamed when it is complete.
    pub fn unfinished(&self, kind: Derived) -> PathBuf {
        self.root.join("incoming").join(format!("{}.{}", Uuid::now_v7(), kind.extension()))
    }

    /// Waits until no one else makes `target`; hold the answer while making it.
    pub async fn one_at_a_time(&self, target: &Path) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut making = self.making.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            making.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(making.entry(target.to_owned()).or_default())
        };
        lock.lock_owned().await
    }

    /// Removes a video's own file, rendition and features. A file that is gone already is fine, and so is one that
    /// can't be removed: no row names it any more.
    pub async fn remove_video(&self, id: Uuid, file: &str) {
        if !Path::new(file).is_absolute() {
            remove(&self.path_of(file)).await;
        }
        remove(&self.derived(Derived::Rendition, id)).await;
        self.remove_span(id).await;
        match tokio::fs::remove_dir_all(self.features(id)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, video = %id, "a video's features could not be removed");
            }
            _ => {}
        }
    }

    /// Removes a span's pictures.
    pub async fn remove_span(&self, id: Uuid) {
        remove(&self.derived(Derived::Thumbnail, id)).await;
        remove(&self.derived(Derived::Preview, id)).await;
    }

    /// Removes stored files and features that no video names: what a crash between rename and insert leaves.
    ///
    /// Files younger than an hour are left alone, for another process may be about to insert their row.
    ///
    /// # Errors
    /// The folder can't be read.
    pub fn sweep_orphans(&self, is_known: impl Fn(Uuid) -> bool) -> io::Result<u64> {
        let mut removed = 0;
        let videos = std::fs::read_dir(self.root.join("videos"))?;
        for entry in videos.chain(std::fs::read_dir(self.root.join("features"))?) {
            let entry = entry?;
            let name = entry.file_name();
            let stem = name.to_string_lossy();
            let Ok(id) = stem.split('.').next().unwrap_or_default().parse::<Uuid>() else { continue };
            let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
            if age.as_secs() > 3600 && !is_known(id) {
                match entry.file_type()?.is_dir() {
                    true => std::fs::remove_dir_all(entry.path())?,
                    false => std::fs::remove_file(entry.path())?,
                }
                removed += 1;
            }
        }
        Ok(removed)
    }
}

async fn remove(path: &Path) {
    match tokio::fs::remove_file(path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "a file could not be removed");
        }
        _ => {}
    }
}

impl Incoming {
    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// The disk failed or is full.
    pub async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
        self.file.write_all(piece).await
    }

    /// The file is complete: flushed to disk, its hash known.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn finish(mut self) -> io::Result<Received> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        let content_hash = hex(&self.hash.finalize_reset());
        let path = std::mem::take(&mut self.path);
        Ok(Received { path, content_hash, bytes: self.bytes })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Received {
    /// Where it is now.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // After `keep` the file is elsewhere and there is nothing here to remove.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// SHA-256 of a file and its size, read in pieces. Blocks.
///
/// # Errors
/// The file can't be read.
pub fn hash_file(path: &Path) -> io::Result<(String, u64)> {
    let (mut file, mut hash) = (std::fs::File::open(path)?, Sha256::new());
    let (mut piece, mut bytes) = (vec![0; 1 << 20], 0);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((hex(&hash.finalize()), bytes));
        }
        hash.update(&piece[..read]);
        bytes += read as u64;
    }
}

/// SHA-256 of `bytes`, 64 hex digits.
pub fn hash_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `.mp4` of `a.MP4`; nothing where the name has no plain extension.
fn safe_extension(file_name: &str) -> String {
    let extension = Path::new(file_name).extension().and_then(|it| it.to_str()).unwrap_or_default();
    let plain = (1..=5).contains(&extension.len()) && extension.bytes().all(|it| it.is_ascii_alphanumeric());
    if plain { format!(".{}", extension.to_ascii_lowercase()) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file_name: &str, expected: &str) {
        assert_eq!(safe_extension(file_name), expected, "{file_name}");
    }

    #[test]
    fn only_plain_extensions_reach_the_disk() {
        check("dive.mp4", ".mp4");
        check("DIVE.MKV", ".mkv");
        check("no extension", "");
        check("../../etc/passwd", "");
        check("a.m/p4", "");
        check("a.$(rm)", "");
    }

    #[tokio::test]
    async fn a_file_that_is_not_kept_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store = MediaStore::open(folder.path()).unwrap();
        let mut incoming = store.receive().await.unwrap();
        incoming.write(b"half a vid").await.unwrap();
        drop(incoming);
        let mut whole = store.receive().await.unwrap();
        whole.write(b"eo").await.unwrap();
        drop(whole.finish().await.unwrap());
        assert_eq!(std::fs::read_dir(folder.path().join("incoming")).unwrap().count(), 0);
    }
}
