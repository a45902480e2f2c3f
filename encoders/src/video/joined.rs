//! Many small files of one format, decoded by one ffmpeg.

use std::ffi::OsString;
use std::io::{self, Read, Write as _};
use std::path::Path;

use super::ffmpeg::{Running, ffmpeg, file_url, frame_rate_mode, option};
use super::pass::fine;
use super::{Limits, VideoError};

/// Decodes files of one format in order and passes their frames to `read`: 8-bit RGB, `side` by `side` pixels, for
/// encoders. ffmpeg skips files that it can't decode, so the caller must count the frames.
///
/// # Errors
/// [`VideoError`] if ffmpeg does not start or the list of files can't be written.
pub fn decode_joined(paths: &[&Path], side: u32, read: impl FnOnce(&mut dyn Read)) -> Result<(), VideoError> {
    let failed = |error: io::Error| VideoError::Ffmpeg(error.into());
    let mut list = tempfile::NamedTempFile::new().map_err(failed)?;
    for path in paths {
        let path = std::path::absolute(path).map_err(failed)?;
        let quoted = path.to_string_lossy().replace('\'', r"'\''");
        writeln!(list, "file 'file:{quoted}'").map_err(failed)?;
    }
    let limits = Limits::default();
    let mut args: Vec<OsString> =
        ["-threads", "1", "-protocol_whitelist", "file,pipe", "-f", "concat", "-safe", "0", "-i"]
            .map(Into::into)
            .to_vec();
    args.push(file_url(list.path()));
    option(&mut args, "-vf", fine(side));
    option(&mut args, frame_rate_mode(), "passthrough");
    args.extend(["-an", "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1"].map(Into::into));
    let mut command = ffmpeg();
    command.args(args);
    let mut running = Running::ffmpeg(command, &limits)?;
    if let Some(mut stdout) = running.take_stdout() {
        read(&mut stdout);
    }
    running.finish();
    Ok(())
}
