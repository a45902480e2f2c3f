//! Copies a stretch between key frames, without encoding.

use std::path::Path;

use super::super::run::Run;
use super::super::{VideoError, VideoFile};
use super::{KeyRange, Watch, Written, run_to_file};

/// The treatment of sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sound {
    None,
    Copied,
    /// For sound that an MP4 can't hold.
    Encoded,
}

/// Writes an MP4 of the stretch. Blocks. `None` if the watch has ended it. Replaces `out`, and removes it on failure.
///
/// # Errors
/// [`VideoError::NotVideo`] if an MP4 can't hold its codec.
pub fn copy(
    file: VideoFile<'_>,
    range: &KeyRange,
    out: &Path,
    watch: Watch<'_>,
) -> Result<Option<Written>, VideoError> {
    if !file.probe.has_audio {
        return write(file, range, Sound::None, out, watch);
    }
    match write(file, range, Sound::Copied, out, watch) {
        Err(VideoError::NotVideo(_)) => write(file, range, Sound::Encoded, out, watch),
        other => other,
    }
}

fn write(
    file: VideoFile<'_>,
    range: &KeyRange,
    sound: Sound,
    out: &Path,
    watch: Watch<'_>,
) -> Result<Option<Written>, VideoError> {
    let VideoFile { path, probe, limits, .. } = file;
    let clock = probe.clock;
    let mut run = Run::ffmpeg();
    run.args(["-sn", "-dn", "-seek_timestamp", "1"]);
    // Rounded down: packets before this time are left out, and the key frame must not be.
    let microseconds =
        (i128::from(range.start_pts) * 1_000_000 * i128::from(clock.num)).div_euclid(clock.den.into());
    run.option("-ss", format!("{microseconds}us"));
    run.input(path, limits);
    run.option("-map", format!("0:{}", probe.stream));
    match sound {
        Sound::None => {}
        Sound::Copied => run.args(["-map", "0:a:0", "-c:a", "copy"]),
        Sound::Encoded => run.args(["-map", "0:a:0", "-c:a", "aac", "-b:a", "160k"]),
    }
    run.args(["-c:v", "copy", "-copypriorss", "0"]);
    run.option("-frames:v", range.packets.to_string());
    run.option("-t", format!("{}ms", range.end_ms - range.start_ms + 1));
    run.args(["-map_metadata", "-1", "-map_chapters", "-1", "-movflags", "+faststart", "-f", "mp4"]);
    run_to_file(run, out, limits, watch)
}
