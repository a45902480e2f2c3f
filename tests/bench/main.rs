//! What the service costs: ingest beside bare decoding and encoding, searches over 10,000 vectors, and cutting
//! videos; and what it finds in real lectures.
//!
//! `make bench` measures the costs, `make bench-long` an hour of video through a model of real size, `make
//! bench-lectures` the lectures; each prints its tables and puts them into BENCHMARKS.md.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for developers: it prints and may panic"
)]

mod cpu;
mod ingest;
mod lectures;
mod long;
mod report;
mod search;
mod seeded;
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
    // By name alone: these take long.
    if parts.iter().any(|it| it == "long") {
        long::measure(folder.path(), &mut report).await;
        report.publish_long();
    }
    if parts.iter().any(|it| it == "lectures") {
        lectures::measure(folder.path(), &mut report).await;
        report.publish_lectures();
    }
}
