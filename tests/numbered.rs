//! Films whose frames show their own numbers, so that a test can tell which frames it decodes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::film::{ffmpeg, run_once};

/// Bars of a picture: one for each bit of a number.
const BITS: usize = 12;
/// Size of the pictures that are read.
const WIDTH: usize = 192;
const HEIGHT: usize = 24;

/// A film to render.
#[derive(Debug, Clone, Copy)]
pub struct Numbered<'a> {
    /// Frames per second, as ffmpeg reads it: `30000/1001`.
    pub rate: &'a str,
    /// Number of frames, at most 4096.
    pub frames: usize,
    /// Size, as ffmpeg reads it: `192x108`.
    pub size: &'a str,
    /// Whether it has sound: a tone.
    pub sound: bool,
    /// Further arguments of ffmpeg for the film's file, such as filters and encoder settings.
    pub more: &'a [&'a str],
}

impl Default for Numbered<'_> {
    fn default() -> Self {
        Numbered { rate: "25", frames: 50, size: "192x108", sound: false, more: &[] }
    }
}

/// Renders a film. Frame n shows the bits of n as bright and dark bars, the lowest one at the left.
///
/// # Panics
/// If ffmpeg fails.
pub fn numbered(folder: &Path, name: &str, film: Numbered<'_>) -> PathBuf {
    let file = folder.join(name);
    let bar = format!("floor(X*{BITS}/W)");
    let source = format!(
        "color=c=black:s={}:r={},geq=lum='if(mod(floor(N/pow(2,{bar})),2),200,50)':cb=128:cr=128",
        film.size, film.rate
    );
    let mut ffmpeg = ffmpeg();
    ffmpeg.args(["-f", "lavfi", "-i", &source]);
    if film.sound {
        ffmpeg.args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100", "-shortest"]);
    }
    ffmpeg.args(["-frames:v", &film.frames.to_string(), "-c:v", "libx264", "-preset", "ultrafast"]);
    ffmpeg.args(["-pix_fmt", "yuv420p"]).args(film.more).arg(&file);
    let ending = file.extension().unwrap_or_default();
    run_once(&format!("{ending:?} {film:?}"), &mut ffmpeg, &file);
    file
}

/// The numbers that the frames of a film show, in order.
///
/// # Panics
/// If it can't be decoded.
pub fn numbers(film: &Path) -> Vec<usize> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(film);
    command.args(["-vf", &format!("scale={WIDTH}:{HEIGHT}:flags=area"), "-vsync", "passthrough"]);
    let output =
        command.args(["-f", "rawvideo", "-pix_fmt", "gray", "-"]).output().expect("ffmpeg is installed");
    assert!(output.status.success(), "{}: {}", film.display(), String::from_utf8_lossy(&output.stderr));
    output.stdout.chunks_exact(WIDTH * HEIGHT).map(number).collect()
}

fn number(picture: &[u8]) -> usize {
    let row = &picture[WIDTH * (HEIGHT / 2)..WIDTH * (HEIGHT / 2 + 1)];
    let is_bright = |bit: &usize| row[bit * WIDTH / BITS + WIDTH / BITS / 2] > 125;
    (0..BITS).filter(is_bright).map(|bit| 1 << bit).sum()
}
