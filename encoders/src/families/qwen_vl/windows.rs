//! The windows of Qwen2.5-VL's tower: squares of merged tokens within a temporal patch, cut at the borders.

use super::grid::Grid;

/// The merged tokens of pictures and videos, window after window.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Windows {
    /// The token at each place of the new order.
    pub(crate) order: Vec<u32>,
    /// Tokens of each window; none is empty.
    pub(crate) lengths: Vec<usize>,
}

impl Windows {
    /// The windows of `side * side` merged tokens of all `grids`, whose tokens follow each other.
    pub(crate) fn of(grids: &[Grid], merge: usize, side: usize) -> Windows {
        let mut windows = Windows::default();
        let mut first = 0;
        for grid in grids {
            for _ in 0..grid.frames {
                windows.add([grid.rows / merge, grid.columns / merge], side, first);
                first += grid.area() / (merge * merge);
            }
        }
        windows
    }

    fn add(&mut self, [rows, columns]: [usize; 2], side: usize, first: usize) {
        for top in (0..rows).step_by(side) {
            for left in (0..columns).step_by(side) {
                let before = self.order.len();
                for row in top..(top + side).min(rows) {
                    let places = left..(left + side).min(columns);
                    self.order.extend(places.map(|column| (first + row * columns + column) as u32));
                }
                self.lengths.push(self.order.len() - before);
            }
        }
    }

    /// The place of each token in the new order.
    pub(crate) fn inverse(&self) -> Vec<u32> {
        let mut inverse = vec![0; self.order.len()];
        for (place, token) in self.order.iter().enumerate() {
            inverse[*token as usize] = place as u32;
        }
        inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_cut_at_the_borders_and_never_empty() {
        let windows = Windows::of(&[Grid { frames: 1, rows: 6, columns: 4 }], 2, 2);
        assert_eq!((windows.order, windows.lengths), (vec![0, 1, 2, 3, 4, 5], vec![4, 2]));
        let windows = Windows::of(&[Grid { frames: 2, rows: 2, columns: 6 }], 2, 2);
        assert_eq!((&windows.order[..], &windows.lengths[..]), (&[0, 1, 2, 3, 4, 5][..], &[2, 1, 2, 1][..]));
        assert_eq!(windows.inverse(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_inverse_puts_tokens_back() {
        let windows = Windows::of(&[Grid { frames: 1, rows: 4, columns: 6 }], 2, 2);
        let order = &windows.order;
        assert_eq!(order[..], [0, 1, 3, 4, 2, 5]);
        let back: Vec<u32> = windows.inverse().iter().map(|place| order[*place as usize]).collect();
        assert_eq!(back, [0, 1, 2, 3, 4, 5]);
    }
}
