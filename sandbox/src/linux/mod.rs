//! The sandbox of Linux: the order in which a child closes the doors behind it.

mod calls;
mod files;
mod kernel;
mod limits;
mod program;

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{self, Command};

use rustix::process::{Pid, getppid};

use crate::arguments::Start;
use crate::{SandboxError, Support};

/// The variables that the program keeps: how it writes text and time, where libraries lie, and how many memory arenas and
/// OpenMP threads it may have.
const KEPT_VARIABLES: [&str; 7] =
    ["LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "MALLOC_ARENA_MAX", "OMP_THREAD_LIMIT"];

pub(crate) fn support() -> Support {
    Support {
        known: true,
        landlock: kernel::landlock_version(),
        seccomp: rustix::thread::secure_computing_mode().is_ok(),
    }
}

pub(crate) fn die_with_parent(command: &mut Command) -> io::Result<()> {
    let parent = pid(process::id()).ok_or_else(|| io::Error::other("this process has no id"))?;
    kernel::before_exec(command, move || kernel::die_with(parent));
    Ok(())
}

/// Returns only if the program could not be started.
pub(crate) fn enter(start: Start) -> SandboxError {
    match restrict(&start) {
        Ok(()) => execute(&start),
        Err(error) => error,
    }
}

/// Each step needs something that a later one takes away.
fn restrict(start: &Start) -> Result<(), SandboxError> {
    let parent = pid(start.parent).ok_or(SandboxError::ParentEnded)?;
    kernel::die_with(parent).map_err(|_| SandboxError::ParentEnded)?;
    // Compiled before the limits hold, which may leave little memory.
    let filters = calls::Filters::compile(process::id())?;
    let loader = program::loader(&start.program)?;
    files::restrict(&start.policy, &start.program, loader.as_deref())?;
    kernel::close_on_exec()
        .map_err(|error| refused("close the files that the program is not to have", error))?;
    limits::set(&start.policy.limits)?;
    filters.install()
}

fn execute(start: &Start) -> SandboxError {
    let mut command = Command::new(&start.program);
    command.args(&start.arguments).env_clear().envs(kept_variables());
    let source = Some(command.exec());
    let reason =
        "the system can't execute it: is it a program for this machine, and may this user execute it?";
    SandboxError::NotExecutable { program: start.program.clone(), reason, source }
}

fn kept_variables() -> impl Iterator<Item = (&'static str, OsString)> {
    KEPT_VARIABLES.into_iter().filter_map(|name| Some((name, env::var_os(name)?)))
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

fn is_parent(parent: Pid) -> bool {
    getppid() == Some(parent)
}

fn refused(step: &'static str, source: impl Error + Send + Sync + 'static) -> SandboxError {
    SandboxError::Kernel { step, source: Box::new(source) }
}
