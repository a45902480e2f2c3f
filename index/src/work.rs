//! The record of running seals and merges.

use std::collections::HashSet;

use crate::due::Kind;

/// The running seals and merges.
#[derive(Default)]
pub(crate) struct Work {
    /// The kinds of the running background jobs.
    pub(crate) kinds: Vec<Kind>,
    /// The parts that these jobs rewrite.
    pub(crate) parts: HashSet<u64>,
    /// The parts of the last failed job. It is tried again when more rows have come.
    pub(crate) failed: Vec<u64>,
    /// A caller is sealing everything or waiting for the end of all jobs: no new job starts.
    pub(crate) is_claimed: bool,
}
