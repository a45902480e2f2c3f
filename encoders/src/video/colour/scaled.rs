//! The conversion of pictures that ffmpeg has scaled (libswscale/yuv2rgb.c): its tables as sums and products.

use super::matrix::{LUMA, Matrix};
use super::rule::Rule;

/// The change of a colour, in steps of luma, per step of chroma; fixed point with 16 fractional bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    red_by_red: i32,
    green_by_blue: i32,
    green_by_red: i32,
    blue_by_blue: i32,
}

/// Start value of the scaler's tables, 326 steps before the zero offset, plus one half for rounding.
const BLACK: i32 = 326 * LUMA - ((384 + 16) << 16) + (1 << 15);

impl Steps {
    pub(super) fn of(matrix: Matrix) -> Steps {
        let slopes = matrix.slopes();
        let steps = |slope: i32| ((i64::from(slope) * 65_536 + 32_768) / i64::from(LUMA)) as i32;
        Steps {
            red_by_red: steps(slopes.red_by_red),
            green_by_blue: steps(slopes.green_by_blue),
            green_by_red: steps(slopes.green_by_red),
            blue_by_blue: steps(slopes.blue_by_blue),
        }
    }
}

impl Rule for Steps {
    #[inline(always)]
    fn shifts(self, blue: u8, red: u8) -> [i16; 3] {
        let green = shift(blue, self.green_by_blue).wrapping_add(shift(red, self.green_by_red));
        [shift(red, self.red_by_red), green, shift(blue, self.blue_by_blue)]
    }

    #[inline(always)]
    fn colour(self, luma: u8, shift: i16) -> u8 {
        let steps = i32::from(luma).wrapping_add(i32::from(shift));
        (steps.wrapping_mul(LUMA).wrapping_add(BLACK) >> 16).clamp(0, 255) as u8
    }
}

/// The steps of luma by which a chroma value changes a colour; 128 is grey. Floored term by term, as the scaler does.
#[inline(always)]
fn shift(chroma: u8, step: i32) -> i16 {
    (i32::from(chroma).wrapping_mul(step) >> 16).wrapping_sub(step >> 9) as i16
}
