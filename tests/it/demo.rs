//! `make demo` without a terminal: one line per step, complete errors, the address at the end.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use reprise_tests::film::{Store, film};
use reprise_tests::server::binary;

/// Runs the build script with another program in place of cargo.
fn build(cargo: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("cargo");
    std::fs::write(&program, format!("#!/bin/sh\n{cargo}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/build.sh");
    Command::new(script).arg("demo").env("PATH", path).output().unwrap()
}

const BAR: &str = r"printf '   Compiling a v1\n    Building [==> ] 1/2: a   \r' >&2";

#[test]
fn a_build_is_one_line() {
    let built = build(BAR);
    let stdout = String::from_utf8(built.stdout).unwrap();
    assert!(built.status.success());
    assert!(stdout.starts_with("built in 0:0") && stdout.lines().count() == 1, "{stdout}");
    assert_eq!(String::from_utf8(built.stderr).unwrap(), "");
}

#[test]
fn a_build_that_fails_says_all_that_cargo_said() {
    let built = build(&format!("{BAR}; echo 'error: it is broken' >&2; exit 101"));
    let stderr = String::from_utf8(built.stderr).unwrap();
    assert_eq!(built.status.code(), Some(1));
    assert!(stderr.contains("Compiling a v1\n") && stderr.contains("error: it is broken\n"), "{stderr}");
    assert!(!stderr.contains("Building ["), "{stderr}");
}

#[test]
fn a_demo_says_what_it_did_and_ends_with_the_address() {
    let folder = tempfile::tempdir().unwrap();
    let videos = folder.path().join("videos");
    std::fs::create_dir(&videos).unwrap();
    film(&videos, "a", &["testsrc2"], Store::Web);
    std::fs::write(videos.join("notes.txt"), "no video").unwrap();
    let mut demo = Command::new(binary())
        .args(["demo", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .arg("--videos")
        .arg(&videos)
        .env("REPRISE_MODEL", "builtin:tiny")
        .env_remove("REPRISE_API_KEY")
        .env_remove("DATABASE_URL")
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(demo.stdout.take().unwrap()).lines() {
        said.push(line.unwrap());
        if said.last().unwrap().starts_with("The page is at ") {
            break;
        }
    }
    demo.kill().unwrap();
    let stderr = String::from_utf8(demo.wait_with_output().unwrap().stderr).unwrap();
    assert_eq!(stderr, "", "no log of each job");
    let [listening, skipped, ingested, _, _, page] = &said[..] else { panic!("{said:?}") };
    let address = listening.strip_prefix("listening on ").unwrap();
    assert!(skipped.starts_with("skipped ") && skipped.contains("notes.txt"), "{skipped}");
    assert!(ingested.starts_with("ingested 1 of 2 files in 0:"), "{ingested}");
    assert_eq!(page, &format!("The page is at {address}"));
}
