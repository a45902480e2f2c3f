//! Writes one window's tokens at one temperature after the other until they look right.

use std::io::Write;
use std::ops::ControlFlow;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::choice::{choose, probability};
use super::decoder::{Decoder, Memory};
use super::rules::Rules;
use super::tokens::Tokens;
use crate::EncodeError;
use crate::blocks::checks::failed;
use crate::random::SplitMix;
use crate::transcriber::OnStep;

/// Temperatures in the order of the attempts.
const TEMPERATURES: [f32; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];

/// When an attempt does not look right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Thresholds {
    /// Text that compresses better repeats itself.
    pub(super) compression: f32,
    /// Text with a lower mean log probability is a guess.
    pub(super) logprob: f32,
    /// A guess is dropped if its window is silent with a higher probability.
    pub(super) silent: f32,
}

impl Default for Thresholds {
    /// Those that the model was published with.
    fn default() -> Self {
        Thresholds { compression: 2.4, logprob: -1.0, silent: 0.6 }
    }
}

/// What one attempt wrote.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attempt {
    /// Text and timestamps, without the prompt and the end.
    pub(super) tokens: Vec<u32>,
    /// Of each token.
    pub(super) logprobs: Vec<f32>,
    /// Mean over the tokens and the end, at most 0.
    pub(super) avg_logprob: f32,
    pub(super) compression_ratio: f32,
    /// Probability that nobody speaks, 0 to 1.
    pub(super) no_speech: f32,
    pub(super) temperature: f32,
}

/// What to do about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    /// Nobody speaks.
    Silent,
    /// It repeats itself, or is a guess.
    Again,
}

impl Attempt {
    pub(super) fn verdict(&self, thresholds: &Thresholds) -> Verdict {
        let is_guess = self.avg_logprob < thresholds.logprob;
        let repeats = self.compression_ratio > thresholds.compression;
        match (is_guess && self.no_speech > thresholds.silent, is_guess || repeats) {
            (true, _) => Verdict::Silent,
            (false, true) => Verdict::Again,
            (false, false) => Verdict::Right,
        }
    }
}

/// What writes.
pub(super) struct Writer<'a> {
    pub(super) decoder: &'a Decoder,
    pub(super) tokens: &'a Tokens,
    pub(super) rules: &'a Rules,
    pub(super) thresholds: Thresholds,
    /// Most tokens of prompt and text.
    pub(super) longest: usize,
}

impl Writer<'_> {
    /// The first attempt that looks right, else the last one; `None` if `on_step` cancelled it.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] if the device fails.
    pub(super) fn write(
        &self,
        prompt: &[u32],
        memory: &Memory,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Attempt>, EncodeError> {
        let mut last = None;
        for temperature in TEMPERATURES {
            let Some(attempt) = self.attempt(prompt, memory, temperature, on_step)? else { return Ok(None) };
            let is_over = attempt.verdict(&self.thresholds) != Verdict::Again;
            last = Some(attempt);
            if is_over {
                break;
            }
        }
        Ok(last)
    }

    /// One attempt. The same temperature gives the same text.
    pub(super) fn attempt(
        &self,
        prompt: &[u32],
        memory: &Memory,
        temperature: f32,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Attempt>, EncodeError> {
        let mut cache = self.decoder.cache();
        let rows = self.decoder.forward(prompt, memory, &mut cache, None).map_err(failed)?;
        let start = prompt.iter().rposition(|token| *token == self.tokens.start).unwrap_or(0);
        let no_speech = match self.tokens.no_speech {
            Some(token) => probability(&self.scores(&rows, start)?, token),
            None => 0.0,
        };
        let mut scores = self.scores(&rows, prompt.len() - 1)?;
        let mut random = SplitMix::new(u64::from(temperature.to_bits()));
        let (mut tokens, mut logprobs, mut sum) = (Vec::new(), Vec::new(), 0.0);
        let mut count = 0_u32;
        while prompt.len() + tokens.len() < self.longest {
            if on_step() == ControlFlow::Break(()) {
                return Ok(None);
            }
            self.rules.apply(&mut scores, &tokens, self.tokens);
            let choice = choose(&scores, temperature, &mut random)?;
            sum += f64::from(choice.logprob);
            count += 1;
            if choice.token == self.tokens.end {
                break;
            }
            tokens.push(choice.token);
            logprobs.push(choice.logprob);
            if prompt.len() + tokens.len() < self.longest {
                let rows = self.decoder.forward(&[choice.token], memory, &mut cache, None).map_err(failed)?;
                scores = self.scores(&rows, 0)?;
            }
        }
        let avg_logprob = (sum / f64::from(count.max(1))) as f32;
        let compression_ratio = compression_ratio(self.tokens.text(&tokens)?.trim());
        Ok(Some(Attempt { tokens, logprobs, avg_logprob, compression_ratio, no_speech, temperature }))
    }

    /// The scores after one of the rows.
    fn scores(&self, rows: &candle_core::Tensor, at: usize) -> Result<Vec<f32>, EncodeError> {
        let row = rows.narrow(0, at, 1).and_then(|row| self.decoder.scores(&row));
        row.and_then(|scores| scores.squeeze(0)?.to_vec1()).map_err(failed)
    }
}

/// Bytes of a text by its bytes after zlib's compression; 0 for no text.
pub(super) fn compression_ratio(text: &str) -> f32 {
    // The best level finds repetitions of three bytes, as the reference's zlib does at any level.
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    compressed.map_or(0.0, |bytes| text.len() as f32 / bytes.len().max(1) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(avg_logprob: f32, compression_ratio: f32, no_speech: f32, expected: Verdict) {
        let attempt = Attempt {
            tokens: Vec::new(),
            logprobs: Vec::new(),
            avg_logprob,
            compression_ratio,
            no_speech,
            temperature: 0.0,
        };
        assert_eq!(attempt.verdict(&Thresholds::default()), expected, "{attempt:?}");
    }

    #[test]
    fn text_that_repeats_itself_or_is_a_guess_is_written_again() {
        check(-0.5, 1.5, 0.0, Verdict::Right);
        check(-0.5, 1.5, 0.9, Verdict::Right);
        check(-0.5, 2.5, 0.0, Verdict::Again);
        check(-1.1, 1.5, 0.0, Verdict::Again);
        check(-1.1, 1.5, 0.6, Verdict::Again);
        check(-1.1, 2.5, 0.7, Verdict::Silent);
    }

    #[test]
    fn text_that_repeats_itself_compresses_well() {
        assert!(compression_ratio("") < 0.1);
        assert!(compression_ratio("the pike position, two and a half turns") < 1.0);
        assert!(compression_ratio(&"thank you for watching. ".repeat(12)) > 5.0);
    }
}
