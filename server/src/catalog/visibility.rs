//! The videos that a caller may see and change.

use std::sync::Arc;

use super::filter::VideoFilter;

/// The videos that a caller may see and change. Every search, and every call on a [`View`](super::View), takes one.
///
/// It has no default on purpose: each caller must choose.
#[derive(Debug, Clone, PartialEq)]
pub enum Visibility {
    /// All videos except deleted ones.
    All,
    /// Videos whose metadata matches, except deleted ones.
    Matching(Arc<VideoFilter>),
}

impl Visibility {
    /// Whether the caller sees some videos only.
    pub fn is_limited(&self) -> bool {
        matches!(self, Visibility::Matching(_))
    }
}
