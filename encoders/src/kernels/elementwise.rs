//! What is done to single values and rows: written plainly, so that the compiler makes vector instructions of it inside
//! the functions that enable them.

use serde::{Deserialize, Serialize};

/// The nonlinearity between the two layers of an MLP, by the names that config.json files use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Activation {
    /// `x * sigmoid(1.702 x)`.
    QuickGelu,
    /// With the error function.
    #[serde(alias = "gelu_python")]
    Gelu,
    /// With the tanh approximation.
    #[serde(alias = "gelu_pytorch_tanh", alias = "gelu_fast", alias = "gelu_accurate")]
    GeluNew,
    /// `max(x, 0)`.
    Relu,
    /// `x * sigmoid(x)`.
    #[serde(alias = "swish")]
    Silu,
}

/// Lanes that sums are kept in: independent of each other, so that they need not wait for one another.
const LANES: usize = 32;

/// The exponential of finite `x`, to 2 units in the last place; over 88 and under -87 as at these.
///
/// The polynomial is Cephes' (expf), after the whole powers of two are split off.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    // Adding and subtracting 1.5 * 2^23 rounds to a whole number.
    let whole = x.mul_add(std::f32::consts::LOG2_E, 12_582_912.0) - 12_582_912.0;
    let rest = whole.mul_add(-0.693_359_4, x);
    let rest = whole.mul_add(2.121_944_4e-4, rest);
    let mut sum = 1.987_569_2e-4_f32;
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5] {
        sum = sum.mul_add(rest, factor);
    }
    let fraction = sum.mul_add(rest * rest, rest) + 1.0;
    fraction * f32::from_bits(((whole as i32 + 127) << 23) as u32)
}

/// The error function, to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
#[inline(always)]
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / 0.327_591_1_f32.mul_add(size, 1.0);
    let mut sum = 1.061_405_4_f32;
    for factor in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        sum = sum.mul_add(t, factor);
    }
    let rest = sum * t * exp(-size * size);
    (1.0 - rest).copysign(x)
}

#[inline(always)]
fn sigmoid_times(x: f32, slope: f32) -> f32 {
    x / (1.0 + exp(-slope * x))
}

/// Applies the activation to each value.
#[inline(always)]
pub(super) fn activate(values: &mut [f32], activation: Activation) {
    match activation {
        Activation::QuickGelu => values.iter_mut().for_each(|x| *x = sigmoid_times(*x, 1.702)),
        Activation::Silu => values.iter_mut().for_each(|x| *x = sigmoid_times(*x, 1.0)),
        Activation::Relu => values.iter_mut().for_each(|x| *x = x.max(0.0)),
        Activation::Gelu => {
            let half = |x: f32| 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2));
            values.iter_mut().for_each(|x| *x = half(*x));
        }
        Activation::GeluNew => {
            // 0.5 x (1 + tanh(y)) is x times the sigmoid of 2y.
            let slope = |x: f32| 2.0 * 0.797_884_6 * 0.044_715_f32.mul_add(x * x, 1.0);
            values.iter_mut().for_each(|x| *x = sigmoid_times(*x, slope(*x)));
        }
    }
}

#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(f32::NEG_INFINITY, |most, x| most.max(*x));
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane = lane.max(*x));
    }
    lanes.iter().fold(rest, |most, x| most.max(*x))
}

#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0_f32; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().map(|x| of(*x)).sum();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += of(*x));
    }
    lanes.iter().sum::<f32>() + rest
}

/// The softmax of a row, in place.
#[inline(always)]
pub(super) fn softmax(values: &mut [f32]) {
    let most = largest(values);
    values.iter_mut().for_each(|x| *x = exp(*x - most));
    let share = 1.0 / sum(values, |x| x);
    values.iter_mut().for_each(|x| *x *= share);
}

/// Scales a row to mean 0 and variance 1, then by `weight` and `bias`.
#[inline(always)]
pub(super) fn normalise(row: &[f32], into: &mut [f32], (weight, bias): (&[f32], &[f32]), epsilon: f32) {
    let count = row.len() as f32;
    let mean = sum(row, |x| x) / count;
    let variance = sum(row, |x| (x - mean) * (x - mean)) / count;
    let scale = 1.0 / (variance + epsilon).sqrt();
    for (((to, x), weight), bias) in into.iter_mut().zip(row).zip(weight).zip(bias) {
        *to = ((x - mean) * scale).mul_add(*weight, *bias);
    }
}

/// The smallest and the largest value, and 0.
#[inline(always)]
pub(super) fn range_with_zero(values: &[f32]) -> (f32, f32) {
    // Comparisons and not `min` and `max`, which ask for NaN first: one instruction each.
    let (mut low, mut high) = ([0_f32; LANES], [0_f32; LANES]);
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold((0_f32, 0_f32), |it, x| (it.0.min(*x), it.1.max(*x)));
    for chunk in chunks {
        for ((low, high), x) in low.iter_mut().zip(&mut high).zip(chunk) {
            *low = if *x < *low { *x } else { *low };
            *high = if *x > *high { *x } else { *high };
        }
    }
    let low = low.iter().fold(rest.0, |least, x| least.min(*x));
    (low, high.iter().fold(rest.1, |most, x| most.max(*x)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(activation: Activation, expected: impl Fn(f64) -> f64) {
        for at in -4000..4000 {
            let x = at as f32 * 0.005;
            let mut got = [x];
            activate(&mut got, activation);
            let expected = expected(f64::from(x));
            assert!(
                (f64::from(got[0]) - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                "{activation:?} of {x}"
            );
        }
    }

    /// By its series, which converges for the arguments above.
    fn exact_erf(x: f64) -> f64 {
        if x.abs() > 5.0 {
            return x.signum();
        }
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    #[test]
    fn activations_are_what_their_names_say() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        check(Activation::QuickGelu, |x| x * sigmoid(1.702 * x));
        check(Activation::Silu, |x| x * sigmoid(x));
        check(Activation::Relu, |x| x.max(0.0));
        check(Activation::Gelu, |x| 0.5 * x * (1.0 + exact_erf(x / 2_f64.sqrt())));
        let root = (2.0 / std::f64::consts::PI).sqrt();
        check(Activation::GeluNew, |x| 0.5 * x * (1.0 + (root * (x + 0.044_715 * x.powi(3))).tanh()));
    }

    #[test]
    fn a_softmax_sums_to_one_whatever_the_size_of_its_values() {
        for (count, size) in [(1, 1.0), (7, 80.0), (33, 1e4), (257, 3e38)] {
            let mut values: Vec<f32> = (0..count).map(|at| size * (at as f32 / count as f32 - 0.5)).collect();
            softmax(&mut values);
            let sum: f64 = values.iter().map(|x| f64::from(*x)).sum();
            assert!((sum - 1.0).abs() < 1e-5 && values.iter().all(|x| *x >= 0.0), "{count} of {size}: {sum}");
        }
    }
}
