//! Why a sandbox could not be entered or a program not be started.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use crate::Support;

/// Why a program could not be started in the sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The sandbox is required and this system has none.
    #[error("{}, and the sandbox is required: use Linux with Landlock and seccomp, or do not require it", gap(.0))]
    Unsupported(Support),
    /// No such program, neither at its path nor in `PATH`.
    #[error("cannot find the program `{}`: install it, or name its full path", .0.display())]
    NotFound(PathBuf),
    /// The file is there, but is no program that the sandbox can start.
    #[error("cannot start `{}`: {reason}", program.display())]
    NotExecutable {
        /// The program.
        program: PathBuf,
        /// What is wrong with it and what to do.
        reason: &'static str,
        /// What the system said, if it was asked.
        #[source]
        source: Option<io::Error>,
    },
    /// The arguments of the hidden subcommand are wrong: it was called by hand, or launcher and executable differ.
    #[error(
        "{0}: the arguments of `sandboxed` come from a launcher of the same version, do not write them by hand"
    )]
    Arguments(String),
    /// A file or folder of the policy cannot be opened.
    #[error("cannot open `{}`, which the policy names: {reason}", path.display())]
    Path {
        /// The file or folder.
        path: PathBuf,
        /// What it should have been.
        reason: &'static str,
        /// What the system said, if it was asked.
        #[source]
        source: Option<io::Error>,
    },
    /// The process that asked for the program ended before the program started.
    #[error("the process that started this one has ended, so nobody waits for the program")]
    ParentEnded,
    /// The kernel refused a part of the sandbox.
    #[error(
        "the kernel refused to {step}: run the service without the sandbox if this system cannot have one"
    )]
    Kernel {
        /// The part, as a verb and its object.
        step: &'static str,
        /// What the kernel said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl SandboxError {
    /// The exit code of a process that failed to enter the sandbox, in the tradition of `env` and `timeout`:
    ///
    /// - 125: the sandbox could not be set up.
    /// - 126: the program was found and cannot be executed.
    /// - 127: the program was not found.
    ///
    /// The program itself may end with these codes too; only the line on standard error that starts with
    /// `reprise sandbox:` tells them apart.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound(_) => 127,
            Self::NotExecutable { .. } => 126,
            _ => 125,
        }
    }

    /// The message and its causes, in one line.
    pub(crate) fn chain(&self) -> String {
        let mut line = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            line.push_str(": ");
            line.push_str(&error.to_string());
            cause = error.source();
        }
        line.replace('\n', " ")
    }
}

fn gap(support: &Support) -> &'static str {
    support.gap().unwrap_or("the sandbox is missing")
}
