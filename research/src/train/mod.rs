//! Training of the sports model on a folder of labelled clips.

mod command;
mod data;

pub use command::{TrainArgs, run};
