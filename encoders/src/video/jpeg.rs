//! Pictures to JPEGs, by ffmpeg.

use std::io::{BufReader, Write};
use std::thread;

use super::nut::Demuxer;
use super::rendition::failed;
use super::run::Run;
use super::running::Running;
use super::{Limits, VideoError};
use crate::resize::Pixels;

/// A quality of JPEGs as ffmpeg counts it: 2 is the best, 31 the worst.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quality(pub(super) u8);

/// The JPEGs of RGB pictures of one size, in order, from one run of ffmpeg. Blocks.
///
/// # Errors
/// [`VideoError`] if ffmpeg fails, or returns fewer pictures.
pub(super) fn jpegs<P: AsRef<[u8]> + Send + 'static>(
    pictures: Vec<P>,
    size: Pixels,
    quality: Quality,
    limits: &Limits,
) -> Result<Vec<Vec<u8>>, VideoError> {
    let expected = pictures.len();
    let mut run = Run::ffmpeg();
    run.args(["-f", "rawvideo", "-pixel_format", "rgb24", "-framerate", "1"]);
    run.option("-video_size", format!("{}x{}", size.width, size.height));
    run.fed();
    run.args(["-c:v", "mjpeg", "-pix_fmt", "yuvj420p"]);
    run.option("-q:v", quality.0.to_string());
    run.args(["-write_index", "0", "-f", "nut", "pipe:1"]);
    let mut running = Running::start(run, limits)?;
    let (stdin, stdout) = (running.take_stdin(), running.take_stdout());
    // A thread of its own: ffmpeg stops reading while nobody reads what it writes.
    let feeding = thread::spawn(move || {
        let Some(mut stdin) = stdin else { return };
        // If ffmpeg breaks off, its exit gives the reason.
        let _ = pictures.iter().try_for_each(|picture| stdin.write_all(picture.as_ref()));
    });
    let mut made = Vec::new();
    let most = limits.max_pixels.saturating_mul(3);
    if let Some(Ok(Some(mut demuxer))) = stdout.map(|out| Demuxer::open(BufReader::new(out), most)) {
        while let Ok(Some(packet)) = demuxer.next_packet() {
            made.push(packet.data.to_vec());
        }
    }
    let finished = running.finish();
    let _ = feeding.join();
    match finished.over_limit(limits) {
        Some(error) => Err(error),
        None if made.len() == expected => Ok(made),
        None => Err(failed(&finished)),
    }
}
