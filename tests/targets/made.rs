//! Good inputs in binary formats, made by our own code and by ffmpeg.

use reprise_research::rows::Rows;
use reprise_server::storage::features::Features;

use super::{models, snapshots};
use crate::film::ffmpeg;

/// Name and bytes of each made seed of a target.
///
/// # Panics
/// If one cannot be made.
pub fn made(target: &str) -> Vec<(String, Vec<u8>)> {
    match target {
        "features" => vec![("two-blocks".to_owned(), features())],
        "models" => model_files(),
        "nut" => vec![("three-pictures".to_owned(), nut())],
        "rows" => ["npy", "safetensors"].iter().zip(0..).map(|(kind, first)| rows(kind, first)).collect(),
        "snapshots" => snapshot_files(),
        _ => Vec::new(),
    }
}

fn features() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("features");
    let mut features = Features::create(&path, 3).expect("the folder can be written");
    for first in [0, 3] {
        let rows: Vec<(i64, &[f32])> =
            (first..first + 3).map(|at| (at * 40, &[0.5, -1.0, 2.0][..])).collect();
        features.add(&rows).expect("the folder can be written");
    }
    std::fs::read(path).expect("it was written")
}

/// The file behind the number that chooses it.
fn numbered(number: usize, content: Vec<u8>) -> Vec<u8> {
    [vec![number as u8], content].concat()
}

fn model_files() -> Vec<(String, Vec<u8>)> {
    let file = |(number, (model, name)): (usize, &(&str, &str))| {
        let content = std::fs::read(models::folder(model).join(name)).expect("the model is there");
        (format!("{number}-{name}"), numbered(number, content))
    };
    models::FILES.iter().enumerate().map(file).collect()
}

fn snapshot_files() -> Vec<(String, Vec<u8>)> {
    let folder = snapshots::saved().path();
    let file = |(number, path): (usize, &std::path::PathBuf)| {
        let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
        let content = std::fs::read(folder.join(path)).expect("it was written");
        (format!("{number}-{ending}"), numbered(number, content))
    };
    snapshots::files(folder).iter().enumerate().map(file).collect()
}

fn rows(kind: &str, first: u8) -> (String, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(format!("rows.{kind}"));
    let rows = Rows::new(vec![1.0, -0.5, 0.25, 2.0, 0.0, 3.0], 2).expect("a table");
    rows.write(&path).expect("the folder can be written");
    (kind.to_owned(), numbered(usize::from(first), std::fs::read(path).expect("it was written")))
}

fn nut() -> Vec<u8> {
    let mut command = ffmpeg();
    command.args(["-f", "lavfi", "-i", "testsrc2=size=16x12:rate=25:duration=0.12"]);
    command.args(["-fflags", "+bitexact", "-c:v", "rawvideo", "-pix_fmt", "rgb24", "-f", "nut", "-"]);
    let output = command.output().expect("ffmpeg is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
