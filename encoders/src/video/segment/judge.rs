//! Says whether a window of frames is a gradual transition: a network of one hidden layer, fitted to rendered films by
//! `tests/bench/transition_fit.py`.

use super::judge_weights::{CENTRES, HIDDEN, OUTPUT, OUTPUT_BIAS, SCALES};
use super::signs::SIGNS;

/// A sign counts as at most this many standard deviations from its mean, so that strange footage has no strange result.
const FARTHEST: f32 = 4.0;
/// Logit of the least sure transition.
const LEAST: f32 = -1.5;
/// Logit of a perfect one.
const CEILING: f32 = 30.0;

/// How far from a perfect transition a window is, in thousandths of the logit; `None` if it is rather none.
pub(super) fn misfit(signs: &[f32; SIGNS]) -> Option<u16> {
    let logit = logit(signs);
    (logit > LEAST).then(|| (1000.0 * (CEILING - logit).max(0.0)) as u16)
}

fn logit(signs: &[f32; SIGNS]) -> f32 {
    let mut scaled = *signs;
    for ((sign, centre), scale) in scaled.iter_mut().zip(&CENTRES).zip(&SCALES) {
        *sign = ((*sign - centre) * scale).clamp(-FARTHEST, FARTHEST);
    }
    let unit = |(weights, bias): &([f32; SIGNS], f32)| {
        scaled.iter().zip(weights).fold(*bias, |sum, (sign, weight)| sum + sign * weight).max(0.0)
    };
    HIDDEN.iter().zip(&OUTPUT).fold(OUTPUT_BIAS, |sum, (hidden, weight)| sum + unit(hidden) * weight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What footage never shows counts as the farthest that the judge was fitted to.
        #[test]
        fn a_sign_counts_as_at_most_four_deviations(at in 0..SIGNS, times in 4.0..1e30_f32, above in any::<bool>()) {
            let way = if above { 1.0 } else { -1.0 };
            let of = |times: f32| {
                let mut signs = CENTRES;
                signs[at] += way * times / SCALES[at];
                logit(&signs)
            };
            prop_assert!((of(times) - of(4.0)).abs() < 1e-3, "{} and {}", of(times), of(4.0));
        }
    }
}
