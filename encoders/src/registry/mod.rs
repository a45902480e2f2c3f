//! Finds the family that reads a model, and loads the model.
//!
//! A model is classified once, from file names and configurations, then loaded and warmed up on each device.

mod budget;
mod classify;
mod list;
mod load;
mod warm_up;

pub use list::{FAMILIES, known};
pub use load::{is_here, load, load_generator, load_transcriber, load_with};

#[cfg(test)]
mod operations_tests;
#[cfg(test)]
mod tests;
