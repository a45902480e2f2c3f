//! Downloads the needed files of a hub model into the cache.
//!
//! The hub's own client is not used: it neither verifies downloads nor notices a cut or silent connection.

mod cache;
mod cached;
mod download;
mod progress;
mod remote;
mod repository;
mod settings;

pub use cached::{CachedModel, cached_models};
pub use repository::Repository;
