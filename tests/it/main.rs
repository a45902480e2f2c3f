//! Tests that cross crates or need the built binary: one file a topic, one binary for all.

mod catalog;
mod encoders;
mod encoders_hub;
mod index;
mod tidy;
