//! ffmpeg and ffprobe give the same bytes with and without the sandbox.

use std::fs;

use reprise_sandbox::Mode;

use crate::scene::{Scene, ffmpeg_words, has_ffmpeg, has_sandbox, make, said};

/// Runs a line in both modes. What it prints and what it writes must be the same, and something.
fn check(program: &str, line: &str, written: &[&str]) {
    if !has_sandbox() || !has_ffmpeg() {
        return;
    }
    let scene = Scene::new();
    make(
        &scene,
        "-f lavfi -i testsrc=d=1:s=160x120:r=25 -f lavfi -i sine=d=1 -c:v mpeg4 -c:a aac -f mp4 @/input",
    );
    let mut results = [Mode::Off, Mode::Required].map(|mode| {
        let words = if program == "ffmpeg" { ffmpeg_words(&scene, line) } else { probe_words(&scene, line) };
        let output = scene.run(mode, program, &words);
        assert!(output.status.success(), "{mode}: {program} {line}: {}", said(&output));
        let mut bytes = vec![output.stdout];
        for name in written {
            bytes.push(fs::read(scene.path(name)).unwrap());
            fs::remove_file(scene.path(name)).unwrap();
        }
        bytes
    });
    assert!(results[0].iter().any(|bytes| !bytes.is_empty()), "{program} {line}: nothing to compare");
    let (outside, inside) = results.split_at_mut(1);
    assert!(outside[0] == inside[0], "{program} {line}: other bytes");
}

fn probe_words(scene: &Scene, line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| word.replace("@/", &scene.text(""))).collect()
}

#[test]
fn probing_a_file() {
    check("ffprobe", "-v error -show_format -show_streams -of json @/input", &[]);
}

#[test]
fn decoding_to_a_pipe() {
    check("ffmpeg", "-i @/input -f rawvideo -pix_fmt rgb24 pipe:1", &[]);
    check("ffmpeg", "-i @/input -f f32le pipe:1", &[]);
}

#[test]
fn decoding_by_several_threads() {
    check("ffmpeg", "-threads 8 -i @/input -vf scale=64:64 -f rawvideo -pix_fmt rgb24 pipe:1", &[]);
}

#[test]
fn encoding_to_a_file() {
    check("ffmpeg", "-i @/input -c:v mpeg4 -c:a aac -movflags +faststart -f mp4 @/output", &["output"]);
    check("ffmpeg", "-i @/input -frames:v 1 -c:v png -f image2 -update 1 @/output", &["output"]);
}

#[test]
fn encoding_to_a_folder() {
    check("ffmpeg", "-i @/input -r 2 -f image2 @/folder/%d.png", &["folder/1.png", "folder/2.png"]);
    check(
        "ffmpeg",
        "-i @/input -c:v mpeg4 -c:a aac -f hls -hls_segment_filename @/folder/%d.ts @/folder/list.m3u8",
        &["folder/list.m3u8", "folder/0.ts"],
    );
}
