//! Files that are written under another name until they are whole.
//!
//! Servers may share a folder. An unfinished file is locked by its writer, and a dead process holds no lock: so a file that
//! is being written can be told from one that a killed server has left.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk;

/// The extension of an unfinished file.
const PARTIAL: &str = "partial";
/// Where the file system has no locks, an unfinished file counts as abandoned after this time.
const ABANDONED: Duration = Duration::from_secs(3_600);

/// A file that is being written. It is removed if it is dropped before its end, so that a full disk is not kept full.
pub(crate) struct Unfinished {
    file: File,
    partial: PathBuf,
    has_its_name: bool,
}

impl Unfinished {
    /// Begins the file of `path`, which no other writer chooses, under another name.
    pub(crate) fn begin(path: &Path) -> io::Result<Unfinished> {
        let mut attempt = 0;
        loop {
            // A new name each time: a server that removes the last one must not meet this one.
            attempt += 1;
            let partial = path.with_extension(format!("{attempt}.{PARTIAL}"));
            let file = File::create(&partial)?;
            // Without locks, the file's age decides.
            let _ = file.lock();
            // Until it was locked, another server could find it abandoned and remove it.
            if fs::exists(&partial)? {
                return Ok(Unfinished { file, partial, has_its_name: false });
            }
        }
    }

    /// Syncs the file and gives it its name.
    pub(crate) fn finish(mut self, path: &Path) -> io::Result<()> {
        disk::step()?;
        self.file.sync_all()?;
        disk::step()?;
        fs::rename(&self.partial, path)?;
        self.has_its_name = true;
        disk::step()?;
        disk::sync_folder(path.parent().unwrap_or(path))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.has_its_name {
            remove(&self.partial);
        }
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Unfinished {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// An empty file without a name, which the system frees with its last user. Where an open file can't be removed, its name
/// stays, that of an unfinished file.
pub(crate) fn nameless(path: &Path) -> io::Result<File> {
    let partial = path.with_extension(PARTIAL);
    let file = File::options().read(true).write(true).create_new(true).open(&partial)?;
    let _ = fs::remove_file(&partial);
    Ok(file)
}

/// Whether this is the name of an unfinished file.
pub(crate) fn is_unfinished(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == PARTIAL)
}

/// Removes an unfinished file that no process is writing. If the system refuses that, the file stays.
pub(crate) fn remove_if_abandoned(path: &Path) {
    // Network file systems lock only files that are open for writing.
    let Ok(file) = File::options().write(true).open(path) else { return };
    let age = || file.metadata().ok()?.modified().ok()?.elapsed().ok();
    if is_abandoned(&file.try_lock(), age()) {
        // Still locked: a server that has just created the file notices that it is gone.
        remove(path);
    }
}

fn is_abandoned(locked: &Result<(), TryLockError>, age: Option<Duration>) -> bool {
    match locked {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => age.is_some_and(|age| age >= ABANDONED),
    }
}

fn remove(path: &Path) {
    if disk::step().is_ok() {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks whether an unfinished file stays when abandoned files are removed.
    #[track_caller]
    fn check(path: &Path, expected: bool) {
        remove_if_abandoned(path);
        assert_eq!(path.exists(), expected);
    }

    #[test]
    fn what_a_writer_holds_stays_and_what_a_killed_one_left_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.segment");
        let writing = Unfinished::begin(&path).unwrap();
        let partial = writing.partial.clone();
        assert!(is_unfinished(&partial) && !is_unfinished(&path));
        check(&partial, true);
        disk::killed_after(0, || drop(writing));
        assert!(partial.exists());
        check(&partial, false);
    }

    #[test]
    fn a_finished_file_has_its_name_and_one_that_failed_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.segment");
        let mut writing = Unfinished::begin(&path).unwrap();
        writing.write_all(b"whole").unwrap();
        writing.finish(&path).unwrap();
        drop(Unfinished::begin(&folder.path().join("2.segment")).unwrap());
        assert!(nameless(&folder.path().join("3.segment")).is_ok());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(
            (names, fs::read(&path).unwrap().as_slice()),
            (vec!["1.segment".into()], b"whole".as_slice())
        );
    }

    #[test]
    fn a_file_that_goes_before_it_is_locked_is_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |number: u32| {
            let writing = Unfinished::begin(&folder.path().join(format!("{number}.segment"))).unwrap();
            assert!(writing.partial.exists());
        };
        std::thread::scope(|threads| {
            let writer = threads.spawn(|| (0..5_000).for_each(begin));
            while !writer.is_finished() {
                let paths = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
                paths.for_each(|path| remove_if_abandoned(&path));
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_locks_the_age_decides() {
        let without = || Err(TryLockError::Error(io::ErrorKind::Unsupported.into()));
        assert!(!is_abandoned(&without(), None));
        assert!(!is_abandoned(&without(), Some(ABANDONED - Duration::from_secs(1))));
        assert!(is_abandoned(&without(), Some(ABANDONED)));
    }
}
