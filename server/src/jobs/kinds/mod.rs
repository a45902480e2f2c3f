//! The kinds of job that this version runs: a file each, and a line in the list.

mod fill;
mod ingest;

use super::kind::JobKind;

/// All kinds of job.
pub static KINDS: &[&dyn JobKind] = &[&ingest::Ingest, &fill::Fill];
