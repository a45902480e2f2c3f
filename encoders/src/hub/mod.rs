//! A model of the hub to a folder in the cache: which files it has, and which of them are needed.
//!
//! Why not the hub's own client: it neither checks what it downloads nor notices that a connection was cut or has
//! gone silent.

mod cache;
mod download;
mod progress;
mod remote;
mod repository;
mod settings;

pub use repository::Repository;
