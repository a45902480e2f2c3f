//! Speech of a file as timed text: finds where somebody speaks, cuts windows and has a transcriber write them down.

mod activity;
mod ahead;
mod energy;
mod error;
mod silero;
#[cfg(test)]
pub(crate) mod synthetic;
mod transcription;

pub use activity::{ActivityOptions, FRAME, SpeechDetector};
pub use energy::Energy;
pub use error::TranscribeError;
pub use silero::Silero;
pub use transcription::{FinishedWindow, Listener, Outcome, ResumePoint, Summary, Transcription};

/// What finds speech in one file: Silero's network if there is one, else loudness.
pub fn detector(silero: Option<&Silero>) -> Box<dyn SpeechDetector> {
    match silero {
        Some(silero) => Box::new(silero.clone()),
        None => Box::<Energy>::default(),
    }
}
