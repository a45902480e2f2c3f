//! Coarse pictures: the mean luma of each block, without the picture's mean.

use crate::video::wide::Wide;

/// Side of a block, in pixels of the small frame.
const SIDE: usize = 8;
/// Fractional steps of a mean: a quarter of a luma level.
pub(super) const STEPS: i32 = 4;
/// Blocks of the largest picture, 256 x 256 pixels. The product of two such pictures fits into 32 bits.
const MOST: usize = 32 * 32;

/// Makes coarse pictures; keeps its buffer.
#[derive(Debug, Default)]
pub(super) struct Coarse {
    columns: Vec<u16>,
}

impl Coarse {
    /// Fills `cells` with each block's mean luma less the picture's mean, which it returns; both in units of
    /// 1 / [`STEPS`]. At most [`MOST`] blocks are filled.
    pub(super) fn fill(&mut self, wide: Wide, width: usize, luma: &[u8], cells: &mut Vec<i16>) -> i16 {
        cells.clear();
        self.columns.resize(width, 0);
        for rows in luma.chunks(SIDE * width.max(1)) {
            add_rows(wide, &mut self.columns, rows);
            let height = rows.len() / width.max(1);
            for block in self.columns.chunks(SIDE) {
                let sum = block.iter().map(|it| u32::from(*it)).sum::<u32>();
                let pixels = (block.len() * height).max(1) as u32;
                // A division takes longer than all sums of a whole block.
                let mean = if pixels == 64 { (sum + 8) >> 4 } else { STEPS as u32 * sum / pixels };
                cells.push(mean as i16);
            }
        }
        cells.truncate(MOST);
        let sum = cells.iter().map(|it| i32::from(*it)).sum::<i32>();
        let mean = (sum / cells.len().max(1) as i32) as i16;
        cells.iter_mut().for_each(|it| *it -= mean);
        mean
    }
}

/// The sums of each pixel column over at most [`SIDE`] rows.
fn add_rows(wide: Wide, columns: &mut [u16], rows: &[u8]) {
    columns.fill(0);
    wide.run(
        #[inline(always)]
        || {
            for row in rows.chunks_exact(columns.len().max(1)) {
                for (sum, value) in columns.iter_mut().zip(row) {
                    *sum = sum.wrapping_add(u16::from(*value));
                }
            }
        },
    );
}

/// The sum of the products of two pictures' cells.
#[inline(always)]
pub(super) fn product(a: &[i16], b: &[i16]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a).wrapping_mul(i32::from(*b))).fold(0, i32::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(width: usize, luma: &[u8], expected: (i16, &[i16])) {
        let mut cells = Vec::new();
        let mean = Coarse::default().fill(Wide::detect(), width, luma, &mut cells);
        assert_eq!((mean, &cells[..]), expected);
    }

    #[test]
    fn a_cell_is_the_mean_of_its_block_without_that_of_the_picture() {
        check(8, &[100; 64], (400, &[0]));
        let halves: Vec<u8> = (0..16 * 8).map(|at| if at % 16 < 8 { 10 } else { 20 }).collect();
        check(16, &halves, (60, &[-20, 20]));
        check(0, &[], (0, &[]));
    }

    #[test]
    fn blocks_at_the_edge_are_smaller() {
        let luma: Vec<u8> = (0..10 * 9).map(|at| if at % 10 < 8 && at < 80 { 10 } else { 50 }).collect();
        check(10, &luma, (160, &[-120, 40, 40, 40]));
    }

    #[test]
    fn the_largest_product_fits() {
        let cells = [4 * 255; MOST];
        assert_eq!(product(&cells, &cells), 1_065_369_600);
    }
}
