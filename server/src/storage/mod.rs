//! The files of the service: stored videos, uploads in progress, and files derived from videos.
//!
//! The catalog decides which rows name a file. A storage is a folder of the local disk. ffmpeg and models read files by
//! [`Storage::local`], so another kind of storage can fetch them first. Frame features are a cache of this machine and
//! always lie in a local folder.

pub mod features;
mod folder;
mod incoming;
mod part;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use uuid::Uuid;

use folder::Folder;
use incoming::create_locked;
pub use incoming::{Fingerprint, IncomingFile, Received, Scratch, fingerprint, hash_bytes, hex};
pub use part::PartFile;

/// Folder of temporary files.
const INCOMING: &str = "incoming";
/// Folder of stored videos.
const VIDEOS: &str = "videos";
/// Folder of the files of resumable uploads.
const UPLOADS: &str = "uploads";
/// Folder of made exports.
const EXPORTS: &str = "exports";
/// Folder of frame features, with one folder per video.
const FEATURES: &str = "features";
/// Sweeps spare temporary files that were written to within this time: the lock of a new one may not be taken yet.
const ABANDONED: Duration = Duration::from_secs(60);
/// Sweeps spare younger files: another process may be about to insert the row of one.
const UNNAMED: Duration = Duration::from_secs(3600);

/// The files of the service.
pub struct Storage {
    backend: Backend,
    /// Names of files being made, each with the lock of its maker.
    making: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The kinds of storage.
enum Backend {
    Folder(Folder),
}

/// The file of a catalog row: its name in the storage, or the absolute path of a user's own file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile(String);

impl StoredFile {
    /// The file with this stored name or path.
    pub fn of(name: &str) -> StoredFile {
        StoredFile(name.to_owned())
    }

    /// A user's own file, which stays in its place.
    pub fn in_place(path: &Path) -> StoredFile {
        StoredFile(path.to_string_lossy().into_owned())
    }

    /// The form that the catalog stores.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether the file lies in the storage, which may then remove it.
    pub fn is_ours(&self) -> bool {
        !Path::new(&self.0).is_absolute()
    }
}

/// A file that is readable by its path while this value lives.
#[derive(Debug, Clone)]
pub struct LocalFile {
    path: PathBuf,
}

impl LocalFile {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A derived file, and whether this call made it.
#[derive(Debug, Clone)]
pub struct DerivedFile {
    /// The file.
    pub file: LocalFile,
    /// Whether it was missing.
    pub is_new: bool,
}

/// A file that is made from a video, at the first request if not before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Derived {
    /// A JPEG from the middle of a span.
    Thumbnail,
    /// A short MP4 of a span.
    Preview,
    /// An MP4 of a whole video, playable in browsers.
    Rendition,
    /// Sprite sheets of a whole video, in one file.
    Sprites,
}

impl Derived {
    /// All kinds.
    pub const ALL: [Derived; 4] =
        [Derived::Thumbnail, Derived::Preview, Derived::Rendition, Derived::Sprites];

    fn folder(self) -> &'static str {
        match self {
            Derived::Thumbnail => "thumbnails",
            Derived::Preview => "previews",
            Derived::Rendition => "renditions",
            Derived::Sprites => "sprites",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Derived::Thumbnail => "jpg",
            Derived::Preview | Derived::Rendition => "mp4",
            Derived::Sprites => "sheets",
        }
    }

    /// The file name of this kind for a video or span.
    fn name(self, id: Uuid) -> String {
        format!("{}/{id}.{}", self.folder(), self.extension())
    }
}

/// The files that a sweep spares.
struct Swept<'a> {
    /// Spares files written less than this long ago.
    age: Duration,
    /// Spares the files of videos for which this returns true.
    is_known: &'a dyn Fn(Uuid) -> bool,
}

impl Storage {
    /// Opens or creates the folder at `root`.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn open(root: &Path) -> io::Result<Storage> {
        let mut folders = vec![VIDEOS, INCOMING, FEATURES, EXPORTS, UPLOADS];
        folders.extend(Derived::ALL.map(Derived::folder));
        let folder = Folder::open(root, &folders)?;
        Ok(Storage { backend: Backend::Folder(folder), making: Mutex::default() })
    }

    /// Bytes that this process may still write to the folder's file system.
    ///
    /// # Errors
    /// The folder is gone.
    pub fn free_bytes(&self) -> io::Result<u64> {
        self.folder().free_bytes()
    }

    fn folder(&self) -> &Folder {
        let Backend::Folder(folder) = &self.backend;
        folder
    }

    /// Starts to receive a file.
    ///
    /// # Errors
    /// The disk can't be written.
    pub async fn receive(&self) -> io::Result<IncomingFile> {
        IncomingFile::create(self.temporary("")).await
    }

    /// Creates a temporary file for another program to write. `extension` begins with a dot. Blocks for a moment.
    ///
    /// # Errors
    /// The disk can't be written.
    pub fn scratch(&self, extension: &str) -> io::Result<Scratch> {
        Scratch::create(self.temporary(extension))
    }

    /// A new, unique temporary path.
    fn temporary(&self, extension: &str) -> PathBuf {
        self.folder().path(INCOMING).join(format!("{}{extension}", Uuid::now_v7()))
    }

    /// Keeps a received file as `name`; durable when this returns.
    ///
    /// # Errors
    /// The disk failed; nothing is kept.
    pub async fn keep(&self, received: Received, name: &str) -> io::Result<StoredFile> {
        self.folder().keep(received.path(), name).await?;
        Ok(StoredFile(name.to_owned()))
    }

    /// The storage name of a video's file: its id, with the extension of `file_name` if that is plain.
    pub fn video_name(id: Uuid, file_name: &str) -> String {
        format!("{VIDEOS}/{id}{}", plain_extension(file_name))
    }

    /// The storage name of an export's file. Each attempt to make it has its own `token`, so that none removes the file of
    /// another.
    pub fn export_name(id: Uuid, token: Uuid, extension: &str) -> String {
        format!("{EXPORTS}/{id}.{}.{extension}", token.simple())
    }

    /// The file as a path on this machine.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the file is gone.
    pub async fn local(&self, file: &StoredFile) -> io::Result<LocalFile> {
        let path = self.folder().path(&file.0);
        tokio::fs::metadata(&path).await?;
        Ok(LocalFile { path })
    }

    /// Removes a file, or all files below a name. A missing file is no error. A user's own file stays.
    ///
    /// # Errors
    /// The disk failed. Another call continues.
    pub async fn remove(&self, file: &StoredFile) -> io::Result<()> {
        if file.is_ours() { self.folder().remove(&file.0).await } else { Ok(()) }
    }

    /// Removes all files derived from a video: its rendition, sprite sheets, pictures and features.
    ///
    /// # Errors
    /// The disk failed. Another call continues.
    pub async fn remove_derived_of_video(&self, id: Uuid) -> io::Result<()> {
        self.folder().remove(&Derived::Rendition.name(id)).await?;
        self.folder().remove(&Derived::Sprites.name(id)).await?;
        self.folder().remove(&format!("{FEATURES}/{id}")).await?;
        self.remove_pictures(id).await
    }

    /// Removes the thumbnail and the preview of a span.
    ///
    /// # Errors
    /// The disk failed. Another call continues.
    pub async fn remove_pictures(&self, span: Uuid) -> io::Result<()> {
        self.folder().remove(&Derived::Thumbnail.name(span)).await?;
        self.folder().remove(&Derived::Preview.name(span)).await
    }

    /// The local folder of a video's frame features.
    pub fn features(&self, video: Uuid) -> PathBuf {
        self.folder().path(FEATURES).join(video.to_string())
    }

    /// The derived file of a video or span. If it is missing, `work` makes it at a temporary path. One caller at a time
    /// makes a file; the others wait for it.
    ///
    /// # Errors
    /// Errors of `work` or of the disk; no file is left.
    pub async fn derived<E: From<io::Error>>(
        &self,
        kind: Derived,
        id: Uuid,
        work: impl AsyncFnOnce(PathBuf) -> Result<(), E>,
    ) -> Result<DerivedFile, E> {
        let name = kind.name(id);
        let file = LocalFile { path: self.folder().path(&name) };
        if file.path.exists() {
            return Ok(DerivedFile { file, is_new: false });
        }
        let _only_one = self.one_at_a_time(&name).await;
        if file.path.exists() {
            return Ok(DerivedFile { file, is_new: false });
        }
        let unfinished = self.temporary(&format!(".{}", kind.extension()));
        let _lock = create_locked(&unfinished)?;
        if let Err(error) = work(unfinished.clone()).await {
            let _ = tokio::fs::remove_file(&unfinished).await;
            return Err(error);
        }
        reprise_faults::at("storage: rename a derived file")?;
        tokio::fs::rename(&unfinished, &file.path).await?;
        Ok(DerivedFile { file, is_new: true })
    }

    /// Whether the derived file of a video or span is there.
    pub fn has_derived(&self, kind: Derived, id: Uuid) -> bool {
        self.folder().path(&kind.name(id)).exists()
    }

    /// Removes the derived file of a video or span. A missing one is no error.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn remove_derived(&self, kind: Derived, id: Uuid) -> io::Result<()> {
        self.folder().remove(&kind.name(id)).await
    }

    /// The ids of the videos and spans of all derived files but the youngest. Blocks.
    ///
    /// # Errors
    /// The disk failed.
    pub fn derived_ids(&self, kind: Derived) -> io::Result<Vec<Uuid>> {
        self.folder().ids(kind.folder(), UNNAMED)
    }

    /// The ids of the videos of all frame features but the youngest. Blocks.
    ///
    /// # Errors
    /// The disk failed.
    pub fn feature_ids(&self) -> io::Result<Vec<Uuid>> {
        self.folder().ids(FEATURES, UNNAMED)
    }

    /// The storage names of everything in the folder of videos but the youngest files. Blocks.
    ///
    /// # Errors
    /// The disk failed.
    pub fn old_files(&self) -> io::Result<Vec<String>> {
        self.folder().old_files(VIDEOS, UNNAMED)
    }

    /// The storage names of everything in the folder of exports but the youngest files. Blocks.
    ///
    /// # Errors
    /// The disk failed.
    pub fn old_exports(&self) -> io::Result<Vec<String>> {
        self.folder().old_files(EXPORTS, UNNAMED)
    }

    /// Opens or creates the file of a resumable upload, for this caller alone.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] while another caller has it, in any process.
    pub async fn part(&self, upload: Uuid) -> io::Result<PartFile> {
        PartFile::open(self.folder().path(&format!("{UPLOADS}/{upload}"))).await
    }

    /// A complete file as one that was received. The upload's own file stays until [`Storage::remove_part`], so that a crash
    /// in between loses nothing.
    ///
    /// # Errors
    /// The disk failed or is full.
    pub async fn receive_part(&self, part: &PartFile) -> io::Result<Received> {
        part.receive(self.temporary("")).await
    }

    /// Removes the file of a resumable upload. A missing one is no error.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn remove_part(&self, upload: Uuid) -> io::Result<()> {
        self.folder().remove(&format!("{UPLOADS}/{upload}")).await
    }

    /// The resumable uploads that have files. Blocks.
    ///
    /// # Errors
    /// The disk failed.
    pub fn part_ids(&self) -> io::Result<Vec<Uuid>> {
        self.folder().ids(UPLOADS, Duration::ZERO)
    }

    /// Removes temporary files that a crash left. Returns their number. Blocks.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sweep_incoming(&self) -> io::Result<u64> {
        self.folder().sweep_incoming(ABANDONED)
    }

    async fn one_at_a_time(&self, name: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut making = self.making.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            making.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(making.entry(name.to_owned()).or_default())
        };
        lock.lock_owned().await
    }

    /// Removes stored files and features of unknown videos, left by a crash between keeping a file and inserting its
    /// row. Returns the number of removed entries. Blocks.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sweep(&self, is_known: &dyn Fn(Uuid) -> bool) -> io::Result<u64> {
        let swept = Swept { age: UNNAMED, is_known };
        Ok(self.folder().sweep(VIDEOS, &swept)? + self.folder().sweep(FEATURES, &swept)?)
    }
}

/// `.mp4` for `a.MP4`; empty without a plain extension (1 to 5 letters or digits).
fn plain_extension(file_name: &str) -> String {
    let extension = Path::new(file_name).extension().and_then(|it| it.to_str()).unwrap_or_default();
    let plain = (1..=5).contains(&extension.len()) && extension.bytes().all(|it| it.is_ascii_alphanumeric());
    if plain { format!(".{}", extension.to_ascii_lowercase()) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file_name: &str, expected: &str) {
        assert_eq!(plain_extension(file_name), expected, "{file_name}");
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

    async fn received(storage: &Storage, bytes: &[u8]) -> Received {
        let mut incoming = storage.receive().await.unwrap();
        incoming.write(bytes).await.unwrap();
        incoming.finish().await.unwrap()
    }

    fn count(root: &Path, folder: &str) -> usize {
        std::fs::read_dir(root.join(folder)).unwrap().count()
    }

    #[tokio::test]
    async fn a_file_that_is_not_kept_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(folder.path()).unwrap();
        let mut incoming = storage.receive().await.unwrap();
        incoming.write(b"half a vid").await.unwrap();
        drop(incoming);
        drop(received(&storage, b"eo").await);
        assert_eq!(count(folder.path(), INCOMING), 0);
    }

    #[tokio::test]
    async fn a_kept_file_is_there_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(folder.path()).unwrap();
        let name = Storage::video_name(Uuid::now_v7(), "dive.mp4");
        let file = storage.keep(received(&storage, b"a dive").await, &name).await.unwrap();
        assert_eq!((file.name(), count(folder.path(), INCOMING)), (name.as_str(), 0));
        let local = storage.local(&StoredFile::of(&name)).await.unwrap();
        assert_eq!(std::fs::read(local.path()).unwrap(), b"a dive");
        for _ in 0..2 {
            storage.remove(&file).await.unwrap();
            assert_eq!(storage.local(&file).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }

    #[tokio::test]
    async fn a_users_own_file_is_never_removed() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(&folder.path().join("data")).unwrap();
        let path = folder.path().join("own.mp4");
        std::fs::write(&path, "own").unwrap();
        storage.remove(&StoredFile::in_place(&path)).await.unwrap();
        let file = storage.local(&StoredFile::in_place(&path)).await.unwrap();
        assert_eq!(file.path(), path);
    }

    #[tokio::test]
    async fn a_derived_file_is_made_once_and_never_half() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(folder.path()).unwrap();
        let id = Uuid::now_v7();
        let fails = async |path: PathBuf| {
            tokio::fs::write(path, "half").await?;
            Err(io::Error::other("no picture"))
        };
        assert!(storage.derived(Derived::Thumbnail, id, fails).await.is_err());
        assert_eq!((count(folder.path(), INCOMING), count(folder.path(), "thumbnails")), (0, 0));
        let makes = async |path: PathBuf| tokio::fs::write(path, "whole").await;
        let made = storage.derived(Derived::Thumbnail, id, makes).await.unwrap();
        let again = storage.derived(Derived::Thumbnail, id, async |_| Err(io::Error::other("again"))).await;
        let again = again.unwrap();
        assert_eq!(std::fs::read(again.file.path()).unwrap(), b"whole");
        assert!(made.file.path().ends_with(format!("{id}.jpg")));
        assert!(made.is_new && !again.is_new);
        storage.remove_pictures(id).await.unwrap();
        assert_eq!(count(folder.path(), "thumbnails"), 0);
    }

    #[tokio::test]
    async fn a_sweep_removes_temporary_files_of_dead_processes_only() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(folder.path()).unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * ABANDONED;
        let left = folder.path().join(INCOMING).join("left");
        std::fs::File::create(&left).unwrap().set_modified(long_ago).unwrap();
        std::fs::File::create(folder.path().join(INCOMING).join("young")).unwrap();
        let held = received(&storage, b"a dive").await;
        std::fs::File::options().write(true).open(held.path()).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(storage.sweep_incoming().unwrap(), 1);
        assert!(!left.exists() && held.path().exists());
        assert_eq!(count(folder.path(), INCOMING), 2);
    }

    #[test]
    fn a_sweep_leaves_young_and_known_files_alone() {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(folder.path()).unwrap();
        let (known, stray, young) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
        let long_ago = std::time::SystemTime::now() - 2 * UNNAMED;
        for (id, written) in [(known, Some(long_ago)), (stray, Some(long_ago)), (young, None)] {
            let file = std::fs::File::create(folder.path().join(format!("videos/{id}.mp4"))).unwrap();
            std::fs::create_dir(storage.features(id)).unwrap();
            if let Some(written) = written {
                file.set_modified(written).unwrap();
                std::fs::File::open(storage.features(id)).unwrap().set_modified(written).unwrap();
            }
        }
        assert_eq!(storage.sweep(&|id| id == known).unwrap(), 2);
        assert_eq!((count(folder.path(), VIDEOS), count(folder.path(), FEATURES)), (2, 2));
    }
}
