//! What is known about videos, spans, vectors and jobs, and keeps being known after a crash.
//!
//! The only folder with SQL: [`Catalog`] speaks the service's own words. Each topic has a file with its methods;
//! SQLite and Postgres lie behind `database`, and one suite of tests runs on both.

mod activations;
mod clock;
mod cue_search;
mod cues;
mod database;
mod error;
pub mod filter;
pub mod instant;
mod jobs;
mod leases;
mod migrations;
mod passages;
mod postgres;
mod results;
mod spans;
mod sqlite;
mod store;
mod tables;
mod types;
mod upgrade;
mod vectors;
mod videos;
mod view;
mod wake;

pub use clock::Clock;
pub use error::CatalogError;
pub use filter::Filter;
pub use store::{Catalog, embedded_url, open, open_to_read, open_with_clock};
pub use types::*;
pub use view::{View, Visibility};
