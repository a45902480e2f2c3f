//! Extracts text subtitles of a container as WebVTT.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::run::Run;
use super::running::Running;
use super::{Limits, SubtitleStream, VideoError};

/// The most bytes of one stream; far more than speech needs.
const MAX_BYTES: u64 = 16 << 20;

/// Codecs of text subtitles; the others are pictures.
const TEXT_CODECS: [&str; 7] = ["ass", "mov_text", "ssa", "srt", "subrip", "text", "webvtt"];

/// Whether a stream holds text rather than pictures of text.
pub fn is_text(stream: &SubtitleStream) -> bool {
    TEXT_CODECS.contains(&stream.codec.as_str())
}

/// The text of `streams` as WebVTT files, in the same order, with times on the container's clock. Blocks; reads the
/// whole file once.
///
/// # Errors
/// [`VideoError::NotVideo`] if one of them cannot be read, [`VideoError::OverLimit`], [`VideoError::Ffmpeg`].
pub fn subtitles_as_vtt(
    path: &Path,
    streams: &[SubtitleStream],
    limits: &Limits,
) -> Result<Vec<Vec<u8>>, VideoError> {
    if streams.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |error: std::io::Error| VideoError::Ffmpeg(error.into());
    let folder = tempfile::tempdir().map_err(failed)?;
    let file_of = |stream: &SubtitleStream| folder.path().join(format!("{}.vtt", stream.index));
    // Without it, ffmpeg counts from the first packet of the file, of any stream.
    let mut run = Run::ffmpeg();
    run.args(["-copyts"]);
    run.input(path, limits);
    for stream in streams {
        run.option("-map", format!("0:{}", stream.index));
        run.option("-c:s", "webvtt");
        run.option("-f", "webvtt");
        run.option("-fs", MAX_BYTES.to_string());
        run.output(&file_of(stream));
    }
    let finished = Running::start(run, limits)?.finish();
    if let Some(error) = finished.over_limit(limits) {
        return Err(error);
    }
    if !finished.status.is_some_and(|status| status.success()) {
        let why = finished.log.errors.first().cloned().unwrap_or_else(|| "ffmpeg gave no reason".to_owned());
        return Err(VideoError::NotVideo(why));
    }
    let read = |stream: &SubtitleStream| {
        let mut bytes = Vec::new();
        File::open(file_of(stream))?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    streams.iter().map(read).collect::<std::io::Result<_>>().map_err(failed)
}
