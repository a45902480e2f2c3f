//! What a program may reach and use.

use std::path::PathBuf;

/// What one run of a program may reach, besides the libraries of the system. The default is nothing.
///
/// Relative paths count from the folder in which the launcher is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Files that it may read. Each must exist. Of a symbolic link it may read what the link names.
    pub read: Vec<PathBuf>,
    /// Files that it may write, shorten and read back. Those that do not exist are created empty before the program
    /// starts, since the kernel's rule is about a file and not about its name. So ffmpeg needs `-y`, and a program that
    /// fails leaves an empty file. The program can't remove or rename them.
    pub write: Vec<PathBuf>,
    /// Folders that must exist, in which it may list, create, read, write, rename and remove files, and create folders.
    /// Give each run a folder of its own: what lies there already is the program's too. It can't create links.
    pub folders: Vec<PathBuf>,
    /// What it may use.
    pub limits: Limits,
}

/// What one run of a program may use. `None` leaves a limit as the service itself has it; none is ever raised above
/// that.
///
/// There is no limit of processes: the program can't start any, so that each limit holds for all that it does. There
/// is none of threads either, because the kernel counts those for the user, and others run as the same user; each
/// thread needs a stack, so `memory_bytes` bounds them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Processor time, in seconds, over all threads. The program gets SIGXCPU then, and SIGKILL a second later.
    pub cpu_seconds: Option<u64>,
    /// Address space, in bytes: more than the memory it uses, since libraries and stacks of threads count in full.
    /// An allocation beyond it fails. The libraries of a common build of ffmpeg take up to 0.4 GB, and each thread 8 MB
    /// and more.
    pub memory_bytes: Option<u64>,
    /// The largest file that it may write, in bytes. A write beyond it ends the program by SIGXFSZ.
    pub file_bytes: Option<u64>,
    /// Open file descriptors. At least 16, or libraries can't be loaded.
    pub open_files: Option<u64>,
}
