//! What the program may use.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::refused;
use crate::{Limits, SandboxError};

/// # Errors
/// The kernel refuses a limit.
pub(super) fn set(limits: &Limits) -> Result<(), SandboxError> {
    // A core dump is a file that nobody asked for, with the input in it.
    lower(Resource::Core, 0, 0)?;
    if let Some(seconds) = limits.cpu_seconds {
        // At the first the program gets SIGXCPU, which it may catch; at the second it is killed.
        lower(Resource::Cpu, seconds, seconds.saturating_add(1))?;
    }
    for (resource, limit) in [
        (Resource::As, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
    ] {
        if let Some(limit) = limit {
            lower(resource, limit, limit)?;
        }
    }
    Ok(())
}

/// Only root may raise a limit, and a policy is there to lower them.
fn lower(resource: Resource, current: u64, maximum: u64) -> Result<(), SandboxError> {
    let now = getrlimit(resource);
    let least = |limit: u64, now: Option<u64>| Some(now.map_or(limit, |now| now.min(limit)));
    let limit = Rlimit { current: least(current, now.current), maximum: least(maximum, now.maximum) };
    setrlimit(resource, limit).map_err(|error| refused("set a limit", error))
}
