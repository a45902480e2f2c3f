//! `reprise generate`: what it takes of a video, what it says, and what it refuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::binary;
use serde_json::Value;

use super::encoders_qwen_vl::{embedder, words};

/// A small model that writes: its own folder with a context of 512 tokens, and one with a context of 8,192.
struct Writers {
    short: PathBuf,
    long: PathBuf,
    folder: tempfile::TempDir,
}

impl Writers {
    fn new() -> Option<Writers> {
        let words = words()?;
        let folder = tempfile::tempdir().unwrap();
        let long = embedder(&words, "gme", &folder.path().join("model")).into();
        Some(Writers { short: words.join("qwen2-vl"), long, folder })
    }

    /// A film of this many frames, 25 a second.
    fn film(&self, frames: u32) -> PathBuf {
        let file = self.folder.path().join(format!("{frames}.mkv"));
        let (source, count) = ("testsrc2=s=64x48:r=25", frames.to_string());
        run(ffmpeg().args(["-f", "lavfi", "-i", source, "-frames:v", &count, "-c:v", "ffv1"]).arg(&file));
        file
    }
}

fn generate(model: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("generate").args(["--device", "cpu", "--max-tokens", "2", "--side", "16", "--json"]);
    command.arg("--model").arg(model).args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Fails unless a film of `frames` frames is written about, and stderr says `said` of its frames.
#[track_caller]
fn check(writers: &Writers, frames: u32, arguments: &[&str], said: Option<&str>) {
    let film = writers.film(frames);
    let output = generate(
        &writers.long,
        &[&["--prompt", "What happens?", "--video", film.to_str().unwrap()][..], arguments].concat(),
    );
    let stderr = stderr(&output);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    let written: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        written["prompt_tokens"].as_u64() > Some(128) && written["tokens"].as_u64() > Some(0),
        "{written}"
    );
    let taken = stderr.lines().find(|line| line.starts_with("reprise: took"));
    assert_eq!(taken, said, "{arguments:?} of {frames} frames: {stderr}");
    assert!(stderr.contains("loading the model takes about 0.0 GB of memory"), "{stderr}");
}

#[test]
fn the_frames_that_were_taken_are_said_where_they_are_fewer_than_asked_for() {
    let Some(writers) = Writers::new() else { return };
    check(&writers, 1, &[], None);
    check(
        &writers,
        1,
        &["--frames", "8"],
        Some("reprise: took 1 of 1 frames, evenly, where 8 were asked for"),
    );
    check(&writers, 6, &["--frames", "4"], None);
    check(
        &writers,
        6,
        &["--frames", "64"],
        Some("reprise: took 6 of 6 frames, evenly, where 64 were asked for"),
    );
    let bounded = "reprise: took 64 of 4000 frames, evenly, where 320 were asked for";
    check(&writers, 4000, &[], Some(bounded));
}

#[test]
fn what_is_over_the_models_limits_is_refused_with_the_numbers() {
    let Some(writers) = Writers::new() else { return };
    let film = writers.film(100);
    let film = film.to_str().unwrap();
    let long = "7".repeat(100_000);
    for (arguments, says) in [
        (&["--prompt", "x", "--video", film, "--frames", "4000"][..], "4000 is not in 1..=64"),
        (&["--prompt", "x", "--video", film, "--frames", "0"], "0 is not in 1..=64"),
        (&["--prompt", "x", "--video", film, "--frames", "64"], "and the model reads 512"),
        (&["--prompt", &long, "--video", film, "--frames", "2"], "the model takes 1 to 512"),
    ] {
        let output = generate(&writers.short, arguments);
        let stderr = stderr(&output);
        assert!(!output.status.success() && output.stdout.is_empty(), "{says}: {stderr}");
        assert!(stderr.contains(says), "{says}: {stderr}");
    }
}
