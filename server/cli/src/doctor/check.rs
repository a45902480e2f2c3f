//! The outcome of one check.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Ok,
    /// Something works less well than it could, or may fail later.
    Warning,
    /// The server does not start, or can't do its work.
    Problem,
}

/// The outcome of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// What to do. `None` if all is well.
    pub(super) advice: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, state: State::Ok, found: found.into(), advice: None }
    }

    pub(super) fn warning(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { name, state: State::Warning, found: found.into(), advice: Some(advice.into()) }
    }

    pub(super) fn problem(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { name, state: State::Problem, found: found.into(), advice: Some(advice.into()) }
    }

    /// The outcome as a line of text.
    pub(super) fn line(&self) -> String {
        let state = match self.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Problem => "problem",
        };
        let advice = self.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        format!("{state:<8} {:<12} {}{advice}", self.name, self.found)
    }
}
