//! Chooses a token from scores, some of which are minus infinity, with its log probability.

use crate::EncodeError;
use crate::random::SplitMix;

/// A chosen token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Choice {
    pub(super) token: u32,
    /// Logarithm of its probability at temperature 1, at most 0.
    pub(super) logprob: f32,
}

/// The likeliest token at temperature 0, else one by its probability.
///
/// # Errors
/// [`EncodeError::Failed`] if no token may follow, or a score is not a number.
pub(super) fn choose(scores: &[f32], temperature: f32, random: &mut SplitMix) -> Result<Choice, EncodeError> {
    let best = best(scores)?;
    let largest = scores[best];
    let sum: f64 = scores.iter().map(|score| f64::from(score - largest).exp()).sum();
    let token = if temperature > 0.0 { sampled(scores, temperature, random).unwrap_or(best) } else { best };
    let logprob = f64::from(scores[token] - largest) - sum.ln();
    Ok(Choice { token: token as u32, logprob: logprob as f32 })
}

/// The first of the highest scores.
///
/// # Errors
/// As [`choose`].
pub(super) fn best(scores: &[f32]) -> Result<usize, EncodeError> {
    let first = |best: usize, at: usize| if scores[at] > scores[best] { at } else { best };
    let best = (0..scores.len()).reduce(first).filter(|best| scores[*best].is_finite());
    let is_right = scores.iter().all(|score| !score.is_nan() && *score < f32::INFINITY);
    best.filter(|_| is_right).ok_or_else(|| EncodeError::Failed("scores that are not finite".into()))
}

fn sampled(scores: &[f32], temperature: f32, random: &mut SplitMix) -> Option<usize> {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |score: &f32| (f64::from(score - largest) / f64::from(temperature)).exp();
    let mut left = random.unit() * scores.iter().map(weight).sum::<f64>();
    scores.iter().position(|score| {
        left -= weight(score);
        left < 0.0
    })
}

/// The probability of one token.
pub(super) fn probability(scores: &[f32], token: u32) -> f32 {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = scores.iter().map(|score| f64::from(score - largest).exp()).sum();
    let own = scores.get(token as usize).map_or(0.0, |score| f64::from(score - largest).exp());
    (own / sum) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_chosen_by_their_probability_and_forbidden_ones_never() {
        let scores = [0.5_f32.ln(), f32::NEG_INFINITY, 0.3_f32.ln(), 0.2_f32.ln()];
        let mut counts = [0_usize; 4];
        let mut random = SplitMix::new(1);
        for _ in 0..2000 {
            let choice = choose(&scores, 1.0, &mut random).unwrap();
            assert!((choice.logprob - scores[choice.token as usize]).abs() < 1e-6);
            counts[choice.token as usize] += 1;
        }
        assert!(counts[1] == 0 && counts[0].abs_diff(1000) < 100 && counts[2].abs_diff(600) < 100);
        assert_eq!(choose(&scores, 0.0, &mut random).unwrap().token, 0);
        assert!((probability(&scores, 2) - 0.3).abs() < 1e-6);
    }

    #[test]
    fn scores_without_a_choice_are_an_error() {
        let mut random = SplitMix::new(1);
        for scores in [&[][..], &[f32::NEG_INFINITY; 3], &[0.0, f32::NAN], &[0.0, f32::INFINITY]] {
            assert!(choose(scores, 0.0, &mut random).is_err(), "{scores:?}");
        }
    }
}
