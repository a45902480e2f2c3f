//! Speed of models and of the index on this machine.

mod encode;
pub mod index;
mod meter;
mod workload;

pub use encode::{BenchArgs, run};
