//! Still images as frames: formats, orientation, and files that are no image.

use std::path::{Path, PathBuf};

use reprise_encoders::video::{Limits, VideoError, decode_still};
use reprise_encoders::{FrameSize, Scaling};
use reprise_tests::film::{ffmpeg, run};

/// An image of 64x32 pixels, the left half red and the right half blue.
fn halves(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(name);
    let source = "color=c=red:s=32x32[a];color=c=blue:s=32x32[b];[a][b]hstack";
    run(ffmpeg().args(["-f", "lavfi", "-i", source, "-frames:v", "1"]).arg(&file));
    file
}

/// Adds an EXIF header with an orientation to a JPEG.
fn turned(jpeg: &Path, orientation: u8) -> PathBuf {
    let bytes = std::fs::read(jpeg).unwrap();
    let mut tiff = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    tiff.extend([orientation, 0, 0, 0, 0, 0, 0]);
    let length = u16::try_from(tiff.len() + 2).unwrap().to_be_bytes();
    let file = jpeg.with_file_name(format!("turned{orientation}.jpg"));
    std::fs::write(&file, [&bytes[..2], &[0xff, 0xe1], &length, &tiff, &bytes[2..]].concat()).unwrap();
    file
}

/// `expected`: size, and whether the first and the last pixel are red.
#[track_caller]
fn check(file: &Path, size: FrameSize, expected: (u32, u32, bool, bool)) {
    let frame = decode_still(file, Scaling::from(size), &Limits::default()).unwrap();
    let is_red = |pixel: &[u8]| pixel[0] > 200 && pixel[2] < 60;
    let (first, last) = (&frame.rgb[..3], &frame.rgb[frame.rgb.len() - 3..]);
    assert_eq!(frame.rgb.len(), 3 * (frame.width * frame.height) as usize);
    let got = (frame.width, frame.height, is_red(first), is_red(last));
    assert_eq!((got, frame.time_ms), (expected, 0), "{}", file.display());
}

#[track_caller]
fn check_refused(file: &Path, expected: &str) {
    let refused = decode_still(file, Scaling::from(FrameSize::ShortEdge(32)), &Limits::default());
    let Err(VideoError::NotImage(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains(expected), "{why}");
}

#[test]
fn images_are_scaled_as_frames_of_videos_are() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.png", "a.jpg", "a.webp"] {
        let file = halves(folder.path(), name);
        check(&file, FrameSize::ShortEdge(16), (32, 16, true, false));
        check(&file, FrameSize::Exact { width: 8, height: 24 }, (8, 24, true, false));
    }
}

#[test]
fn a_photograph_is_turned_upright() {
    let folder = tempfile::tempdir().unwrap();
    let file = halves(folder.path(), "a.jpg");
    check(&turned(&file, 1), FrameSize::ShortEdge(16), (32, 16, true, false));
    check(&turned(&file, 3), FrameSize::ShortEdge(16), (32, 16, false, true));
    check(&turned(&file, 6), FrameSize::ShortEdge(16), (16, 32, true, false));
    check(&turned(&file, 8), FrameSize::ShortEdge(16), (16, 32, false, true));
}

#[test]
fn what_is_no_image_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(halves(folder.path(), "a.png")).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        file
    };
    check_refused(&file("empty", b""), "empty");
    check_refused(&file("text", b"no picture"), "no JPEG, PNG or WebP");
    check_refused(&file("list.m3u8", b"#EXTM3U\n/etc/passwd"), "no JPEG, PNG or WebP");
    check_refused(&file("cut.png", &whole[..40]), "damaged");
    check_refused(&file("head.jpg", b"\xff\xd8\xff\xe0 and no more"), "damaged");
    let large = Limits { max_pixels: 100, ..Limits::default() };
    let refused = decode_still(&file("whole.png", &whole), Scaling::from(FrameSize::ShortEdge(8)), &large);
    assert!(matches!(refused, Err(VideoError::OverLimit(_))), "{refused:?}");
}
