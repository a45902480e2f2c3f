//! The installed ffmpeg and ffprobe: where they are and what they can do.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::error::VideoError;

/// Which program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Ffmpeg,
    Ffprobe,
    Tesseract,
}

/// Path of Tesseract: `REPRISE_TESSERACT`, else `tesseract` in `PATH`.
pub(super) fn tesseract_path() -> PathBuf {
    env::var_os("REPRISE_TESSERACT").map_or_else(|| PathBuf::from("tesseract"), PathBuf::from)
}

impl Program {
    pub(super) fn name(self) -> &'static str {
        match self {
            Program::Ffmpeg => "ffmpeg",
            Program::Ffprobe => "ffprobe",
            Program::Tesseract => "tesseract",
        }
    }

    /// The error of a program that is not installed.
    pub(super) fn not_found(self) -> VideoError {
        let (name, variable) = (self.name(), self.name().to_uppercase());
        let package = if self == Program::Tesseract { "tesseract-ocr" } else { "ffmpeg" };
        VideoError::Ffmpeg(
            format!("{name} was not found; install {package}, or name it with REPRISE_{variable}").into(),
        )
    }

    /// Where it is.
    pub(super) fn path(self) -> PathBuf {
        match self {
            Program::Ffmpeg => ffmpeg_path(),
            Program::Ffprobe => ffprobe_path(),
            Program::Tesseract => tesseract_path(),
        }
    }
}

/// Whether ffmpeg runs. Blocks until it has printed its version, once: later calls know.
pub fn can_decode() -> bool {
    version().is_some()
}

/// What ffmpeg prints of its version, asked for until it answers: to start it takes longer than to decode a short clip. `None`
/// if it does not run.
fn version() -> Option<&'static str> {
    static SAID: OnceLock<String> = OnceLock::new();
    if SAID.get().is_none() {
        let mut ask = Command::new(ffmpeg_path());
        let output = ask.arg("-version").stdin(Stdio::null()).output().ok()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // Another thread may have asked meanwhile.
        output.status.success().then(|| SAID.set(said))?.ok();
    }
    SAID.get().map(String::as_str)
}

/// Path of ffmpeg: `REPRISE_FFMPEG`, else a file beside the binary, else `ffmpeg` in `PATH`.
pub fn ffmpeg_path() -> PathBuf {
    env::var_os("REPRISE_FFMPEG").map_or_else(ffmpeg_sidecar::paths::ffmpeg_path, PathBuf::from)
}

pub(super) fn ffprobe_path() -> PathBuf {
    env::var_os("REPRISE_FFPROBE").map_or_else(ffmpeg_sidecar::ffprobe::ffprobe_path, PathBuf::from)
}

/// The option that keeps every frame with its own time: `-fps_mode` since ffmpeg 5.1, `-vsync` before.
pub(super) fn frame_rate_mode() -> &'static str {
    if knows_fps_mode(version().unwrap_or_default()) { "-fps_mode" } else { "-vsync" }
}

/// Builds without a release number (`N-109...-g...`) count as recent.
fn knows_fps_mode(version: &str) -> bool {
    let release = version.strip_prefix("ffmpeg version ").unwrap_or("").trim_start_matches('n');
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (5, 1),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fps_mode_is_used_from_5_1_on() {
        for (version, expected) in [
            ("ffmpeg version 5.1.9-0+deb12u1 Copyright", true),
            ("ffmpeg version 4.4.2-0ubuntu0.22.04.1 Copyright", false),
            ("ffmpeg version n7.1 Copyright", true),
            ("ffmpeg version 5.0 Copyright", false),
            ("ffmpeg version N-112233-gabcdef Copyright", true),
            ("ffmpeg version 8.0 Copyright", true),
        ] {
            assert_eq!(knows_fps_mode(version), expected, "{version}");
        }
    }
}
