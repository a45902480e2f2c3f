//! Recall and speed of an index, from narrow to wide searches.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use reprise_index::{Codes, Collection, UnitVector};
use serde::Serialize;

use super::engine::Engine;
use super::truth::Truth;
use crate::speed::meter::cpu_time;

/// Candidates per search (ef).
const WIDTHS: [usize; 15] = [10, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512];
/// Wider searches beyond this recall at 10 only cost more.
const ENOUGH: f64 = 0.9995;
/// The k of the timed searches.
const TIMED: usize = 10;
/// Shortest time of a measurement. All queries repeat until it has passed.
const RUN: Duration = Duration::from_millis(200);

/// The result for one width.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) ef: usize,
    pub(super) codes: Codes,
    pub(super) threads: usize,
    pub(super) recall_at_1: f64,
    /// `None` if the ground truth has fewer rows; likewise `recall_at_100`.
    pub(super) recall_at_10: Option<f64>,
    /// Recall of a search for 100 rows with at least 100 candidates; not timed.
    pub(super) recall_at_100: Option<f64>,
    /// Searches for the 10 nearest rows per second of wall time.
    pub(super) qps: f64,
    pub(super) p50_us: f64,
    pub(super) p95_us: f64,
    pub(super) p99_us: f64,
    /// CPU time per search; `None` without /proc.
    pub(super) cpu_us: Option<f64>,
}

/// The searches to measure.
#[derive(Clone, Copy)]
pub(super) struct Searches<'a> {
    pub(super) at: Collection,
    pub(super) queries: &'a [UnitVector],
    pub(super) truth: &'a Truth,
}

/// Measures all widths until recall stops rising.
///
/// # Errors
/// The index refuses a query; never in practice.
pub(super) fn run(
    engine: &Engine,
    codes: Codes,
    threads: usize,
    searches: Searches<'_>,
) -> anyhow::Result<Vec<Point>> {
    let Searches { at, queries, truth } = searches;
    let mut points = Vec::new();
    for ef in WIDTHS {
        let search = |query: &UnitVector, k: usize| engine.search(at, query, k, ef);
        let found = |k: usize| -> anyhow::Result<Vec<Vec<u64>>> {
            queries.iter().map(|query| search(query, k)).collect()
        };
        // This also warms up the caches.
        let (ten, hundred) = (found(TIMED)?, found(100)?);
        let timed = timed(threads, queries, &|query| search(query, TIMED).map(drop))?;
        let recall_at_10 = recall(&ten, 10, truth);
        points.push(Point {
            ef,
            codes,
            threads,
            recall_at_1: recall(&ten, 1, truth).context("the truth names no rows")?,
            recall_at_10,
            recall_at_100: recall(&hundred, 100, truth),
            qps: timed.times.len() as f64 / timed.seconds,
            p50_us: timed.percentile_us(0.50),
            p95_us: timed.percentile_us(0.95),
            p99_us: timed.percentile_us(0.99),
            cpu_us: timed.cpu_us(),
        });
        if recall_at_10.is_some_and(|recall| recall > ENOUGH) {
            break;
        }
    }
    Ok(points)
}

/// The share of the true `k` nearest rows in the answers, over all queries.
fn recall(found: &[Vec<u64>], k: usize, truth: &Truth) -> Option<f64> {
    let right: usize =
        found.iter().enumerate().map(|(query, found)| truth.right(query, k, found)).sum::<Option<_>>()?;
    Some(right as f64 / (k * found.len()) as f64)
}

/// Times of searches.
pub(super) struct Timed {
    /// The time of each search, ascending.
    times: Vec<Duration>,
    /// Total time of all searches, in seconds.
    seconds: f64,
    cpu_seconds: Option<f64>,
}

impl Timed {
    /// CPU time per search; `None` without /proc.
    pub(super) fn cpu_us(&self) -> Option<f64> {
        self.cpu_seconds.map(|cpu| 1e6 * cpu / self.times.len() as f64)
    }

    pub(super) fn percentile_us(&self, share: f64) -> f64 {
        let at = (self.times.len().saturating_sub(1) as f64 * share).round() as usize;
        self.times.get(at).map_or(0.0, |time| 1e6 * time.as_secs_f64())
    }
}

/// Repeats all queries on `threads` threads; a free thread takes the next query.
pub(super) fn timed(
    threads: usize,
    queries: &[UnitVector],
    search: &(dyn Fn(&UnitVector) -> anyhow::Result<()> + Sync),
) -> anyhow::Result<Timed> {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let (started, cpu) = (Instant::now(), cpu_time());
    let work = || -> anyhow::Result<()> {
        let mut times = Vec::with_capacity(queries.len());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let whole_passes = number.is_multiple_of(queries.len());
            if number >= queries.len() && (whole_passes || threads > 1) && started.elapsed() >= RUN {
                break;
            }
            let began = Instant::now();
            search(&queries[number % queries.len()])?;
            times.push(began.elapsed());
        }
        all.lock().map_err(|_| anyhow!("a searching thread panicked"))?.append(&mut times);
        Ok(())
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined = others
            .into_iter()
            .map(|it| it.join().unwrap_or_else(|_| Err(anyhow!("a searching thread panicked"))));
        joined.fold(own, Result::and)
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = cpu_time().zip(cpu).map(|(now, before)| now - before);
    let mut times = all.into_inner().map_err(|_| anyhow!("a searching thread panicked"))?;
    times.sort_unstable();
    Ok(Timed { times, seconds, cpu_seconds })
}
