//! Joins excerpts into one file, without encoding their pictures again.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::super::run::{Run, file_url};
use super::super::{FrameRate, Limits, VideoError};
use super::{Watch, Written, run_to_file};

/// An excerpt to join.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its file.
    pub path: PathBuf,
    /// Its exact number of frames; `None` if it was copied, and its file tells its length.
    pub frames: Option<i64>,
}

/// Excerpts of equal size, rate and codec.
#[derive(Debug, Clone)]
pub struct Join<'a> {
    /// The excerpts, in order.
    pub parts: &'a [Part],
    /// Their frames per second.
    pub rate: FrameRate,
    /// Whether they have sound.
    pub has_sound: bool,
}

/// Writes an MP4 of the excerpts. Blocks. `None` if the watch has ended it. Replaces `out`, and removes it on failure.
///
/// # Errors
/// [`VideoError`].
pub fn join(
    join: &Join<'_>,
    out: &Path,
    limits: &Limits,
    watch: Watch<'_>,
) -> Result<Option<Written>, VideoError> {
    let list = list_of(join).map_err(|error| VideoError::Ffmpeg(error.into()))?;
    let mut run = Run::ffmpeg();
    run.args(["-protocol_whitelist", "file,pipe", "-f", "concat", "-safe", "0"]);
    run.option("-i", file_url(list.path()));
    run.may_read(list.path());
    join.parts.iter().for_each(|part| run.may_read(&part.path));
    run.args(["-map", "0:v:0", "-c:v", "copy"]);
    let was_encoded = join.parts.iter().all(|part| part.frames.is_some());
    match (join.has_sound, was_encoded) {
        (false, _) => {}
        (true, true) => {
            run.args(["-map", "0:a:0", "-af", "aresample=async=1", "-c:a", "aac", "-b:a", "160k"])
        }
        (true, false) => run.args(["-map", "0:a:0", "-c:a", "copy"]),
    }
    run.args(["-map_metadata", "-1", "-map_chapters", "-1", "-movflags", "+faststart", "-f", "mp4"]);
    run_to_file(run, out, limits, watch)
}

/// The list that ffmpeg's demuxer `concat` reads.
fn list_of(join: &Join<'_>) -> io::Result<tempfile::NamedTempFile> {
    let mut list = tempfile::NamedTempFile::new()?;
    let (mut frames, mut begin_us) = (0, 0);
    for part in join.parts {
        let path = std::path::absolute(&part.path)?;
        writeln!(list, "file 'file:{}'", path.to_string_lossy().replace('\'', r"'\''"))?;
        if let Some(own) = part.frames {
            frames += own;
            // From the sum, so that the parts' roundings do not add up.
            let end_us = microseconds(frames, join.rate);
            writeln!(list, "duration {}us", end_us - begin_us)?;
            begin_us = end_us;
        }
    }
    list.flush()?;
    Ok(list)
}

fn microseconds(frames: i64, rate: FrameRate) -> i64 {
    let us = i128::from(frames) * 1_000_000 * i128::from(rate.den()) / i128::from(rate.num());
    i64::try_from(us).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_a_list_do_not_drift() {
        let part = Part { path: PathBuf::from("/a'b.mov"), frames: Some(1) };
        let parts = vec![part; 3];
        let rate = FrameRate::measured(29.97);
        let list = list_of(&Join { parts: &parts, rate, has_sound: false }).unwrap();
        let text = std::fs::read_to_string(list.path()).unwrap();
        let lengths: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("duration ")).collect();
        assert_eq!(lengths, ["33366us", "33367us", "33367us"]);
        assert!(text.starts_with("file 'file:/a'\\''b.mov'\n"), "{text}");
    }
}
