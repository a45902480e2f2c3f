//! Scales a picture down with OpenCV's linear interpolation, which reads only the four nearest source pixels. Smoother
//! scaling would remove grain and so lower the scores.

use super::columns::Columns;
use super::taps::{Tap, taps};
use crate::wide::Wide;

/// Scales pictures of one size to at most a width or height.
#[derive(Debug, Default)]
pub(super) struct Shrink {
    from: (usize, usize),
    columns: Columns,
    rows: Vec<Tap>,
    /// Two source rows, scaled horizontally.
    above: Row,
    below: Row,
    rgb: Vec<u8>,
}

/// A source row, by number, scaled horizontally; 7 fractional bits.
#[derive(Debug, Default)]
struct Row {
    number: Option<usize>,
    values: Vec<i16>,
}

impl Shrink {
    /// Scales the picture so that its longer side is `most`; returns its width and pixels.
    pub(super) fn picture(&mut self, wide: Wide, width: usize, rgb: &[u8], most: usize) -> (usize, &[u8]) {
        let height = rgb.len() / (3 * width).max(1);
        let factor = width.max(height) as f64 / most as f64;
        if self.from != (width, height) {
            let side = |side: usize| ((side as f64 / factor).round_ties_even() as usize).max(1);
            *self = Shrink {
                from: (width, height),
                columns: Columns::new(width, &taps(width, side(width))),
                rows: taps(height, side(height)),
                ..Shrink::default()
            };
        }
        (self.above.number, self.below.number) = (None, None);
        self.rgb.resize(3 * self.columns.width() * self.rows.len(), 0);
        wide.run(
            #[inline(always)]
            || self.scale(width, rgb),
        );
        (self.columns.width(), &self.rgb)
    }

    #[inline(always)]
    fn scale(&mut self, width: usize, rgb: &[u8]) {
        let row_bytes = 3 * self.columns.width();
        for (row, target) in self.rows.iter().zip(self.rgb.chunks_exact_mut(row_bytes)) {
            if self.below.number == Some(row.first) {
                std::mem::swap(&mut self.above, &mut self.below);
            }
            self.above.load(row.first, width, rgb, &mut self.columns);
            self.below.load(row.second, width, rgb, &mut self.columns);
            // OpenCV's order of steps gives its rounding.
            let part = |value: i16, of: i16| ((i32::from(value) * i32::from(of)) >> 16) as i16;
            for ((above, below), byte) in self.above.values.iter().zip(&self.below.values).zip(target) {
                let sum = part(*above, row.of_first) + part(*below, row.of_second);
                *byte = ((sum + 2) >> 2) as u8;
            }
        }
    }
}

impl Row {
    #[inline(always)]
    fn load(&mut self, number: usize, width: usize, rgb: &[u8], columns: &mut Columns) {
        if self.number == Some(number) {
            return;
        }
        self.number = Some(number);
        columns.scale(&rgb[number * width * 3..(number + 1) * width * 3], &mut self.values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the sum of each pixel times its index modulo 97, against cv2.resize(..., INTER_LINEAR) of the picture
    /// below. The second time without shuffles.
    #[track_caller]
    fn check(width: usize, height: usize, expected: (usize, usize, u64)) {
        let byte = |at: usize| ((at * at / 7 + at * 13 + (at / 31) * 5) % 251) as u8;
        let rgb: Vec<u8> = (0..width * height * 3).map(byte).collect();
        let mut shrink = Shrink::default();
        for _ in 0..2 {
            let (small_width, small) = shrink.picture(Wide::detect(), width, &rgb, 256);
            let sum = small.iter().enumerate().map(|(at, it)| u64::from(*it) * (at as u64 % 97)).sum();
            assert_eq!((small_width, small.len() / 3 / small_width, sum), expected, "{width}x{height}");
            shrink.columns.forget_shuffles();
        }
    }

    #[test]
    fn pictures_are_scaled_as_by_opencv() {
        check(320, 180, (256, 144, 661898930));
        check(640, 360, (256, 144, 663565971));
        check(271, 480, (145, 256, 667462525));
        check(512, 300, (256, 150, 690841135));
        check(300, 1, (256, 1, 4681476));
    }
}
