//! Recall and cost of searches as the service asks them, where a filter allows a share of the keys.

use std::sync::Arc;

use anyhow::ensure;
use reprise_index::{Codes, Filter, Mode, UnitVector};
use serde::Serialize;

use super::engine::Engine;
use super::sweep::{Searches, timed};

/// Shares of the keys that a filter allows; the whole is searched without one.
const SHARES: [f64; 4] = [1.0, 0.5, 0.1, 0.01];
/// The k of the searches.
const K: usize = 10;
/// Rounds of timing, in which each share takes its turn; medians count.
const ROUNDS: usize = 5;

/// The result for one share.
#[derive(Debug, Serialize)]
pub(super) struct Filtered {
    pub(super) codes: Codes,
    pub(super) share: f64,
    pub(super) recall_at_10: f64,
    pub(super) p50_us: f64,
    /// CPU time per search; `None` without /proc.
    pub(super) cpu_us: Option<f64>,
}

/// Measures all shares with one thread. `rows` is the number of rows, which are numbered from 0 on.
///
/// # Errors
/// The engine has no filters.
pub(super) fn run(
    engine: &Engine,
    codes: Codes,
    rows: usize,
    searches: Searches<'_>,
) -> anyhow::Result<Vec<Filtered>> {
    let Engine::Builtin(index) = engine else { anyhow::bail!("hnsw_rs has no filters: leave out --filters") };
    let Searches { at, queries, .. } = searches;
    let mut all = Vec::new();
    for share in SHARES {
        let allowed = (0..rows as u64).filter(|&row| spread(row) < share);
        let filter = Filter { only: (share < 1.0).then(|| Arc::new(allowed.collect())) };
        let found = |query: &UnitVector, mode| -> anyhow::Result<Vec<u64>> {
            Ok(index.search(at, query, K, &filter, mode)?.hits.iter().map(|hit| hit.key).collect())
        };
        let (mut right, mut wanted) = (0, 0);
        for query in queries {
            let (got, truth) = (found(query, Mode::Auto)?, found(query, Mode::Exact)?);
            right += got.iter().filter(|key| truth.contains(key)).count();
            wanted += truth.len();
        }
        ensure!(wanted > 0, "a filter that allows {share} of the rows allows none: give more vectors");
        let recall_at_10 = right as f64 / wanted as f64;
        all.push((filter, Filtered { codes, share, recall_at_10, p50_us: 0.0, cpu_us: None }));
    }
    let mut rounds = vec![Vec::new(); all.len()];
    for _ in 0..ROUNDS {
        for ((filter, _), times) in all.iter().zip(&mut rounds) {
            let timed =
                timed(1, queries, &|query| Ok(index.search(at, query, K, filter, Mode::Auto).map(drop)?))?;
            times.push((timed.percentile_us(0.50), timed.cpu_us()));
        }
    }
    let timed = all.into_iter().zip(rounds).map(|((_, measured), times)| Filtered {
        p50_us: median(times.iter().map(|(p50, _)| *p50).collect()).unwrap_or_default(),
        cpu_us: median(times.iter().filter_map(|(_, cpu)| *cpu).collect()),
        ..measured
    });
    Ok(timed.collect())
}

/// The middle one; `None` of none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A number from 0 to 1 for a row: neighbours in the file are seldom neighbours here.
fn spread(row: u64) -> f64 {
    let mixed = (row + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) as f64 / u64::MAX as f64
}
