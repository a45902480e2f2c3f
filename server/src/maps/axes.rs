//! Principal components of vectors, found by orthogonal iteration.

use super::random::Random;
use super::rows::{Rows, dot};

/// Most components. Vectors of fewer values are only centred.
const MOST: usize = 50;
/// Rounds of the iteration. The plane's first two axes are then settled, and the space of all 50 nearly.
const ROUNDS: usize = 8;
/// Seed of the first axes.
const SEED: u64 = 1;
/// An axis shorter than this, relative to the longest, holds nothing but rounding.
const LEAST: f32 = 1e-6;

/// The mean of vectors, and the directions in which they differ most.
#[derive(Debug)]
pub(super) struct Axes {
    mean: Vec<f32>,
    /// Orthonormal, the direction of the largest variance first. `None`: the vectors are only centred.
    axes: Option<Rows>,
    count: usize,
}

impl Axes {
    /// The axes of vectors of `dim` values.
    pub(super) fn of(vectors: &[Vec<f32>], dim: usize) -> Axes {
        let mut mean = vec![0.0_f32; dim];
        for vector in vectors {
            mean.iter_mut().zip(vector).for_each(|(mean, value)| *mean += value / vectors.len() as f32);
        }
        if dim <= MOST {
            return Axes { mean, axes: None, count: dim };
        }
        let mut random = Random::new(SEED);
        let mut axes = Rows::new(dim);
        for _ in 0..MOST {
            axes.add()[..dim].iter_mut().for_each(|value| *value = random.signed());
        }
        orthonormalise(&mut axes);
        let mut centred = vec![0.0_f32; dim];
        for _ in 0..ROUNDS {
            let mut next = Rows::new(dim);
            for _ in 0..MOST {
                next.add();
            }
            for vector in vectors {
                subtract(vector, &mean, &mut centred);
                for number in 0..MOST {
                    let along = dot(&axes.row(number)[..dim], &centred);
                    let sum = next.row_mut(number);
                    sum.iter_mut().zip(&centred).for_each(|(sum, value)| *sum += along * value);
                }
            }
            orthonormalise(&mut next);
            axes = next;
        }
        Axes { mean, axes: Some(axes), count: MOST }
    }

    /// Number of values of a projected vector.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Writes the coordinates of a vector on the axes into the first values of `to`.
    pub(super) fn project(&self, vector: &[f32], to: &mut [f32]) {
        let mut centred = vec![0.0_f32; self.mean.len()];
        subtract(vector, &self.mean, &mut centred);
        match &self.axes {
            None => to.iter_mut().zip(&centred).for_each(|(to, value)| *to = *value),
            Some(axes) => {
                let along = axes.iter().map(|axis| dot(&axis[..centred.len()], &centred));
                to.iter_mut().zip(along).for_each(|(to, value)| *to = value);
            }
        }
    }
}

fn subtract(vector: &[f32], mean: &[f32], to: &mut [f32]) {
    to.iter_mut().zip(vector.iter().zip(mean)).for_each(|(to, (value, mean))| *to = value - mean);
}

/// Gram-Schmidt, twice for the sake of rounding. An axis that depends on those before it becomes zero.
fn orthonormalise(axes: &mut Rows) {
    let length = |row: &[f32]| dot(row, row).sqrt();
    let longest = axes.iter().map(length).fold(0.0, f32::max);
    for number in 0..axes.len() {
        for _ in 0..2 {
            for before in 0..number {
                let axis = axes.row(before).to_vec();
                let along = dot(&axis, axes.row(number));
                axes.row_mut(number).iter_mut().zip(&axis).for_each(|(value, axis)| *value -= along * axis);
            }
        }
        let length = length(axes.row(number));
        let scale = if length > longest * LEAST { 1.0 / length } else { 0.0 };
        axes.row_mut(number).iter_mut().for_each(|value| *value *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `dim` values around a line in each of the directions, the first the longest.
    fn vectors(dim: usize, lengths: &[f32]) -> Vec<Vec<f32>> {
        let mut random = Random::new(7);
        let one = |_| {
            let mut vector = vec![0.5; dim];
            lengths
                .iter()
                .enumerate()
                .for_each(|(axis, length)| vector[3 * axis] += length * random.signed());
            vector
        };
        (0..200).map(one).collect()
    }

    /// Checks that the plane of the first axes holds all that differs, the longest direction first.
    #[track_caller]
    fn check(dim: usize, lengths: &[f32]) {
        let vectors = vectors(dim, lengths);
        let axes = Axes::of(&vectors, dim);
        let projected: Vec<Vec<f32>> = vectors.iter().map(|vector| projected(&axes, vector)).collect();
        for row in &projected {
            assert!(row.iter().skip(lengths.len()).all(|rest| rest.abs() < 1e-3), "{row:?}");
        }
        let apart = |one: &[f32], other: &[f32]| -> f32 {
            one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f32>().sqrt()
        };
        for (before, after) in vectors.windows(2).zip(projected.windows(2)) {
            let (before, after) = (apart(&before[0], &before[1]), apart(&after[0], &after[1]));
            assert!((before - after).abs() <= 1e-3 * before.max(1.0), "{before} {after}");
        }
        let variance = |axis: usize| projected.iter().map(|row| row[axis].powi(2)).sum::<f32>();
        assert!((1..lengths.len()).all(|axis| variance(axis - 1) > variance(axis)));
    }

    fn projected(axes: &Axes, vector: &[f32]) -> Vec<f32> {
        let mut to = vec![0.0; axes.count()];
        axes.project(vector, &mut to);
        to
    }

    #[test]
    fn the_directions_of_the_largest_variance_come_first() {
        check(64, &[9.0, 3.0, 0.5]);
        check(200, &[4.0, 1.0]);
        check(51, &[]);
    }

    #[test]
    fn short_vectors_are_only_centred() {
        let vectors = vectors(12, &[2.0, 5.0]);
        let axes = Axes::of(&vectors, 12);
        let mut to = vec![0.0; axes.count()];
        axes.project(&vectors[3], &mut to);
        let expected: Vec<f32> =
            vectors[3].iter().zip(&axes.mean).map(|(value, mean)| value - mean).collect();
        assert_eq!(to, expected);
    }

    #[test]
    fn equal_vectors_have_no_axes() {
        let axes = Axes::of(&vec![vec![0.25; 60]; 9], 60);
        let mut to = vec![1.0; axes.count()];
        axes.project(&[0.25; 60], &mut to);
        assert!(to.iter().all(|value| *value == 0.0), "{to:?}");
        assert_eq!(Axes::of(&[], 60).count(), 50);
    }
}
