//! What cannot be read, and a Tesseract that is missing, fails or answers nonsense.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use reprise_tests::film::{Store, film};
use reprise_tests::skip;
use reprise_tests::written::{Look, Slide, can_read, written};
use tempfile::tempdir;

use super::{read, reading};

/// Expects a failure that says this.
#[track_caller]
fn check(command: &mut Command, expected: &str) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(expected), "{expected:?} is not in {said:?}");
    assert!(!said.contains("panicked"), "{said}");
}

/// A Tesseract that lists English and then runs these commands.
fn stand_in(folder: &Path, commands: &str) -> PathBuf {
    let path = folder.join("tesseract");
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in\n--version) echo 'tesseract 5.0.0' ;;\n\
         --list-langs) echo 'List of available languages in \"{}\" (1):'; echo eng ;;\n*) {commands} ;;\nesac\n",
        folder.display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn what_is_no_video_is_refused() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempdir().unwrap();
    let text = folder.path().join("text.mp4");
    fs::write(&text, "no video").unwrap();
    check(&mut reading(&text), "text.mp4");
    check(&mut reading(&folder.path().join("absent.mp4")), "absent.mp4");
}

#[test]
fn a_missing_tesseract_or_language_is_named() {
    let folder = tempdir().unwrap();
    let file = film(folder.path(), "plain", &["color=c=red"], Store::Web);
    check(reading(&file).env("REPRISE_TESSERACT", "/no/such"), "install tesseract-ocr");
    check(reading(&file).env("REPRISE_TESSERACT", "/bin/true"), "it is no tesseract");
    let stand_in = stand_in(folder.path(), "true");
    let with = |languages: &str| {
        let mut command = reading(&file);
        command.env("REPRISE_TESSERACT", &stand_in).args(["--languages", languages]);
        command
    };
    check(&mut with("eng+tlh"), "tesseract has no language \"tlh\"; installed are eng");
    check(&mut with("../eng"), "joined with `+`");
}

#[test]
fn a_tesseract_that_fails_gives_its_reason_and_nonsense_gives_no_lines() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempdir().unwrap();
    let file =
        written(folder.path(), "slide", &Look::default(), &[Slide { lines: &["Some words"], seconds: 2 }]);
    // A script is no program that the sandbox starts.
    let with = |commands: &str| {
        let mut command = reading(&file);
        command.arg("--no-sandbox").env("REPRISE_TESSERACT", stand_in(folder.path(), commands));
        command
    };
    check(&mut with("echo 'Page 1' >&2; echo 'out of ink' >&2; exit 1"), "out of ink");
    check(&mut with("kill -9 $$"), "signal: 9");
    for nonsense in
        ["true", "head -c 100000 /dev/urandom", "printf '5\\t1\\t1\\t1\\t1\\t1\\t-4\\t9\\t1\\t1\\t99\\tx'"]
    {
        let found = read(&mut with(nonsense));
        assert_eq!(found["lines"].as_array().map(Vec::len), Some(0), "{nonsense}: {found}");
    }
}
