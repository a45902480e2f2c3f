//! The conversion of pictures that ffmpeg has not scaled (libswscale/x86/yuv_2_rgb.asm): products of 16-bit words, of
//! which the upper halves are summed.

#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;

use super::factors::{BY_LUMA, Factors};
use super::matrix::Matrix;
#[cfg(target_arch = "x86_64")]
use super::packed;
use super::rule::{Row, Rule};

/// The rule, for videos of one matrix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    factors: Factors,
    #[cfg(target_arch = "x86_64")]
    simd: Option<V3>,
}

impl Whole {
    pub(super) fn of(matrix: Matrix) -> Whole {
        Whole {
            factors: Factors::of(matrix),
            #[cfg(target_arch = "x86_64")]
            simd: V3::try_new(),
        }
    }
}

impl Rule for Whole {
    #[inline(always)]
    fn shifts(self, blue: u8, red: u8) -> [i16; 3] {
        let (blue, red, factors) = (above(blue, 128), above(red, 128), self.factors);
        let green = product(blue, factors.green_by_blue).wrapping_add(product(red, factors.green_by_red));
        [product(red, factors.red_by_red), green, product(blue, factors.blue_by_blue)]
    }

    #[inline(always)]
    fn colour(self, luma: u8, shift: i16) -> u8 {
        product(above(luma, 16), BY_LUMA).wrapping_add(shift).clamp(0, 255) as u8
    }

    #[inline(always)]
    fn begin(self, row: Row<'_>, rgb: &mut [u8]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = self.simd {
            return packed::convert(simd, self.factors, row, rgb);
        }
        let _ = (row, rgb);
        0
    }
}

/// Eighths of steps above `zero`; at most 2,040 in size.
#[inline(always)]
fn above(value: u8, zero: i16) -> i16 {
    (i16::from(value) - zero) << 3
}

/// The upper half of the product.
#[inline(always)]
fn product(eighths: i16, factor: i16) -> i16 {
    (i32::from(eighths).wrapping_mul(i32::from(factor)) >> 16) as i16
}

#[cfg(test)]
mod tests {
    use super::super::rule::Scratch;
    use super::*;

    fn converted(whole: Whole, row: Row<'_>) -> Vec<u8> {
        let mut rgb = vec![0; 3 * row.luma.len()];
        Scratch::new().convert(whole, row, &mut rgb);
        rgb
    }

    #[track_caller]
    fn check(width: usize, matrix: Matrix) {
        let random = |count: usize, seed: usize| -> Vec<u8> {
            (0..count).map(|at| ((at + seed).wrapping_mul(0x9E37_79B9) >> 13) as u8).collect()
        };
        let half = width.div_ceil(2);
        let (luma, blue, red) = (random(width, 1), random(half, 5000), random(half, 9000));
        let row = Row { luma: &luma, blue: &blue, red: &red };
        let whole = Whole::of(matrix);
        let plain = Whole {
            #[cfg(target_arch = "x86_64")]
            simd: None,
            ..whole
        };
        assert_eq!(converted(whole, row), converted(plain, row), "{width} {matrix:?}");
    }

    #[test]
    fn vector_instructions_change_nothing() {
        for width in [1, 2, 31, 32, 33, 64, 95, 320, 640, 2000] {
            check(width, Matrix::Bt601);
            check(width, Matrix::Bt2020);
        }
    }
}
