//! The sandbox from outside: real children, real files, the real kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says what it skipped"
)]

#[cfg(target_os = "linux")]
mod hostile_program;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod scene;
#[cfg(target_os = "linux")]
mod tricks;
#[cfg(target_os = "linux")]
mod without_landlock;
#[cfg(target_os = "linux")]
mod works;
