//! The interface of models that write down speech: windows of samples in, timed text out.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::EncodeError;

/// Samples per second of everything that a transcriber hears.
pub const SAMPLE_RATE: usize = 16_000;

/// Samples in a millisecond.
pub const SAMPLES_PER_MS: i64 = 16;

/// What a transcriber is; provenance of the tracks that it writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriberDescription {
    /// The model as the user named it, e.g. `openai/whisper-base` or `openai/whisper-base@REVISION`.
    pub model: String,
    /// The family that reads it, e.g. `whisper`.
    pub family: String,
    /// Identifies weights, family version and precision: the same id and options write the same text. 64 hex digits for
    /// models of this crate; a remote service may give what it knows.
    pub id: String,
    /// Precision of matrix products, e.g. `f32`; empty where it is not known.
    pub precision: String,
    /// Whether it knows more than one language.
    pub is_multilingual: bool,
    /// The codes of the languages that it knows, e.g. `en`, in the model's order. Empty where they are not known; then
    /// every language is passed on.
    pub languages: Vec<String>,
    /// Whether it can say when each word was spoken.
    pub has_word_times: bool,
}

/// How speech is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TranscribeOptions {
    /// Code of the spoken language, e.g. `de`; `None`: detected in each window.
    pub language: Option<String>,
    /// Whether segments have the times of their words. Takes some more time.
    pub word_times: bool,
    /// Whether a window reads the text before it: steadier names and spelling, but windows can't be written together.
    pub with_text_before: bool,
    /// Text before the first window, e.g. names that occur; before every window if windows do not read the text before.
    pub prompt: Option<String>,
}

impl TranscribeOptions {
    /// The state before the first window.
    pub fn first_state(&self) -> TranscriberState {
        TranscriberState { text: self.prompt.clone().unwrap_or_default(), ..TranscriberState::default() }
    }
}

impl Default for TranscribeOptions {
    /// Any language, no word times, with the text before.
    fn default() -> Self {
        TranscribeOptions { language: None, word_times: false, with_text_before: true, prompt: None }
    }
}

/// What one window leaves for the next. It serialises, so that a job goes on where it stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TranscriberState {
    /// Token ids of the text so far that the next window reads; at most a few hundred.
    pub tokens: Vec<u32>,
    /// Text that the next window reads where `tokens` is empty. The last few hundred characters count.
    pub text: String,
    /// The language of the last window.
    pub language: Option<String>,
}

/// One window of sound.
#[derive(Debug, Clone, Copy)]
pub struct SpeechWindow<'a> {
    /// Mono, [`SAMPLE_RATE`], about -1 to 1; at least one, at most [`Transcriber::longest_window`].
    pub samples: &'a [f32],
    /// What the window before left.
    pub state: &'a TranscriberState,
    /// Whether the sound goes on after the window. If so, a sentence that its end cuts may be left for the next one.
    pub goes_on: bool,
}

/// One word of a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpokenWord {
    /// Start, in milliseconds, on the segment's clock.
    pub start_ms: i64,
    /// End, in milliseconds; not before the start.
    pub end_ms: i64,
    /// The word with its punctuation and the space before it.
    pub text: String,
    /// Mean probability of its tokens, 0 to 1.
    pub probability: f32,
}

/// A stretch of speech.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpokenSegment {
    /// Start, in milliseconds: from the window's start in [`Heard`], on the container's clock in finished windows.
    pub start_ms: i64,
    /// End, in milliseconds; not before the start.
    pub end_ms: i64,
    /// The text, trimmed; never empty.
    pub text: String,
    /// Its words, if they were asked for and the model knows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<SpokenWord>,
    /// Code of the window's language.
    pub language: Option<String>,
    /// Mean logarithm of the probability of the window's tokens, at most 0.
    pub avg_logprob: f32,
    /// Probability that the window holds no speech, 0 to 1.
    pub no_speech: f32,
    /// Bytes of the window's text by its bytes after compression; over 2.4 it repeats itself.
    pub compression_ratio: f32,
    /// The temperature at which the window's tokens were chosen, 0 to 1.
    pub temperature: f32,
}

impl SpokenSegment {
    /// The same segment, `ms` later.
    #[must_use]
    pub fn later(mut self, ms: i64) -> SpokenSegment {
        self.start_ms = self.start_ms.saturating_add(ms);
        self.end_ms = self.end_ms.saturating_add(ms);
        for word in &mut self.words {
            word.start_ms = word.start_ms.saturating_add(ms);
            word.end_ms = word.end_ms.saturating_add(ms);
        }
        self
    }
}

/// What was heard in a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heard {
    /// In order of time, from the window's start. Empty where nobody speaks.
    pub segments: Vec<SpokenSegment>,
    /// Samples that are done: the next window starts there. At least one, at most the window's.
    pub used: usize,
    /// For the next window.
    pub state: TranscriberState,
}

/// Called between steps of a window, a few times a second. A break cancels the call.
pub type OnStep<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// A model that writes down speech on one device; one thread owns it.
pub trait Transcriber: Send {
    /// What it is.
    fn description(&self) -> &TranscriberDescription;

    /// Most samples of a window, at least [`SAMPLE_RATE`].
    fn longest_window(&self) -> usize;

    /// Most windows that one call should get: more than one if that is faster. Windows of one call can't read each other's
    /// text.
    fn windows_at_once(&self) -> usize {
        1
    }

    /// What was heard in each window, in order; `None` if `on_step` cancelled the call.
    ///
    /// # Errors
    /// [`EncodeError::BadInput`] for windows of wrong length and for languages that the model lacks,
    /// [`EncodeError::Failed`] if the device fails.
    fn transcribe(
        &mut self,
        windows: &[SpeechWindow<'_>],
        options: &TranscribeOptions,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Vec<Heard>>, EncodeError>;

    /// # Errors
    /// [`EncodeError::BadInput`] for a language that the model lacks. Ask before long work begins.
    fn check(&self, options: &TranscribeOptions) -> Result<(), EncodeError> {
        let languages = &self.description().languages;
        match &options.language {
            Some(language) if !languages.is_empty() && !languages.contains(language) => {
                let model = &self.description().model;
                let known = match languages.len() {
                    1..=12 => format!("it knows {}", languages.join(", ")),
                    count => {
                        format!("it knows {count} languages, by codes such as {}", languages[..3].join(", "))
                    }
                };
                Err(EncodeError::BadInput(
                    format!("{model} does not know the language {language:?}; {known}").into(),
                ))
            }
            _ => Ok(()),
        }
    }
}
