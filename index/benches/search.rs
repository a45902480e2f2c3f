//! Measures searches, inserts, rebuilds and snapshots: `cargo bench -p reprise-index --bench search -- [VECTORS
//! [DIMENSION [MEMORY]]]`, the memory for links and codes in MiB.
//!
//! Vectors come from 200 clusters with anisotropic noise: uniform random vectors would mislead.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod vectors;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reprise_index::{Collection, Filter, Index, Level, Mode, Settings, SpaceInfo, UnitVector};
use vectors::Source;

const AT: Collection = Collection { space: 1, level: Level::Clip };
/// With more vectors, brute force is timed with a few queries.
const MANY: u64 = 2_000_000;
/// Hits of a query.
const K: usize = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test --all-targets` also starts this benchmark.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let count = numbers.first().copied().unwrap_or(10_000) as u64;
    let dim = numbers.get(1).copied().unwrap_or(512);
    let memory = numbers.get(2).map(|&mib| (mib as u64) << 20);
    let settings = Settings { memory, ..Settings::default() };
    let mut source = Source::new(dim);
    let queries: Vec<UnitVector> = (0..200).map(|_| source.vector()).collect();
    let space = SpaceInfo { key: AT.space, id: "bench".into(), dim };

    println!("{count} vectors of {dim} values\n");
    let watched = Memory::watch();
    let folder = tempfile::tempdir()?;
    let index = Index::in_folder(folder.path(), settings);
    index.declare(&space)?;
    let mut truths = Truth::all(queries.len());
    let started = Instant::now();
    for key in 0..count {
        let vector = source.vector();
        let cosines: Vec<f32> = queries.iter().map(|query| query.dot(&vector)).collect();
        truths.iter_mut().for_each(|truth| truth.offer(key, &cosines));
        index.fill(AT, key, &vector)?;
    }
    println!("made, filled, and truth:  {:>9.3} s", started.elapsed().as_secs_f64());
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
    println!("most memory of its own:   {:>9} MiB", watched.most_mib());
    drop(index);
    let started = Instant::now();
    let loaded = Index::load(folder.path(), &[space], settings)?.index;
    println!("load until it answers:    {:>9.3} s", started.elapsed().as_secs_f64());
    println!("links and codes take:     {:>9} MiB", loaded.memory() >> 20);
    let started = Instant::now();
    let damaged = loaded.verify();
    println!(
        "verify all vectors:       {:>9.3} s, {} damaged\n",
        started.elapsed().as_secs_f64(),
        damaged.len()
    );

    println!("| live | filter | mode | p50 ms | p95 ms | recall@10 | exact |\n|---|---|---|---|---|---|---|");
    let exactly = if count > MANY { 3 } else { queries.len() };
    for truth in &truths {
        if truth.is_thinned {
            (0..count).filter(|key| is_removed(*key)).for_each(|key| loaded.remove(AT, key));
        }
        let filter = only(count, truth.share);
        row(&loaded, &queries, truth, &filter, Mode::Auto)?;
        row(&loaded, &queries[..exactly], truth, &filter, Mode::Exact)?;
    }
    Ok(())
}

/// The best hits of each query among the keys that a filter lets through, found while the vectors are made.
struct Truth {
    share: f64,
    /// Whether two of five keys are removed.
    is_thinned: bool,
    /// Cosines and keys, best first.
    best: Vec<Vec<(f32, u64)>>,
}

impl Truth {
    fn all(queries: usize) -> Vec<Truth> {
        let cases = [
            (1.0, false),
            (0.5, false),
            (0.2, false),
            (0.1, false),
            (0.05, false),
            (0.005, false),
            (1.0, true),
        ];
        cases.map(|(share, is_thinned)| Truth { share, is_thinned, best: vec![Vec::new(); queries] }).into()
    }

    fn offer(&mut self, key: u64, cosines: &[f32]) {
        if !passes(key, self.share) || (self.is_thinned && is_removed(key)) {
            return;
        }
        for (best, &cosine) in self.best.iter_mut().zip(cosines) {
            if best.len() < K || best.last().is_some_and(|worst| cosine > worst.0) {
                best.truncate(K - 1);
                let at = best.partition_point(|other| other.0 >= cosine);
                best.insert(at, (cosine, key));
            }
        }
    }
}

fn is_removed(key: u64) -> bool {
    key % 5 < 2
}

fn passes(key: u64, share: f64) -> bool {
    key.wrapping_mul(7919) % 1000 < (share * 1000.0) as u64
}

/// The most memory that the process had for itself, without mapped files.
struct Memory(Arc<AtomicU64>);

impl Memory {
    /// Looks ten times a second, where the system has /proc.
    fn watch() -> Memory {
        let most = Arc::new(AtomicU64::new(0));
        let seen = Arc::downgrade(&most);
        std::thread::spawn(move || {
            while let Some(most) = seen.upgrade() {
                most.fetch_max(own_kib().unwrap_or(0), Ordering::Relaxed);
                drop(most);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Memory(most)
    }

    fn most_mib(&self) -> u64 {
        self.0.load(Ordering::Relaxed) / 1024
    }
}

fn own_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    own.split_whitespace().next()?.parse().ok()
}

fn only(count: u64, share: f64) -> Filter {
    Filter { only: (share < 1.0).then(|| Arc::new((0..count).filter(|key| passes(*key, share)).collect())) }
}

fn row(
    index: &Index,
    queries: &[UnitVector],
    truth: &Truth,
    filter: &Filter,
    mode: Mode,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut times, mut found, mut exact) = (Vec::new(), 0, 0);
    for (query, best) in queries.iter().zip(&truth.best) {
        let started = Instant::now();
        let got = index.search(AT, query, K, filter, mode)?;
        times.push(started.elapsed());
        exact += usize::from(got.exact);
        found += got.hits.iter().filter(|hit| best.iter().any(|(_, key)| *key == hit.key)).count();
    }
    times.sort();
    let at = |part: f64| -> f64 { times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3 };
    let (p50, p95) = (at(0.5), at(0.95));
    let (live, share) = (if truth.is_thinned { "60 %" } else { "all" }, truth.share);
    println!(
        "| {live} | {share} | {mode:?} | {p50:.3} | {p95:.3} | {:.4} | {:.2} |",
        found as f64 / (K * queries.len()) as f64,
        exact as f64 / queries.len() as f64
    );
    Ok(())
}
