//! Films of slides with real words, which ffmpeg draws.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::film::{ffmpeg, run_once};

/// A slide of a film.
#[derive(Debug, Clone, Copy)]
pub struct Slide<'a> {
    /// Its lines, from top to bottom.
    pub lines: &'a [&'a str],
    /// How long it is shown, in seconds.
    pub seconds: u32,
}

/// How the slides of a film look. Their text begins at a tenth of the width and height.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Width and height of the picture.
    pub size: (u32, u32),
    /// A family of fonts, such as `Sans`.
    pub font: &'static str,
    /// Colour of the background.
    pub ground: &'static str,
    /// Colour of the text.
    pub ink: &'static str,
    /// Filters of ffmpeg after the text; empty for none.
    pub then: &'static str,
    /// Frames per second.
    pub rate: u32,
}

impl Default for Look {
    fn default() -> Self {
        Look { size: (1280, 720), font: "Sans", ground: "white", ink: "black", then: "", rate: 25 }
    }
}

/// Height of the font, as a share of the picture's height.
const FONT: f64 = 0.05;

/// Renders slides as H.264 at a low bit rate.
///
/// # Panics
/// If ffmpeg fails.
pub fn written(folder: &Path, name: &str, look: &Look, slides: &[Slide<'_>]) -> PathBuf {
    let file = folder.join(format!("{name}.mp4"));
    let mut command = ffmpeg();
    for (number, slide) in slides.iter().enumerate() {
        let text = folder.join(format!("{name}-{number}.txt"));
        std::fs::write(&text, slide.lines.join("\n")).expect("the folder can be written");
        command.args(["-f", "lavfi", "-i", &drawn(look, slide.seconds, &text)]);
    }
    let inputs: String = (0..slides.len()).map(|it| format!("[{it}:v]")).collect();
    let then = if look.then.is_empty() { "null" } else { look.then };
    let graph = format!("{inputs}concat=n={}:v=1,{then},format=yuv420p[v]", slides.len());
    command.args(["-filter_complex", &graph, "-map", "[v]"]);
    command.args(["-c:v", "libx264", "-preset", "veryfast", "-crf", "30"]).arg(&file);
    run_once(&format!("{look:?} {slides:?}"), &mut command, &file);
    file
}

fn drawn(look: &Look, seconds: u32, text: &Path) -> String {
    let Look { size: (width, height), font, ground, ink, rate, .. } = look;
    let size = (f64::from(*height) * FONT).round();
    format!(
        "color={ground}:s={width}x{height}:r={rate}:d={seconds},drawtext=font={font}:textfile='{}':expansion=none:\
         fontsize={size}:fontcolor={ink}:x=w/10:y=h/10:line_spacing={}",
        text.display(),
        size / 2.0
    )
}

/// Whether ffmpeg can draw text and Tesseract read English.
pub fn can_read() -> bool {
    let output = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).stdin(Stdio::null()).output();
        output
            .map(|it| String::from_utf8_lossy(&[it.stdout, it.stderr].concat()).into_owned())
            .unwrap_or_default()
    };
    output("ffmpeg", "-filters").contains(" drawtext ")
        && output("tesseract", "--list-langs").lines().any(|line| line == "eng")
}
