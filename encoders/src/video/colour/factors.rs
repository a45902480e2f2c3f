//! The factors of pictures that ffmpeg has not scaled.

use super::matrix::{LUMA, Matrix};

/// Changes of a colour per step of chroma; fixed point with 13 fractional bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Factors {
    pub(super) red_by_red: i16,
    pub(super) green_by_blue: i16,
    pub(super) green_by_red: i16,
    pub(super) blue_by_blue: i16,
}

/// The factor of luma.
pub(super) const BY_LUMA: i16 = factor(LUMA);

impl Factors {
    pub(super) fn of(matrix: Matrix) -> Factors {
        let slopes = matrix.slopes();
        Factors {
            red_by_red: factor(slopes.red_by_red),
            green_by_blue: factor(slopes.green_by_blue),
            green_by_red: factor(slopes.green_by_red),
            blue_by_blue: factor(slopes.blue_by_blue),
        }
    }
}

/// From 16 to 13 fractional bits, to the nearest.
const fn factor(slope: i32) -> i16 {
    ((slope + 4) >> 3) as i16
}
