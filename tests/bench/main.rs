//! Benchmarks of the service: ingest against bare decoding and encoding, searches over 10,000 vectors, segmentation,
//! and search quality on real lectures.
//!
//! `make bench` measures the costs, `make bench-long` an hour of video through a model of real size, `make
//! bench-lectures` the lectures. Each command prints its tables and writes them to BENCHMARKS.md.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for developers: it prints and may panic"
)]

mod answers;
mod cpu;
mod engines;
mod exports;
mod ingest;
mod lectures;
mod long;
mod overload;
mod questions;
mod report;
mod screen_text;
mod search;
mod seeded;
mod segment;
mod soak;

use report::Report;

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    // `bench-service search` measures only that part and does not change BENCHMARKS.md.
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
    // These take long, so they run only on request.
    if parts.iter().any(|it| it == "long") {
        long::measure(folder.path(), &mut report).await;
        report.publish_long();
    }
    if parts.iter().any(|it| it == "answers") {
        answers::measure(folder.path(), &mut report).await;
        report.publish_answers();
    }
    if parts.is_empty() || parts.iter().any(|it| it == "exports") {
        exports::measure(folder.path(), &mut report).await;
        report.publish_exports();
    }
    if parts.iter().any(|it| it == "screen-text") {
        screen_text::measure(folder.path(), &mut report).await;
        report.publish_screen_text();
    }
    if parts.iter().any(|it| it == "engines") {
        engines::measure(&parts, &mut report).await;
        report.publish_engines();
    }
    if parts.iter().any(|it| it == "overload") {
        overload::measure(folder.path(), minutes(&parts, 5.0), &mut report).await;
        report.publish_overload();
    }
    if parts.iter().any(|it| it == "soak") {
        soak::measure(folder.path(), minutes(&parts, 30.0), &mut report).await;
        report.publish_soak();
    }
    if parts.iter().any(|it| it == "lectures") {
        lectures::measure(folder.path(), &mut report).await;
        report.publish_lectures();
    }
    if parts.iter().any(|it| it == "questions") {
        questions::measure(folder.path(), &mut report).await;
        report.publish_questions();
    }
}

/// The first argument that is a number, as minutes.
fn minutes(parts: &[String], default: f64) -> f64 {
    parts.iter().find_map(|part| part.parse().ok()).unwrap_or(default)
}
