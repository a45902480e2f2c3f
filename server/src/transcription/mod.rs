//! The speech of a video written down: the work of one job. Independent of HTTP and of jobs.

mod error;
mod lines;
mod run;

pub use error::TranscriptionError;
pub use lines::lines_of;
pub use run::{Work, after_ingest, run};
