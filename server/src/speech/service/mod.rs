//! A service that writes down speech: any with OpenAI's `/v1/audio/transcriptions`, such as whisper.cpp's server,
//! faster-whisper's, and hosted ones.
//!
//! Sound goes there in pieces of at most two minutes, cut where it is quiet.

mod answer;
mod languages;
mod pieces;
mod request;
mod settings;
mod wav;

use std::ops::ControlFlow;
use std::time::Duration;

use reprise_encoders::EncodeError;
use reprise_encoders::transcriber::{
    Heard, OnStep, SAMPLE_RATE, SAMPLES_PER_MS, SpeechWindow, TranscribeOptions, Transcriber,
    TranscriberDescription, TranscriberState,
};
use tokio::runtime::Handle;

use answer::Answer;
use request::{Asked, Failure};

pub(super) use settings::{Settings, WrongService};

/// Longest piece of sound: 3.8 MB as a WAV file.
const LONGEST: usize = 120 * SAMPLE_RATE;
/// How often a waiting request asks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(200);
/// Characters of the text before a piece that are sent with it: services read about 200 tokens.
const PROMPT: usize = 400;

/// A client of one service.
#[derive(Debug, Clone)]
pub(super) struct Service {
    settings: Settings,
    description: TranscriberDescription,
}

impl Service {
    /// A client. It connects when it is asked.
    pub(super) fn new(settings: Settings) -> Service {
        let description = TranscriberDescription {
            model: settings.model.clone(),
            family: "service".to_owned(),
            id: format!("{} at {}", settings.model, settings.host()),
            precision: String::new(),
            is_multilingual: true,
            languages: Vec::new(),
            has_word_times: true,
        };
        Service { settings, description }
    }

    /// Asks about a piece; `None` if `on_step` cancelled the call.
    fn ask(&self, asked: &Asked, on_step: &mut OnStep<'_>) -> Result<Option<Answer>, EncodeError> {
        let runtime = Handle::try_current()
            .map_err(|_| EncodeError::Failed("a service is asked within a runtime only".into()))?;
        let answered = runtime.block_on(async {
            let mut answered = std::pin::pin!(request::ask(&self.settings, asked));
            loop {
                tokio::select! {
                    answered = &mut answered => return Some(answered),
                    () = tokio::time::sleep(LOOK) => {
                        if let ControlFlow::Break(()) = on_step() {
                            return None;
                        }
                    }
                }
            }
        });
        let host = self.settings.host();
        answered.transpose().map_err(|failure| match failure {
            Failure::Passing(why, _) => EncodeError::Failed(format!("the service at {host}: {why}").into()),
            Failure::Final(why) => EncodeError::BadInput(format!("the service at {host}: {why}").into()),
        })
    }

    fn hear(
        &self,
        window: &SpeechWindow<'_>,
        options: &TranscribeOptions,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Heard>, EncodeError> {
        let used = pieces::end(window.samples, window.goes_on && window.samples.len() >= LONGEST);
        let samples = &window.samples[..used];
        let asked = Asked {
            wav: wav::of(samples).into(),
            length_ms: samples.len() as i64 / SAMPLES_PER_MS,
            language: options.language.clone(),
            prompt: window.state.text.clone(),
        };
        let Some(answer) = self.ask(&asked, on_step)? else { return Ok(None) };
        let Answer { segments, language } = answer;
        let spoken = segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ");
        let text = if spoken.is_empty() { window.state.text.clone() } else { tail(&spoken) };
        let state = TranscriberState { text, language, ..TranscriberState::default() };
        Ok(Some(Heard { segments, used, state }))
    }
}

/// The last [`PROMPT`] characters, from the start of a word on.
fn tail(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(PROMPT);
    let rest: String = text.chars().skip(skipped).collect();
    match rest.split_once(' ') {
        Some((_, whole)) if skipped > 0 => whole.to_owned(),
        _ => rest,
    }
}

impl Transcriber for Service {
    fn description(&self) -> &TranscriberDescription {
        &self.description
    }

    fn longest_window(&self) -> usize {
        LONGEST
    }

    fn transcribe(
        &mut self,
        windows: &[SpeechWindow<'_>],
        options: &TranscribeOptions,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Vec<Heard>>, EncodeError> {
        let mut all = Vec::with_capacity(windows.len());
        for window in windows {
            let Some(heard) = self.hear(window, options, on_step)? else { return Ok(None) };
            all.push(heard);
        }
        Ok(Some(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_before_a_piece_is_its_last_words() {
        assert_eq!(tail("a b"), "a b");
        let long = "word ".repeat(200);
        let kept = tail(long.trim());
        assert!(kept.len() <= PROMPT && kept.starts_with("word") && kept.ends_with("word"), "{kept}");
    }
}
