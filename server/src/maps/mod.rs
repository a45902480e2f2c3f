//! Maps: the spans of a level as points in the plane, spans with like vectors close to each other.
//!
//! Principal components reduce the vectors of up to [`MOST_ANCHORS`] spans, drawn by a hash of their keys, and UMAP lays them
//! out. All other spans are placed between their nearest anchors. Equal vectors give equal maps: every random choice is seeded.

mod anchors;
mod axes;
mod make;
mod neighbours;
mod random;
mod rows;
mod umap;

pub use make::{MapError, make};

/// Most spans that UMAP lays out.
pub const MOST_ANCHORS: usize = 20_000;
