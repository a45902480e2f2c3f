//! Access to rows that several topics share: reading, locking, common statements. Independent of the topics.

pub(super) mod evaluations;
pub(super) mod exports;
pub(super) mod jobs;
pub(super) mod listed;
pub(super) mod spans;
pub(super) mod stored;
pub(super) mod tracks;
pub(super) mod vectors;
pub(super) mod videos;
