//! Training of the sports model on a folder of labelled clips.

mod command;
mod data;
pub mod learn;

pub use command::{TrainArgs, run};
