//! reprise-research: rendered benchmarks, training, and evaluation of models.
//!
//! Knows `encoders` and `index`. Does not know the service: code that both need lives in those two crates.

pub mod compute;
pub mod covr;
pub mod encode;
pub mod eval;
pub mod picture;
pub mod rows;
pub mod speed;
pub mod synth;
pub mod terminal;
pub mod train;
