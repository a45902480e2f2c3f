//! The luma of a video, some pictures a second, for readers of text.

use std::path::Path;
use std::sync::Arc;

use super::decode::{Decoder, Event, decode_luma};
use super::{Limits, Probe, Summary, VideoError};
use crate::resize::Pixels;

/// The longer side of a picture at most, in pixels. Text that is legible on a larger video is legible at this size.
const LONGEST_SIDE: u32 = 1920;

/// A picture's luma, one byte a pixel, row by row.
#[derive(Debug, Clone)]
pub struct LumaPicture {
    /// The frame's time in milliseconds since the first frame.
    pub time_ms: i64,
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// `width * height` values, 0 for black.
    pub luma: Arc<[u8]>,
}

/// A running decode: an iterator of pictures in order of time. Dropping it kills ffmpeg. An error is the last item.
pub struct LumaPictures(Decoder);

/// Starts decoding the picture on screen in the middle of each interval of 1 / `per_second` seconds, in the video's own
/// size; its longer side has at most 1920 pixels.
///
/// # Errors
/// [`VideoError::Ffmpeg`] if ffmpeg cannot be started. Faults of the file come as an item.
pub fn luma_pictures(
    path: &Path,
    probe: &Probe,
    per_second: f64,
    limits: &Limits,
) -> Result<LumaPictures, VideoError> {
    decode_luma(path, probe, size(probe.width, probe.height), per_second, limits).map(LumaPictures)
}

impl LumaPictures {
    /// The facts of the decode; complete after the iterator has ended.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.0.summary()
    }
}

impl Iterator for LumaPictures {
    type Item = Result<LumaPicture, VideoError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.next()? {
                Ok(Event::Sampled { frame, .. }) => {
                    return Some(Ok(LumaPicture {
                        time_ms: frame.time_ms,
                        width: frame.width as usize,
                        height: frame.height as usize,
                        luma: frame.rgb,
                    }));
                }
                Ok(Event::Detect(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn size(width: u32, height: u32) -> Pixels {
    let (width, height) = (width.max(1), height.max(1));
    let longest = width.max(height);
    if longest <= LONGEST_SIDE {
        return Pixels { width, height };
    }
    let scaled = |side: u32| {
        let side = (u64::from(side) * u64::from(LONGEST_SIDE)).div_ceil(u64::from(longest));
        side.clamp(1, u64::from(LONGEST_SIDE)) as u32
    };
    Pixels { width: scaled(width), height: scaled(height) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_pictures_shrink() {
        for (width, height, expected) in [
            (1280, 720, (1280, 720)),
            (8192, 4608, (1920, 1080)),
            (1080, 7680, (270, 1920)),
            (8192, 1, (1920, 1)),
            (0, 0, (1, 1)),
        ] {
            let size = size(width, height);
            assert_eq!((size.width, size.height), expected, "{width}x{height}");
        }
    }
}
