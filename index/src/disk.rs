//! Fault injection for file changes: the points at which a process may be killed.
//!
//! The code calls [`step`] before each change of a file. Unit tests make all steps fail from one on, as if the process had
//! ended there: begun work stays half done. Tests of whole processes choose one step ([`reprise_faults`]).

use std::fs::File;
use std::io;
use std::path::Path;

/// Fails if a test ends the process at this step.
#[cfg(not(test))]
#[inline]
pub(crate) fn step() -> io::Result<()> {
    reprise_faults::at("index: change a file")
}

/// Syncs a folder, so that its file names survive a power cut. Only Unix can sync a folder.
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

    /// Runs `work` on this thread as if the process were killed after `steps` steps. Returns whether it reached that
    /// many steps.
    pub(crate) fn killed_after(steps: u64, work: impl FnOnce()) -> bool {
        LEFT.with(|left| left.set(Some(steps)));
        work();
        LEFT.with(|left| left.replace(None)) == Some(0)
    }
}
