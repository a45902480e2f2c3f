//! Chooses tokens from scores, in the order of transformers: repetition penalty, temperature, top-k, top-p.

use crate::EncodeError;
use crate::generator::Sampling;
use crate::random::SplitMix;

/// Chooses the tokens of one text.
pub(super) struct Chooser {
    sampling: Sampling,
    /// Tokens of prompt and text so far, each once.
    known: Vec<u32>,
    random: SplitMix,
}

impl Chooser {
    pub(super) fn new(sampling: Sampling, prompt: &[u32]) -> Chooser {
        let mut known = prompt.to_vec();
        known.sort_unstable();
        known.dedup();
        Chooser { sampling, known, random: SplitMix::new(sampling.seed) }
    }

    /// The next token, by the `scores` of all tokens.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] for scores that are not finite.
    pub(super) fn choose(&mut self, mut scores: Vec<f32>) -> Result<u32, EncodeError> {
        if scores.is_empty() || !scores.iter().all(|score| score.is_finite()) {
            return Err(EncodeError::Failed("scores that are not finite".into()));
        }
        let penalty = self.sampling.repetition_penalty;
        for token in &self.known {
            if let Some(score) = scores.get_mut(*token as usize) {
                *score = if *score < 0.0 { *score * penalty } else { *score / penalty };
            }
        }
        let token = match self.sampling.temperature {
            0.0 => best(&scores),
            temperature => self.sampled(&scores, temperature),
        };
        if let Err(at) = self.known.binary_search(&token) {
            self.known.insert(at, token);
        }
        Ok(token)
    }

    fn sampled(&mut self, scores: &[f32], temperature: f32) -> u32 {
        let largest = scores[best(scores) as usize];
        let weight = |score: f32| (f64::from(score - largest) / f64::from(temperature)).exp();
        let mut likely: Vec<(f64, u32)> =
            scores.iter().zip(0..).map(|(score, token)| (weight(*score), token)).collect();
        likely.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        if self.sampling.top_k > 0 {
            likely.truncate(self.sampling.top_k);
        }
        let all: f64 = likely.iter().map(|(weight, _)| weight).sum();
        let mut kept = 0.0;
        // A token stays if the likelier ones have less than top_p together.
        let count = likely.iter().take_while(|(weight, _)| {
            let stays = kept < f64::from(self.sampling.top_p) * all;
            kept += if stays { *weight } else { 0.0 };
            stays
        });
        let count = count.count().max(1);
        let mut left = self.random.unit() * kept;
        let chosen = likely[..count].iter().find(|(weight, _)| {
            left -= weight;
            left < 0.0
        });
        chosen.unwrap_or(&likely[count - 1]).1
    }
}

/// The first token with the highest score; 0 without scores.
fn best(scores: &[f32]) -> u32 {
    let first = |best: usize, at: usize| if scores[at] > scores[best] { at } else { best };
    (0..scores.len()).reduce(first).unwrap_or_default() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of three tokens with probabilities 0.5, 0.3 and 0.2 is chosen in 2,000 texts.
    fn counts(sampling: Sampling) -> [usize; 3] {
        let scores: Vec<f32> = [0.5f32, 0.3, 0.2].iter().map(|share| share.ln()).collect();
        let mut counts = [0; 3];
        for seed in 0..2000 {
            let mut chooser = Chooser::new(Sampling { seed, ..sampling }, &[]);
            counts[chooser.choose(scores.clone()).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn tokens_are_chosen_by_their_probability() {
        let plain = Sampling { temperature: 1.0, ..Sampling::default() };
        let [first, second, third] = counts(plain);
        assert!(first.abs_diff(1000) < 100 && second.abs_diff(600) < 100 && third.abs_diff(400) < 100);
        assert_eq!(counts(Sampling { top_p: 0.001, ..plain }), [2000, 0, 0]);
        assert_eq!(counts(Sampling { top_p: 0.79, ..plain })[2], 0);
        assert_ne!(counts(Sampling { top_p: 0.81, ..plain })[2], 0);
        assert_eq!(counts(Sampling { top_k: 1, ..plain }), [2000, 0, 0]);
        assert_eq!(counts(Sampling { top_k: 2, ..plain })[2], 0);
        assert_eq!(counts(Sampling { top_k: 9, ..plain }), counts(plain));
        assert_eq!(counts(Sampling::default()), [2000, 0, 0]);
        assert_eq!(counts(Sampling { temperature: 0.01, ..plain }), [2000, 0, 0]);
    }

    #[test]
    fn known_tokens_become_less_likely() {
        let sampling = Sampling { repetition_penalty: 2.0, ..Sampling::default() };
        let mut chooser = Chooser::new(sampling, &[0]);
        assert_eq!(chooser.choose(vec![3.0, 2.0, -1.0]).unwrap(), 1);
        // Both are known now, and negative scores fall.
        assert_eq!(chooser.choose(vec![-1.0, -1.0, -1.5]).unwrap(), 2);
    }

    #[test]
    fn a_seed_gives_the_same_text_again_and_bad_scores_are_an_error() {
        let sampling = Sampling { temperature: 1.5, seed: 7, ..Sampling::default() };
        let texts = [0, 1].map(|_| {
            let mut chooser = Chooser::new(sampling, &[]);
            (0..20).map(|_| chooser.choose(vec![0.0; 50]).unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(texts[0], texts[1]);
        assert!(Chooser::new(sampling, &[]).choose(vec![0.0, f32::NAN]).is_err());
        assert!(Chooser::new(sampling, &[]).choose(Vec::new()).is_err());
    }
}
