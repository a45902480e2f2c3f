//! AdamW (arXiv 1711.05101), learning rate schedule, and gradient clipping.

/// Decay of the mean gradient (beta 1).
const FIRST: f32 = 0.9;
/// Decay of the mean squared gradient (beta 2).
const SECOND: f32 = 0.98;
const EPSILON: f32 = 1e-8;
/// Final learning rate as a fraction of its peak.
const FLOOR: f64 = 0.02;

/// Running means of the gradient and its square, for one parameter.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moments {
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
}

impl Moments {
    pub(super) fn new(count: usize) -> Self {
        Moments { first: vec![0.0; count], second: vec![0.0; count] }
    }

    /// Updates `values`; the first `step` is 0. Weight decay multiplies them by `1 - rate * decay`.
    pub(super) fn step(&mut self, values: &mut [f32], gradient: &[f32], step: usize, rate: f32, decay: f32) {
        let count = step as i32 + 1;
        let (grown1, grown2) = (1.0 - FIRST.powi(count), 1.0 - SECOND.powi(count));
        let kept = 1.0 - rate * decay;
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((value, gradient), (first, second)) in values.iter_mut().zip(gradient).zip(moments) {
            *first = FIRST * *first + (1.0 - FIRST) * gradient;
            *second = SECOND * *second + (1.0 - SECOND) * gradient * gradient;
            *value = *value * kept - rate * (*first / grown1) / ((*second / grown2).sqrt() + EPSILON);
        }
    }
}

/// Linear warm-up over `warmup` steps to `peak`, then cosine decay to a fiftieth of it.
pub(super) fn learning_rate(peak: f64, step: usize, steps: usize, warmup: usize) -> f64 {
    let rising = ((step + 1) as f64 / warmup.max(1) as f64).min(1.0);
    let done = step as f64 / steps.max(1) as f64;
    let falling = 0.5 * (1.0 + (std::f64::consts::PI * done).cos());
    peak * rising * (FLOOR + (1.0 - FLOOR) * falling)
}

/// Scales all gradients so that their common norm is at most `most`. Returns the norm before.
pub(super) fn clip(gradients: &mut [Vec<f32>], most: f32) -> f32 {
    let squares = gradients.iter().flatten().map(|g| f64::from(*g) * f64::from(*g));
    let norm = squares.sum::<f64>().sqrt() as f32;
    if norm > most {
        gradients.iter_mut().flatten().for_each(|g| *g *= most / norm);
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-6, "{got} instead of {expected}");
    }

    #[test]
    fn the_learning_rate_rises_and_falls() {
        check(learning_rate(1.0, 0, 100, 10), 0.1);
        check(learning_rate(1.0, 50, 100, 10), 0.51);
        check(learning_rate(1.0, 100, 100, 10), 0.02);
        check(learning_rate(1.0, 0, 100, 0), 1.0);
    }

    #[test]
    fn the_first_step_is_the_learning_rate_whatever_the_gradient() {
        let (mut values, mut moments) = (vec![1.0, 1.0], Moments::new(2));
        moments.step(&mut values, &[0.001, -50.0], 0, 0.1, 0.0);
        check(f64::from(values[0]), 0.9);
        check(f64::from(values[1]), 1.1);
    }

    #[test]
    fn two_steps_are_as_by_hand() {
        let (mut values, mut moments) = (vec![1.0], Moments::new(1));
        moments.step(&mut values, &[1.0], 0, 0.1, 0.5);
        check(f64::from(values[0]), 0.85);
        moments.step(&mut values, &[-1.0], 1, 0.1, 0.5);
        let (first, second) = ((0.9 * 0.1 - 0.1) / (1.0 - 0.81), (0.98 * 0.02 + 0.02) / (1.0 - 0.98 * 0.98));
        check(f64::from(values[0]), 0.85 * 0.95 - 0.1 * first / f64::sqrt(second));
    }

    #[test]
    fn gradients_keep_their_direction_when_clipped() {
        let mut gradients = vec![vec![3.0], vec![0.0, 4.0]];
        check(f64::from(clip(&mut gradients, 1.0)), 5.0);
        check(f64::from(gradients[0][0]), 0.6);
        check(f64::from(gradients[1][1]), 0.8);
        check(f64::from(clip(&mut gradients, 2.0)), 1.0);
        check(f64::from(gradients[0][0]), 0.6);
    }
}
