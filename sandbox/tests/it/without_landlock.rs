//! Systems that lack a part. The sandbox itself hides Landlock from what runs inside, so that inside is such a system.

use reprise_sandbox::Mode;

use crate::scene::{Scene, has_sandbox};

fn check(mode: &str, expected: &str) {
    if has_sandbox() {
        let said = Scene::new().act(Mode::Required, &format!("launch {mode}"));
        assert!(said.starts_with(expected), "{mode}: {said}");
    }
}

#[test]
fn where_supported_runs_the_plain_program() {
    check("where-supported", "program\n");
}

#[test]
fn required_refuses_and_says_why() {
    check("required", "this kernel has no Landlock, or the container hides it, and the sandbox is required");
}

#[test]
fn off_does_not_ask() {
    check("off", "program\n");
}
