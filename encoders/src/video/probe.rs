//! Facts of a file's video stream, read before decoding.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

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
}

/// One stream of subtitles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtitleStream {
    /// Its index among all streams of the file.
    pub index: u32,
    /// Codec name as ffprobe prints it, e.g. `mov_text`.
    pub codec: String,
    /// The container's language code, usually of three letters.
    pub language: Option<String>,
    /// Whether players show it by default.
    pub is_default: bool,
}

/// Packets read to determine the spacing of frames.
const PACKETS: usize = 2000;
/// Packets decoded to find the first presented frame.
const FIRST_PACKETS: usize = 20;
/// Longest time between two frames. Cameras and screen recorders write a frame far more often; a damaged or hostile clock
/// may jump by years, and everything that works by time would follow it.
const LONGEST_GAP_MS: i64 = 3_600_000;
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
    let (num, den) = ratio(&stream.time_base)
        .filter(|&(n, d)| n > 0 && d > 0)
        .ok_or_else(|| unusable("its clock is broken"))?;
    let (width, height) = shown_size(stream, limits)?;
    let times = answer.times(stream.index);
    let first = match answer.certain_start(stream.index, &times) {
        Some(pts) => Some(pts),
        None => first_pts(path, stream.index, limits)?,
    };
    let clock = Clock { num, den, origin: first.or(stream.start_pts).unwrap_or(0) };
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
    })
}

impl Probe {
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

/// Refuses a video that is longer than `limits` allow.
pub(super) fn check_duration(duration_ms: i64, limits: &Limits) -> Result<(), VideoError> {
    if u128::try_from(duration_ms).is_ok_and(|ms| ms > limits.longest.as_millis()) {
        let (hours, most) = (duration_ms as f64 / 3.6e6, limits.longest.as_secs_f64() / 3600.0);
        return Err(VideoError::OverLimit(format!("it lasts {hours:.1} hours, at most {most} are accepted")));
    }
    Ok(())
}

/// Refuses two frames, at these milliseconds, that lie implausibly far apart.
pub(super) fn check_gap(from_ms: i64, to_ms: i64) -> Result<(), VideoError> {
    let gap_ms = to_ms.saturating_sub(from_ms);
    if gap_ms > LONGEST_GAP_MS {
        let (hours, most) = (gap_ms as f64 / 3.6e6, LONGEST_GAP_MS / 3_600_000);
        return Err(VideoError::OverLimit(format!(
            "two of its frames lie {hours:.1} hours apart, at most {most} is accepted; its clock may be damaged"
        )));
    }
    Ok(())
}

/// Checks ascending timestamps.
fn check_times(times: &[i64], clock: &Clock, limits: &Limits) -> Result<(), VideoError> {
    times.windows(2).try_for_each(|pair| check_gap(clock.ms(pair[0]), clock.ms(pair[1])))?;
    times.last().map_or(Ok(()), |last| check_duration(clock.ms(*last), limits))
}

fn unusable(why: impl Into<String>) -> VideoError {
    VideoError::NotVideo(why.into())
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

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    streams: Vec<Stream>,
    #[serde(default)]
    packets: Vec<Packet>,
    #[serde(default)]
    format: Format,
}

#[derive(Deserialize, Default)]
struct Format {
    #[serde(default)]
    format_name: String,
    duration: Option<String>,
}

#[derive(Deserialize)]
struct Stream {
    index: u32,
    #[serde(default)]
    codec_name: String,
    #[serde(default)]
    codec_type: String,
    #[serde(default)]
    pix_fmt: String,
    #[serde(default)]
    color_space: String,
    #[serde(default)]
    color_range: String,
    #[serde(default)]
    width: u32,
    #[serde(default)]
    height: u32,
    #[serde(default)]
    sample_aspect_ratio: String,
    #[serde(default)]
    avg_frame_rate: String,
    #[serde(default)]
    r_frame_rate: String,
    #[serde(default)]
    time_base: String,
    start_pts: Option<i64>,
    duration_ts: Option<i64>,
    #[serde(default)]
    disposition: Disposition,
    #[serde(default)]
    tags: Tags,
    #[serde(default)]
    side_data_list: Vec<SideData>,
}

#[derive(Deserialize, Default)]
struct Disposition {
    #[serde(default)]
    default: u8,
    #[serde(default)]
    attached_pic: u8,
}

#[derive(Deserialize, Default)]
struct Tags {
    #[serde(alias = "DURATION")]
    duration: Option<String>,
    #[serde(alias = "LANGUAGE")]
    language: Option<String>,
}

#[derive(Deserialize)]
struct SideData {
    rotation: Option<f64>,
}

#[derive(Deserialize)]
struct Packet {
    stream_index: u32,
    pts: Option<i64>,
    #[serde(default)]
    flags: String,
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

impl Answer {
    /// The default video stream; cover art does not count.
    fn default_video(&self) -> Result<&Stream, VideoError> {
        let videos =
            || self.streams.iter().filter(|s| s.codec_type == "video" && s.disposition.attached_pic == 0);
        let chosen = videos().find(|s| s.disposition.default == 1).or_else(|| videos().next());
        let stream = chosen.ok_or_else(|| {
            unusable(if self.audio().is_some() {
                "it holds audio but no video"
            } else {
                "it holds no video stream"
            })
        })?;
        match (stream.codec_name.as_str(), stream.width, stream.height) {
            ("" | "unknown", ..) => Err(unusable("its video codec is unknown")),
            (_, 0, _) | (_, _, 0) => Err(unusable("no picture in it could be read")),
            _ => Ok(stream),
        }
    }

    fn audio(&self) -> Option<&Stream> {
        self.streams.iter().find(|s| s.codec_type == "audio")
    }

    fn subtitles(&self) -> Vec<SubtitleStream> {
        let subtitles = self.streams.iter().filter(|s| s.codec_type == "subtitle");
        let stream = |s: &Stream| SubtitleStream {
            index: s.index,
            codec: s.codec_name.clone(),
            language: s.tags.language.clone(),
            is_default: s.disposition.default == 1,
        };
        subtitles.map(stream).collect()
    }

    /// The first presentation times of a stream, ascending.
    fn times(&self, stream: u32) -> Vec<i64> {
        let mut times: Vec<i64> =
            self.packets.iter().filter(|p| p.stream_index == stream).filter_map(|p| p.pts).collect();
        times.sort_unstable();
        times.dedup();
        if self.packets.len() >= PACKETS {
            // Packets come in decoding order: near the end of the list, earlier times may be missing.
            times.truncate(times.len().saturating_sub(16));
        }
        times
    }

    /// The time of the first presented frame, if the packets make it certain: the stream begins with a complete key
    /// frame, and no packet has an earlier time. `times` are the first presentation times.
    fn certain_start(&self, stream: u32, times: &[i64]) -> Option<i64> {
        let first = self.packets.iter().find(|p| p.stream_index == stream)?;
        let is_whole = first.flags.starts_with('K') && !first.flags.contains(['D', 'C']);
        first.pts.filter(|pts| is_whole && times.first() == Some(pts))
    }
}

impl Stream {
    fn matrix(&self) -> Option<Matrix> {
        let is_plain = self.pix_fmt == "yuv420p" && self.color_range != "pc";
        is_plain.then(|| Matrix::named(&self.color_space))
    }
}

/// Parses `30000/1001` or `16:11`.
fn ratio(text: &str) -> Option<(i64, i64)> {
    let (a, b) = text.split_once(['/', ':'])?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

fn rate(text: &str) -> Option<f64> {
    ratio(text).filter(|&(n, d)| n > 0 && d > 0).map(|(n, d)| n as f64 / d as f64)
}

fn frame_rate(stream: &Stream, times: &[i64], clock: &Clock) -> f64 {
    let measured = || match times {
        [first, .., last] => {
            let seconds = (last - first) as f64 * clock.num as f64 / clock.den as f64;
            Some((times.len() - 1) as f64 / seconds)
        }
        _ => None,
    };
    rate(&stream.avg_frame_rate).or_else(measured).or_else(|| rate(&stream.r_frame_rate)).unwrap_or(25.0)
}

/// Whether the spacing varies by more than one tick and by more than the 2 ms of containers' rounding.
fn is_variable(times: &[i64], clock: &Clock) -> bool {
    let gaps = || times.windows(2).map(|pair| pair[1] - pair[0]);
    let (Some(least), Some(most)) = (gaps().min(), gaps().max()) else { return false };
    most - least > 1 && (most - least) * 1000 * clock.num > 2 * clock.den
}

fn shown_size(stream: &Stream, limits: &Limits) -> Result<(u32, u32), VideoError> {
    let pixels = u64::from(stream.width) * u64::from(stream.height);
    if pixels > limits.max_pixels {
        let (width, height, most) = (stream.width, stream.height, limits.max_pixels);
        return Err(VideoError::OverLimit(format!(
            "its pictures have {width}x{height} pixels, at most {most} are accepted"
        )));
    }
    let aspect = rate(&stream.sample_aspect_ratio).filter(|a| (0.05..=20.0).contains(a)).unwrap_or(1.0);
    let width = ((f64::from(stream.width) * aspect).round() as u32).max(1);
    let turn = stream.side_data_list.iter().find_map(|s| s.rotation).unwrap_or(0.0);
    let sideways = (turn.abs().rem_euclid(180.0) - 90.0).abs() < 1.0;
    Ok(if sideways { (stream.height, width) } else { (width, stream.height) })
}

/// The duration that the stream or, failing that, the container states; `None` for raw streams.
fn known_duration_ms(stream: &Stream, format: &Format, clock: &Clock) -> Option<i64> {
    let end = || stream.tags.duration.as_deref().and_then(clock_time_ms);
    let own = stream.duration_ts.map(|ticks| clock.ms(clock.origin.saturating_add(ticks)));
    let whole = || Some((format.duration.as_deref()?.parse::<f64>().ok()? * 1000.0) as i64);
    // Matroska counts from its clock's zero, other containers from their first packet.
    let from_zero = format.format_name.contains("matroska");
    let skipped = if from_zero { clock.container_ms(clock.origin) } else { 0 };
    own.or_else(|| end().map(|ms| ms - skipped))
        .or_else(|| whole().map(|ms| ms - skipped))
        .filter(|&ms| ms > 0)
}

/// Parses `00:01:02.345000000` to milliseconds.
fn clock_time_ms(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let seconds: f64 = parts.next()?.parse().ok()?;
    Some((hours * 60 + minutes) * 60_000 + (seconds * 1000.0) as i64)
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
    Ok(last.map_or(counted, |pts| clock.ms(pts) + (1000.0 / frame_rate) as i64))
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
    fn spacing_is_variable_beyond_a_tick_and_two_milliseconds() {
        let milliseconds = Clock { num: 1, den: 1000, origin: 0 };
        let hundredths = Clock { num: 1, den: 100, origin: 0 };
        for (clock, times, expected) in [
            (milliseconds, vec![0, 33, 67, 100], false),
            (milliseconds, vec![0, 40, 80, 83], true),
            (hundredths, vec![0, 6, 13, 20], false),
            (hundredths, vec![0, 2, 4, 9], true),
            (milliseconds, vec![0], false),
            (milliseconds, vec![], false),
        ] {
            assert_eq!(is_variable(&times, &clock), expected, "{times:?}");
        }
    }

    /// Packets of stream 1, by time and flags, after a packet of another stream.
    #[track_caller]
    fn check_start(packets: &[(Option<i64>, &str)], expected: Option<i64>) {
        let packet = |stream_index, pts, flags: &str| Packet { stream_index, pts, flags: flags.to_owned() };
        let of_video = packets.iter().map(|(pts, flags)| packet(1, *pts, flags));
        let packets = std::iter::once(packet(0, Some(-9), "K__")).chain(of_video).collect();
        let answer = Answer { streams: Vec::new(), packets, format: Format::default() };
        assert_eq!(answer.certain_start(1, &answer.times(1)), expected);
    }

    #[test]
    fn a_start_is_certain_where_a_whole_key_frame_leads() {
        check_start(&[(Some(7), "K__"), (Some(9), "___"), (Some(8), "___")], Some(7));
        check_start(&[(Some(7), "K_")], Some(7));
        check_start(&[(Some(7), "K__"), (Some(6), "___")], None);
        check_start(&[(Some(7), "KD_"), (Some(8), "K__")], None);
        check_start(&[(Some(7), "K_C"), (Some(8), "___")], None);
        check_start(&[(Some(7), "___"), (Some(8), "K__")], None);
        check_start(&[(None, "K__"), (Some(8), "___")], None);
        check_start(&[], None);
    }

    #[test]
    fn colours_are_known_of_plain_pictures_only() {
        for (answer, expected) in [
            (r#"{"index": 0, "pix_fmt": "yuv420p"}"#, Some(Matrix::Bt601)),
            (
                r#"{"index": 0, "pix_fmt": "yuv420p", "color_range": "tv", "color_space": "bt709"}"#,
                Some(Matrix::Bt709),
            ),
            (r#"{"index": 0, "pix_fmt": "yuv420p", "color_range": "pc", "color_space": "bt709"}"#, None),
            (r#"{"index": 0, "pix_fmt": "yuvj420p"}"#, None),
            (r#"{"index": 0, "pix_fmt": "yuv420p10le"}"#, None),
            (r#"{"index": 0, "pix_fmt": "yuv444p"}"#, None),
        ] {
            let stream: Stream = serde_json::from_str(answer).unwrap();
            assert_eq!(stream.matrix(), expected, "{answer}");
        }
    }

    #[test]
    fn durations_in_tags_are_read() {
        assert_eq!(clock_time_ms("00:01:02.345000000"), Some(62_345));
        assert_eq!(clock_time_ms("01:00:00.000"), Some(3_600_000));
        assert_eq!(clock_time_ms("12.5"), None);
    }

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
