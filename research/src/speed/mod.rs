//! How fast models and the index are on this machine.

mod encode;
pub mod index;
mod meter;
mod workload;

pub use encode::{BenchArgs, run};
