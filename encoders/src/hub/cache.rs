//! The cache of downloaded files, in the layout of Python's huggingface_hub, so that both programs share downloads:
//!
//! ```text
//! models--ORG--NAME/refs/REVISION            commit of a branch or tag at the time of the download
//! models--ORG--NAME/blobs/ETAG               the bytes; ETAG.incomplete: a partial download
//! models--ORG--NAME/snapshots/COMMIT/FILE    a link to the bytes
//! models--ORG--NAME/.no_exist/COMMIT/FILE    marks a file that the commit lacks
//! .locks/models--ORG--NAME/ETAG.lock         held by the process that downloads these bytes
//! ```

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// One model's part of the cache.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    model: PathBuf,
    locks: PathBuf,
}

/// Keeps other processes from downloading the same bytes until dropped.
pub(super) struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Cache {
    /// `root` holds all models; `repository` is `org/name`.
    pub(super) fn new(root: &Path, repository: &str) -> Cache {
        let folder = format!("models--{}", repository.replace('/', "--"));
        Cache { model: root.join(&folder), locks: root.join(".locks").join(folder) }
    }

    /// The stored commit of a branch or tag, or `revision` itself if it is a cached commit.
    pub(super) fn commit(&self, revision: &str) -> Option<String> {
        let noted = std::fs::read_to_string(self.model.join("refs").join(revision)).ok();
        let noted = noted.map(|commit| commit.trim().to_owned()).filter(|commit| !commit.is_empty());
        noted.or_else(|| self.snapshot(revision).is_dir().then(|| revision.to_owned()))
    }

    /// Stores the commit of `revision`.
    pub(super) fn keep_commit(&self, revision: &str, commit: &str) -> io::Result<()> {
        if revision == commit {
            return Ok(());
        }
        write_whole(&self.model.join("refs").join(revision), commit)
    }

    /// The folder with a commit's files.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.model.join("snapshots").join(commit)
    }

    /// The path of a commit's file, if it is in the cache.
    pub(super) fn file(&self, commit: &str, file: &str) -> Option<PathBuf> {
        Some(self.snapshot(commit).join(file)).filter(|path| path.is_file())
    }

    /// Whether the cache marks `file` as missing from the commit.
    pub(super) fn is_absent(&self, commit: &str, file: &str) -> bool {
        self.absent(commit, file).exists()
    }

    /// Marks `file` as missing from the commit.
    pub(super) fn keep_absent(&self, commit: &str, file: &str) -> io::Result<()> {
        write_whole(&self.absent(commit, file), "")
    }

    fn absent(&self, commit: &str, file: &str) -> PathBuf {
        self.model.join(".no_exist").join(commit).join(file)
    }

    /// Path of the complete bytes with this etag.
    pub(super) fn blob(&self, etag: &str) -> PathBuf {
        self.model.join("blobs").join(etag)
    }

    /// Path of the partial download with this etag.
    pub(super) fn incomplete(&self, etag: &str) -> PathBuf {
        self.model.join("blobs").join(format!("{etag}.incomplete"))
    }

    /// Waits while another process downloads these bytes, and makes the folder for them.
    pub(super) fn lock(&self, etag: &str) -> io::Result<Lock> {
        std::fs::create_dir_all(self.model.join("blobs"))?;
        std::fs::create_dir_all(&self.locks)?;
        let file = File::create(self.locks.join(format!("{etag}.lock")))?;
        file.lock()?;
        Ok(Lock(file))
    }

    /// Links the bytes with this etag as a file of the commit; returns the link's path.
    pub(super) fn link(&self, commit: &str, file: &str, etag: &str) -> io::Result<PathBuf> {
        let path = self.snapshot(commit).join(file);
        let folder = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(folder)?;
        // A relative link keeps the cache movable. It climbs out of the commit's folder and of `snapshots`.
        let depth = Path::new(file).components().count() + 1;
        let target: PathBuf = std::iter::repeat_n("..", depth).chain(["blobs", etag]).collect();
        match std::os::unix::fs::symlink(&target, &path) {
            // An old link to missing bytes, or another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::remove_file(&path)?;
                std::os::unix::fs::symlink(&target, &path)?;
            }
            linked => linked?,
        }
        Ok(path)
    }
}

/// Writes a small file atomically.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
