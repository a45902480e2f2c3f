//! Writes texts token by token. The texts of one call grow together, one row of the decoder each.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use candle_core::Tensor;

use super::cache::Cache;
use super::decoder::{Batch, Head};
use super::model::{QwenVl, Sequence};
use super::prompt::PromptTokenizer;
use super::sampling::Chooser;
use crate::EncodeError;
use crate::blocks::checks::failed;
use crate::cores::awake;
use crate::generator::{Finish, Generated, OnText, Sampling};

/// A model with its head.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) model: Arc<QwenVl>,
    pub(super) head: Head,
    pub(super) tokenizer: PromptTokenizer,
    /// Tokens that end a text.
    pub(super) ends: BTreeSet<u32>,
}

/// A text that still grows.
struct Growing {
    /// Its place among the prompts.
    at: usize,
    chooser: Chooser,
    /// Tokens that may still follow.
    left: usize,
    /// Position of the next token.
    position: u32,
    ids: Vec<u32>,
    /// Bytes of its text that the caller has.
    sent: usize,
}

/// The ids of a finished text, and why it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) ids: Vec<u32>,
    pub(super) finish: Finish,
}

impl Writer {
    /// Continues each of `prompts` by its sampling.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for sampling out of range, [`EncodeError::Failed`] if the device fails.
    pub(super) fn write(
        &self,
        prompts: &[Sequence],
        samplings: &[Sampling],
        on_text: &mut OnText<'_>,
    ) -> Result<Vec<Written>, EncodeError> {
        if prompts.is_empty() {
            return Ok(Vec::new());
        }
        samplings.iter().try_for_each(Sampling::check)?;
        let nothing = Written { ids: Vec::new(), finish: Finish::Length };
        let mut written = vec![nothing; prompts.len()];
        let pairs = prompts.iter().zip(samplings).enumerate();
        let mut growing: Vec<Growing> =
            pairs.map(|(at, (prompt, sampling))| self.started(at, prompt, *sampling)).collect();
        let mut caches: Vec<Cache> = prompts.iter().map(|_| self.model.decoder.cache()).collect();
        let batch: Vec<&Sequence> = prompts.iter().collect();
        let hidden = self.model.hidden(&batch, Some(&mut caches), &|| {}).map_err(failed)?;
        let lengths = prompts.iter().map(|prompt| prompt.ids().len());
        let last = self.model.last_rows(&hidden, lengths).map_err(failed)?;
        let mut scores = self.scores(&last).map_err(failed)?;
        loop {
            let (mut texts_left, mut caches_left) = (Vec::new(), Vec::new());
            for ((mut text, cache), scores) in growing.into_iter().zip(caches).zip(scores) {
                match self.grown(&mut text, scores, on_text)? {
                    None => {
                        texts_left.push(text);
                        caches_left.push(cache);
                    }
                    Some(finish) => written[text.at] = Written { ids: text.ids, finish },
                }
            }
            (growing, caches) = (texts_left, caches_left);
            if growing.is_empty() {
                return Ok(written);
            }
            let mut step = || self.scores(&self.next(&mut growing, &mut caches)?);
            scores = if self.model.decoder.is_on_cpu() { awake(step) } else { step() }.map_err(failed)?;
        }
    }

    fn started(&self, at: usize, prompt: &Sequence, sampling: Sampling) -> Growing {
        let room = self.model.config.text.longest.saturating_sub(prompt.ids().len());
        Growing {
            at,
            chooser: Chooser::new(sampling, prompt.ids()),
            left: sampling.max_tokens.min(room),
            position: prompt.positions().next,
            ids: Vec::new(),
            sent: 0,
        }
    }

    /// Adds a token; why the text ended, if it did.
    fn grown(
        &self,
        text: &mut Growing,
        scores: Vec<f32>,
        on_text: &mut OnText<'_>,
    ) -> Result<Option<Finish>, EncodeError> {
        if text.left == 0 {
            return Ok(Some(Finish::Length));
        }
        let token = text.chooser.choose(scores)?;
        let is_end = self.ends.contains(&token);
        if !is_end {
            text.ids.push(token);
            text.left -= 1;
        }
        let whole = self.tokenizer.text(&text.ids)?;
        let is_last = is_end || text.left == 0;
        // A letter may need several tokens; until all are there the tokenizer gives a replacement character.
        let ready = if is_last { &whole[..] } else { whole.trim_end_matches('\u{fffd}') };
        let new = ready.get(text.sent..).unwrap_or_default();
        text.sent += new.len();
        let goes_on = on_text(text.at, new);
        Ok(match (is_end, goes_on) {
            (true, _) => Some(Finish::Stop),
            (false, ControlFlow::Break(())) => Some(Finish::Cancelled),
            (false, ControlFlow::Continue(())) => is_last.then_some(Finish::Length),
        })
    }

    /// Scores of all tokens of the vocabulary for each of these rows.
    fn scores(&self, rows: &Tensor) -> candle_core::Result<Vec<Vec<f32>>> {
        self.head.forward(rows)?.to_vec2()
    }

    /// The decoder's rows for the newest token of each text, after the final norm.
    fn next(&self, growing: &mut [Growing], caches: &mut [Cache]) -> candle_core::Result<Tensor> {
        let newest: Vec<u32> = growing.iter().filter_map(|text| text.ids.last().copied()).collect();
        let batch = Batch {
            rows: self.model.decoder.embed(&newest)?,
            lengths: vec![1; newest.len()],
            positions: growing.iter().map(|text| [text.position; 3]).collect(),
            deepstack: None,
        };
        growing.iter_mut().for_each(|text| text.position += 1);
        self.model.decoder.normed(&self.model.decoder.forward(&batch, Some(caches), &|| {})?)
    }

    /// The caller's form of a written text.
    ///
    /// # Errors
    /// [`EncodeError::Failed`] for ids that the tokenizer can't turn into text.
    pub(super) fn generated(&self, prompt: &Sequence, written: Written) -> Result<Generated, EncodeError> {
        Ok(Generated {
            text: self.tokenizer.text(&written.ids)?,
            prompt_tokens: prompt.ids().len(),
            tokens: written.ids.len(),
            finish: written.finish,
        })
    }
}
