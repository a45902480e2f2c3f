//! Films that ffmpeg renders for a test, and the mean colours of each frame of a file: the reference for the player's
//! picture.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reprise_tests::skip;

/// Frames per scene. At 30000/1001 frames per second, only the first scene begins on a whole millisecond.
pub(crate) const SCENE_FRAMES: usize = 57;
const FRAME_RATE: (usize, usize) = (30000, 1001);

/// Colours with cuts that every detector finds: alternately dark and bright, far apart in hue.
pub(crate) const COLOURS: [&str; 6] =
    ["0x101080", "0xF0E040", "0x104010", "0xF0A0F0", "0x801010", "0xA0F0F0"];

/// Columns of mean colours for comparing pictures; below: rows.
pub(crate) const COLUMNS: usize = 16;
pub(crate) const ROWS: usize = 9;

/// The encoding of a film and the start of its clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recipe {
    /// File name with the container's extension.
    pub(crate) file: &'static str,
    /// Start of the first frame, in seconds.
    pub(crate) delay: f64,
    /// Whether the film has a tone from 0 s on.
    pub(crate) sound: bool,
    pub(crate) encoder: &'static [&'static str],
}

/// Encoder options for a film that any browser plays.
pub(crate) const H264: &[&str] =
    &["-c:v", "libx264", "-preset", "ultrafast", "-g", "30", "-pix_fmt", "yuv420p", "-c:a", "aac"];

impl Recipe {
    /// A film that plays everywhere and starts at 0.
    pub(crate) const fn plain(file: &'static str) -> Recipe {
        Recipe { file, delay: 0.0, sound: false, encoder: H264 }
    }
}

/// Start of a scene in the API, in seconds, rounded down to the millisecond.
pub(crate) fn scene_start(scene: usize) -> f64 {
    let (frames, ticks) = FRAME_RATE;
    (scene * SCENE_FRAMES * ticks * 1000 / frames) as f64 / 1000.0
}

/// Renders a film with one scene per colour and a box that moves with every frame. The box jumps only at a cut:
/// inside a scene a jump would be a slide change. `None` if this ffmpeg lacks the encoder.
///
/// # Panics
/// If ffmpeg fails, with its message.
pub(crate) fn make(folder: &Path, recipe: &Recipe, colours: &[&str]) -> Option<PathBuf> {
    let encoder = recipe.encoder.iter().skip_while(|it| **it != "-c:v").nth(1).expect("a video encoder");
    if !has_encoder(encoder) {
        skip(&format!("this ffmpeg has no encoder {encoder}, needed for {}", recipe.file));
        return None;
    }
    let path = folder.join(recipe.file);
    let mut command = Command::new("ffmpeg");
    command
        .args(["-v", "error", "-nostdin", "-filter_complex"])
        .arg(graph(recipe, colours))
        .args(["-map", "[film]"]);
    if recipe.sound {
        command.args(["-map", "[tone]"]);
    }
    run(command.args(["-fps_mode", "passthrough"]).args(recipe.encoder).arg(&path));
    Some(path)
}

fn graph(recipe: &Recipe, colours: &[&str]) -> String {
    let (frames, ticks) = FRAME_RATE;
    let mut graph = String::new();
    for (scene, colour) in colours.iter().enumerate() {
        graph += &format!(
            "color=c={colour}:s=320x180:r={frames}/{ticks},trim=end_frame={SCENE_FRAMES}[scene{scene}];"
        );
    }
    for scene in 0..colours.len() {
        graph += &format!("[scene{scene}]");
    }
    graph += &format!("concat=n={}[scenes];color=c=white:s=48x72:r={frames}/{ticks}[box];", colours.len());
    graph += &format!(
        "[scenes][box]overlay=x='mod(n,{SCENE_FRAMES})*4':y=54:shortest=1,setpts=PTS+{}/TB[film]",
        recipe.delay
    );
    if recipe.sound {
        let length = recipe.delay + scene_start(colours.len());
        graph += &format!(";sine=frequency=440:duration={length}[tone]");
    }
    graph
}

fn has_encoder(name: &str) -> bool {
    let known = run(Command::new("ffmpeg").args(["-v", "error", "-encoders"]));
    String::from_utf8_lossy(&known.stdout).lines().any(|line| line.split_whitespace().nth(1) == Some(name))
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A decoded frame: its time since the first frame in seconds, and [`COLUMNS`] x [`ROWS`] mean RGB colours.
pub(crate) struct Frame {
    pub(crate) seconds: f64,
    pub(crate) picture: Vec<f64>,
}

/// The first frame's time on the container's clock, and all frames of a file in presentation order. Decodes from the
/// start without seeking.
pub(crate) fn frames(file: &Path) -> (f64, Vec<Frame>) {
    let filters = format!("scale={COLUMNS}:{ROWS}:flags=area,format=rgb24,showinfo");
    let decoded = run(Command::new("ffmpeg")
        .args(["-v", "info", "-nostats", "-nostdin", "-copyts", "-i"])
        .arg(file)
        .args(["-map", "0:v:0", "-fps_mode", "passthrough", "-vf", &filters, "-f", "rawvideo", "-"]));
    let times = times(&String::from_utf8_lossy(&decoded.stderr));
    let pictures: Vec<_> = decoded.stdout.chunks_exact(COLUMNS * ROWS * 3).collect();
    assert_eq!(times.len(), pictures.len(), "every frame of {} has a time", file.display());
    let first = *times.first().expect("a frame");
    let frame = |(time, picture): (&f64, &&[u8])| Frame {
        seconds: time - first,
        picture: picture.iter().map(|value| f64::from(*value)).collect(),
    };
    (first, times.iter().zip(&pictures).map(frame).collect())
}

/// Times in seconds from showinfo's ticks, because its seconds have only six digits.
fn times(said: &str) -> Vec<f64> {
    let base = said.split("config in time_base: ").nth(1).and_then(|rest| rest.split([',', '\n']).next());
    let (one, ticks) = base.and_then(|base| base.trim().split_once('/')).expect("a time base");
    let tick = one.parse::<f64>().expect("a number") / ticks.parse::<f64>().expect("a number");
    let frames = said.lines().filter(|line| line.contains("showinfo") && line.contains(" pts_time:"));
    let pts =
        frames.filter_map(|line| line.split(" pts:").nth(1)?.split_whitespace().next()?.parse::<f64>().ok());
    pts.map(|pts| pts * tick).collect()
}

/// Mean absolute difference of two pictures, in levels of 0 to 255.
pub(crate) fn difference(one: &[f64], other: &[f64]) -> f64 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).sum::<f64>() / one.len() as f64
}
