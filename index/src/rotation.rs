//! A random rotation: it spreads every vector's values evenly, so that few bits a value are enough.

use crate::kernels::Kernels;

/// Stages between the random signs; each mixes pairs of values.
const STAGES: [usize; 2] = [8, 4];

/// An orthogonal map, the same in every process and for ever, because files hold rotated values: flips random signs and
/// adds and subtracts pairs, as in a fast Hadamard transform of constant geometry.
#[derive(Clone)]
pub(crate) struct Rotation {
    /// 1 or -1, for each value of each round.
    signs: Vec<f32>,
    padded: usize,
    kernels: Kernels,
}

impl Rotation {
    /// A rotation of `padded` values, a multiple of 64.
    pub(crate) fn new(padded: usize) -> Rotation {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut sign = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if state >> 63 == 0 { 1.0 } else { -1.0 }
        };
        // Each stage doubles the squared norm; the last round's signs undo it.
        let scale = 0.5_f32.powi(STAGES.iter().sum::<usize>() as i32 / 2);
        let mut signs: Vec<f32> = (0..STAGES.len() * padded).map(|_| sign()).collect();
        signs[(STAGES.len() - 1) * padded..].iter_mut().for_each(|sign| *sign *= scale);
        Rotation { signs, padded, kernels: Kernels::detect() }
    }

    /// The rotated values, after zeros were appended.
    pub(crate) fn turn(&self, values: &[f32]) -> Vec<f32> {
        let mut turned = values.to_vec();
        turned.resize(self.padded, 0.0);
        let mut next = vec![0.0; self.padded];
        for (signs, stages) in self.signs.chunks_exact(self.padded).zip(STAGES) {
            turned.iter_mut().zip(signs).for_each(|(value, sign)| *value *= sign);
            for _ in 0..stages {
                self.kernels.mix(&turned, &mut next);
                std::mem::swap(&mut turned, &mut next);
            }
        }
        turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(values: &[f32]) -> f32 {
        values.iter().map(|value| value * value).sum()
    }

    /// Checks that a rotation keeps the norm and spreads the values: none is far larger than the others.
    #[track_caller]
    fn check(values: &[f32], padded: usize) {
        let turned = Rotation::new(padded).turn(values);
        assert_eq!(turned.len(), padded);
        let (norm, expected) = (square(&turned).sqrt(), square(values).sqrt());
        assert!((norm / expected - 1.0).abs() < 1e-5, "the norm {norm} is not {expected}");
        let largest = turned.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let even = norm / (padded as f32).sqrt();
        assert!(largest < 6.0 * even, "{padded} values: {largest} is not near {even}");
    }

    #[test]
    fn a_rotation_keeps_norms_and_spreads_values() {
        for (length, padded) in [(24, 128), (128, 128), (500, 512), (512, 512), (768, 768), (1_100, 1_152)] {
            for hot in [0, 1, length / 2, length - 1] {
                let mut values = vec![0.0; length];
                values[hot] = 3.0;
                check(&values, padded);
            }
            check(&vec![0.5; length], padded);
            check(&(0..length).map(|at| 1.0 / (at + 1) as f32).collect::<Vec<_>>(), padded);
        }
    }

    #[test]
    fn a_rotation_keeps_products() {
        let vector = |seed: usize| -> Vec<f32> {
            (0..500).map(|at| ((at * 37 + seed * 1_013) % 101) as f32 / 101.0 - 0.4).collect()
        };
        let rotation = Rotation::new(512);
        let product =
            |left: &[f32], right: &[f32]| -> f32 { left.iter().zip(right).map(|(l, r)| l * r).sum() };
        let (left, right) = (vector(1), vector(2));
        let got = product(&rotation.turn(&left), &rotation.turn(&right));
        assert!((got - product(&left, &right)).abs() < 1e-3);
    }
}
