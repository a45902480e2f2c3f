//! Backups of a running server, restored into the other kind of database; damage; `reprise verify`.

mod damage;
mod engines;
mod faults;
mod moves;
mod verify;

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::faults::bed::Bed;

/// The output of a command on a bed that must succeed.
#[track_caller]
fn prints(bed: &Bed, arguments: &[&str]) -> String {
    let output = bed.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn prints_json(bed: &Bed, arguments: &[&str]) -> Value {
    let text = prints(bed, arguments);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The error output of a command on a bed that must fail.
#[track_caller]
fn complains(bed: &Bed, arguments: &[&str]) -> String {
    let output = bed.run(arguments);
    assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    said(&output)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}
