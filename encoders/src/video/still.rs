//! One still image as one frame: JPEG, PNG or WebP, for queries.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use super::answer::{SideData, Stream, shown_size};
use super::decode::pixels;
use super::pass::Scale;
use super::run::Run;
use super::running::{Finished, Running};
use super::{Limits, VideoError};
use crate::{Frame, Scaling};

/// Far more than ffprobe's answer about one picture needs.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// Decodes a still image to one frame at time 0. Blocks. The picture is turned as its EXIF orientation says; what is
/// transparent has the colour that the file stores.
///
/// # Errors
/// [`VideoError::NotImage`] with the reason if it is no JPEG, PNG or WebP, or damaged; [`VideoError::OverLimit`] if it
/// is too large.
pub fn decode_still(path: &Path, scaling: Scaling, limits: &Limits) -> Result<Frame, VideoError> {
    let demuxer = demuxer(path)?;
    let (width, height) = size(path, demuxer, limits)?;
    let (width, height) = pixels(scaling.size, width, height);
    let mut run = Run::ffmpeg();
    run.args(["-threads", "1"]);
    run.image(path, demuxer, limits);
    run.args(["-frames:v", "1", "-an", "-sn", "-dn", "-vf"]);
    run.args([Scale::Fine(width, height, scaling.resampling).filter()]);
    run.args(["-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1"]);
    let bytes = 3 * u64::from(width) * u64::from(height);
    let (rgb, finished) = Running::start(run, limits)?.output(bytes);
    if rgb.len() as u64 == bytes {
        return Ok(Frame { time_ms: 0, width, height, rgb: rgb.into() });
    }
    Err(why(&finished, limits))
}

/// ffmpeg's demuxer for an image, by the file's first bytes. Image sequences, which read other files, are not among
/// them.
fn demuxer(path: &Path) -> Result<&'static str, VideoError> {
    let unreadable = |error: std::io::Error| refused(format!("the file can't be read: {error}"));
    let mut start = Vec::new();
    File::open(path).map_err(unreadable)?.take(12).read_to_end(&mut start).map_err(unreadable)?;
    match &start[..] {
        [0xff, 0xd8, 0xff, ..] => Ok("jpeg_pipe"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Ok("png_pipe"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Ok("webp_pipe"),
        [] => Err(refused("the file is empty")),
        _ => Err(refused("it is no JPEG, PNG or WebP image")),
    }
}

/// ffprobe's answer about an image.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    frames: Vec<Turned>,
    #[serde(default)]
    streams: Vec<Stream>,
}

/// Facts of a decoded picture.
#[derive(Deserialize)]
struct Turned {
    #[serde(default)]
    side_data_list: Vec<SideData>,
}

/// The size as shown, after the EXIF orientation.
fn size(path: &Path, demuxer: &str, limits: &Limits) -> Result<(u32, u32), VideoError> {
    let mut run = Run::ffprobe();
    let entries = "stream=index,codec_name,codec_type,pix_fmt,width,height,sample_aspect_ratio:frame=width:frame_side_data=rotation";
    run.args(["-show_frames", "-show_entries", entries, "-read_intervals", "%+#1", "-of", "json"]);
    run.image(path, demuxer, limits);
    let (bytes, finished) = Running::start(run, limits)?.output(MAX_ANSWER_BYTES);
    let failed = || why(&finished, limits);
    let answer: Answer = serde_json::from_slice(&bytes).map_err(|_| failed())?;
    let (Some(picture), Some(mut stream)) =
        (answer.frames.into_iter().next(), answer.streams.into_iter().next())
    else {
        return Err(failed());
    };
    stream.side_data_list.extend(picture.side_data_list);
    match shown_size(&stream, limits)? {
        (0, _) | (_, 0) => Err(damaged()),
        size => Ok(size),
    }
}

/// Why a run gave no picture.
fn why(finished: &Finished, limits: &Limits) -> VideoError {
    finished.over_limit(limits).or_else(|| finished.named_limit(limits)).unwrap_or_else(damaged)
}

fn refused(why: impl Into<String>) -> VideoError {
    VideoError::NotImage(why.into())
}

fn damaged() -> VideoError {
    refused("it is damaged, or of a rare kind")
}
