//! What several topics of the catalog do with a row: reading it back, locking it, the statements that they share.
//!
//! Lies below the topics and knows none of them.

pub(super) mod jobs;
pub(super) mod spans;
pub(super) mod stored;
pub(super) mod tracks;
pub(super) mod vectors;
pub(super) mod videos;
