//! The last lines of `make test`: each failed test with its panic, and the count.

use std::process::Command;

/// `output` is what cargo printed; returns the last lines and whether they stand for success.
fn tally(output: &str, status: i32) -> (String, bool) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), output).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/tally.awk");
    let status = format!("status={status}");
    let said = Command::new("awk").args(["-v", &status, "-f", script]).arg(file.path()).output().unwrap();
    (String::from_utf8(said.stdout).unwrap(), said.status.success())
}

#[track_caller]
fn check(output: &str, status: i32, expected: &str) {
    let (lines, succeeded) = tally(output, status);
    assert_eq!(lines, expected);
    assert_eq!(succeeded, expected.contains(" 0 failed"), "its exit status says the same");
}

const GOOD: &str = "     Running unittests lib.rs (target/debug/deps/a-1)
test a::one ... ok
test a::two ... ok

successes:

---- a::one stdout ----
skipped: no network
skipped: no PostgreSQL
thread 'worker' panicked at a.rs:1:1: as it should

successes:
    a::one

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s

";

#[test]
fn a_test_that_skips_itself_is_counted_once_and_its_panics_are_not_shown() {
    check(GOOD, 0, "1 passed, 0 failed, 2 skipped\n");
}

#[test]
fn what_failed_is_shown_with_its_panic_but_without_log_and_backtrace() {
    let bad = "     Running unittests lib.rs (target/debug/deps/b-1)
failures:

---- b::one stdout ----
skipped: said before it failed
a server's log
thread 'b::one' (7) panicked at b.rs:93:5:
assertion `left == right` failed
  left: 2.0
 right: 1.0
stack backtrace:
   0: core::panicking::panic_fmt

---- b::two stdout ----
Error: \"no such file\"


failures:
    b::one
    b::two

test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";
    let expected = "
failed: b::one
  thread 'b::one' (7) panicked at b.rs:93:5:
  assertion `left == right` failed
    left: 2.0
   right: 1.0

failed: b::two
  Error: \"no such file\"

4 passed, 2 failed, 2 skipped
";
    check(&format!("{GOOD}{bad}"), 101, expected);
}

#[test]
fn a_crash_and_a_build_that_failed_are_failures() {
    let crash = "     Running tests/c.rs (target/debug/deps/c-1)\ntest c::one ... ok\n";
    check(&format!("{GOOD}{crash}"), 101, "1 passed, 1 failed, 2 skipped\n");
    check(&format!("{crash}{GOOD}"), 101, "1 passed, 1 failed, 2 skipped\n");
    check("error: could not compile\n", 101, "0 passed, 1 failed, 0 skipped\n");
}
