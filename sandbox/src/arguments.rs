//! The arguments of the hidden subcommand: how a launcher tells its child what to do.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::{Limits, Policy, SandboxError};

/// What a child is to do: all that stands on its command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// The process that must still be the parent when the program starts.
    pub(crate) parent: u32,
    pub(crate) policy: Policy,
    /// Its full path.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

/// The arguments that name a policy and a program. Those of the program follow them.
pub(crate) fn write(parent: u32, policy: &Policy, program: &Path) -> Vec<OsString> {
    let mut words = Words::default();
    words.number("--parent", Some(u64::from(parent)));
    words.paths("--read", &policy.read);
    words.paths("--write", &policy.write);
    words.paths("--folder", &policy.folders);
    words.number("--cpu", policy.limits.cpu_seconds);
    words.number("--memory", policy.limits.memory_bytes);
    words.number("--file-size", policy.limits.file_bytes);
    words.number("--open-files", policy.limits.open_files);
    words.0.push("--".into());
    words.0.push(program.into());
    words.0
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn paths(&mut self, name: &str, paths: &[PathBuf]) {
        for path in paths {
            self.0.push(name.into());
            self.0.push(path.into());
        }
    }

    fn number(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.0.push(name.into());
            self.0.push(value.to_string().into());
        }
    }
}

impl Start {
    /// # Errors
    /// An argument is unknown, has no value or a wrong one, or the parent or the program is missing.
    pub(crate) fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Self, SandboxError> {
        let mut policy = Policy::default();
        let mut parent = None;
        loop {
            let name = args.next().ok_or_else(|| wrong("`--` and a program are missing"))?;
            if name == "--" {
                break;
            }
            let value = args.next().ok_or_else(|| wrong(&format!("{} has no value", name.display())))?;
            match name.to_str() {
                Some("--parent") => parent = Some(number(&value)?),
                _ => add(&mut policy, &name, value)?,
            }
        }
        let parent = parent.and_then(|number| u32::try_from(number).ok());
        Ok(Self {
            parent: parent.ok_or_else(|| wrong("--parent and a process are missing"))?,
            policy,
            program: args.next().ok_or_else(|| wrong("a program after `--` is missing"))?.into(),
            arguments: args.collect(),
        })
    }
}

fn add(policy: &mut Policy, name: &OsStr, value: OsString) -> Result<(), SandboxError> {
    let Limits { cpu_seconds, memory_bytes, file_bytes, open_files } = &mut policy.limits;
    match name.to_str() {
        Some("--read") => policy.read.push(value.into()),
        Some("--write") => policy.write.push(value.into()),
        Some("--folder") => policy.folders.push(value.into()),
        Some("--cpu") => *cpu_seconds = Some(number(&value)?),
        Some("--memory") => *memory_bytes = Some(number(&value)?),
        Some("--file-size") => *file_bytes = Some(number(&value)?),
        Some("--open-files") => *open_files = Some(number(&value)?),
        _ => return Err(wrong(&format!("{} is no argument of it", name.display()))),
    }
    Ok(())
}

fn number(value: &OsStr) -> Result<u64, SandboxError> {
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| wrong(&format!("{} is not a whole number", value.display())))
}

fn wrong(what: &str) -> SandboxError {
    SandboxError::Arguments(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        Policy {
            read: vec!["/in/--read".into(), "/in/b c".into()],
            write: vec!["/out".into()],
            folders: vec!["/folder".into()],
            limits: Limits {
                cpu_seconds: Some(1),
                memory_bytes: Some(u64::MAX),
                file_bytes: Some(0),
                open_files: Some(16),
            },
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for policy in [policy(), Policy::default()] {
            let mut words = write(7, &policy, Path::new("/bin/program"));
            words.extend(["--read".into(), "--".into(), "x".into()]);
            let start = Start::parse(words.into_iter()).unwrap();
            let arguments = vec!["--read".into(), "--".into(), "x".into()];
            assert_eq!(start, Start { parent: 7, policy, program: "/bin/program".into(), arguments });
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for line in [
            "",
            "--parent 7",
            "--parent 7 --",
            "-- p",
            "--parent x -- p",
            "--parent -1 -- p",
            "--parent 9999999999 -- p",
            "--parent 7 --cpu 1.5 -- p",
            "--parent 7 --fork yes -- p",
            "--parent 7 --read",
        ] {
            let error = Start::parse(line.split_whitespace().map(OsString::from)).unwrap_err();
            assert!(matches!(error, SandboxError::Arguments(_)), "{line}: {error}");
            assert_eq!(error.exit_code(), 125);
        }
    }
}
