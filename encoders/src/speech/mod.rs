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
