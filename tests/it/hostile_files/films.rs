//! Small films of ffmpeg: good ones, damaged ones, and ones that no camera makes.

use std::path::Path;

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::mutations::Dice;

use super::Files;

/// Name of each good film, and how it is stored.
const GOOD: [(&str, &[&str]); 7] = [
    ("film.mp4", &["-c:v", "libx264", "-pix_fmt", "yuv420p"]),
    ("film.mkv", &["-c:v", "libx264", "-pix_fmt", "yuv420p"]),
    ("film.webm", &["-c:v", "libvpx", "-deadline", "realtime"]),
    ("film.ts", &["-c:v", "mpeg2video"]),
    ("film.avi", &["-c:v", "mjpeg", "-pix_fmt", "yuvj420p"]),
    ("film.gif", &[]),
    ("film.flv", &["-c:v", "flv1"]),
];

/// Renders a second of 64 x 48 pixels.
pub(super) fn render(file: &Path, arguments: &[&str]) {
    let source = "testsrc2=size=64x48:rate=10:duration=1";
    run(ffmpeg()
        .args(["-f", "lavfi", "-i", source])
        .args(arguments)
        .args(["-fflags", "+bitexact"])
        .arg(file));
}

/// The good films.
pub(super) fn good(folder: &Path) -> Files {
    let rendered = GOOD.iter().map(|(name, arguments)| {
        let path = folder.join(name);
        render(&path, arguments);
        ((*name).to_owned(), std::fs::read(path).unwrap())
    });
    rendered.collect()
}

/// Good films cut off, with changed headers, and with changed contents.
pub(super) fn damaged(good: &Files) -> Files {
    let mut files = Files::new();
    for (name, bytes) in good {
        for share in [1, 30, 70] {
            files.insert(format!("cut-{share}-{name}"), bytes[..bytes.len() * share / 100].to_vec());
        }
        for (what, places, changes) in
            [("header", 400, 12), ("header-more", 800, 60), ("body", usize::MAX, 300)]
        {
            let mut changed = bytes.clone();
            let mut dice = Dice::new(changes as u64 + bytes.len() as u64);
            for _ in 0..changes {
                // The first bytes stay, so that the format is still tried.
                let at = 12 + dice.below(places.min(bytes.len()) - 12);
                changed[at] = dice.roll() as u8;
            }
            files.insert(format!("{what}-{name}"), changed);
        }
    }
    files
}

/// Films that ffmpeg makes and no camera: name, source, and arguments.
const STRANGE: [(&str, &str, &[&str]); 9] = [
    ("wide.mkv", "testsrc2=size=8192x16:rate=10:duration=1", &["-c:v", "ffv1"]),
    ("tall.mkv", "testsrc2=size=16x8192:rate=10:duration=1", &["-c:v", "ffv1"]),
    ("pixel.mkv", "color=size=2x2:rate=10:duration=1", &["-c:v", "ffv1"]),
    ("one-frame.mp4", "color=size=64x48:rate=1:duration=1", &["-c:v", "libx264", "-pix_fmt", "yuv420p"]),
    ("fast.mkv", "color=size=16x16:rate=1000:duration=5", &["-c:v", "ffv1"]),
    ("aspect.mkv", "testsrc2=size=64x48:rate=10:duration=1,setsar=1000/1", &["-c:v", "ffv1"]),
    ("frames.gif", "color=size=16x16:rate=50:duration=100", &[]),
    ("endless.apng", "testsrc2=size=64x48:rate=10:duration=2", &["-plays", "0", "-f", "apng"]),
    ("grey16.mkv", "testsrc2=size=64x48:rate=10:duration=1", &["-c:v", "ffv1", "-pix_fmt", "gray16le"]),
];

/// Films that no camera makes.
pub(super) fn strange(folder: &Path) -> Files {
    let mut files = Files::new();
    for (name, source, arguments) in STRANGE {
        let path = folder.join(name);
        run(ffmpeg().args(["-f", "lavfi", "-i", source]).args(arguments).arg(&path));
        files.insert(name.to_owned(), std::fs::read(path).unwrap());
    }
    files.insert("duration-tag.mkv".to_owned(), tagged(folder));
    files.insert("streams.mkv".to_owned(), many_streams(folder));
    files
}

/// A stream whose tag says that it lasts longer than a number can.
fn tagged(folder: &Path) -> Vec<u8> {
    let path = folder.join("tagged.mkv");
    render(&path, &["-c:v", "ffv1"]);
    let mut bytes = std::fs::read(&path).unwrap();
    let name = b"DURATION\x44\x87";
    if let Some(at) = bytes.windows(name.len()).position(|window| window == name) {
        // The name, the tag of the value, the value's length; then the value: 00:00:01.000000000 and NULs.
        let value = at + name.len() + 1;
        bytes[value..value + 18].copy_from_slice(b"9223372036854:59:0");
    }
    bytes
}

/// A second of film 300 times over.
fn many_streams(folder: &Path) -> Vec<u8> {
    let (one, path) = (folder.join("one.mkv"), folder.join("streams.mkv"));
    render(&one, &["-c:v", "libx264", "-pix_fmt", "yuv420p"]);
    let mut command = ffmpeg();
    command.arg("-i").arg(one);
    for _ in 0..300 {
        command.args(["-map", "0:v"]);
    }
    run(command.args(["-c", "copy"]).arg(&path));
    std::fs::read(path).unwrap()
}
