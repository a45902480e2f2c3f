//! Limits and failures to start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use reprise_sandbox::{Limits, Mode, Policy, SandboxError};

use crate::scene::{PROBE, Scene, has_sandbox, launcher, said};

fn run(limits: Limits, words: &[&str]) -> std::process::Output {
    let scene = Scene::new();
    let policy = Policy { limits, ..scene.policy() };
    let words: Vec<String> = words.iter().map(|word| word.replace('@', &scene.text(""))).collect();
    scene.run_under(Mode::Required, &policy, PROBE, &words)
}

#[test]
fn memory_ends() {
    if !has_sandbox() {
        return;
    }
    let limits = Limits { memory_bytes: Some(1 << 30), ..Limits::default() };
    assert_eq!(said(&run(limits, &["allocate", "500000000"])), "done");
    assert_eq!(said(&run(limits, &["allocate", "1500000000"])), "refused 0");
    assert_eq!(said(&run(Limits::default(), &["allocate", "1500000000"])), "done");
}

#[test]
fn a_file_can_not_grow_for_ever() {
    if !has_sandbox() {
        return;
    }
    let limits = Limits { file_bytes: Some(1000), ..Limits::default() };
    assert_eq!(said(&run(limits, &["write-bytes", "@output", "1000"])), "done");
    assert_eq!(run(limits, &["write-bytes", "@output", "1001"]).status.signal(), Some(libc::SIGXFSZ));
}

#[test]
fn processor_time_ends() {
    if !has_sandbox() {
        return;
    }
    let limits = Limits { cpu_seconds: Some(1), ..Limits::default() };
    assert_eq!(run(limits, &["spin"]).status.signal(), Some(libc::SIGXCPU));
}

#[test]
fn open_files_end() {
    if !has_sandbox() {
        return;
    }
    let limits = Limits { open_files: Some(3), ..Limits::default() };
    let output = run(limits, &["read", "@input"]);
    assert!(!output.status.success() || said(&output) == "refused 24", "{}", said(&output));
}

/// The child fails to start with this exit code and a line that says why.
fn check_failure(policy: &Policy, program: &Path, code: i32, reason: &str) {
    if !has_sandbox() {
        return;
    }
    let scene = Scene::new();
    let output = scene.run_under(Mode::Required, policy, program.to_str().unwrap(), &["x"]);
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    let line = said(&output);
    assert!(line.starts_with("reprise sandbox: ") && line.contains(reason) && !line.contains('\n'), "{line}");
}

#[test]
fn what_can_not_start_says_why() {
    let scene = Scene::new();
    let input = |path: PathBuf| Policy { read: vec![path], ..Policy::default() };
    check_failure(&input(scene.path("absent")), Path::new(PROBE), 125, "absent");
    check_failure(&input(scene.path("folder")), Path::new(PROBE), 125, "it is a folder");
    let output = Policy { write: vec![scene.path("absent/file")], ..Policy::default() };
    check_failure(&output, Path::new(PROBE), 125, "created");
    let folder = Policy { folders: vec![scene.path("input")], ..Policy::default() };
    check_failure(&folder, Path::new(PROBE), 125, "it is a file");
    let script = scene.path("script");
    fs::write(&script, "#!/bin/sh\nexec ffmpeg\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    check_failure(&Policy::default(), &script, 126, "it is a script");
}

#[test]
fn a_missing_program_is_refused_by_the_launcher() {
    if !has_sandbox() {
        return;
    }
    let error = launcher(Mode::Required).command(Path::new("/no/such"), &Policy::default()).unwrap_err();
    assert!(matches!(error, SandboxError::NotFound(_)), "{error}");
}
