//! Many small files of one format, decoded by one ffmpeg.

use std::io::{self, Read, Write as _};
use std::path::Path;

use super::ffmpeg::frame_rate_mode;
use super::pass::fine;
use super::run::{Run, file_url};
use super::running::Running;
use super::{Limits, VideoError};

/// Decodes files of one format in order and passes their frames to `read`: 8-bit RGB, `side` by `side` pixels, for
/// encoders. ffmpeg skips files that it can't decode, so the caller must count the frames.
///
/// # Errors
/// [`VideoError`] if ffmpeg does not start or the list of files can't be written.
pub fn decode_joined(paths: &[&Path], side: u32, read: impl FnOnce(&mut dyn Read)) -> Result<(), VideoError> {
    let failed = |error: io::Error| VideoError::Ffmpeg(error.into());
    let mut list = tempfile::NamedTempFile::new().map_err(failed)?;
    let mut run = Run::ffmpeg();
    for path in paths {
        let path = std::path::absolute(path).map_err(failed)?;
        let quoted = path.to_string_lossy().replace('\'', r"'\''");
        writeln!(list, "file 'file:{quoted}'").map_err(failed)?;
        run.may_read(&path);
    }
    let limits = Limits::default();
    // Several runs at once keep all cores busy; threads within one wait for each other.
    run.args([
        "-filter_threads",
        "1",
        "-threads",
        "1",
        "-protocol_whitelist",
        "file,pipe",
        "-f",
        "concat",
        "-safe",
        "0",
    ]);
    run.option("-i", file_url(list.path()));
    run.may_read(list.path());
    run.option("-vf", fine(side));
    run.option(frame_rate_mode(), "passthrough");
    run.args(["-an", "-threads", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1"]);
    let mut running = Running::start(run, &limits)?;
    if let Some(mut stdout) = running.take_stdout() {
        read(&mut stdout);
    }
    running.finish();
    Ok(())
}
