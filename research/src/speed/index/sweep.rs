//! Recall and speed of one index, from narrow searches to wide ones.

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

/// Candidates of a walk.
const WIDTHS: [usize; 12] = [10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
/// Recall at 10 from which wider searches only cost more.
const ENOUGH: f64 = 0.9995;
/// What is timed is the search for so many.
const TIMED: usize = 10;
/// Shortest time of a measurement: all queries are asked again until it has gone by.
const RUN: Duration = Duration::from_millis(200);

/// One width of one index.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) ef: usize,
    pub(super) codes: Codes,
    pub(super) threads: usize,
    pub(super) recall_at_1: f64,
    /// `None` where the truth has fewer; so is the next.
    pub(super) recall_at_10: Option<f64>,
    /// Of a search for 100, with at least as many candidates; not timed.
    pub(super) recall_at_100: Option<f64>,
    /// Searches for the 10 nearest, by the wall clock.
    pub(super) qps: f64,
    pub(super) p50_us: f64,
    pub(super) p95_us: f64,
    pub(super) p99_us: f64,
    /// CPU time of a search; `None` where the system has no /proc.
    pub(super) cpu_us: Option<f64>,
}

/// All widths until recall is as good as it gets.
///
/// # Errors
/// Never in practice: the index refuses a query.
pub(super) fn run(
    engine: &Engine,
    at: Collection,
    codes: Codes,
    threads: usize,
    queries: &[UnitVector],
    truth: &Truth,
) -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    for ef in WIDTHS {
        let search = |query: &UnitVector, k: usize| engine.search(at, query, k, ef);
        let found = |k: usize| -> anyhow::Result<Vec<Vec<u64>>> {
            queries.iter().map(|query| search(query, k)).collect()
        };
        // It also warms the caches up.
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
            cpu_us: timed.cpu_seconds.map(|cpu| 1e6 * cpu / timed.times.len() as f64),
        });
        if recall_at_10.is_some_and(|recall| recall > ENOUGH) {
            break;
        }
    }
    Ok(points)
}

/// The share of the true `k` nearest that were found, over all queries.
fn recall(found: &[Vec<u64>], k: usize, truth: &Truth) -> Option<f64> {
    let right: usize =
        found.iter().enumerate().map(|(query, found)| truth.right(query, k, found)).sum::<Option<_>>()?;
    Some(right as f64 / (k * found.len()) as f64)
}

/// How long searches took.
struct Timed {
    /// Of each, ascending.
    times: Vec<Duration>,
    /// Of all.
    seconds: f64,
    cpu_seconds: Option<f64>,
}

impl Timed {
    fn percentile_us(&self, share: f64) -> f64 {
        let at = (self.times.len().saturating_sub(1) as f64 * share).round() as usize;
        self.times.get(at).map_or(0.0, |time| 1e6 * time.as_secs_f64())
    }
}

/// Asks all queries, again and again, by so many threads that take the next one as they are free.
fn timed(
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
