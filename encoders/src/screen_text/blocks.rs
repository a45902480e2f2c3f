//! The blocks of a picture: where they lie, whether two pictures differ in one, and whether one may hold text.

use super::table::Place;

/// Side of a block, in pixels. The last column and row of blocks may be narrower.
pub(super) const SIDE: usize = 16;
/// A difference of luma above the noise of compression.
const NOISE: u8 = 32;
/// Pixels of a block that must differ: fewer than a digit changes.
const DIFFERING: usize = 6;
/// The step of luma at an edge of a letter, over two pixels.
const EDGE: u8 = 48;
/// Edge pixels of a block that may hold text.
const EDGES: usize = 6;

/// How a picture is divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Grid {
    pub(super) fn columns(self) -> usize {
        self.width.div_ceil(SIDE)
    }

    pub(super) fn rows(self) -> usize {
        self.height.div_ceil(SIDE)
    }

    pub(super) fn count(self) -> usize {
        self.columns() * self.rows()
    }

    /// The pixels of a block.
    pub(super) fn place(self, block: usize) -> Place {
        let (row, column) = (block / self.columns(), block % self.columns());
        let (left, top) = (column * SIDE, row * SIDE);
        Place { left, top, right: (left + SIDE).min(self.width), bottom: (top + SIDE).min(self.height) }
    }

    /// The blocks that a place touches, row by row. The place must lie in the picture.
    pub(super) fn blocks(self, place: Place) -> impl Iterator<Item = usize> {
        let columns = place.left / SIDE..place.right.div_ceil(SIDE).min(self.columns());
        let rows = place.top / SIDE..place.bottom.div_ceil(SIDE).min(self.rows());
        rows.flat_map(move |row| columns.clone().map(move |column| row * self.columns() + column))
    }

    /// The ground of the text in these blocks: their median luma.
    pub(super) fn ground(self, luma: &[u8], blocks: impl Iterator<Item = usize>) -> u8 {
        let mut counts = [0_usize; 256];
        for Place { left, top, right, bottom } in blocks.map(|block| self.place(block)) {
            let rows = (top..bottom).map(|y| &luma[y * self.width + left..y * self.width + right]);
            rows.flatten().for_each(|value| counts[usize::from(*value)] += 1);
        }
        let half = counts.iter().sum::<usize>().div_ceil(2);
        let mut below = 0;
        let is_median = |count: &usize| {
            below += count;
            below >= half
        };
        counts.iter().position(is_median).unwrap_or(0) as u8
    }

    /// Marks the blocks in which two pictures differ by more than noise.
    pub(super) fn differing(self, a: &[u8], b: &[u8], marks: &mut Vec<bool>) {
        marks.clear();
        marks.resize(self.count(), false);
        let mut counts = vec![0_usize; self.columns()];
        for row in 0..self.rows() {
            counts.fill(0);
            let lines = row * SIDE..((row + 1) * SIDE).min(self.height);
            for y in lines {
                let line = y * self.width..(y + 1) * self.width;
                let (a, b) = (&a[line.clone()], &b[line]);
                // Most of a slide is the very same.
                if a == b {
                    continue;
                }
                for ((count, a), b) in counts.iter_mut().zip(a.chunks(SIDE)).zip(b.chunks(SIDE)) {
                    let differs = a.iter().zip(b).map(|(a, b)| u8::from(a.abs_diff(*b) > NOISE));
                    *count += usize::from(differs.sum::<u8>());
                }
            }
            for (mark, count) in marks[row * self.columns()..].iter_mut().zip(&counts) {
                *mark = *count >= DIFFERING;
            }
        }
    }

    /// Whether a block has as many edges as text has.
    pub(super) fn may_hold_text(self, luma: &[u8], block: usize) -> bool {
        let Place { left, top, right, bottom } = self.place(block);
        // Letters at the border of a block have an edge beyond it.
        let right = (right + 2).min(self.width);
        let rows = (top..bottom).map(|y| &luma[y * self.width + left..y * self.width + right]);
        let edges = rows.flat_map(|row| row.iter().zip(row.iter().skip(2)));
        edges.filter(|(a, b)| a.abs_diff(**b) > EDGE).nth(EDGES - 1).is_some()
    }

    /// Copies a block of one picture into another.
    pub(super) fn copy(self, block: usize, from: &[u8], to: &mut [u8]) {
        let Place { left, top, right, bottom } = self.place(block);
        for y in top..bottom {
            let row = y * self.width + left..y * self.width + right;
            to[row.clone()].copy_from_slice(&from[row]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grey picture of 40 x 20 with a white rectangle (left, top, right, bottom).
    fn picture(white: [usize; 4]) -> Vec<u8> {
        let [left, top, right, bottom] = white;
        let mut luma = vec![100; 40 * 20];
        (top..bottom).for_each(|y| luma[y * 40 + left..y * 40 + right].fill(250));
        luma
    }

    const GRID: Grid = Grid { width: 40, height: 20 };

    #[track_caller]
    fn check(white: [usize; 4], expected: &[usize]) {
        let mut marks = Vec::new();
        GRID.differing(&picture([0; 4]), &picture(white), &mut marks);
        let found: Vec<usize> = (0..marks.len()).filter(|block| marks[*block]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn blocks_that_differ_are_marked() {
        check([0, 0, 0, 0], &[]);
        check([2, 2, 5, 5], &[0]);
        check([2, 2, 4, 4], &[]);
        check([30, 10, 40, 20], &[1, 2, 4, 5]);
        check([36, 17, 40, 20], &[5]);
    }

    #[test]
    fn a_place_has_the_blocks_that_it_touches() {
        for (place, expected) in [
            ([0, 0, 1, 1], vec![0]),
            ([0, 0, 16, 16], vec![0]),
            ([15, 15, 17, 17], vec![0, 1, 3, 4]),
            ([32, 16, 40, 20], vec![5]),
        ] {
            let [left, top, right, bottom] = place;
            let found: Vec<usize> = GRID.blocks(Place { left, top, right, bottom }).collect();
            assert_eq!(found, expected, "{place:?}");
        }
    }

    #[test]
    fn only_edges_may_be_text() {
        assert!(!GRID.may_hold_text(&picture([0; 4]), 0));
        assert!(!GRID.may_hold_text(&picture([0, 0, 40, 20]), 4));
        assert!(GRID.may_hold_text(&picture([4, 4, 6, 12]), 0));
        assert!(GRID.may_hold_text(&picture([36, 16, 38, 20]), 5));
    }

    #[test]
    fn the_ground_is_what_lies_around_the_letters() {
        let mut board = picture([16, 0, 40, 20]);
        (20..40).step_by(4).for_each(|x| (0..20).for_each(|y| board[y * 40 + x] = 20));
        assert_eq!(GRID.ground(&board, [0].into_iter()), 100);
        assert_eq!(GRID.ground(&board, [1, 2].into_iter()), 250);
        assert_eq!(GRID.ground(&board, [].into_iter()), 0);
    }

    #[test]
    fn a_block_is_copied_alone() {
        let (from, mut to) = (picture([0, 0, 40, 20]), picture([0; 4]));
        GRID.copy(5, &from, &mut to);
        assert_eq!(to, picture([32, 16, 40, 20]));
    }
}
