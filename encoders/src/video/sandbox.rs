//! The sandbox in which ffmpeg and ffprobe run. The process chooses it once, at its start.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use reprise_sandbox::{Launcher, Mode, Policy, SandboxError};

use super::error::VideoError;
use super::ffmpeg::Program;
use super::limits::Limits;
use crate::Cause;

/// Largest file that a run may write, in bytes: more than a rendition of the longest video takes.
const MAX_FILE_BYTES: u64 = 256 << 30;
/// Most open files of a run.
const MAX_OPEN_FILES: u64 = 64;

static LAUNCHER: OnceLock<Launcher> = OnceLock::new();

/// Runs ffmpeg and ffprobe by `launcher` from now on. Only the first call counts. Without one, they run without a sandbox.
pub fn use_sandbox(launcher: Launcher) {
    let _ = LAUNCHER.set(launcher);
}

/// A command that runs the program under the policy. Its arguments are to follow.
pub(super) fn command(program: Program, path: &Path, policy: &Policy) -> Result<Command, VideoError> {
    let off = || Launcher::new("", Mode::Off);
    LAUNCHER.get_or_init(off).command(path, policy).map_err(|error| match error {
        SandboxError::NotFound(_) => program.not_found(),
        error => VideoError::Ffmpeg(Cause::in_context(program.name(), error)),
    })
}

/// Limits of a run, inside the sandbox.
pub(super) fn limits(limits: &Limits) -> reprise_sandbox::Limits {
    // All cores may be busy until the wall clock ends the run.
    let cores = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    reprise_sandbox::Limits {
        cpu_seconds: Some(limits.wall_clock.as_secs().saturating_add(1).saturating_mul(cores)),
        memory_bytes: Some(limits.memory_bytes),
        file_bytes: Some(MAX_FILE_BYTES),
        open_files: Some(MAX_OPEN_FILES),
    }
}
