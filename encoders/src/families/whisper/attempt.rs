//! Writes the tokens of windows at one temperature after the other until they look right.

use std::io::Write;
use std::ops::ControlFlow;

use candle_core::Tensor;
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

/// Tokens of one window while they are chosen.
struct Draft {
    tokens: Vec<u32>,
    logprobs: Vec<f32>,
    /// Sum of the logarithms of the probabilities, that of the end included, and how many they are.
    sum: f64,
    count: u32,
    no_speech: f32,
    random: SplitMix,
    is_over: bool,
}

impl Writer<'_> {
    /// Of each window the first attempt that looks right, else the last one; `None` if `on_step` cancelled it. All
    /// prompts are of one length. A window is written as it would be alone.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] if the device fails.
    pub(super) fn write(
        &self,
        prompts: &[Vec<u32>],
        memory: &Memory,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Vec<Attempt>>, EncodeError> {
        let mut last: Vec<Option<Attempt>> = vec![None; prompts.len()];
        let mut open: Vec<usize> = (0..prompts.len()).collect();
        for temperature in TEMPERATURES {
            let these: Vec<Vec<u32>> = open.iter().map(|at| prompts[*at].clone()).collect();
            let memory = self.part(memory, &open, prompts.len())?;
            let Some(attempts) = self.attempts(&these, memory, temperature, on_step)? else {
                return Ok(None);
            };
            for (at, attempt) in open.iter().zip(attempts) {
                last[*at] = Some(attempt);
            }
            let is_open = |attempt: &Attempt| attempt.verdict(&self.thresholds) == Verdict::Again;
            open.retain(|at| last[*at].as_ref().is_some_and(is_open));
            if open.is_empty() {
                break;
            }
        }
        Ok(last.into_iter().collect())
    }

    /// The memory of some of `count` windows.
    fn part(&self, memory: &Memory, windows: &[usize], count: usize) -> Result<Memory, EncodeError> {
        match windows.len() == count {
            true => Ok(memory.clone()),
            false => memory.of(windows).map_err(failed),
        }
    }

    /// One attempt at each window. The same temperature gives the same text.
    pub(super) fn attempts(
        &self,
        prompts: &[Vec<u32>],
        mut memory: Memory,
        temperature: f32,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Vec<Attempt>>, EncodeError> {
        let mut cache = self.decoder.cache();
        let rows = self.decoder.forward(&prompts.concat(), &memory, &mut cache, None).map_err(failed)?;
        let length = prompts.first().map_or(0, Vec::len);
        let mut drafts = self.drafts(prompts, &rows, temperature)?;
        // The windows that the decoder still works on, and the scores of each one's next token.
        let mut open: Vec<usize> = (0..drafts.len()).collect();
        let mut scores = self.scores(&rows, open.iter().map(|at| (at + 1) * length - 1))?;
        for written in length.. {
            if on_step() == ControlFlow::Break(()) {
                return Ok(None);
            }
            for (at, scores) in open.iter().zip(&mut scores) {
                self.extend(&mut drafts[*at], scores, temperature)?;
            }
            let still = |place: &usize| !drafts[open[*place]].is_over;
            let kept: Vec<usize> = (0..open.len()).filter(still).collect();
            if kept.is_empty() || written + 1 >= self.longest {
                break;
            }
            // To copy the memory costs more than to write a few tokens for nothing.
            if kept.len() * 2 <= open.len() {
                memory = memory.of(&kept).map_err(failed)?;
                cache.keep(&kept).map_err(failed)?;
                open = kept.iter().map(|place| open[*place]).collect();
            }
            let last = |at: &usize| drafts[*at].tokens.last().copied().unwrap_or(self.tokens.end);
            let ids: Vec<u32> = open.iter().map(last).collect();
            let rows = self.decoder.forward(&ids, &memory, &mut cache, None).map_err(failed)?;
            scores = self.scores(&rows, 0..open.len())?;
        }
        drafts
            .into_iter()
            .map(|draft| self.attempt_of(draft, temperature))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Empty drafts, with the probability that nobody speaks.
    fn drafts(
        &self,
        prompts: &[Vec<u32>],
        rows: &Tensor,
        temperature: f32,
    ) -> Result<Vec<Draft>, EncodeError> {
        let start =
            |prompt: &Vec<u32>| prompt.iter().rposition(|token| *token == self.tokens.start).unwrap_or(0);
        let starts = prompts.iter().enumerate().map(|(at, prompt)| at * prompt.len() + start(prompt));
        let silent = match self.tokens.no_speech {
            Some(token) => {
                self.scores(rows, starts)?.iter().map(|scores| probability(scores, token)).collect()
            }
            None => vec![0.0; prompts.len()],
        };
        let draft = |no_speech| Draft {
            tokens: Vec::new(),
            logprobs: Vec::new(),
            sum: 0.0,
            count: 0,
            no_speech,
            random: SplitMix::new(u64::from(temperature.to_bits())),
            is_over: false,
        };
        Ok(silent.into_iter().map(draft).collect())
    }

    /// Chooses a draft's next token.
    fn extend(&self, draft: &mut Draft, scores: &mut [f32], temperature: f32) -> Result<(), EncodeError> {
        if draft.is_over {
            return Ok(());
        }
        self.rules.apply(scores, &draft.tokens, self.tokens);
        let choice = choose(scores, temperature, &mut draft.random)?;
        draft.sum += f64::from(choice.logprob);
        draft.count += 1;
        draft.is_over = choice.token == self.tokens.end;
        if !draft.is_over {
            draft.tokens.push(choice.token);
            draft.logprobs.push(choice.logprob);
        }
        Ok(())
    }

    fn attempt_of(&self, draft: Draft, temperature: f32) -> Result<Attempt, EncodeError> {
        let Draft { tokens, logprobs, sum, count, no_speech, .. } = draft;
        let avg_logprob = (sum / f64::from(count.max(1))) as f32;
        let compression_ratio = compression_ratio(self.tokens.text(&tokens)?.trim());
        Ok(Attempt { tokens, logprobs, avg_logprob, compression_ratio, no_speech, temperature })
    }

    /// The scores after some of the rows.
    fn scores(
        &self,
        rows: &Tensor,
        places: impl Iterator<Item = usize>,
    ) -> Result<Vec<Vec<f32>>, EncodeError> {
        let places: Vec<u32> = places.map(|at| at as u32).collect();
        let scores = || match places.len() == rows.dim(0)? {
            true => self.decoder.scores(rows),
            false => self.decoder.scores(&rows.index_select(&Tensor::new(&places[..], rows.device())?, 0)?),
        };
        scores().and_then(|scores| scores.to_vec2()).map_err(failed)
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
