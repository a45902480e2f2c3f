//! Measures searches while other threads insert, remove and seal, and the same searches alone.
//!
//! Run: `cargo bench -p reprise-index --bench writers -- [VECTORS [DIMENSION]]`.
#![allow(clippy::print_stdout, missing_docs)]

mod vectors;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reprise_index::{Collection, Filter, Index, Level, Mode, Settings, UnitVector};
use vectors::Source;

const AT: Collection = Collection { space: 1, level: Level::Clip };
const SEARCHERS: usize = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test --all-targets` also starts this benchmark.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let count = numbers.first().copied().unwrap_or(10_000) as u64;
    let mut source = Source::new(numbers.get(1).copied().unwrap_or(512));
    let vectors: Vec<UnitVector> = (0..2 * count).map(|_| source.vector()).collect();
    let queries: Vec<UnitVector> = (0..1_000).map(|_| source.vector()).collect();
    let folder = tempfile::tempdir()?;
    let index = Index::in_folder(folder.path(), Settings::default());
    for (key, vector) in (0..count).zip(&vectors) {
        index.fill(AT, key, vector)?;
    }
    index.seal(AT);
    println!("{count} sealed vectors, {SEARCHERS} searching threads\n");

    let seconds = Duration::from_secs(20);
    let started = Instant::now();
    let alone = searched(&index, &queries, &|| started.elapsed() < seconds);
    let is_writing = AtomicBool::new(true);
    let started = Instant::now();
    let beside = std::thread::scope(|scope| {
        scope.spawn(|| {
            for key in count..2 * count {
                let inserted = index.insert(AT, key, &vectors[key as usize]);
                assert!(inserted.is_ok());

                if key % 5 == 0 {
                    index.remove(AT, key - count);
                }
            }
            index.settle();
            is_writing.store(false, Ordering::Relaxed);
        });
        searched(&index, &queries, &|| is_writing.load(Ordering::Relaxed))
    });
    let took = started.elapsed().as_secs_f64();
    println!("| searches | p50 ms | p99 ms | p99.9 ms |\n|---|---|---|---|");
    row("without writes", &alone);
    row(&format!("beside {count} inserts, a fifth as many removals, and their seals, {took:.0} s"), &beside);
    println!("\np99.9: {:.2} times that without writes", at(&beside, 0.999) / at(&alone, 0.999));
    let live = (0..2 * count).filter(|key| *key >= count || !(key + count).is_multiple_of(5));
    assert!(index.keys(AT).iter().eq(live), "an update was lost");
    Ok(())
}

/// Milliseconds of each search, ascending. Searches while `go_on` returns true.
fn searched(index: &Index, queries: &[UnitVector], go_on: &(dyn Fn() -> bool + Sync)) -> Vec<f64> {
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..SEARCHERS {
            let all = &all;
            scope.spawn(move || {
                let mut times = Vec::new();
                for query in queries.iter().cycle().skip(thread * 97) {
                    if !go_on() {
                        break;
                    }
                    let started = Instant::now();
                    let found = index.search(AT, query, 10, &Filter::default(), Mode::Auto);
                    assert!(found.is_ok_and(|found| found.hits.len() == 10));
                    times.push(started.elapsed().as_secs_f64() * 1e3);
                }
                all.lock().map(|mut all| all.extend(times)).ok();
            });
        }
    });
    let mut times = all.into_inner().unwrap_or_default();
    times.sort_by(f64::total_cmp);
    times
}

fn at(times: &[f64], part: f64) -> f64 {
    times.get((times.len().saturating_sub(1) as f64 * part) as usize).copied().unwrap_or(f64::NAN)
}

fn row(what: &str, times: &[f64]) {
    println!("| {what} | {:.3} | {:.3} | {:.3} |", at(times, 0.5), at(times, 0.99), at(times, 0.999));
}
