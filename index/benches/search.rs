//! Measures searches, inserts, rebuilds and snapshots: `cargo bench -p reprise-index -- [VECTORS [DIMENSION]]`.
//!
//! Vectors come from 200 clusters with anisotropic noise: uniform random vectors would mislead.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod vectors;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use reprise_index::{Collection, Filter, Index, Level, Mode, Settings, SpaceInfo, UnitVector};
use vectors::Source;

const AT: Collection = Collection { space: 1, level: Level::Clip };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test --all-targets` also starts this benchmark.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let count = numbers.first().copied().unwrap_or(10_000) as u64;
    let dim = numbers.get(1).copied().unwrap_or(512);
    let mut source = Source::new(dim);
    let queries: Vec<UnitVector> = (0..200).map(|_| source.vector()).collect();
    let space = SpaceInfo { key: AT.space, id: "bench".into(), dim };

    println!("{count} vectors of {dim} values\n");
    let folder = tempfile::tempdir()?;
    let index = Index::in_folder(folder.path(), Settings::default());
    index.declare(&space)?;
    let started = Instant::now();
    for key in 0..count {
        index.fill(AT, key, &source.vector())?;
    }
    println!("made and filled in:       {:>9.3} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    let threads = std::thread::available_parallelism()?.get();
    index.seal_with(AT, threads, &|linked, all| {
        if linked.is_multiple_of(100_000) {
            eprintln!("{linked} of {all} are linked");
        }
    });
    println!("sealed:                   {:>9.3} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    for (key, vector) in (count..).zip(&queries) {
        index.insert(AT, key, vector)?;
    }
    println!(
        "insert one more:          {:>9.3} ms",
        started.elapsed().as_secs_f64() * 1e3 / queries.len() as f64
    );
    for key in count..count + queries.len() as u64 {
        index.remove(AT, key);
    }

    let started = Instant::now();
    index.save(folder.path(), 1)?;
    println!("save:                     {:>9.3} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    let loaded = Index::load(folder.path(), &[space], Settings::default())?.index;
    println!("load until it answers:    {:>9.3} s", started.elapsed().as_secs_f64());
    if let Some(peak) = peak_mib() {
        println!("most memory until now:    {peak:>9} MiB");
    }
    drop(index);
    let started = Instant::now();
    let damaged = loaded.verify();
    println!(
        "verify all vectors:       {:>9.3} s, {} damaged\n",
        started.elapsed().as_secs_f64(),
        damaged.len()
    );

    println!("| live | filter | mode | p50 ms | p95 ms | recall@10 | exact |\n|---|---|---|---|---|---|---|");
    for share in [1.0, 0.5, 0.2, 0.05, 0.005] {
        let filter = only(count, share);
        row(&loaded, &queries, "all", share, &filter, Mode::Auto)?;
        row(&loaded, &queries, "all", share, &filter, Mode::Exact)?;
    }
    for key in (0..count).filter(|key| key % 5 < 2) {
        loaded.remove(AT, key);
    }
    row(&loaded, &queries, "60 %", 1.0, &Filter::default(), Mode::Auto)?;
    row(&loaded, &queries, "60 %", 1.0, &Filter::default(), Mode::Exact)?;
    Ok(())
}

/// The process's peak memory in MiB; `None` where the system has no /proc.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

fn only(count: u64, share: f64) -> Filter {
    let keep = (share * 1000.0) as u64;
    let only = (keep < 1000)
        .then(|| Arc::new((0..count).filter(|key| key.wrapping_mul(7919) % 1000 < keep).collect()));
    Filter { only }
}

fn row(
    index: &Index,
    queries: &[UnitVector],
    live: &str,
    share: f64,
    filter: &Filter,
    mode: Mode,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut times, mut found, mut exact) = (Vec::new(), 0, 0);
    for query in queries {
        let started = Instant::now();
        let got = index.search(AT, query, 10, filter, mode)?;
        times.push(started.elapsed());
        exact += usize::from(got.exact);
        let truth = index.search(AT, query, 10, filter, Mode::Exact)?;
        let truth: HashSet<u64> = truth.hits.iter().map(|hit| hit.key).collect();
        found += got.hits.iter().filter(|hit| truth.contains(&hit.key)).count();
    }
    times.sort();
    let at = |part: f64| -> f64 { times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3 };
    let (p50, p95) = (at(0.5), at(0.95));
    println!(
        "| {live} | {share} | {mode:?} | {p50:.3} | {p95:.3} | {:.4} | {:.2} |",
        found as f64 / (10 * queries.len()) as f64,
        exact as f64 / queries.len() as f64
    );
    Ok(())
}
