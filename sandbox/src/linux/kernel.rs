//! The calls to the kernel that no safe crate wraps. The only unsafe code of the crate.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use rustix::process::{Pid, Signal, set_parent_process_death_signal};

/// The version of the kernel's Landlock interface. `None`: it has none, it is off, or a container hides it.
pub(super) fn landlock_version() -> Option<u32> {
    const CREATE_RULESET_VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel reads no attributes, so a null pointer of length 0 is what it asks for. The
    // call changes nothing.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u8>(), 0_usize, CREATE_RULESET_VERSION)
    };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

/// Marks every file descriptor above 2 to be closed when the program starts. The sandbox's own stay usable until then.
pub(super) fn close_on_exec() -> io::Result<()> {
    // SAFETY: the call marks descriptors and closes none. Every descriptor that Rust owns stays valid.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, 3_u32, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Kills this process when the thread that spawned it ends.
///
/// # Errors
/// `parent` is no longer the parent: it ended before, and no signal will come.
pub(super) fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if super::is_parent(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

/// Has the child run `action` before it becomes the program. The action may only make system calls: the child is a copy
/// of a process with threads, whose locks it may have copied closed.
pub(super) fn before_exec(
    command: &mut Command,
    action: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the one action of this crate is `die_with`, which allocates nothing, takes no lock and makes two system
    // calls.
    unsafe { command.pre_exec(action) };
}
