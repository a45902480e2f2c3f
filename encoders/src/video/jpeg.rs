//! Pictures to JPEGs, in this process: a run of ffmpeg takes longer to start than a few pictures take.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::VideoError;
use crate::resize::Pixels;

/// A quality of JPEGs as libjpeg counts it: 1 to 100, the best.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quality(pub(super) u8);

/// The JPEG of an RGB picture, with half as many columns and rows of chroma.
///
/// # Errors
/// [`VideoError::OverLimit`] for a picture with no pixels, with a side over 65,535, or with fewer bytes than its size says.
pub(super) fn jpeg(rgb: &[u8], size: Pixels, quality: Quality) -> Result<Vec<u8>, VideoError> {
    let refused = || VideoError::OverLimit(format!("no JPEG can be {} x {} pixels", size.width, size.height));
    let side = |side: u32| u16::try_from(side).map_err(|_| refused());
    let (width, height) = (side(size.width)?, side(size.height)?);
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, quality.0);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.encode(rgb, width, height, ColorType::Rgb).map_err(|_| refused())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the start, the end and the stated size of the JPEG of a grey picture; `None`: it is refused.
    #[track_caller]
    fn check(width: u32, height: u32, bytes: usize, expected: Option<[u8; 4]>) {
        let made = jpeg(&vec![90; bytes], Pixels { width, height }, Quality(85)).ok();
        let stated = made.map(|made| {
            assert!(made.starts_with(&[0xff, 0xd8, 0xff]) && made.ends_with(&[0xff, 0xd9]));
            let frame = made.windows(2).position(|it| it == [0xff, 0xc0]).unwrap();
            made[frame + 5..frame + 9].try_into().unwrap()
        });
        assert_eq!(stated, expected, "{width} x {height}");
    }

    #[test]
    fn a_jpeg_has_the_size_of_its_picture() {
        check(1, 1, 3, Some([0, 1, 0, 1]));
        check(33, 258, 3 * 33 * 258, Some([1, 2, 0, 33]));
    }

    #[test]
    fn what_no_jpeg_can_be_is_refused() {
        check(0, 4, 0, None);
        check(4, 4, 47, None);
        check(65_536, 1, 3 * 65_536, None);
    }
}
