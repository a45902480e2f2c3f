//! Faults on demand: the process fails or dies at a chosen write, so that a test can walk over all of them.
//!
//! Code that makes something durable calls [`at`] before each step. The variable `REPRISE_FAULT` chooses what happens:
//!
//! - `error:37`: the 37th call of the process returns an error; all others succeed.
//! - `kill:37`: the process dies at the 37th call, as by `kill -9`.
//! - `kill-at:PLACE`: the process dies at its first call of this place, as by `kill -9`.
//! - `list:FILE`: nothing fails; each call appends its place to the file, one a line.
//!
//! Builds without debug assertions, and processes without the variable, have no faults.

use std::io;

/// A step of work that becomes durable. `place` names it, such as `catalog: commit`.
///
/// # Errors
/// The fault that the test asked for.
#[cfg(not(debug_assertions))]
#[inline]
pub fn at(_place: &'static str) -> io::Result<()> {
    Ok(())
}

/// A step of work that becomes durable. `place` names it, such as `catalog: commit`.
///
/// # Errors
/// The fault that the test asked for.
#[cfg(debug_assertions)]
pub fn at(place: &'static str) -> io::Result<()> {
    armed::at(place)
}

#[cfg(debug_assertions)]
mod armed {
    use std::fs::OpenOptions;
    use std::io::{self, Write};
    use std::path::PathBuf;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// What happens at the calls of this process.
    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Plan {
        Error(u64),
        Kill(u64),
        KillAt(String),
        List(PathBuf),
    }

    static PLAN: LazyLock<Option<Plan>> = LazyLock::new(|| plan(&std::env::var("REPRISE_FAULT").ok()?));
    static CALLS: AtomicU64 = AtomicU64::new(0);

    pub(super) fn at(place: &'static str) -> io::Result<()> {
        let Some(plan) = &*PLAN else { return Ok(()) };
        let call = CALLS.fetch_add(1, Ordering::SeqCst) + 1;
        match plan {
            Plan::Error(chosen) if call == *chosen => {
                Err(io::Error::other(format!("a test asked for a fault at `{place}`")))
            }
            // The parent sees a process that ended by a signal and left no trace, as after kill -9: no destructor runs.
            Plan::Kill(chosen) if call == *chosen => std::process::abort(),
            Plan::KillAt(chosen) if place == chosen => std::process::abort(),
            Plan::List(file) => {
                let mut file = OpenOptions::new().append(true).create(true).open(file)?;
                file.write_all(format!("{place}\n").as_bytes())
            }
            _ => Ok(()),
        }
    }

    fn plan(text: &str) -> Option<Plan> {
        match text.split_once(':')? {
            ("error", number) => number.parse().ok().map(Plan::Error),
            ("kill", number) => number.parse().ok().map(Plan::Kill),
            ("kill-at", place) => Some(Plan::KillAt(place.to_owned())),
            ("list", file) => Some(Plan::List(file.into())),
            _ => None,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[track_caller]
        fn check(text: &str, expected: Option<Plan>) {
            assert_eq!(plan(text), expected, "{text}");
        }

        #[test]
        fn a_plan_names_a_call_or_a_file() {
            check("error:3", Some(Plan::Error(3)));
            check("kill:12", Some(Plan::Kill(12)));
            check("kill-at:storage: rename", Some(Plan::KillAt("storage: rename".to_owned())));
            check("list:/tmp/a:b", Some(Plan::List("/tmp/a:b".into())));
            check("error:x", None);
            check("3", None);
        }

        #[test]
        fn nothing_fails_without_a_plan() {
            assert!(super::super::at("a test").is_ok());
        }
    }
}
