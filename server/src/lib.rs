//! reprise, the service: the library behind the `reprise` binary.
//!
//! Dependencies inside point one way: `http -> {search, ingest} -> {catalog, app}`; axum lives under
//! [`http`] alone, SQL under [`catalog`] alone.

pub mod add_model;
pub mod app;
pub mod catalog;
pub mod config;
pub mod http;
pub mod https;
pub mod ingest;
pub mod jobs;
pub mod library;
pub mod models;
pub mod search;
pub mod start;
pub mod storage;
pub mod subtitles;
pub mod telemetry;
pub mod terms;
pub mod vectors;
