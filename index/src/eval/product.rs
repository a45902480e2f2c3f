//! Products of queries with the vectors of a gallery, one panel at a time.
#![allow(unsafe_code, reason = "gemm takes pointers")]

/// Rows transposed together: their values of one column fill a cache line.
const TURNED: usize = 16;

/// Gallery vectors in the layout of the product: (dim, width), with the same value of all vectors side by side. Unused
/// columns are zero.
///
/// Panels of one width give equal vectors equal scores, in any column: the order of summation is the same.
pub(super) struct Panel {
    values: Vec<f32>,
    width: usize,
}

impl Panel {
    /// `rows` are vectors of `dim` values; `width` must be at least their number.
    pub(super) fn new(rows: &[&[f32]], dim: usize, width: usize) -> Panel {
        debug_assert!(rows.len() <= width && rows.iter().all(|row| row.len() == dim));
        let mut values = vec![0.0; dim * width];
        for (first, rows) in (0..).step_by(TURNED).zip(rows.chunks(TURNED)) {
            for (column, line) in values.chunks_exact_mut(width).enumerate() {
                for (value, row) in line[first..].iter_mut().zip(rows) {
                    *value = row[column];
                }
            }
        }
        Panel { values, width }
    }

    /// The scores of `queries`, concatenated vectors of the panel's dimension: `width` scores per query. The last ones
    /// belong to unused columns. `scores` grows if it is too short.
    pub(super) fn scores<'s>(&self, queries: &[f32], scores: &'s mut Vec<f32>) -> &'s [f32] {
        let (width, dim) = (self.width, self.values.len() / self.width);
        debug_assert!(queries.len().is_multiple_of(dim));
        let count = queries.len() / dim;
        if scores.len() < count * width {
            scores.resize(count * width, 0.0);
        }
        let scores = &mut scores[..count * width];
        // SAFETY: the three matrices are (width, count), (width, dim) and (dim, count) in column order, and the slices
        // have these sizes. The first is borrowed mutably, so it does not overlap the others.
        unsafe {
            gemm::gemm(
                width,
                count,
                dim,
                scores.as_mut_ptr(),
                width as isize,
                1,
                false,
                self.values.as_ptr(),
                width as isize,
                1,
                queries.as_ptr(),
                dim as isize,
                1,
                0.0_f32,
                1.0_f32,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rows: usize, dim: usize, width: usize, queries: usize) {
        let value = |at: usize| ((at * 37) % 11) as f32 - 5.0;
        let row = |row: usize| -> Vec<f32> { (0..dim).map(|column| value(row * dim + column)).collect() };
        let gallery: Vec<Vec<f32>> = (0..rows).map(row).collect();
        let asked: Vec<Vec<f32>> = (7..7 + queries).map(row).collect();
        let panel = Panel::new(&gallery.iter().map(Vec::as_slice).collect::<Vec<_>>(), dim, width);
        let mut scores = vec![f32::NAN; 3];
        let scores = panel.scores(&asked.concat(), &mut scores);
        let expected: Vec<f32> = asked
            .iter()
            .flat_map(|query| {
                let of = move |row: &Vec<f32>| row.iter().zip(query).map(|(a, b)| a * b).sum();
                gallery.iter().map(of).chain(std::iter::repeat_n(0.0, width - rows))
            })
            .collect();
        assert_eq!(scores, expected);
    }

    #[test]
    fn every_query_meets_every_vector() {
        check(1, 1, 16, 1);
        check(16, 3, 16, 2);
        check(17, 5, 32, 1);
        check(40, 64, 48, 9);
        check(250, 33, 256, 64);
        check(3, 7, 3, 2);
    }
}
