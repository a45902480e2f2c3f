//! Downloaded files on this machine, laid out as Python's huggingface_hub lays them out, so that either finds what the
//! other has fetched:
//!
//! ```text
//! models--ORG--NAME/refs/REVISION            the commit that a branch or tag was at when it was asked for
//! models--ORG--NAME/blobs/ETAG               the bytes; ETAG.incomplete: as much of them as has come
//! models--ORG--NAME/snapshots/COMMIT/FILE    a link to the bytes
//! models--ORG--NAME/.no_exist/COMMIT/FILE    a note that the commit has no such file
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

    /// The commit that `revision` was at when it was asked for, or is.
    pub(super) fn commit(&self, revision: &str) -> Option<String> {
        let noted = std::fs::read_to_string(self.model.join("refs").join(revision)).ok();
        let noted = noted.map(|commit| commit.trim().to_owned()).filter(|commit| !commit.is_empty());
        noted.or_else(|| self.snapshot(revision).is_dir().then(|| revision.to_owned()))
    }

    /// Notes the commit that `revision` is at.
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

    /// A commit's file, if its bytes are here.
    pub(super) fn file(&self, commit: &str, file: &str) -> Option<PathBuf> {
        Some(self.snapshot(commit).join(file)).filter(|path| path.is_file())
    }

    /// Whether the commit is known to have no such file.
    pub(super) fn is_absent(&self, commit: &str, file: &str) -> bool {
        self.absent(commit, file).exists()
    }

    /// Notes that the commit has no such file.
    pub(super) fn keep_absent(&self, commit: &str, file: &str) -> io::Result<()> {
        write_whole(&self.absent(commit, file), "")
    }

    fn absent(&self, commit: &str, file: &str) -> PathBuf {
        self.model.join(".no_exist").join(commit).join(file)
    }

    /// Where the bytes with this etag are, or are to be.
    pub(super) fn blob(&self, etag: &str) -> PathBuf {
        self.model.join("blobs").join(etag)
    }

    /// Where bytes with this etag are gathered.
    pub(super) fn incomplete(&self, etag: &str) -> PathBuf {
        self.model.join("blobs").join(format!("{etag}.incomplete"))
    }

    /// Waits until no other process downloads these bytes, and makes the folder that they go to.
    pub(super) fn lock(&self, etag: &str) -> io::Result<Lock> {
        std::fs::create_dir_all(self.model.join("blobs"))?;
        std::fs::create_dir_all(&self.locks)?;
        let file = File::create(self.locks.join(format!("{etag}.lock")))?;
        file.lock()?;
        Ok(Lock(file))
    }

    /// Makes the bytes with this etag a file of the commit; its path.
    pub(super) fn link(&self, commit: &str, file: &str, etag: &str) -> io::Result<PathBuf> {
        let path = self.snapshot(commit).join(file);
        let folder = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(folder)?;
        // Relative, so that a cache can be moved: up to the commit's folder, and past it and `snapshots`.
        let depth = Path::new(file).components().count() + 1;
        let target: PathBuf = std::iter::repeat_n("..", depth).chain(["blobs", etag]).collect();
        match std::os::unix::fs::symlink(&target, &path) {
            // A link to bytes that are gone, or another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::remove_file(&path)?;
                std::os::unix::fs::symlink(&target, &path)?;
            }
            linked => linked?,
        }
        Ok(path)
    }
}

/// Writes a small file so that no reader sees half of it.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
