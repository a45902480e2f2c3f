//! Steps of a long start: a progress bar on a terminal, otherwise a line per minute, and a line at the end.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use reprise_research::terminal::say;

/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// A running step.
pub(crate) struct Step {
    name: &'static str,
    unit: &'static str,
    began: Instant,
    display: Display,
}

enum Display {
    Bar(ProgressBar),
    /// Time of the last line.
    Lines(Mutex<Instant>),
}

impl Step {
    /// Begins the step `name` with items called `unit`, such as "rendering" and "frames".
    ///
    /// # Errors
    /// `name` or `unit` contains a brace, which the bar's template does not allow.
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

    /// Shows `done` of `all` items, without a terminal once a minute.
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

    /// Ends the step with a line: `result` and the elapsed time.
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
