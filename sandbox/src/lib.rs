//! Runs a program that reads hostile files, such as ffmpeg, so that it reaches almost nothing.
//!
//! The program may read its input files, write its output file or folder, and load the libraries of the system. It may
//! not open another file, use the network, start or signal another process, or outlive the process that started it.
//!
//! The parts, in the order in which a service uses them:
//!
//! - `main` calls [`enter`] before anything else when the first argument is [`SUBCOMMAND`].
//! - A [`Launcher`] turns a program and its [`Policy`] into a command line: the service's own executable, the hidden
//!   subcommand, the policy, the program. The caller adds the arguments of the program.
//! - A [`Spawner`] starts that command line from a thread that lives as long as the process.
//! - The child enters the sandbox and becomes the program. Nothing runs between `fork` and `exec` in the service
//!   itself, which has many threads.
//!
//! The kernel enforces it. Landlock (Linux 5.13 and later) rules over files. A seccomp filter rules over system calls:
//! it alone keeps the program from the network and from other processes, so that an old Landlock does not open those.
//! Neither needs privileges, and both hold for root. Elsewhere programs run without a sandbox; [`support`] says so.
//!
//! What it does not hide: whether a file exists and how large it is (`stat` is not restricted), the limits and the
//! command line of the process itself, and what the program writes to its standard output and error.

mod arguments;
mod detected;
mod error;
mod launcher;
mod offered;
mod policy;
mod spawner;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use linux as system;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
use elsewhere as system;

use std::ffi::OsString;

pub use detected::support;
pub use error::SandboxError;
pub use launcher::{CommandLine, Launcher, Mode, UnknownMode};
pub use offered::Support;
pub use policy::{Limits, Policy};
pub use spawner::Spawner;

/// The hidden subcommand of the service's executable: its first argument when it is to enter the sandbox.
pub const SUBCOMMAND: &str = "sandboxed";

/// Enters the sandbox and becomes the program that `args` name. `args` are the arguments after [`SUBCOMMAND`], as a
/// [`Launcher`] wrote them.
///
/// Call it first in `main`: the process must have one thread, since Landlock and seccomp restrict the calling thread.
///
/// The program finds no file descriptor above 2, and of the environment only the language, the time zone and the
/// places of libraries: a hostile program has no use for the secrets of a service.
///
/// It never returns. Where the sandbox or the program cannot start, it prints one line to standard error and ends the
/// process with [`SandboxError::exit_code`].
pub fn enter(args: impl Iterator<Item = OsString>) -> ! {
    let error = match arguments::Start::parse(args) {
        Ok(start) => system::enter(start),
        Err(error) => error,
    };
    eprintln!("reprise sandbox: {}", error.chain());
    std::process::exit(error.exit_code());
}
