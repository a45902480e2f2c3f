//! reprise-research: rendered benchmarks, training, and evaluation of models.
//!
//! Depends on `encoders` and `index`, not on the service. Code for both sides lives in those two crates.

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
