//! Tests that cross crates or need the built binary: one file a topic, one binary for all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod acceptance;
mod catalog;
mod command_line;
mod covr;
mod embed_many;
mod encoders;
mod encoders_covr;
mod encoders_hub;
mod encoders_sentence;
mod eval;
mod eval_retrieval;
mod faults;
mod http_library;
mod http_malformed;
mod http_media;
mod http_operation;
mod http_spaces;
mod index;
mod ingest;
mod lecture_questions;
mod lectures;
mod long_text;
mod moments;
mod openapi;
mod resegment;
mod search;
mod segment;
mod subtitles;
mod synth;
mod tidy;
mod video;
mod video_files;
mod video_spans;
