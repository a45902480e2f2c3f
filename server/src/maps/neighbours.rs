//! Nearest rows: exact ones of every row, and those of a new row through cells.

use super::rows::{Rows, squared_distance};

/// Up to this many rows a new row is compared with all.
const FEW: usize = 2000;
/// Cells that are looked into. With 141 cells of 20,000 rows these hold one row in twelve.
const CELLS: usize = 12;

/// A row, and the square of its distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    pub(super) row: usize,
    pub(super) squared: f32,
}

/// The nearest `wanted` rows found so far, the nearest first. Ties go to the row that came first.
struct Nearest {
    found: Vec<Near>,
    wanted: usize,
}

impl Nearest {
    fn new(wanted: usize) -> Nearest {
        Nearest { found: Vec::with_capacity(wanted + 1), wanted }
    }

    fn see(&mut self, row: usize, squared: f32) {
        if self.found.len() == self.wanted && self.found.last().is_none_or(|last| squared >= last.squared) {
            return;
        }
        let place = self.found.partition_point(|near| near.squared <= squared);
        self.found.insert(place, Near { row, squared });
        self.found.truncate(self.wanted);
    }
}

/// The nearest `wanted` other rows of a row, the nearest first.
pub(super) fn of_row(rows: &Rows, row: usize, wanted: usize) -> Vec<Near> {
    let mut nearest = Nearest::new(wanted);
    let own = rows.row(row);
    for (other, values) in rows.iter().enumerate().filter(|(other, _)| *other != row) {
        nearest.see(other, squared_distance(own, values));
    }
    nearest.found
}

/// Rows by the nearest of some of them.
#[derive(Debug)]
pub(super) struct Cells {
    /// A row in the middle of each cell, and the cell's rows. Empty: there are few rows.
    cells: Vec<(usize, Vec<usize>)>,
}

impl Cells {
    /// As many cells as each holds rows, around rows that are evenly drawn from all.
    pub(super) fn of(rows: &Rows) -> Cells {
        if rows.len() <= FEW {
            return Cells { cells: Vec::new() };
        }
        let count = rows.len().isqrt();
        let stride = rows.len() / count;
        let mut cells: Vec<(usize, Vec<usize>)> =
            (0..count).map(|cell| (cell * stride, Vec::new())).collect();
        for (number, row) in rows.iter().enumerate() {
            let mut nearest = Nearest::new(1);
            for (cell, (middle, _)) in cells.iter().enumerate() {
                nearest.see(cell, squared_distance(rows.row(*middle), row));
            }
            nearest.found.iter().for_each(|near| cells[near.row].1.push(number));
        }
        Cells { cells }
    }

    /// Rows near `new`, the nearest first: nearly always the nearest `wanted`.
    pub(super) fn near(&self, rows: &Rows, new: &[f32], wanted: usize) -> Vec<Near> {
        let mut nearest = Nearest::new(wanted);
        if self.cells.is_empty() {
            let all = rows.iter().enumerate();
            all.for_each(|(row, values)| nearest.see(row, squared_distance(values, new)));
            return nearest.found;
        }
        let mut around = Nearest::new(CELLS);
        for (cell, (middle, _)) in self.cells.iter().enumerate() {
            around.see(cell, squared_distance(rows.row(*middle), new));
        }
        for row in around.found.iter().flat_map(|near| &self.cells[near.row].1) {
            nearest.see(*row, squared_distance(rows.row(*row), new));
        }
        nearest.found
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    fn random(count: usize, width: usize, seed: u64) -> Rows {
        let (mut rows, mut random) = (Rows::new(width), Random::new(seed));
        (0..count).for_each(|_| rows.add().iter_mut().for_each(|value| *value = random.signed()));
        rows
    }

    fn sorted(rows: &Rows, new: &[f32], wanted: usize) -> Vec<usize> {
        let mut all: Vec<(f32, usize)> =
            rows.iter().enumerate().map(|(row, values)| (squared_distance(values, new), row)).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        all.into_iter().take(wanted).map(|(_, row)| row).collect()
    }

    /// Checks the share of the true nearest five that the cells find.
    #[track_caller]
    fn check(count: usize, least: f64) {
        let (rows, new) = (random(count, 16, 3), random(50, 16, 4));
        let cells = Cells::of(&rows);
        let mut right = 0;
        for new in new.iter() {
            let (found, expected) = (cells.near(&rows, new, 5), sorted(&rows, new, 5));
            right += found.iter().filter(|near| expected.contains(&near.row)).count();
        }
        let share = right as f64 / 250.0;
        assert!(share >= least, "{share}");
    }

    #[test]
    fn cells_find_most_of_the_nearest() {
        check(0, 0.0);
        check(1500, 1.0);
        // Without any structure, which is the worst case.
        check(9000, 0.6);
    }

    #[test]
    fn the_nearest_others_are_those_of_sorting() {
        let rows = random(80, 8, 5);
        for row in 0..80 {
            let found: Vec<usize> = of_row(&rows, row, 7).iter().map(|near| near.row).collect();
            assert_eq!(found, sorted(&rows, rows.row(row), 8)[1..]);
        }
        assert_eq!(of_row(&random(1, 8, 5), 0, 7), []);
    }
}
