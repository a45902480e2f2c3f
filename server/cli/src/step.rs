//! The steps of a long start: a bar on a terminal, a line a minute elsewhere, and one line when a step ends.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use reprise_research::terminal::say;

/// Time between two lines about a step where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// A step at work.
pub(crate) struct Step {
    name: &'static str,
    unit: &'static str,
    began: Instant,
    display: Display,
}

enum Display {
    Bar(ProgressBar),
    /// When the newest line was written.
    Lines(Mutex<Instant>),
}

impl Step {
    /// Begins the step `name`, which is counted in `unit`: "rendering", "frames".
    ///
    /// # Errors
    /// `name` or `unit` is no valid part of a bar's template: it holds a brace.
    pub(crate) fn begin(name: &'static str, unit: &'static str) -> anyhow::Result<Step> {
        let began = Instant::now();
        if !std::io::stderr().is_terminal() {
            return Ok(Step { name, unit, began, display: Display::Lines(Mutex::new(began)) });
        }
        let template = format!("{name:<10} {{bar:30}} {{pos}}/{{len}} {unit}, {{eta}} left");
        let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template(&template)?);
        bar.enable_steady_tick(Duration::from_secs(1));
        Ok(Step { name, unit, began, display: Display::Bar(bar) })
    }

    /// Shows how much is done; writes a line if a minute has gone by since the last one.
    pub(crate) fn set(&self, done: u64, all: u64) {
        match &self.display {
            Display::Bar(bar) => {
                bar.set_length(all);
                bar.set_position(done);
            }
            Display::Lines(newest) => {
                let now = Instant::now();
                let Ok(mut newest) = newest.lock() else { return };
                if now.duration_since(*newest) >= LINE_EVERY {
                    *newest = now;
                    // A closed output must not end the step.
                    let _ = say(format!("{}: {done} of {all} {}", self.name, self.unit));
                }
            }
        }
    }

    /// Writes a line above the bar.
    ///
    /// # Errors
    /// stdout is closed or full.
    pub(crate) fn note(&self, line: &str) -> std::io::Result<()> {
        match &self.display {
            Display::Bar(bar) => bar.suspend(|| say(line)),
            Display::Lines(_) => say(line),
        }
    }

    /// Ends the step with a line: `result`, and how long it took.
    ///
    /// # Errors
    /// stdout is closed or full.
    pub(crate) fn end(self, result: &str) -> std::io::Result<()> {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
        let seconds = self.began.elapsed().as_secs();
        say(format!("{result} in {}:{:02}", seconds / 60, seconds % 60))
    }
}
