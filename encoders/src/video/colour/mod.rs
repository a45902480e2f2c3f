//! Converts luma and chroma to RGB, to the values of ffmpeg's scaler.
//!
//! Pictures for the shot detector cross the pipe as luma and chroma, which are fewer bytes, and become RGB here. ffmpeg
//! has two rules: one for pictures that it has scaled (`scaled`), and one for pictures of the file's size (`whole`).

mod factors;
mod matrix;
#[cfg(target_arch = "x86_64")]
mod packed;
mod rule;
mod scaled;
mod whole;

use std::convert::Infallible;
use std::sync::Arc;

pub use matrix::Matrix;

use self::rule::{Row, Rule, Scratch};
use super::spare::Spare;
use crate::wide::Wide;

/// Which rows of a picture have chroma of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chroma {
    /// Every row (4:2:2): of pictures that ffmpeg has scaled.
    EveryRow,
    /// Every second row, for the next one too (4:2:0): of pictures that ffmpeg has not scaled.
    EverySecondRow,
}

impl Chroma {
    /// Rows of pixels for a row of chroma.
    fn rows(self) -> usize {
        match self {
            Chroma::EveryRow => 1,
            Chroma::EverySecondRow => 2,
        }
    }
}

/// Converts pictures of one video to RGB.
#[derive(Debug)]
pub(super) struct ToRgb {
    matrix: Matrix,
    chroma: Chroma,
    spare: Spare,
}

/// The planes of a picture.
#[derive(Debug, Clone, Copy)]
struct Planes<'a> {
    width: usize,
    /// Rows of pixels for a row of chroma.
    per_chroma: usize,
    luma: &'a [u8],
    blue: &'a [u8],
    red: &'a [u8],
}

impl ToRgb {
    pub(super) fn new(matrix: Matrix, chroma: Chroma) -> ToRgb {
        ToRgb { matrix, chroma, spare: Spare::default() }
    }

    /// The RGB pixels of a picture, or `None` if the number of bytes does not fit. Planes follow each other: luma, blue
    /// and red chroma, 8 bits in video range. Chroma has half the columns, rounded up.
    pub(super) fn picture(&mut self, width: u32, height: u32, bytes: &[u8]) -> Option<Arc<[u8]>> {
        let (width, height, per_chroma) = (width as usize, height as usize, self.chroma.rows());
        let of_chroma = width.div_ceil(2).checked_mul(height.div_ceil(per_chroma))?;
        let in_all = width.checked_mul(height)?.checked_add(of_chroma.checked_mul(2)?)?;
        if width == 0 || bytes.len() != in_all {
            return None;
        }
        let (luma, chroma) = bytes.split_at(width * height);
        let (blue, red) = chroma.split_at(of_chroma);
        let planes = Planes { width, per_chroma, luma, blue, red };
        let (matrix, chroma) = (self.matrix, self.chroma);
        let convert = |pixels: &mut [u8]| {
            match chroma {
                Chroma::EveryRow => planes.convert(scaled::Steps::of(matrix), pixels),
                Chroma::EverySecondRow => planes.convert(whole::Whole::of(matrix), pixels),
            }
            Ok::<_, Infallible>(())
        };
        let Ok(rgb) = self.spare.filled(3 * width * height, convert);
        Some(rgb)
    }
}

impl Planes<'_> {
    fn convert(self, rule: impl Rule, rgb: &mut [u8]) {
        let (half, of_rows) = (self.width.div_ceil(2), self.width * self.per_chroma);
        let rows = rgb.chunks_mut(3 * of_rows).zip(self.luma.chunks(of_rows));
        let rows = rows.zip(self.blue.chunks_exact(half).zip(self.red.chunks_exact(half)));
        Wide::detect().run(
            #[inline(always)]
            || {
                let mut scratch = Scratch::new();
                for ((rgb, luma), (blue, red)) in rows {
                    for (rgb, luma) in rgb.chunks_exact_mut(3 * self.width).zip(luma.chunks_exact(self.width))
                    {
                        scratch.convert(rule, Row { luma, blue, red }, rgb);
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Two frames of noise in all colours, as the filters `then` leave them.
    fn made_by_ffmpeg(width: u32, height: u32, matrix: &str, then: &str) -> Vec<u8> {
        let source = format!(
            "color=gray:s={width}x{height}:d=2:r=1,format=yuv420p,noise=alls=100:all_seed=7:allf=t,\
             setparams=range=tv:colorspace={matrix},{then}"
        );
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-f", "lavfi", "-i", &source, "-f", "rawvideo", "-"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    #[track_caller]
    fn check(width: u32, height: u32, matrix: &str, chroma: Chroma) {
        let (times, filter, planar, most) = match chroma {
            // The scaler's SIMD code, on processors that have some, may differ by one.
            Chroma::EveryRow => (3, format!("scale={width}:{height}:flags=neighbor"), "yuv422p", 1),
            // The SIMD code of other architectures rounds otherwise.
            Chroma::EverySecondRow => {
                let most = if cfg!(target_arch = "x86_64") { 0 } else { 3 };
                (2, format!("crop={width}:{height}:0:0:exact=1,scale=flags=bicubic"), "yuv420p", most)
            }
        };
        let made = |format| {
            made_by_ffmpeg(times * width, times * height, matrix, &format!("{filter},format={format}"))
        };
        let (planes, expected) = (made(planar), made("rgb24"));
        let mut to_rgb = ToRgb::new(Matrix::named(matrix), chroma);
        let frames = planes.chunks_exact(planes.len() / 2);
        let pixels = |frame| to_rgb.picture(width, height, frame).unwrap().to_vec();
        let found: Vec<u8> = frames.flat_map(pixels).collect();
        assert_eq!(found.len(), expected.len());
        let differs = found.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(differs <= Some(most), "{width}x{height} {matrix} {chroma:?}: {differs:?}");
        assert!(found.iter().max() > Some(&250) && found.iter().min() < Some(&5));
    }

    #[test]
    fn colours_are_those_of_ffmpeg_whatever_the_matrix() {
        for matrix in ["unknown", "smpte170m", "bt709", "bt2020nc", "fcc", "smpte240m"] {
            check(256, 144, matrix, Chroma::EveryRow);
            check(320, 180, matrix, Chroma::EverySecondRow);
        }
    }

    #[test]
    fn pictures_of_any_size_are_taken() {
        for (width, height) in [(2, 2), (34, 7), (256, 3), (258, 3), (700, 4)] {
            check(width, height, "bt709", Chroma::EveryRow);
        }
        // ffmpeg takes another rule for odd heights.
        for (width, height) in [(2, 2), (33, 4), (34, 8), (256, 2), (258, 6), (511, 16), (640, 480)] {
            check(width, height, "bt709", Chroma::EverySecondRow);
        }
    }

    /// ffmpeg itself changes to another rule for these sizes.
    #[test]
    fn an_odd_width_leaves_out_half_a_pair() {
        let planes = made_by_ffmpeg(258, 2, "bt709", "scale=258:1:flags=neighbor,format=yuv422p");
        let planes = &planes[..2 * 258];
        let mut to_rgb = ToRgb::new(Matrix::Bt709, Chroma::EveryRow);
        let even = to_rgb.picture(258, 1, planes).unwrap();
        let odd = to_rgb.picture(257, 1, &[&planes[..257], &planes[258..]].concat()).unwrap();
        assert_eq!(odd[..], even[..3 * 257]);
    }

    #[track_caller]
    fn check_refused(width: u32, height: u32, chroma: Chroma, bytes: usize) {
        let mut to_rgb = ToRgb::new(Matrix::Bt709, chroma);
        assert_eq!(to_rgb.picture(width, height, &vec![0; bytes]), None, "{width}x{height} {chroma:?}");
    }

    #[test]
    fn planes_of_another_size_are_no_picture() {
        for (width, height, bytes) in [(0, 4, 0), (4, 4, 31), (4, 4, 48), (3, 1, 6)] {
            check_refused(width, height, Chroma::EveryRow, bytes);
        }
        for (width, height, bytes) in [(0, 4, 0), (4, 4, 32), (4, 3, 18), (3, 2, 6)] {
            check_refused(width, height, Chroma::EverySecondRow, bytes);
        }
        check_refused(u32::MAX, u32::MAX, Chroma::EveryRow, 6);
        check_refused(u32::MAX, u32::MAX, Chroma::EverySecondRow, 6);
    }
}
