//! The moments between two changes of files, at each of which a process may be killed.
//!
//! Whoever is about to change a file takes a [`step`] first. Tests have it fail from some step on, as if the process had
//! ended there: whatever was begun stays half done.

use std::fs::File;
use std::io;
use std::path::Path;

/// Fails if a test wants the process to have ended by now.
#[cfg(not(test))]
#[inline]
pub(crate) fn step() -> io::Result<()> {
    Ok(())
}

/// Makes the names in a folder survive a power cut. Only Unix lets one sync a folder.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
pub(crate) use simulated::{killed_after, step};

#[cfg(test)]
mod simulated {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    }

    pub(crate) fn step() -> io::Result<()> {
        LEFT.with(|left| match left.get() {
            None => Ok(()),
            Some(0) => Err(io::Error::other("killed by the test")),
            Some(more) => {
                left.set(Some(more - 1));
                Ok(())
            }
        })
    }

    /// Runs `work` on this thread as if the process were killed after so many steps; whether it came so far.
    pub(crate) fn killed_after(steps: u64, work: impl FnOnce()) -> bool {
        LEFT.with(|left| left.set(Some(steps)));
        work();
        LEFT.with(|left| left.replace(None)) == Some(0)
    }
}
