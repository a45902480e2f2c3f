//! Settings for speech to text.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use reprise_encoders::ModelName;

use super::positive_seconds;

/// What writes down speech.
#[derive(Debug, Clone, Args)]
pub struct SpeechArgs {
    /// Model that writes down the speech of each new video after its ingest, and of others on request: a hub id such as
    /// openai/whisper-base, or a folder
    #[arg(long, env = "REPRISE_TRANSCRIBE", value_name = "MODEL", conflicts_with = "transcribe_url")]
    pub transcribe: Option<ModelName>,
    /// Windows of half a minute that this model writes side by side. With more than one they do not read the text before
    /// them: faster, but names are spelled less steadily
    #[arg(long, env = "REPRISE_TRANSCRIBE_WINDOWS", value_name = "COUNT", default_value_t = 1, value_parser = windows_at_once)]
    pub transcribe_windows: usize,
    /// Service that does it instead: the address of any OpenAI-compatible /v1/audio/transcriptions. Sound is sent there, to
    /// any address that you name, also on this machine and its network; redirects are not followed
    #[arg(long, env = "REPRISE_TRANSCRIBE_URL", value_name = "URL")]
    pub transcribe_url: Option<String>,
    /// Model that the service is asked for
    #[arg(long, env = "REPRISE_TRANSCRIBE_MODEL", value_name = "NAME", default_value = "whisper-1")]
    pub transcribe_model: String,
    /// Key that the service gets as `Authorization: Bearer KEY`
    #[arg(long, env = "REPRISE_TRANSCRIBE_KEY", value_name = "KEY", hide_env_values = true)]
    pub transcribe_key: Option<String>,
    /// Longest request to the service, in seconds; each has at most two minutes of sound
    #[arg(long, env = "REPRISE_TRANSCRIBE_SECONDS", value_name = "SECONDS", default_value_t = 600.0, value_parser = positive_seconds)]
    pub transcribe_seconds: f64,
    /// Silero's voice activity detector (silero_vad.jit): what it takes for silence, music or noise is not transcribed.
    /// Without it only what is quiet is skipped
    #[arg(long, env = "REPRISE_VAD", value_name = "FILE")]
    pub vad: Option<PathBuf>,
    /// Videos whose speech this process writes down at once, beside the ingest jobs; a model of this process takes one at a
    /// time; 0: it leaves them to other processes
    #[arg(long, env = "REPRISE_TRANSCRIPTIONS_AT_ONCE", default_value_t = 1)]
    pub transcriptions_at_once: usize,
}

/// Most windows that are written side by side; each takes memory.
const MOST_WINDOWS: usize = 64;

/// Reads a count of windows from a command line.
///
/// # Errors
/// For what is no count from 1 to 64.
pub fn windows_at_once(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MOST_WINDOWS).contains(count));
    count.ok_or_else(|| format!("must be a whole number from 1 to {MOST_WINDOWS}"))
}

impl SpeechArgs {
    /// Longest request to the service.
    pub fn within(&self) -> Duration {
        Duration::from_secs_f64(self.transcribe_seconds)
    }

    /// Runners for transcriptions in this process, of which `runners` ingest.
    pub fn runners(&self, runners: usize) -> usize {
        let most = if self.transcribe.is_some() { 1 } else { usize::MAX };
        let is_wanted = runners > 0 && (self.transcribe.is_some() || self.transcribe_url.is_some());
        if is_wanted { self.transcriptions_at_once.min(most) } else { 0 }
    }
}
