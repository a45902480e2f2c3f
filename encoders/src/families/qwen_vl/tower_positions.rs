//! Learned positions of Qwen3-VL's tower: a square grid, stretched bilinearly over the patches of a picture.

use candle_core::{Result, Tensor};

use super::grid::Grid;
use crate::LoadError;
use crate::loading::Weights;

/// The learned grid.
#[derive(Debug)]
pub(super) struct LearnedPositions {
    /// (side * side, width).
    rows: Tensor,
    side: usize,
}

/// The four learned places around a patch, and their weights.
#[derive(Default)]
struct Corners {
    places: [Vec<u32>; 4],
    weights: [Vec<f32>; 4],
}

impl LearnedPositions {
    pub(super) fn load(
        weights: &Weights,
        side: usize,
        width: usize,
    ) -> std::result::Result<LearnedPositions, LoadError> {
        let rows = weights.get("visual.pos_embed.weight", &[side * side, width])?;
        Ok(LearnedPositions { rows, side })
    }

    /// The positions of all patches of `grids`, in the tower's order: (patches, width).
    pub(super) fn of(&self, grids: &[Grid], merge: usize) -> Result<Tensor> {
        let mut corners = Corners::default();
        for grid in grids {
            for _ in 0..grid.frames {
                for [row, column] in grid.places(merge) {
                    let row = stretched(row, grid.rows, self.side);
                    corners.add(row, stretched(column, grid.columns, self.side), self.side);
                }
            }
        }
        let device = self.rows.device();
        let corner = |places: &[u32], weights: &[f32]| {
            let weights = Tensor::new(weights, device)?.unsqueeze(1)?;
            self.rows.index_select(&Tensor::new(places, device)?, 0)?.broadcast_mul(&weights)
        };
        let Corners { places, weights } = &corners;
        let mut sum = corner(&places[0], &weights[0])?;
        for at in 1..4 {
            sum = (sum + corner(&places[at], &weights[at])?)?;
        }
        Ok(sum)
    }
}

/// Place `at` of `count`, on a line of `side` places whose ends fall together (align_corners).
fn stretched(at: usize, count: usize, side: usize) -> f32 {
    if count < 2 { 0.0 } else { (at * (side - 1)) as f32 / (count - 1) as f32 }
}

impl Corners {
    fn add(&mut self, row: f32, column: f32, side: usize) {
        let ends = |at: f32| [at as usize, (at as usize + 1).min(side - 1)];
        let shares = |at: f32| [1.0 - at.fract(), at.fract()];
        let (rows, columns) = (ends(row), ends(column));
        let (by_row, by_column) = (shares(row), shares(column));
        for at in 0..4 {
            self.places[at].push((rows[at / 2] * side + columns[at % 2]) as u32);
            self.weights[at].push(by_row[at / 2] * by_column[at % 2]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_both_lines_fall_together() {
        assert_eq!([0, 1, 2].map(|at| stretched(at, 3, 5)), [0.0, 2.0, 4.0]);
        assert_eq!([stretched(0, 1, 5), stretched(1, 4, 3)], [0.0, 2.0 / 3.0]);
    }
}
