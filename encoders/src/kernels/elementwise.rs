//! Elementwise functions and reductions of rows, for registers of any width.

use std::f32::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

use serde::{Deserialize, Serialize};

use super::lanes::{Arithmetic, Lanes};

/// The activation function between the two layers of an MLP, by its name in config.json files.
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

/// An elementwise function. The activation is a type parameter, so that no loop branches on it.
pub(super) trait OfValues {
    /// # Safety
    /// The processor has the instructions of `L`.
    unsafe fn of<L: Arithmetic>(x: L) -> L;
}

/// The identity.
pub(super) struct Unchanged;
/// [`Activation::QuickGelu`].
pub(super) struct QuickGelu;
/// [`Activation::Gelu`].
pub(super) struct Gelu;
/// [`Activation::GeluNew`].
pub(super) struct GeluNew;
/// [`Activation::Relu`].
pub(super) struct Relu;
/// [`Activation::Silu`].
pub(super) struct Silu;

impl OfValues for Unchanged {
    #[inline(always)]
    unsafe fn of<L: Arithmetic>(x: L) -> L {
        x
    }
}

impl OfValues for QuickGelu {
    #[inline(always)]
    unsafe fn of<L: Arithmetic>(x: L) -> L {
        // SAFETY: as the caller promises, here and below.
        unsafe { sigmoid_times(x, x.times(L::splat(-1.702 * LOG2_E))) }
    }
}

impl OfValues for Silu {
    #[inline(always)]
    unsafe fn of<L: Arithmetic>(x: L) -> L {
        // SAFETY: as above.
        unsafe { sigmoid_times(x, x.times(L::splat(-LOG2_E))) }
    }
}

impl OfValues for Relu {
    #[inline(always)]
    unsafe fn of<L: Arithmetic>(x: L) -> L {
        // SAFETY: as above.
        unsafe { x.most(L::splat(0.0)) }
    }
}

impl OfValues for Gelu {
    #[inline(always)]
    unsafe fn of<L: Arithmetic>(x: L) -> L {
        // SAFETY: as above.
        unsafe {
            let half = x.times(L::splat(0.5));
            half.times_plus(erf(x.times(L::splat(FRAC_1_SQRT_2))), half)
        }
    }
}

impl OfValues for GeluNew {
    #[inline(always)]
    unsafe fn of<L: Arithmetic>(x: L) -> L {
        // SAFETY: as above.
        unsafe {
            // 0.5 x (1 + tanh(y)) is x times the sigmoid of 2y.
            let cubic = x.times(x).times_plus(L::splat(0.044_715), L::splat(1.0));
            sigmoid_times(x, x.times(L::splat(-2.0 * 0.797_884_6 * LOG2_E)).times(cubic))
        }
    }
}

/// 2^x, to 2 units in the last place; `x` is clamped to -126 ..= 126.
#[inline(always)]
unsafe fn two_to<L: Arithmetic>(x: L) -> L {
    // SAFETY: as the caller promises.
    unsafe {
        // With this order of operands, NaN stays NaN.
        let x = L::splat(126.0).least(L::splat(-126.0).most(x));
        let whole = x.rounded();
        let rest = x.minus(whole);
        // The minimax polynomial of this degree on -0.5 ..= 0.5: relative error 2e-9.
        let mut sum = L::splat(1.534_581_1e-4);
        for factor in [1.339_993_1e-3, 9.618_489e-3, 5.550_328_6e-2, 0.240_226_46, LN_2, 1.0] {
            sum = sum.times_plus(rest, L::splat(factor));
        }
        sum.times_two_to(whole)
    }
}

/// The error function, to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
#[inline(always)]
unsafe fn erf<L: Arithmetic>(x: L) -> L {
    // SAFETY: as the caller promises.
    unsafe {
        let size = x.magnitude();
        let one = L::splat(1.0);
        // erf(10) is 1. The clamp keeps the square finite.
        let size = size.least(L::splat(10.0));
        let t = size.times_plus(L::splat(0.327_591_1), one).reciprocal();
        let mut sum = L::splat(1.061_405_4);
        for factor in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
            sum = sum.times_plus(t, L::splat(factor));
        }
        let fallen = two_to(size.times(size).times(L::splat(-LOG2_E)));
        one.minus(sum.times(t).times(fallen)).with_sign_of(x)
    }
}

/// `x / (1 + 2^y)`: `x` times the sigmoid of `-y` by the natural exponential function.
#[inline(always)]
unsafe fn sigmoid_times<L: Arithmetic>(x: L, y: L) -> L {
    // SAFETY: as the caller promises.
    unsafe { x.times(two_to(y).plus(L::splat(1.0)).reciprocal()) }
}

/// Replaces the first `count` of the `scores` by their unnormalised softmax, and the values up to `end` by zero.
/// Returns the factor that normalises them.
///
/// # Safety
/// The processor has the instructions of `L`; there are `end` values, and `count` is 1 to `end`.
#[inline(always)]
pub(super) unsafe fn softmax<L: Lanes>(scores: *mut f32, count: usize, end: usize) -> f32 {
    // SAFETY: as the caller promises.
    unsafe {
        let least = L::splat(f32::NEG_INFINITY);
        let most = L::splat(fold::<L, Most>(scores, count, least).highest());
        let (whole, rest) = (count / L::COUNT * L::COUNT, count % L::COUNT);
        let mut sum = L::splat(0.0);
        for at in (0..whole).step_by(L::COUNT) {
            let it = share(L::load(scores.add(at)), most);
            it.store(scores.add(at));
            sum = sum.plus(it);
        }
        let mut total = sum.sum();
        std::slice::from_raw_parts_mut(scores.add(count), end - count).fill(0.0);
        if rest > 0 {
            let it = share(L::load_first(rest, scores.add(whole), least), most);
            it.store_first(rest, scores.add(whole));
            total += L::load_first(rest, scores.add(whole), L::splat(0.0)).sum();
        }
        1.0 / total
    }
}

/// The unnormalised softmax of a score.
#[inline(always)]
unsafe fn share<L: Lanes>(score: L, most: L) -> L {
    // SAFETY: as the caller promises.
    unsafe { two_to(score.minus(most).times(L::splat(LOG2_E))) }
}

/// A commutative operation on two values. A type, not a closure: a closure would be compiled separately, without the
/// processor's instructions.
trait OfPairs {
    /// Returns `all` where `one` is NaN.
    fn of<L: Lanes>(one: L, all: L) -> L;
}

struct Sum;
struct Least;
struct Most;

impl OfPairs for Sum {
    #[inline(always)]
    fn of<L: Lanes>(one: L, all: L) -> L {
        all.plus(one)
    }
}

impl OfPairs for Least {
    #[inline(always)]
    fn of<L: Lanes>(one: L, all: L) -> L {
        one.least(all)
    }
}

impl OfPairs for Most {
    #[inline(always)]
    fn of<L: Lanes>(one: L, all: L) -> L {
        one.most(all)
    }
}

/// Folds `count` values by `P`; `none` is the neutral element.
///
/// # Safety
/// The processor has the instructions of `L`; there are `count` values.
#[inline(always)]
unsafe fn fold<L: Lanes, P: OfPairs>(values: *const f32, count: usize, none: L) -> L {
    // SAFETY: as the caller promises.
    unsafe {
        // Four independent folds, so that none waits for another.
        let mut folds = [none; 4];
        let mut at = 0;
        while at + 4 * L::COUNT <= count {
            for (place, fold) in folds.iter_mut().enumerate() {
                *fold = P::of(L::load(values.add(at + place * L::COUNT)), *fold);
            }
            at += 4 * L::COUNT;
        }
        let mut all = P::of(P::of(folds[0], folds[1]), P::of(folds[2], folds[3]));
        while at + L::COUNT <= count {
            all = P::of(L::load(values.add(at)), all);
            at += L::COUNT;
        }
        match count - at {
            0 => all,
            rest => P::of(L::load_first(rest, values.add(at), none), all),
        }
    }
}

/// The minimum and maximum of the values and 0; NaN is ignored.
///
/// # Safety
/// The processor has the instructions of `L`.
#[inline(always)]
pub(super) unsafe fn range_with_zero<L: Lanes>(values: &[f32]) -> (f32, f32) {
    // SAFETY: as the caller promises.
    unsafe {
        let none = L::splat(0.0);
        let low = fold::<L, Least>(values.as_ptr(), values.len(), none);
        let high = fold::<L, Most>(values.as_ptr(), values.len(), none);
        (low.lowest(), high.highest())
    }
}

/// Moments of a row for a layer norm: the mean to subtract and the factor that gives variance 1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    mean: f32,
    scale: f32,
}

impl Moments {
    /// # Safety
    /// The processor has the instructions of `L`.
    #[inline(always)]
    pub(super) unsafe fn of<L: Lanes>(row: &[f32], epsilon: f32) -> Moments {
        let count = row.len() as f32;
        // SAFETY: as the caller promises.
        unsafe {
            let none = L::splat(0.0);
            let mean = fold::<L, Sum>(row.as_ptr(), row.len(), none).sum() / count;
            let about = L::splat(mean);
            // Padding must stay zero after the mean is subtracted, so this is not a fold of the values.
            let mut sums = [none; 4];
            let mut chunks = row.chunks_exact(4 * L::COUNT);
            for chunk in chunks.by_ref() {
                for (place, sum) in sums.iter_mut().enumerate() {
                    let off = L::load(chunk.as_ptr().add(place * L::COUNT)).minus(about);
                    *sum = off.times_plus(off, *sum);
                }
            }
            let mut sum = sums[0].plus(sums[1]).plus(sums[2].plus(sums[3]));
            for part in chunks.remainder().chunks(L::COUNT) {
                let off = match part.len() == L::COUNT {
                    true => L::load(part.as_ptr()),
                    false => L::load_first(part.len(), part.as_ptr(), about),
                };
                let off = off.minus(about);
                sum = off.times_plus(off, sum);
            }
            let variance = sum.sum() / count;
            Moments { mean, scale: 1.0 / (variance + epsilon).sqrt() }
        }
    }

    /// Normalises `values` of the row, then applies `weight` and `bias` of the same columns and the same length.
    ///
    /// # Safety
    /// The processor has the instructions of `L`; `into` has room for all values.
    #[inline(always)]
    pub(super) unsafe fn apply<L: Lanes>(self, values: &[f32], weight: &[f32], bias: &[f32], into: *mut f32) {
        assert!(weight.len() == values.len() && bias.len() == values.len());
        let (values, weight, bias, count) = (values.as_ptr(), weight.as_ptr(), bias.as_ptr(), values.len());
        // SAFETY: as the caller promises.
        unsafe {
            let (mean, scale, none) = (L::splat(self.mean), L::splat(self.scale), L::splat(0.0));
            let (whole, rest) = (count / L::COUNT * L::COUNT, count % L::COUNT);
            for at in (0..whole).step_by(L::COUNT) {
                let it = L::load(values.add(at)).minus(mean).times(scale);
                it.times_plus(L::load(weight.add(at)), L::load(bias.add(at))).store(into.add(at));
            }
            if rest > 0 {
                let it = L::load_first(rest, values.add(whole), none).minus(mean).times(scale);
                let weight = L::load_first(rest, weight.add(whole), none);
                let bias = L::load_first(rest, bias.add(whole), none);
                it.times_plus(weight, bias).store_first(rest, into.add(whole));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use super::super::Processor;
    use super::super::lanes::Work;
    use super::*;

    #[track_caller]
    fn check<A: OfValues>(expected: impl Fn(f64) -> f64) {
        for at in -4000..4000 {
            let x = at as f32 * 0.005;
            let expected = expected(f64::from(x));
            for got in on_all(|processor| processor.run(OfOne::<A>(x, PhantomData))) {
                assert!((f64::from(got) - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{got} of {x}");
            }
        }
    }

    /// Runs with the processor's instructions and with a smaller set.
    fn on_all<T>(run: impl Fn(Processor) -> T) -> Vec<T> {
        Processor::detect().map_or(Vec::new(), |best| vec![run(best), run(Processor::Avx2)])
    }

    struct OfOne<A>(f32, PhantomData<A>);

    impl<A: OfValues> Work for OfOne<A> {
        type Output = f32;

        #[inline(always)]
        unsafe fn run<L: Lanes>(self) -> f32 {
            // SAFETY: as the caller promises.
            unsafe { A::of(L::splat(self.0)).lowest() }
        }
    }

    struct Softmax<'a>(&'a mut [f32], usize);

    impl Work for Softmax<'_> {
        type Output = f32;

        #[inline(always)]
        unsafe fn run<L: Lanes>(self) -> f32 {
            // SAFETY: `self.1` is at most the length of the slice.
            unsafe { softmax::<L>(self.0.as_mut_ptr(), self.1, self.0.len()) }
        }
    }

    /// The series of erf, which converges for the arguments above.
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
        check::<QuickGelu>(|x| x * sigmoid(1.702 * x));
        check::<Silu>(|x| x * sigmoid(x));
        check::<Relu>(|x| x.max(0.0));
        check::<Gelu>(|x| 0.5 * x * (1.0 + exact_erf(x / 2_f64.sqrt())));
        let root = (2.0 / std::f64::consts::PI).sqrt();
        check::<GeluNew>(|x| 0.5 * x * (1.0 + (root * (x + 0.044_715 * x.powi(3))).tanh()));
    }

    #[test]
    fn a_softmax_sums_to_one_whatever_the_size_of_its_values() {
        for (count, size) in [(1, 1.0), (7, 80.0), (33, 1e4), (257, 3e38)] {
            let scores: Vec<f32> = (0..count).map(|at| size * (at as f32 / count as f32 - 0.5)).collect();
            for values in on_all(|processor| {
                let mut values = [&scores[..], &[f32::NAN; 20]].concat();
                let factor = processor.run(Softmax(&mut values, count));
                values.iter().map(|it| it * factor).collect::<Vec<f32>>()
            }) {
                let sum: f64 = values.iter().map(|x| f64::from(*x)).sum();
                assert!(
                    (sum - 1.0).abs() < 1e-5 && values.iter().all(|x| *x >= 0.0),
                    "{count} of {size}: {sum}"
                );
                let share = |at: usize| f64::from(scores[at] - scores[count - 1]).exp();
                let all: f64 = (0..count).map(share).sum();
                let off = |at: usize| (f64::from(values[at]) - share(at) / all).abs();
                assert!((0..count).all(|at| off(at) < 1e-6), "{count} of {size}: {values:?}");
                assert!(values[count..].iter().all(|it| *it == 0.0), "{values:?}");
            }
        }
    }
}
