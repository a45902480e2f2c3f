//! Whisper as a transcriber. Windows of one call are written side by side: each step reads the weights once for all of them.

use super::attempt::{Attempt, Thresholds, Verdict, Writer};
use super::choice::best;
use super::config::Config;
use super::decoder::{Decoder, Followed, Memory};
use super::encoder::Encoder;
use super::mel::{HOP, LogMel};
use super::rules::Rules;
use super::segments::{Cut, cut};
use super::tokens::{Language, STEP_MS, Tokens};
use super::words::{token_steps, words};
use crate::EncodeError;
use crate::blocks::checks::failed;
use crate::transcriber::{
    Heard, OnStep, SpeechWindow, SpokenSegment, SpokenWord, TranscribeOptions, Transcriber,
    TranscriberDescription, TranscriberState,
};

/// Samples of a timestamp's step.
const STEP: usize = 2 * HOP;
/// Most windows that are written side by side.
const MOST_AT_ONCE: usize = 16;
/// What the decoder may keep of them, in bytes.
const MOST_MEMORY: usize = 1 << 30;
/// Text that was chosen at a higher temperature is not read by the next window.
const MOST_TEMPERATURE_BEFORE: f32 = 0.5;

/// A loaded model.
#[derive(Debug)]
pub(super) struct WhisperTranscriber {
    pub(super) description: TranscriberDescription,
    pub(super) config: Config,
    pub(super) tokens: Tokens,
    pub(super) rules: Rules,
    pub(super) thresholds: Thresholds,
    pub(super) alignment_heads: Vec<[usize; 2]>,
    pub(super) mel: LogMel,
    pub(super) encoder: Encoder,
    pub(super) decoder: Decoder,
}

/// A window that is about to be written down.
struct Begun<'a> {
    prompt: Vec<u32>,
    memory: Memory,
    language: Option<&'a Language>,
}

/// A window that was written down.
pub(super) struct Written<'a> {
    pub(super) prompt: Vec<u32>,
    /// That of all windows that were written with it, and its place among them.
    pub(super) memory: Memory,
    pub(super) place: usize,
    pub(super) language: Option<&'a Language>,
    pub(super) attempt: Attempt,
}

impl Transcriber for WhisperTranscriber {
    fn description(&self) -> &TranscriberDescription {
        &self.description
    }

    fn longest_window(&self) -> usize {
        self.config.samples()
    }

    fn windows_at_once(&self) -> usize {
        (MOST_MEMORY / self.decoder.memory_bytes(self.config.positions)).clamp(1, MOST_AT_ONCE)
    }

    fn transcribe(
        &mut self,
        windows: &[SpeechWindow<'_>],
        options: &TranscribeOptions,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Vec<Heard>>, EncodeError> {
        self.check(options)?;
        let most = self.config.samples();
        if let Some(window) = windows.iter().find(|it| it.samples.is_empty() || it.samples.len() > most) {
            let length = window.samples.len();
            return Err(EncodeError::BadInput(format!("{length} samples, not 1 to {most}").into()));
        }
        let mut heard = Vec::with_capacity(windows.len());
        for windows in windows.chunks(self.windows_at_once()) {
            let before = windows.iter().map(|it| self.before(it.state)).collect::<Result<Vec<_>, _>>()?;
            let samples: Vec<&[f32]> = windows.iter().map(|it| it.samples).collect();
            let Some(written) = self.write(&samples, &before, options, on_step)? else { return Ok(None) };
            for ((window, before), written) in windows.iter().zip(before).zip(written) {
                heard.push(self.heard(window, before, &written, options)?);
            }
        }
        Ok(Some(heard))
    }
}

impl WhisperTranscriber {
    /// What a window's tokens say. `before` are the tokens of the text before it.
    fn heard(
        &self,
        window: &SpeechWindow<'_>,
        before: Vec<u32>,
        written: &Written<'_>,
        options: &TranscribeOptions,
    ) -> Result<Heard, EncodeError> {
        let length = window.samples.len();
        let code = written.language.map(|it| it.code.clone());
        if written.attempt.verdict(&self.thresholds) == Verdict::Silent {
            let state = TranscriberState { language: code, ..window.state.clone() };
            return Ok(Heard { segments: Vec::new(), used: length, state });
        }
        let cuts = cut(&written.attempt.tokens, (length / STEP) as u32, &self.tokens);
        let times = match options.word_times && !self.alignment_heads.is_empty() {
            true => self.token_times(written, length)?,
            false => Vec::new(),
        };
        let mut segments = Vec::new();
        for cut in &cuts.segments {
            segments.extend(self.segment(cut, written, &times, length)?);
        }
        let done = cuts.done.map_or(length, |steps| (steps as usize * STEP).min(length));
        let end = cuts.segments.last().map_or(0, |cut| cut.tokens.end);
        let tokens = match options.with_text_before && written.attempt.temperature < MOST_TEMPERATURE_BEFORE {
            true => self.for_next(before, &written.attempt.tokens[..end]),
            false => Vec::new(),
        };
        let state = TranscriberState { tokens, text: String::new(), language: code };
        Ok(Heard { segments, used: done.max(1), state })
    }

    /// The tokens of the text before the window, without the mark before them.
    fn before(&self, state: &TranscriberState) -> Result<Vec<u32>, EncodeError> {
        match (state.tokens.is_empty(), state.text.trim().is_empty()) {
            (false, _) => {
                let is_known = |id: &&u32| (**id as usize) < self.config.vocabulary;
                Ok(self.last(state.tokens.iter().filter(is_known).copied().collect()))
            }
            (true, false) => Ok(self.last(self.tokens.before(&state.text)?)),
            (true, true) => Ok(Vec::new()),
        }
    }

    /// As much of a text as a prompt takes: its end.
    fn last(&self, tokens: Vec<u32>) -> Vec<u32> {
        let most = self.config.longest / 2 - 1;
        tokens[tokens.len().saturating_sub(most)..].to_vec()
    }

    /// What the next window reads: the text before and the window's. Of two timestamps at its end one stays.
    pub(super) fn for_next(&self, before: Vec<u32>, written: &[u32]) -> Vec<u32> {
        let is_time = |at: &u32| self.tokens.time(*at).is_some();
        let ends_twice = written.len() >= 2 && written[written.len() - 2..].iter().all(is_time);
        let kept = &written[..written.len() - usize::from(ends_twice)];
        self.last([&before, kept].concat())
    }

    /// Writes the tokens of windows, each after its text `before`; `None` if `on_step` cancelled it.
    pub(super) fn write(
        &self,
        windows: &[&[f32]],
        before: &[Vec<u32>],
        options: &TranscribeOptions,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Vec<Written<'_>>>, EncodeError> {
        let Some(begun) = self.begin(windows, before, options, on_step)? else { return Ok(None) };
        let mut written: Vec<Option<Written<'_>>> = (0..windows.len()).map(|_| None).collect();
        let mut left: Vec<(usize, Begun<'_>)> = begun.into_iter().enumerate().collect();
        // Prompts of one length go through the decoder together.
        while let Some(length) = left.first().map(|(_, it)| it.prompt.len()) {
            let these = left.extract_if(.., |(_, it)| it.prompt.len() == length).collect();
            let Some(group) = self.write_group(these, on_step)? else { return Ok(None) };
            for (at, one) in group {
                written[at] = Some(one);
            }
        }
        Ok(written.into_iter().collect())
    }

    /// What the decoder reads of windows.
    fn begin(
        &self,
        windows: &[&[f32]],
        before: &[Vec<u32>],
        options: &TranscribeOptions,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Vec<Begun<'_>>>, EncodeError> {
        let mut begun = Vec::with_capacity(windows.len());
        for (samples, before) in windows.iter().zip(before) {
            // One window fills the encoder's products. A batch would only take memory.
            let spectrogram = self.mel.of(samples, self.config.frames());
            let Some(rows) = self.encoder.forward(spectrogram, on_step).map_err(failed)? else {
                return Ok(None);
            };
            let memory = self.decoder.memory(&rows).map_err(failed)?;
            let language = match &options.language {
                Some(code) => self.tokens.language(code),
                None => self.detected(&memory)?,
            };
            let mut prompt = Vec::new();
            if !before.is_empty() {
                prompt.push(self.tokens.previous);
                prompt.extend_from_slice(before);
            }
            prompt.extend(self.tokens.beginning(language));
            begun.push(Begun { prompt, memory, language });
        }
        Ok(Some(begun))
    }

    /// Writes windows whose prompts are of one length. Each comes with its place among all windows.
    fn write_group<'a>(
        &'a self,
        windows: Vec<(usize, Begun<'a>)>,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Vec<(usize, Written<'a>)>>, EncodeError> {
        let writer = Writer {
            decoder: &self.decoder,
            tokens: &self.tokens,
            rules: &self.rules,
            thresholds: self.thresholds,
            longest: self.config.longest,
        };
        let (mut prompts, mut memories, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (at, Begun { prompt, memory, language }) in windows {
            prompts.push(prompt);
            memories.push(memory);
            others.push((at, language));
        }
        let memory = Memory::joined(memories).map_err(failed)?;
        let Some(attempts) = writer.write(&prompts, &memory, on_step)? else { return Ok(None) };
        let all = prompts.into_iter().zip(attempts).zip(others).enumerate();
        let written = all.map(|(place, ((prompt, attempt), (at, language)))| {
            (at, Written { prompt, memory: memory.clone(), place, language, attempt })
        });
        Ok(Some(written.collect()))
    }

    /// The likeliest language of a window; `None` for models of English alone.
    fn detected(&self, memory: &Memory) -> Result<Option<&Language>, EncodeError> {
        let languages = &self.tokens.languages;
        if languages.is_empty() {
            return Ok(None);
        }
        let mut cache = self.decoder.cache();
        let rows = self.decoder.forward(&[self.tokens.start], memory, &mut cache, None);
        let scores: Vec<f32> =
            rows.and_then(|rows| self.decoder.scores(&rows)?.squeeze(0)?.to_vec1()).map_err(failed)?;
        let of_languages: Vec<f32> = languages.iter().map(|it| scores[it.token as usize]).collect();
        best(&of_languages).map(|at| languages.get(at))
    }

    /// The step at which each token begins, and one more for the end of the last.
    pub(super) fn token_times(&self, written: &Written<'_>, length: usize) -> Result<Vec<u32>, EncodeError> {
        let tokens = &written.attempt.tokens;
        let steps = (length / STEP).max(1);
        // Each token's row is that in which it is read.
        let mut cache = self.decoder.cache();
        let mut followed = Followed { heads: &self.alignment_heads, weights: Vec::new() };
        let all = [&written.prompt[..], tokens].concat();
        let memory = written.memory.of(&[written.place]).map_err(failed)?;
        self.decoder.forward(&all, &memory, &mut cache, Some(&mut followed)).map_err(failed)?;
        // As in the reference, a text that was cut off lacks the row of its last token.
        let is_cut = all.len() >= self.config.longest;
        let (first, count) = (written.prompt.len(), tokens.len() - usize::from(is_cut && !tokens.is_empty()));
        if count == 0 {
            return Ok(Vec::new());
        }
        let own = followed.weights.iter().map(|head| head.narrow(0, first, count));
        let own = own.collect::<candle_core::Result<Vec<_>>>().map_err(failed)?;
        let mut times = token_steps(&own, steps, self.config.median).map_err(failed)?;
        times.extend(times.last().copied());
        Ok(times)
    }

    /// A segment; `None` if it has no text.
    fn segment(
        &self,
        cut: &Cut,
        written: &Written<'_>,
        times: &[u32],
        length: usize,
    ) -> Result<Option<SpokenSegment>, EncodeError> {
        let Written { language, attempt, .. } = written;
        let ids = &attempt.tokens[cut.tokens.clone()];
        let text = self.tokens.text(ids)?.trim().to_owned();
        if text.is_empty() {
            return Ok(None);
        }
        // Timestamps may lie in the silence that fills a short window.
        let length_ms = (length / 16) as i64;
        let ms = |step: u32| (i64::from(step) * STEP_MS).min(length_ms);
        let (start_ms, end_ms) = (ms(cut.start), ms(cut.end.max(cut.start)));
        let language = language.map_or(Some("en"), |it| Some(&it.code[..])).map(str::to_owned);
        let mut spoken = Vec::new();
        if !times.is_empty() {
            for word in words(ids, language.as_deref(), &self.tokens)? {
                let place = |at: usize| cut.tokens.start + at;
                let time = |at: usize| ms(times.get(place(at)).copied().unwrap_or(cut.end));
                let logprobs = &attempt.logprobs[place(word.first)..place(word.behind)];
                let sum: f32 = logprobs.iter().map(|logprob| logprob.exp()).sum();
                spoken.push(SpokenWord {
                    start_ms: time(word.first),
                    end_ms: time(word.behind).max(time(word.first)),
                    text: word.text,
                    probability: (sum / logprobs.len().max(1) as f32).clamp(0.0, 1.0),
                });
            }
        }
        Ok(Some(SpokenSegment {
            start_ms,
            end_ms,
            text,
            words: spoken,
            language,
            avg_logprob: attempt.avg_logprob.min(0.0),
            no_speech: attempt.no_speech,
            compression_ratio: attempt.compression_ratio,
            temperature: attempt.temperature,
        }))
    }
}
