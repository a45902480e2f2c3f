//! Turns a program and its policy into a command line.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{self, Path, PathBuf};
use std::process::{self, Command};
use std::str::FromStr;

use crate::{Policy, SUBCOMMAND, SandboxError, arguments, support};

/// Whether programs run in the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Never.
    Off,
    /// Where the system has all that the sandbox needs; elsewhere they run without it.
    #[default]
    WhereSupported,
    /// Always: where the system lacks something, no program is started.
    Required,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::WhereSupported => "where-supported",
            Self::Required => "required",
        })
    }
}

/// The text names no [`Mode`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a mode of the sandbox: write off, where-supported or required")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        [Self::Off, Self::WhereSupported, Self::Required]
            .into_iter()
            .find(|mode| mode.to_string() == text)
            .ok_or_else(|| UnknownMode(text.into()))
    }
}

/// Makes command lines that run programs in the sandbox.
#[derive(Debug, Clone)]
pub struct Launcher {
    executable: PathBuf,
    mode: Mode,
}

/// What to execute, up to where the program's own arguments begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The file to execute.
    pub executable: PathBuf,
    /// Its first arguments. Those of the program follow.
    pub arguments: Vec<OsString>,
}

impl From<CommandLine> for Command {
    fn from(line: CommandLine) -> Self {
        let mut command = Self::new(line.executable);
        command.args(line.arguments);
        command
    }
}

impl Launcher {
    /// `executable` is a program whose `main` calls [`crate::enter`], by its full path.
    pub fn new(executable: impl Into<PathBuf>, mode: Mode) -> Self {
        Self { executable: executable.into(), mode }
    }

    /// Takes the running program as the executable, which must call [`crate::enter`]. On Linux this holds even after
    /// its file was replaced by a newer version, which might read other arguments.
    ///
    /// # Errors
    /// The system doesn't tell where the running program lies.
    pub fn of_this_program(mode: Mode) -> io::Result<Self> {
        let this = Path::new("/proc/self/exe");
        let executable = if this.exists() { this.into() } else { env::current_exe()? };
        Ok(Self::new(executable, mode))
    }

    /// The mode it was made with.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether the programs it launches run in the sandbox.
    pub fn is_sandboxing(&self) -> bool {
        self.mode != Mode::Off && support().is_complete()
    }

    /// A command that runs `program` under `policy`. The caller adds the arguments of the program and the standard
    /// streams, and starts it by a [`crate::Spawner`]: the program is killed when the thread that spawned it ends.
    ///
    /// Without a sandbox it is the plain program, and the policy and its limits have no effect.
    ///
    /// # Errors
    /// As [`Self::command_line`].
    pub fn command(&self, program: &Path, policy: &Policy) -> Result<Command, SandboxError> {
        Ok(self.command_line(program, policy)?.into())
    }

    /// As [`Self::command`], for callers that build the command themselves. It serves this process only: its id is in
    /// the arguments. It creates and opens nothing.
    ///
    /// # Errors
    /// [`SandboxError::Unsupported`] where the sandbox is required and missing, [`SandboxError::NotFound`] where the
    /// program is not there, [`SandboxError::Path`] where a relative path has no meaning as the current folder is gone.
    pub fn command_line(&self, program: &Path, policy: &Policy) -> Result<CommandLine, SandboxError> {
        if !self.is_sandboxing() {
            if self.mode == Mode::Required {
                return Err(SandboxError::Unsupported(support()));
            }
            return Ok(CommandLine { executable: program.into(), arguments: Vec::new() });
        }
        let program = find(program)?;
        let mut arguments = vec![SUBCOMMAND.into()];
        arguments.extend(arguments::write(process::id(), &absolute(policy)?, &program));
        Ok(CommandLine { executable: self.executable.clone(), arguments })
    }
}

/// The full path of a program without symbolic links. A bare name is looked up in `PATH`.
fn find(program: &Path) -> Result<PathBuf, SandboxError> {
    let missing = || SandboxError::NotFound(program.into());
    let file = if program.components().count() > 1 || program.is_absolute() {
        program.to_owned()
    } else {
        let folders = env::var_os("PATH").ok_or_else(missing)?;
        let files = env::split_paths(&folders).map(|folder| folder.join(program));
        files.into_iter().find(|file| is_executable(file)).ok_or_else(missing)?
    };
    file.canonicalize().map_err(|_| missing())
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// The caller may give the command another folder to start in, so relative paths are resolved here.
fn absolute(policy: &Policy) -> Result<Policy, SandboxError> {
    let all = |paths: &[PathBuf]| paths.iter().map(|path| resolve(path)).collect::<Result<Vec<_>, _>>();
    Ok(Policy {
        read: all(&policy.read)?,
        write: all(&policy.write)?,
        folders: all(&policy.folders)?,
        limits: policy.limits,
    })
}

fn resolve(path: &Path) -> Result<PathBuf, SandboxError> {
    let reason = "it needs a full path, or a current folder that exists";
    path::absolute(path).map_err(|error| SandboxError::Path {
        path: path.into(),
        reason,
        source: Some(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_written_and_read_alike() {
        for mode in [Mode::Off, Mode::WhereSupported, Mode::Required] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("on".parse::<Mode>().unwrap_err().to_string().contains("required"));
    }

    #[test]
    fn off_gives_the_plain_program() {
        let line = Launcher::new("/exe", Mode::Off).command_line(Path::new("p"), &Policy::default()).unwrap();
        assert_eq!(line, CommandLine { executable: "p".into(), arguments: Vec::new() });
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = find(Path::new("no-such-program")).unwrap_err();
        assert_eq!(error.exit_code(), 127);
        assert!(error.to_string().contains("no-such-program"));
    }
}
