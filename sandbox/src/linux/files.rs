//! Landlock: which files the program may open.

use std::env;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use super::refused;
use crate::{Policy, SandboxError};

/// The newest Landlock that the tests ran on. What it does not know is not restricted; an older kernel restricts less,
/// and `calls` closes what that leaves open.
const NEWEST: ABI = ABI::V7;

/// Where distributions keep libraries.
const LIBRARIES: [&str; 8] = [
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/nix/store",
    "/gnu/store",
    "/run/opengl-driver/lib",
];

/// What the loader and the C library read: where libraries lie, how many processors there are, random numbers.
const SYSTEM_FILES: [&str; 7] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/possible",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
];

/// How the processors and their memory are grouped, for encoders that spread threads over them.
const PROCESSORS: &str = "/sys/devices/system/node";

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::ReadFile);
const LIST: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
const EXECUTE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | Execute});
/// Some formats are finished by reading back what was written, such as MP4 with its index in front.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate});
/// No links: a symbolic one would wait there for a process that follows it without a sandbox.
const FOLDER: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | ReadDir | MakeReg | MakeDir | RemoveFile});

/// Lets this process open what the policy, the program and its libraries need, and nothing else.
///
/// # Errors
/// A path of the policy can't be opened or is of the wrong kind, or the kernel refuses the rules.
pub(super) fn restrict(policy: &Policy, program: &Path, loader: Option<&Path>) -> Result<(), SandboxError> {
    let mut rules = Rules(ruleset().map_err(|error| refused("create the rules about files", error))?);
    for folder in library_folders(program) {
        rules.allow_if_there(&folder, READ)?;
    }
    for file in SYSTEM_FILES {
        rules.allow_if_there(Path::new(file), READ)?;
    }
    rules.allow_if_there(Path::new(PROCESSORS), LIST)?;
    rules.allow_if_there(Path::new("/dev/null"), WRITE)?;
    rules.allow_if_there(program, EXECUTE)?;
    if let Some(loader) = loader {
        rules.allow_if_there(loader, EXECUTE)?;
    }
    for file in &policy.read {
        rules.allow_file(file, READ)?;
    }
    for file in &policy.write {
        create(file)?;
        rules.allow_file(file, WRITE)?;
    }
    for folder in &policy.folders {
        rules.allow_folder(folder)?;
    }
    rules.enforce()
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

/// Folders of libraries: the system's, the operator's (`LD_LIBRARY_PATH`), and the program's own. Its own is `lib` beside
/// its `bin`.
fn library_folders(program: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = LIBRARIES.iter().map(PathBuf::from).collect();
    folders.extend(["/lib", "/lib32", "/lib64"].map(PathBuf::from));
    if let Some(named) = env::var_os("LD_LIBRARY_PATH") {
        folders
            .extend(env::split_paths(&named).filter(|folder| folder.parent().is_some_and(Path::is_absolute)));
    }
    if let Some(bin) = program.parent().filter(|folder| folder.ends_with("bin")) {
        folders.push(bin.with_file_name("lib"));
    }
    folders
}

struct Rules(RulesetCreated);

impl Rules {
    fn allow(&mut self, file: &File, access: BitFlags<AccessFs>) -> Result<(), SandboxError> {
        let rule = PathBeneath::new(file, access);
        let added = (&mut self.0).add_rule(rule).map(|_| ());
        added.map_err(|error| refused("add a rule about files", error))
    }

    /// Systems differ in what they have; what is not there can't be read anyway.
    fn allow_if_there(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), SandboxError> {
        match open(path) {
            Ok(file) => self.allow(&file, access),
            Err(_) => Ok(()),
        }
    }

    fn allow_file(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), SandboxError> {
        let file = open(path)?;
        // A rule about a folder holds for all that lies below.
        if is_folder(&file, path)? {
            return Err(wrong_kind(path, "it is a folder, and a file is needed"));
        }
        self.allow(&file, access)
    }

    fn allow_folder(&mut self, path: &Path) -> Result<(), SandboxError> {
        let folder = open(path)?;
        if !is_folder(&folder, path)? {
            return Err(wrong_kind(path, "it is a file, and a folder is needed"));
        }
        self.allow(&folder, FOLDER)
    }

    fn enforce(self) -> Result<(), SandboxError> {
        let step = "enforce the rules about files";
        let status = self.0.restrict_self().map_err(|error| refused(step, error))?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(refused(step, std::io::Error::from(std::io::ErrorKind::Unsupported)));
        }
        Ok(())
    }
}

/// A rule needs a descriptor that only names the file: nothing is read, and a named pipe does not block.
fn open(path: &Path) -> Result<File, SandboxError> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path);
    opened.map_err(|error| fault(path, "it must exist", error))
}

/// The rule is about the file itself, so there must be one.
fn create(path: &Path) -> Result<(), SandboxError> {
    let created = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    created
        .map(|_| ())
        .map_err(|error| fault(path, "it must be a file that can be written or created", error))
}

fn is_folder(file: &File, path: &Path) -> Result<bool, SandboxError> {
    let metadata = file.metadata().map_err(|error| fault(path, "its kind is unknown", error))?;
    Ok(metadata.is_dir())
}

fn fault(path: &Path, reason: &'static str, error: std::io::Error) -> SandboxError {
    SandboxError::Path { path: path.into(), reason, source: Some(error) }
}

fn wrong_kind(path: &Path, reason: &'static str) -> SandboxError {
    SandboxError::Path { path: path.into(), reason, source: None }
}
