//! The durable store of videos, spans, vectors and jobs.
//!
//! Only this folder contains SQL; the methods of [`Catalog`] take and return the service's own types. Each topic has a
//! file with its methods. `database` hides the difference between SQLite and Postgres; one test suite runs on both.

mod activations;
pub mod archive;
mod audit;
mod backups;
mod clock;
mod counts;
mod cue_search;
mod cues;
mod database;
mod error;
mod exports;
mod facts;
pub mod filter;
mod hold;
pub mod instant;
mod jobs;
mod keys;
mod leases;
mod migrations;
mod passages;
mod postgres;
mod ranges;
mod reels;
mod refusals;
mod results;
mod secrets;
mod spans;
mod sqlite;
mod store;
mod tables;
mod trash;
mod types;
mod upgrade;
mod uploads;
mod vectors;
mod verify;
mod videos;
mod view;
mod visibility;
mod wake;
mod writers;

pub use clock::Clock;
pub use counts::VectorCount;
pub use error::{CatalogError, RangeFault};
pub use exports::Finished;
pub use facts::{DatabaseFacts, ExtensionFacts, facts};
pub use filter::{Filter, FilterError, VideoFilter};
pub use hold::{Hold, hold};
pub use keys::HashedKey;
pub use secrets::Secret;
pub use store::{Catalog, embedded_url, open, open_existing, open_to_read, open_with_clock};
pub use types::*;
pub use verify::{BadVector, LackingVectors};
pub use view::View;
pub use visibility::Visibility;
pub use writers::WriterRequest;
