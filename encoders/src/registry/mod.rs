//! Finds the family that reads a model, and has it loaded.
//!
//! A model is classified once, from file names and configurations, then loaded onto each device and warmed up there.

mod budget;
mod classify;
mod list;
mod load;
mod warm_up;

pub use list::{FAMILIES, known};
pub use load::{load, load_with};

#[cfg(test)]
mod operations_tests;
#[cfg(test)]
mod tests;
