//! Excerpts of videos as files: encoded anew, exact to the frame, or copied from key frame to key frame.

mod copy;
mod encode;
mod join;
mod key_frames;

use std::io::{BufRead, BufReader};
use std::path::Path;

use super::rendition::failed;
use super::run::Run;
use super::running::Running;
use super::{Limits, VideoError};

pub use copy::copy;
pub use encode::{Encode, Form, PictureSize, Sound, encode};
pub use join::{Join, Part, join};
pub use key_frames::{KeyRange, key_range};

/// How far a run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Length of what was written, in milliseconds.
    pub ms: i64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its frames.
    pub frames: i64,
}

/// Learns twice a second how far a run has come. False ends the run.
pub type Watch<'a> = &'a mut dyn FnMut(Written) -> bool;

/// Runs ffmpeg until its end. `None` if the watch has ended it; then nothing is left at `out`.
///
/// # Errors
/// [`VideoError`]; nothing is left at `out`.
fn run_to_file(
    mut run: Run,
    out: &Path,
    limits: &Limits,
    watch: Watch<'_>,
) -> Result<Option<Written>, VideoError> {
    run.args(["-progress", "pipe:1"]);
    run.output(out);
    let mut running = Running::start(run, limits)?;
    let mut written = Written::default();
    if let Some(stdout) = running.take_stdout() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let is_whole = written.take(&line);
            if is_whole && !watch(written) {
                drop(running);
                let _ = std::fs::remove_file(out);
                return Ok(None);
            }
        }
    }
    let finished = running.finish();
    if finished.status.is_some_and(|status| status.success()) && written.frames > 0 {
        return Ok(Some(written));
    }
    // The error that ended the run counts.
    let _ = std::fs::remove_file(out);
    Err(finished.over_limit(limits).unwrap_or_else(|| failed(&finished)))
}

impl Written {
    /// Reads a line of ffmpeg's progress. True at the end of a report.
    fn take(&mut self, line: &str) -> bool {
        let Some((name, value)) = line.split_once('=') else { return false };
        let value = value.trim();
        match name {
            "frame" => self.frames = value.parse().unwrap_or(self.frames),
            "out_time_us" => self.ms = value.parse().map_or(self.ms, |us: i64| us / 1000),
            "total_size" => self.bytes = value.parse().unwrap_or(self.bytes),
            _ => {}
        }
        name == "progress"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read() {
        let mut written = Written::default();
        let lines = ["frame=12", "fps=0.00", "total_size=48", "out_time_us=480000", "progress=continue"];
        let ends: Vec<bool> = lines.iter().map(|line| written.take(line)).collect();
        assert_eq!(ends, [false, false, false, false, true]);
        assert_eq!(written, Written { ms: 480, bytes: 48, frames: 12 });
        written.take("out_time_us=N/A");
        assert_eq!(written.ms, 480);
    }
}
