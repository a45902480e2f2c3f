//! Facts of a file's video stream, read before decoding.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::answer::{
    Answer, PACKETS, Stream, SubtitleStream, check_duration, check_times, frame_rate, is_variable,
    known_duration_ms, shown_size, unusable,
};
use super::clock::Clock;
use super::colour::Matrix;
use super::run::Run;
use super::running::{Finished, Running};
use super::{Limits, VideoError};

/// Facts of the default video stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Length of the video stream; an estimate until the file is decoded (containers may lie).
    pub duration_ms: i64,
    /// Average frames per second.
    pub frame_rate: f64,
    /// Width as shown: after rotation and sample aspect ratio.
    pub width: u32,
    /// Height as shown.
    pub height: u32,
    /// Codec name as ffprobe prints it, e.g. `h264`.
    pub codec: String,
    /// Pixel format as ffprobe prints it, e.g. `yuv420p10le`.
    pub pixel_format: String,
    /// The colour matrix, if luma and chroma have 8 bits, 4:2:0 and video range. For other videos ffmpeg converts to
    /// RGB.
    #[serde(default)]
    pub matrix: Option<Matrix>,
    /// Container as ffprobe prints it, e.g. `mov,mp4,m4a,3gp,3g2,mj2`.
    pub container: String,
    /// Whether frames are unevenly spaced.
    pub variable_frame_rate: bool,
    /// The first presented frame's time on the container's clock.
    pub media_offset_ms: i64,
    /// Whether the file has an audio stream.
    pub has_audio: bool,
    /// Whether common browsers play the file unchanged.
    pub plays_in_browsers: bool,
    /// Index of the stream used, among all streams of the file.
    pub stream: u32,
    /// Converts the stream's timestamps to milliseconds.
    pub clock: Clock,
    /// The subtitle streams, in the file's order.
    #[serde(default)]
    pub subtitles: Vec<SubtitleStream>,
    /// The presentation times of all its packets in ticks of the stream, ascending: nearly always the frames' times. `None`
    /// for a file of 2,000 packets or more, and for a probe that was stored.
    #[serde(skip)]
    pub packet_times: Option<Arc<[i64]>>,
}

/// Packets decoded to find the first presented frame.
const FIRST_PACKETS: usize = 20;
/// Far more than ffprobe's answers need.
const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// Reads the facts of the file's default video stream. Blocks.
///
/// Refuses a still image: it has no time to search in. An animated GIF is video.
///
/// # Errors
/// [`VideoError::NotVideo`] with the reason if there is no decodable video stream; [`VideoError::OverLimit`] if its
/// pictures are too large.
pub fn probe(path: &Path, limits: &Limits) -> Result<Probe, VideoError> {
    let start = sniff(path)?;
    let answer = ask(path, limits, &start)?;
    let stream = answer.default_video()?;
    let clock = stream.clock(0)?;
    let (width, height) = shown_size(stream, limits)?;
    let times = answer.times(stream.index);
    let first = match answer.certain_start(stream.index, &times) {
        Some(pts) => Some(pts),
        None => first_pts(path, stream.index, limits)?,
    };
    let clock = Clock { origin: first.or(stream.start_pts).unwrap_or(0), ..clock };
    let frame_rate = frame_rate(stream, &times, &clock);
    check_times(&times, &clock, limits)?;
    let duration_ms = match known_duration_ms(stream, &answer.format, &clock) {
        Some(known) => known,
        None => scan_duration_ms(path, stream.index, &clock, frame_rate, limits)?,
    };
    check_duration(duration_ms, limits)?;
    Ok(Probe {
        duration_ms,
        frame_rate,
        width,
        height,
        codec: stream.codec_name.clone(),
        pixel_format: stream.pix_fmt.clone(),
        matrix: stream.matrix(),
        container: answer.format.format_name.clone(),
        variable_frame_rate: is_variable(&times, &clock),
        media_offset_ms: clock.container_ms(clock.origin),
        has_audio: answer.audio().is_some(),
        plays_in_browsers: plays_in_browsers(stream, &answer, &start),
        stream: stream.index,
        clock,
        subtitles: answer.subtitles(),
        packet_times: answer.all_times(stream.index).map(Arc::from),
    })
}

impl Probe {
    /// Pixels of a frame as shown.
    pub(super) fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// How far before a wanted frame a seek aims. ffmpeg finds key frames by decoding time. In streams without an index
    /// it may land anywhere, and the next key frame may be seconds away.
    pub(super) fn seek_margin_ms(&self) -> i64 {
        let has_index = !matches!(self.container.as_str(), "mpegts" | "mpeg" | "mpegvideo");
        if has_index { 1000 } else { 12_000 }
    }

    /// The seek target for the frame at `ms`; `None` where starting at the beginning is as good.
    pub(super) fn seek_for(&self, ms: i64) -> Option<i64> {
        let target = ms - self.seek_margin_ms();
        (target > 1000).then_some(target)
    }
}

/// The file's first bytes, or an error if they already rule out video.
fn sniff(path: &Path) -> Result<Vec<u8>, VideoError> {
    let opened = std::fs::metadata(path)
        .and_then(|facts| if facts.is_file() { File::open(path).map(Some) } else { Ok(None) });
    let Some(file) = opened.map_err(|e| unusable(format!("the file can't be opened: {e}")))? else {
        return Err(unusable("it is not a regular file"));
    };
    let mut start = Vec::new();
    file.take(4096).read_to_end(&mut start).map_err(|e| unusable(format!("the file can't be read: {e}")))?;
    if start.is_empty() {
        return Err(unusable("the file is empty"));
    }
    if is_still_image(&start) {
        return Err(unusable("it is a still image"));
    }
    Ok(start)
}

fn is_still_image(start: &[u8]) -> bool {
    let animated_png = start.windows(4).any(|w| w == b"acTL");
    (start.starts_with(b"\x89PNG\r\n\x1a\n") && !animated_png)
        || start.starts_with(b"\xff\xd8\xff")
        || start.starts_with(b"II*\0")
        || start.starts_with(b"MM\0*")
        || (start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP"))
        || (start.starts_with(b"BM") && start.get(6..10) == Some(&[0; 4]))
}

const ENTRIES: &str = "format=format_name,duration:packet=stream_index,pts,flags:\
stream=index,codec_name,codec_type,pix_fmt,color_space,color_range,width,height,sample_aspect_ratio,avg_frame_rate,r_frame_rate,time_base,start_pts,duration_ts:\
stream_disposition=default,attached_pic:stream_tags=DURATION,duration,language:stream_side_data=rotation";

fn ask(path: &Path, limits: &Limits, start: &[u8]) -> Result<Answer, VideoError> {
    let mut run = Run::ffprobe();
    run.args(["-show_entries", ENTRIES, "-read_intervals", &format!("%+#{PACKETS}"), "-of", "json"]);
    run.input(path, limits);
    let (bytes, finished) = Running::start(run, limits)?.output(MAX_ANSWER_BYTES);
    let answer = serde_json::from_slice::<Answer>(&bytes).ok().filter(|a| !a.format.format_name.is_empty());
    answer.ok_or_else(|| {
        finished.over_limit(limits).unwrap_or_else(|| unusable(why_unreadable(&finished, start)))
    })
}

/// ffprobe's error in words that help the owner of the file.
fn why_unreadable(finished: &Finished, start: &[u8]) -> String {
    let says = |text: &str| finished.log.errors.iter().any(|line| line.contains(text));
    let looks_like_mp4 = start
        .get(4..8)
        .is_some_and(|b| [b"ftyp", b"moov", b"mdat", b"free", b"wide", b"skip"].iter().any(|k| *k == b));
    if says("moov atom not found") && looks_like_mp4 {
        return "no moov atom: the file was cut off before its index was written".into();
    }
    if says("not on whitelist") {
        return "its format is not accepted: it must be one self-contained media file, not a playlist, an image or a text".into();
    }
    "its content is in no known video format".into()
}

/// The timestamp of the first decoded frame, if the first few packets give one.
fn first_pts(path: &Path, stream: u32, limits: &Limits) -> Result<Option<i64>, VideoError> {
    let mut run = Run::ffprobe();
    run.args([
        "-select_streams",
        &stream.to_string(),
        "-show_frames",
        "-show_entries",
        "frame=best_effort_timestamp",
    ]);
    run.args(["-read_intervals", &format!("%+#{FIRST_PACKETS}"), "-of", "csv=p=0"]);
    run.input(path, limits);
    let (bytes, finished) = Running::start(run, limits)?.output(MAX_ANSWER_BYTES);
    if let Some(error) = finished.over_limit(limits) {
        return Err(error);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().next().and_then(|line| line.trim_end_matches(',').parse().ok()))
}

/// The duration of streams that state none: reads all packets, decodes none.
fn scan_duration_ms(
    path: &Path,
    stream: u32,
    clock: &Clock,
    frame_rate: f64,
    limits: &Limits,
) -> Result<i64, VideoError> {
    let mut run = Run::ffprobe();
    run.args(["-select_streams", &stream.to_string(), "-show_entries", "packet=pts", "-of", "csv=p=0"]);
    run.input(path, limits);
    let mut running = Running::start(run, limits)?;
    let (mut packets, mut last) = (0_i64, None);
    if let Some(stdout) = running.take_stdout() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            packets += 1;
            last = last.max(line.trim_end_matches(',').parse::<i64>().ok());
        }
    }
    if let Some(error) = running.finish().over_limit(limits) {
        return Err(error);
    }
    let counted = (packets as f64 * 1000.0 / frame_rate) as i64;
    Ok(last.map_or(counted, |pts| clock.ms(pts).saturating_add((1000.0 / frame_rate) as i64)))
}

/// Whether the file is H.264, VP8, VP9 or AV1 with 8 bits and 4:2:0, in MP4 or WebM, with audio that browsers play.
fn plays_in_browsers(stream: &Stream, answer: &Answer, start: &[u8]) -> bool {
    let sound = |known: &[&str]| answer.audio().is_none_or(|a| known.contains(&a.codec_name.as_str()));
    let quicktime = start.get(4..12) == Some(b"ftypqt  ");
    let mp4 = answer.format.format_name.starts_with("mov,") && start.get(4..8) == Some(b"ftyp") && !quicktime;
    let webm =
        answer.format.format_name.starts_with("matroska") && start.windows(4).take(64).any(|w| w == b"webm");
    let picture = matches!(stream.pix_fmt.as_str(), "yuv420p" | "yuvj420p");
    let plays = match stream.codec_name.as_str() {
        "h264" => mp4,
        "vp9" | "av1" => mp4 || webm,
        "vp8" => webm,
        _ => false,
    };
    plays && picture && if mp4 { sound(&["aac", "mp3", "opus", "flac"]) } else { sound(&["vorbis", "opus"]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_video_are_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content, why) in [
            ("empty.mp4", &b""[..], "the file is empty"),
            ("text.mp4", b"this is not a video\n", "its content is in no known video format"),
            ("cut.mp4", b"\0\0\0\x14ftypisom\0\0\x02\0isom\0\0\xff\xffmdat....", "no moov atom"),
            ("list.mp4", b"ffconcat version 1.0\nfile /etc/hostname\n", "not a playlist"),
            (
                "list.m3u8",
                b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/hostname\n",
                "not a playlist",
            ),
            ("still.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "it is a still image"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            match probe(&path, &Limits::default()) {
                Err(VideoError::NotVideo(reason)) => assert!(reason.contains(why), "{name}: {reason}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        assert!(
            matches!(probe(folder.path(), &Limits::default()), Err(VideoError::NotVideo(why)) if why.contains("regular file"))
        );
    }
}
