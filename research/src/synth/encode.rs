//! Encodes pictures as mp4 files with ffmpeg: H.264, yuv420p, constant frame rate.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use reprise_encoders::video::ffmpeg::ffmpeg_path;

use super::SynthError;
use super::canvas::Canvas;
use super::motion::FRAMES_PER_SECOND;

/// A running ffmpeg that receives pictures. Dropping it before [`Film::finish`] kills the process.
#[derive(Debug)]
pub(super) struct Film {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Film {
    /// Encodes one file of square pictures.
    ///
    /// # Errors
    /// ffmpeg cannot be started.
    pub(super) fn one(file: &Path, size: u32) -> Result<Film, SynthError> {
        Film::start(size, |ffmpeg| {
            ffmpeg.args(["-g", "50", "-movflags", "+faststart", "-f", "mp4"]).arg(file);
        })
    }

    /// Encodes several files in one run of ffmpeg, because starting it takes longer than encoding a clip. `frames`
    /// holds the frames of each; the files are `folder/%06d.mp4` from `first` on.
    ///
    /// # Errors
    /// ffmpeg cannot be started.
    pub(super) fn many(folder: &Path, first: usize, frames: &[usize], size: u32) -> Result<Film, SynthError> {
        let mut ends: Vec<usize> = frames
            .iter()
            .scan(0, |total, it| {
                *total += it;
                Some(*total)
            })
            .collect();
        ends.pop();
        if ends.is_empty() {
            return Film::one(&folder.join(format!("{first:06}.mp4")), size);
        }
        let joined = |of: &dyn Fn(&usize) -> String| ends.iter().map(of).collect::<Vec<_>>().join(",");
        let times = joined(&|it| format!("{:.3}", *it as f64 / FRAMES_PER_SECOND));
        Film::start(size, |ffmpeg| {
            ffmpeg.args(["-g", "1000", "-sc_threshold", "0", "-force_key_frames", &times]);
            ffmpeg.args(["-f", "segment", "-segment_format", "mp4", "-reset_timestamps", "1"]);
            ffmpeg.args(["-segment_frames", &joined(&usize::to_string)]);
            ffmpeg.args(["-segment_start_number", &first.to_string()]);
            ffmpeg.arg(folder.join("%06d.mp4"));
        })
    }

    fn start(size: u32, output: impl FnOnce(&mut Command)) -> Result<Film, SynthError> {
        let mut ffmpeg = Command::new(ffmpeg_path());
        ffmpeg.args(["-hide_banner", "-nostats", "-loglevel", "error", "-y"]);
        ffmpeg.args(["-f", "rawvideo", "-pix_fmt", "rgb0", "-s", &format!("{size}x{size}")]);
        ffmpeg.args(["-r", &FRAMES_PER_SECOND.to_string(), "-i", "pipe:0", "-threads", "1"]);
        // No B-frames, so that a segment begins exactly at the cut.
        ffmpeg.args(["-c:v", "libx264", "-preset", "superfast", "-crf", "22", "-bf", "0"]);
        ffmpeg.args(["-pix_fmt", "yuv420p"]);
        output(&mut ffmpeg);
        ffmpeg.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = ffmpeg.spawn().map_err(|error| SynthError::Ffmpeg(error.into()))?;
        let stdin = child.stdin.take();
        Ok(Film { child, stdin })
    }

    /// Adds one picture.
    ///
    /// # Errors
    /// ffmpeg has ended; the error holds its message.
    pub(super) fn push(&mut self, picture: &Canvas) -> Result<(), SynthError> {
        let written = match &mut self.stdin {
            Some(stdin) => stdin.write_all(picture.rgba()),
            None => return Err(SynthError::Ffmpeg("the film is finished".into())),
        };
        written.map_err(|error| SynthError::Ffmpeg(format!("{error}: {}", self.complaint()).into()))
    }

    /// Waits until the files are complete.
    ///
    /// # Errors
    /// ffmpeg failed; the error holds its message.
    pub(super) fn finish(mut self) -> Result<(), SynthError> {
        drop(self.stdin.take());
        let complaint = self.complaint();
        let status = self.child.wait().map_err(|error| SynthError::Ffmpeg(error.into()))?;
        if status.success() {
            Ok(())
        } else {
            Err(SynthError::Ffmpeg(format!("{status}: {complaint}").into()))
        }
    }

    /// Reads ffmpeg's stderr to its end.
    fn complaint(&mut self) -> String {
        drop(self.stdin.take());
        let Some(stderr) = self.child.stderr.take() else { return String::new() };
        let text = std::io::read_to_string(stderr).unwrap_or_default();
        text.trim().chars().take(400).collect()
    }
}

impl Drop for Film {
    fn drop(&mut self) {
        // Both fail only if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
