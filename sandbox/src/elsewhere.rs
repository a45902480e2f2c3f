//! Systems without a sandbox: programs run as they are.

use std::io;
use std::process::Command;

use crate::arguments::Start;
use crate::{SandboxError, Support};

pub(crate) fn support() -> Support {
    Support { known: false, landlock: None, seccomp: false }
}

/// A launcher never asks for it here.
pub(crate) fn enter(_start: Start) -> SandboxError {
    SandboxError::Unsupported(support())
}

/// There is no way to ask for it here: such a child lives on when the service is killed.
pub(crate) fn die_with_parent(_command: &mut Command) -> io::Result<()> {
    Ok(())
}
