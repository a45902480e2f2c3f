//! Transcriptions: what is asked for, finished windows, and the result.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cue::{Line, Subtitles};
use super::job::Job;
use crate::subtitles::language;

/// A transcription that a caller asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTranscription {
    /// BCP 47 tag of the language that is spoken; `None`: it is detected.
    pub language: Option<String>,
    /// Whether to make a machine's track again that is there.
    pub replace: bool,
}

/// A stretch of sound that a running transcription has finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptWindow {
    /// Milliseconds of sound that are transcribed, from its start.
    pub until_ms: i64,
    /// What was said, on the container's clock.
    pub lines: Vec<Line>,
    /// What the transcriber needs to go on; its own form.
    pub state: Value,
}

/// The windows of one job that one model has finished.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowsOf<'a> {
    /// The model.
    pub model: &'a str,
    /// Number of the window, from 0.
    pub place: usize,
}

/// The result of a transcription.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The track; `None` if nothing was heard.
    pub subtitles: Option<Subtitles>,
    /// What to say about it, e.g. that the video has no sound.
    pub note: Option<String>,
}

impl Job {
    /// The language that a transcription's request names.
    pub fn asked_language(&self) -> Option<&str> {
        self.params.as_ref()?.get("language")?.as_str()
    }
}

/// Whether a person's track in the language `of_person` makes a machine's in `of_machine` needless: they are the same
/// language, whatever the region, or the person's is not known.
pub fn outranks(of_person: &str, of_machine: &str) -> bool {
    let primary = |tag: &str| tag.split('-').next().unwrap_or_default().to_owned();
    of_person == language::UNDETERMINED || primary(of_person) == primary(of_machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(of_person: &str, of_machine: &str, expected: bool) {
        assert_eq!(outranks(of_person, of_machine), expected, "{of_person}, {of_machine}");
    }

    #[test]
    fn a_persons_track_outranks_a_machines_in_its_language() {
        check("en", "en", true);
        check("en-GB", "en", true);
        check("und", "en", true);
        check("de", "en", false);
        check("en", "und", false);
    }
}
