//! reprise, the service: the library of the `reprise` binary.
//!
//! Dependencies point one way: `http -> {search, ingest} -> {catalog, app}`. Only [`http`] uses axum, and only
//! [`catalog`] uses SQL.

pub mod access;
pub mod activity;
pub mod add_model;
pub mod app;
pub mod backup;
pub mod catalog;
pub mod config;
pub mod evaluations;
pub mod exports;
pub mod health;
pub mod http;
pub mod https;
pub mod ingest;
pub mod jobs;
pub mod library;
pub mod maps;
pub mod models;
pub mod probes;
pub mod query_frames;
pub mod query_log;
pub mod search;
pub mod speech;
pub mod sprites;
pub mod start;
pub mod storage;
pub mod subtitles;
pub mod telemetry;
pub mod terms;
pub mod transcription;
pub mod vectors;
pub mod verify;
