//! Coarse pictures: the mean luma of each block, without the picture's mean.

use crate::wide::Wide;

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

/// How two pictures differ block by block, their means included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Difference {
    /// Mean absolute difference, in luma levels.
    pub(super) mean: f32,
    /// Share of the blocks that differ by more than [`CHANGED`].
    pub(super) changed: f32,
}

/// Blocks whose luma differs by more than this have changed.
const CHANGED: i16 = 12 * STEPS as i16;

/// `means` is the first picture's mean less the second one's. A difference is at most 3 times 255 levels, which fits.
#[inline(always)]
pub(super) fn difference(a: &[i16], b: &[i16], means: i16) -> Difference {
    let (mut sum, mut changed) = (0_i32, 0_i32);
    for (a, b) in a.iter().zip(b) {
        let differs = (a - b + means).abs();
        sum += i32::from(differs);
        changed += i32::from(differs > CHANGED);
    }
    let blocks = a.len().max(1) as f32;
    Difference { mean: sum as f32 / STEPS as f32 / blocks, changed: changed as f32 / blocks }
}

/// Blocks whose square differences, of at most 3060 each, fit into 32 bits together.
const SQUARES: usize = 128;

/// The mean square difference of `at` from the nearer of two pictures, block by block, in parts of that of the two. `means` are
/// their means less that of `at`.
#[inline(always)]
pub(super) fn neither(at: &[i16], [a, b]: [&[i16]; 2], means: [i16; 2]) -> f32 {
    let (mut all, mut far) = (0.0_f32, 0.0_f32);
    for ((at, a), b) in at.chunks(SQUARES).zip(a.chunks(SQUARES)).zip(b.chunks(SQUARES)) {
        let (mut sum, mut nearest) = (0_u32, 0_u32);
        for ((at, a), b) in at.iter().zip(a).zip(b) {
            let (from_a, from_b) = (i32::from(a - at + means[0]), i32::from(b - at + means[1]));
            sum += ((from_a - from_b) * (from_a - from_b)) as u32;
            nearest += (from_a * from_a).min(from_b * from_b) as u32;
        }
        all += sum as f32;
        far += nearest as f32;
    }
    far / all.max(1.0)
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
    fn a_difference_counts_means_and_changed_blocks() {
        // Blocks of 10 and 30, and of 30 and 31: each less its picture's mean.
        let found = difference(&[-40, 40], &[-2, 2], 80 - 122);
        assert_eq!(found, Difference { mean: 10.5, changed: 0.5 });
        let most = 4 * 255;
        assert_eq!(difference(&[-most], &[most], -most).mean, 765.0);
    }

    #[test]
    fn a_dissolve_is_neither_picture_and_a_wipe_is_one_or_the_other() {
        let (a, b) = ([-40, 40, -40, 40], [20, 20, -20, -20]);
        let half = [-10, 30, -30, 10];
        assert_eq!(neither(&half, [&a, &b], [0, 0]), 0.25);
        assert_eq!(neither(&[-40, 40, -20, -20], [&a, &b], [0, 0]), 0.0);
        let most = [1020; 128];
        assert!((neither(&[-1020; 128], [&most, &[-1020; 128]], [1020, 0])).abs() < 1e-6);
    }

    #[test]
    fn the_largest_product_fits() {
        let cells = [4 * 255; MOST];
        assert_eq!(product(&cells, &cells), 1_065_369_600);
    }
}
