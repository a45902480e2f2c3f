//! Pictures and video for people: thumbnails, previews, and files that browsers can play.

use std::io::BufReader;
use std::ops::Range;
use std::path::Path;

use super::ffmpeg;
use super::nut::Demuxer;
use super::run::Run;
use super::running::{Finished, Running};
use super::{Limits, Probe, VideoError, VideoFile};

/// Frames per second of previews.
const PREVIEW_RATE: f64 = 25.0;
/// The longer side of web renditions, in pixels.
const WEB_PIXELS: u32 = 1920;

/// A JPEG of the frame on screen at `at_ms`, at most `width` pixels wide. Blocks.
///
/// Times before the first frame give the first frame, times after the end the last.
///
/// # Errors
/// [`VideoError::NotVideo`] if nothing can be decoded there.
pub fn thumbnail(file: VideoFile<'_>, at_ms: i64, width: u32) -> Result<Vec<u8>, VideoError> {
    let at_ms = at_ms.clamp(0, file.probe.duration_ms.max(0));
    let seek_ms = file.probe.seek_for(at_ms).filter(|_| !file.in_order);
    // Nearly always the frame began within the last 250 ms. Otherwise all frames after the seek are read, and if the
    // seek went too far, all frames of the file.
    let attempts = [(seek_ms, Some(at_ms - 250)), (seek_ms, None), (None, None)];
    let mut last_error = None;
    for (seek_ms, from_ms) in attempts {
        match last_jpeg(file, Attempt { seek_ms, from_ms, at_ms }, width) {
            Ok(Some(jpeg)) => return Ok(jpeg),
            Ok(None) => {}
            Err(error @ VideoError::OverLimit(_)) => return Err(error),
            Err(error) => last_error = Some(error),
        }
    }
    Err(last_error.unwrap_or_else(|| VideoError::NotVideo("no picture in it could be decoded".into())))
}

/// One search for a frame: the last one in `[from_ms, at_ms]`, after a seek to `seek_ms`.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    seek_ms: Option<i64>,
    from_ms: Option<i64>,
    at_ms: i64,
}

/// JPEG of the last frame in `[from_ms, at_ms]`.
fn last_jpeg(file: VideoFile<'_>, attempt: Attempt, width: u32) -> Result<Option<Vec<u8>>, VideoError> {
    let VideoFile { path, probe, limits, .. } = file;
    let Attempt { seek_ms, from_ms, at_ms } = attempt;
    let Size { width, height } = fitted(probe, width);
    let from = from_ms.map(|ms| format!("start_pts={}:", probe.clock.pts_at(ms))).unwrap_or_default();
    let until = probe.clock.pts_at(at_ms + 1);
    let origin = probe.clock.origin;
    let mut run = opened(path, probe, seek_ms, limits);
    let graph = format!(
        "[0:{}]trim={from}end_pts={until},setpts=PTS-({origin})+1/TB,scale=w={width}:h={height},setsar=1,format=yuvj420p[out]",
        probe.stream
    );
    run.option("-filter_complex", graph);
    run.args(["-map", "[out]", "-c:v", "mjpeg", "-q:v", "4", ffmpeg::frame_rate_mode(), "passthrough"]);
    run.args(["-enc_time_base", "1:90000", "-write_index", "0", "-f", "nut", "pipe:1"]);
    let mut running = Running::start(run, limits)?;
    let mut last = None;
    let demuxer = running
        .take_stdout()
        .map(|out| Demuxer::open(BufReader::new(out), limits.max_pixels.saturating_mul(3)));
    if let Some(Ok(Some(mut demuxer))) = demuxer {
        while let Ok(Some(packet)) = demuxer.next_packet() {
            last = Some(packet.data.to_vec());
        }
    }
    let finished = running.finish();
    match (finished.over_limit(limits), last) {
        (Some(error), _) => Err(error),
        (None, Some(jpeg)) => Ok(Some(jpeg)),
        (None, None) if finished.log.count > 0 => Err(failed(&finished)),
        (None, None) => Ok(None),
    }
}

/// Writes an MP4 (H.264, yuv420p, no audio, faststart) of the span, at most `width` pixels wide, starting at 0. Blocks.
/// Replaces `out`, and removes it on failure.
///
/// # Errors
/// [`VideoError::EmptySpan`] if the span is inverted or begins after the video's end.
pub fn preview(file: VideoFile<'_>, span: Range<i64>, width: u32, out: &Path) -> Result<(), VideoError> {
    let VideoFile { path, probe, in_order, limits } = file;
    if span.start < 0 || span.end <= span.start || span.start >= probe.duration_ms {
        return Err(VideoError::EmptySpan {
            start_ms: span.start,
            end_ms: span.end,
            duration_ms: probe.duration_ms,
        });
    }
    let seek_ms = probe.seek_for(span.start).filter(|_| !in_order);
    let Size { width, height } = fitted(probe, width).even();
    let rate = probe.frame_rate.clamp(1.0, PREVIEW_RATE);
    let (from, until) = (probe.clock.container_seconds(span.start), probe.clock.container_seconds(span.end));
    // `fps` comes first: it repeats a slide that began before the span and has no frame of its own in it.
    let graph = format!(
        "[0:{}]fps={rate:.6}:eof_action=pass,trim=start={from:.6}:end={until:.6},setpts=PTS-STARTPTS,\
         scale=w={width}:h={height},setsar=1,format=yuv420p[out]",
        probe.stream
    );
    let mut run = opened(path, probe, seek_ms, limits);
    run.option("-filter_complex", graph);
    run.args(["-map", "[out]", "-crf", "28", "-threads", "2"]);
    write_mp4(run, out, limits)
}

/// Writes an MP4 (H.264 yuv420p + AAC, faststart) of the whole file. Its clock starts at the first video frame, so its
/// media times are the times of [`Probe::clock`]. Blocks. Replaces `out`, and removes it on failure.
///
/// Audio that cannot be decoded is left out; audio before the first frame is cut off.
///
/// # Errors
/// [`VideoError::NotVideo`] if nothing can be decoded.
pub fn web(path: &Path, probe: &Probe, out: &Path, limits: &Limits) -> Result<(), VideoError> {
    let silent = || web_with(path, probe, false, out, limits);
    if !probe.has_audio {
        return silent();
    }
    match web_with(path, probe, true, out, limits) {
        Err(VideoError::NotVideo(_)) => silent(),
        other => other,
    }
}

fn web_with(path: &Path, probe: &Probe, sound: bool, out: &Path, limits: &Limits) -> Result<(), VideoError> {
    let most =
        if probe.width >= probe.height { WEB_PIXELS } else { WEB_PIXELS * probe.width / probe.height.max(1) };
    let Size { width, height } = fitted(probe, most.max(2)).even();
    let clock = probe.clock;
    let mut graph = format!(
        "[0:{}]setpts=PTS-({}),scale=w={width}:h={height},setsar=1,format=yuv420p[picture]",
        probe.stream, clock.origin
    );
    let mut run = opened(path, probe, None, limits);
    if sound {
        let origin = clock.container_seconds(0);
        graph += &format!(
            ";[0:a:0]asetpts=PTS-({origin:.6})/TB,atrim=start=0,aresample=async=1000:first_pts=0[sound]"
        );
    }
    run.option("-filter_complex", graph);
    run.args(["-map", "[picture]"]);
    if sound {
        run.args(["-map", "[sound]", "-c:a", "aac", "-b:a", "128k", "-ac", "2"]);
    }
    // Frames keep their own times; reordered frames would need an edit list to start at zero.
    run.args([ffmpeg::frame_rate_mode(), "vfr", "-crf", "23", "-bf", "0"]);
    run.option("-enc_time_base:v", format!("{}:{}", clock.num, clock.den));
    write_mp4(run, out, limits)
}

/// An ffmpeg that opens the file at a key frame before `seek_ms` on the container's own clock.
pub(super) fn opened(path: &Path, probe: &Probe, seek_ms: Option<i64>, limits: &Limits) -> Run {
    let mut run = Run::ffmpeg();
    run.args(["-copyts", "-sn", "-dn"]);
    if let Some(ms) = seek_ms {
        run.args(["-seek_timestamp", "1", "-noaccurate_seek"]);
        run.option("-ss", format!("{:.6}", probe.clock.container_seconds(ms)));
    }
    run.input(path, limits);
    run
}

fn write_mp4(mut run: Run, out: &Path, limits: &Limits) -> Result<(), VideoError> {
    run.args(["-c:v", "libx264", "-preset", "veryfast", "-map_metadata", "-1", "-map_chapters", "-1"]);
    run.args(["-movflags", "+faststart", "-f", "mp4"]);
    run.output(out);
    let finished = Running::start(run, limits)?.finish();
    let complete = finished.status.is_some_and(|s| s.success())
        && std::fs::metadata(out).is_ok_and(|facts| facts.len() > 1000);
    if complete {
        return Ok(());
    }
    // A partial file must not stay. If it cannot be removed, the error below suffices.
    let _ = std::fs::remove_file(out);
    Err(finished.over_limit(limits).unwrap_or_else(|| failed(&finished)))
}

/// The error of a run that wrote nothing usable.
pub(super) fn failed(finished: &Finished) -> VideoError {
    let says = |text: &str| finished.log.errors.iter().find(|line| line.contains(text));
    if let Some(line) = says("Unknown encoder").or_else(|| says("No space left")) {
        return VideoError::Ffmpeg(line.clone().into());
    }
    let first = finished.log.errors.first().map_or("ffmpeg gave no reason", String::as_str);
    VideoError::NotVideo(format!("no picture in it could be decoded: {first}"))
}

/// Size of a picture in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Size {
    /// The nearest smaller size that 4:2:0 can hold.
    fn even(self) -> Size {
        Size { width: (self.width & !1).max(2), height: (self.height & !1).max(2) }
    }
}

/// The shown size, scaled down to at most `width`.
pub(super) fn fitted(probe: &Probe, width: u32) -> Size {
    let (full_width, full_height) = (probe.width.max(1), probe.height.max(1));
    let width = width.clamp(1, full_width);
    let height = (f64::from(full_height) * f64::from(width) / f64::from(full_width)).round() as u32;
    Size { width, height: height.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::clock::Clock;

    #[test]
    fn sizes_fit_and_keep_the_aspect_ratio() {
        let probe = |width, height| Probe {
            duration_ms: 0,
            frame_rate: 25.0,
            width,
            height,
            codec: String::new(),
            matrix: None,
            pixel_format: String::new(),
            container: String::new(),
            variable_frame_rate: false,
            media_offset_ms: 0,
            has_audio: false,
            plays_in_browsers: false,
            stream: 0,
            clock: Clock { num: 1, den: 1, origin: 0 },
            subtitles: Vec::new(),
            packet_times: None,
        };
        for (full, width, expected) in [
            ((1280, 720), 320, (320, 180)),
            ((1280, 720), 5000, (1280, 720)),
            ((161, 91), 160, (160, 90)),
            ((1000, 1), 100, (100, 1)),
            ((10, 10), 0, (1, 1)),
        ] {
            let expected = Size { width: expected.0, height: expected.1 };
            assert_eq!(fitted(&probe(full.0, full.1), width), expected);
        }
        assert_eq!(Size { width: 161, height: 91 }.even(), Size { width: 160, height: 90 });
        assert_eq!(Size { width: 1, height: 1 }.even(), Size { width: 2, height: 2 });
    }
}
