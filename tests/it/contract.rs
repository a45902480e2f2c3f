//! The OpenAPI file against the server: a validator, worked examples, generated clients, made-up requests, the commands of
//! docs/api.md, and what clients may keep.

mod caching;
mod clients;
mod commands;
mod examples;
mod fuzzing;
mod library;
mod numbers;
mod validity;

use std::path::{Path, PathBuf};
use std::process::Command;

use reprise_tests::server::binary;
use serde_json::Value;

/// The file as the server serves it.
fn contract() -> Value {
    let output = Command::new(binary()).arg("openapi").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The programs that check the file (`scripts/contract.sh`); `None` after a skip.
#[track_caller]
fn tools() -> Option<PathBuf> {
    let tools = reprise_tests::contract_tools();
    if tools.is_none() {
        reprise_tests::skip("the contract's tools are not installed; run scripts/contract.sh");
    }
    tools
}

/// Runs a program, which must succeed. Returns what it said.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    said
}

/// A file of `tests/contract`.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contract").join(name)
}
