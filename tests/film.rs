//! Small films that ffmpeg renders for a test: a few shots with hard cuts between them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};

/// The storage format of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// FFV1 in Matroska: equal pictures stay equal, but no browser plays it.
    Lossless,
    /// H.264 in MP4, which browsers play.
    Web,
}

/// Length of a shot, in seconds.
pub const SHOT_SECONDS: f64 = 2.0;

/// Renders a film of 160x120 at 25 frames per second in `folder`. Each shot is a source of libavfilter (`testsrc2`,
/// `color=c=red`) and lasts [`SHOT_SECONDS`].
///
/// # Panics
/// If ffmpeg fails.
pub fn film(folder: &Path, name: &str, shots: &[&str], store: Store) -> PathBuf {
    let (extension, codec): (&str, &[&str]) = match store {
        Store::Lossless => ("mkv", &["-c:v", "ffv1"]),
        Store::Web => ("mp4", &["-c:v", "libx264", "-preset", "ultrafast", "-movflags", "+faststart"]),
    };
    let file = folder.join(format!("{name}.{extension}"));
    let mut ffmpeg = ffmpeg();
    for shot in shots {
        let sized = format!("{shot}{}s=160x120:r=25", if shot.contains('=') { ":" } else { "=" });
        ffmpeg.args(["-t", &SHOT_SECONDS.to_string(), "-f", "lavfi", "-i", &sized]);
    }
    let inputs: String =
        (0..shots.len()).map(|it| format!("[{it}:v]format=yuv420p,setsar=1[s{it}];")).collect();
    let joined: String = (0..shots.len()).map(|it| format!("[s{it}]")).collect();
    let graph = format!("{inputs}{joined}concat=n={}:v=1[v]", shots.len());
    ffmpeg.args(["-filter_complex", &graph, "-map", "[v]"]).args(codec).arg(&file);
    run_once(&format!("{store:?} {shots:?}"), &mut ffmpeg, &file);
    file
}

/// ffmpeg with quiet output; it overwrites existing files.
pub fn ffmpeg() -> Command {
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-nostdin", "-y"]).stdin(Stdio::null());
    ffmpeg
}

/// Runs a command that must succeed.
///
/// # Panics
/// If it fails.
pub fn run(command: &mut Command) {
    let output = command.output().expect("ffmpeg is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a command that must write `file`, unless one with the same `content` has: then copies its file. Most tests run on
/// both databases, and render their films for each.
///
/// # Panics
/// If it fails.
pub fn run_once(content: &str, command: &mut Command, file: &Path) {
    static RENDERED: LazyLock<Mutex<HashMap<String, Arc<[u8]>>>> = LazyLock::new(Mutex::default);
    let known = RENDERED.lock().expect("no test panics here").get(content).cloned();
    match known {
        Some(film) => std::fs::write(file, film).expect("the folder can be written"),
        None => {
            run(command);
            let film = std::fs::read(file).expect("the command has written it").into();
            RENDERED.lock().expect("no test panics here").insert(content.to_owned(), film);
        }
    }
}

/// ffprobe's report on a file, as JSON.
///
/// # Panics
/// If ffprobe cannot read the file.
pub fn ffprobe(file: &Path) -> serde_json::Value {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-show_streams", "-show_format", "-count_frames", "-of", "json"]).arg(file);
    let output = command.output().expect("ffprobe is installed");
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("ffprobe prints JSON")
}
