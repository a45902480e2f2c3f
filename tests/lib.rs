//! Support for integration tests: test data, a server, a database, and skipping.

pub mod film;
pub mod hub;
pub mod lectures;
pub mod milvus;
pub mod mutations;
pub mod numbered;
pub mod postgres;
pub mod receiver;
pub mod server;
pub mod slides;
pub mod speech;
// Two targets compile a parser's source again; the tests in that source belong to the parser's crate.
#[cfg(not(test))]
pub mod targets;
pub mod written;

use std::path::PathBuf;

/// Whether missing test data fails a test (`REPRISE_REQUIRE_DATA=1`) instead of skipping it.
pub fn everything_is_required() -> bool {
    std::env::var("REPRISE_REQUIRE_DATA").is_ok_and(|value| value == "1")
}

/// Whether the long tests run too (`REPRISE_TEST_FULL=1`, set by `make test-full`).
pub fn is_full() -> bool {
    std::env::var("REPRISE_TEST_FULL").is_ok_and(|value| value == "1")
}

/// Prints the reason why a test cannot run here; `make test` counts the test as skipped.
///
/// # Panics
/// If `REPRISE_REQUIRE_DATA=1`.
#[track_caller]
#[expect(clippy::print_stdout, reason = "make test counts these lines")]
pub fn skip(why: &str) {
    assert!(!everything_is_required(), "{why}");
    println!("skipped: {why}");
}

/// Skips a test of something that no setup can provide, such as rights on the machine. It never fails.
#[expect(clippy::print_stdout, reason = "make test counts these lines")]
pub fn skip_optional(why: &str) {
    println!("skipped: {why}");
}

/// Path of a file or folder of the test data (`REPRISE_TEST_DATA`), for example
/// `test_data("video/odd/psd_fades.mp4")`; `None` after [`skip`].
///
/// # Panics
/// If it is missing and everything is required.
#[track_caller]
pub fn test_data(path: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("REPRISE_TEST_DATA") else {
        skip("REPRISE_TEST_DATA is not set");
        return None;
    };
    let path = PathBuf::from(folder).join(path);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("there is no {}", path.display()));
    None
}

/// The Python environment with vector engines: `REPRISE_TEST_ENGINES`, or where `scripts/engines.sh` puts it.
pub fn engines() -> Option<PathBuf> {
    installed("REPRISE_TEST_ENGINES", "engines")
}

/// The validator and generators of the contract: `REPRISE_TEST_CONTRACT`, or where `scripts/contract.sh` puts them.
pub fn contract_tools() -> Option<PathBuf> {
    installed("REPRISE_TEST_CONTRACT", "contract").filter(|folder| folder.join("installed.json").is_file())
}

/// The folder of a complete installation: named by the variable, or with this name in the target folder.
fn installed(variable: &str, name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.ancestors().nth(3)?.join(name));
    named.or_else(beside).filter(|folder| folder.join("installed.txt").is_file())
}

/// The first program of this name on the PATH; `None` after [`skip`].
///
/// # Panics
/// If it is missing and everything is required.
#[track_caller]
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        skip(&format!("{name} is not installed"));
    }
    found
}
