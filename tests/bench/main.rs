//! What the service costs: ingest beside bare decoding and encoding, searches over 10,000 vectors, and cutting
//! videos.
//!
//! `make bench` runs it; it prints a table and puts it into BENCHMARKS.md.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for developers: it prints and may panic"
)]

mod cpu;
mod ingest;
mod report;
mod search;
mod segment;

use report::Report;

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    // `bench-service search` measures that part alone and leaves BENCHMARKS.md as it is.
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|it| *it == part);
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::default();
    if wanted("search") {
        search::measure(folder.path(), &mut report).await;
    }
    if wanted("ingest") {
        ingest::measure(folder.path(), &mut report).await;
    }
    if wanted("segment") {
        segment::measure(folder.path(), &mut report).await;
    }
    if parts.is_empty() {
        report.publish();
    }
}
