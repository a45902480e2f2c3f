//! The kinds of job that this version runs. A new kind takes a file here and an entry in the list.

mod evaluation;
mod export;
mod fill;
mod ingest;
mod map;
mod read_text;
mod transcribe;

use super::kind::JobKind;

/// All kinds of job.
pub static KINDS: &[&dyn JobKind] = &[
    &ingest::Ingest,
    &fill::Fill,
    &export::Export,
    &evaluation::Evaluation,
    &map::Map,
    &transcribe::Transcribe,
    &read_text::ReadText,
];
