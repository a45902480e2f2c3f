//! Ground truth: the nearest rows of each query.

use std::path::Path;

use crate::rows::npy;
use anyhow::{Context, ensure};
use reprise_index::{Filter, Index, Mode, UnitVector};

use super::AT;

/// The largest k of the recall figures.
const MOST: usize = 100;

/// The true nearest rows of every query, nearest first.
pub(super) struct Truth {
    rows: Vec<u64>,
    of_each: usize,
}

impl Truth {
    /// Reads a file with one row per query; its numbers are row numbers of `base`.
    ///
    /// # Errors
    /// The file has another number of rows, or numbers beyond `base`.
    pub(super) fn read(path: &Path, base: usize, queries: usize) -> anyhow::Result<Truth> {
        let npy::Table { values, columns } = npy::read_integers(path)?;
        let rows = values.len() / columns;
        ensure!(rows == queries, "{} has {rows} rows for {queries} queries", path.display());
        let row = |value: i64| {
            let row = u64::try_from(value).ok().filter(|row| *row < base as u64);
            row.with_context(|| format!("{} names row {value}, --base has {base}", path.display()))
        };
        let kept = columns.min(MOST);
        let each = values.chunks_exact(columns).flat_map(|row| &row[..kept]);
        Ok(Truth { rows: each.map(|&value| row(value)).collect::<Result<_, _>>()?, of_each: kept })
    }

    /// Computes the nearest rows by brute force.
    ///
    /// # Errors
    /// The vectors differ in length.
    pub(super) fn of(base: &[UnitVector], queries: &[UnitVector]) -> anyhow::Result<Truth> {
        let index = Index::new();
        for (key, vector) in (0..).zip(base) {
            index.fill(AT, key, vector)?;
        }
        let mut rows = Vec::new();
        for query in queries {
            let found = index.search(AT, query, MOST, &Filter::default(), Mode::Exact)?;
            rows.extend(found.hits.iter().map(|hit| hit.key));
        }
        Ok(Truth { rows, of_each: MOST.min(base.len()) })
    }

    /// Number of a query's true first `k` rows among the first `k` of `found`; `None` if the truth has fewer than
    /// `k`.
    pub(super) fn right(&self, query: usize, k: usize, found: &[u64]) -> Option<usize> {
        let of_query = self.rows.get(query * self.of_each..(query + 1) * self.of_each)?;
        let truth = of_query.get(..k)?;
        Some(found.iter().take(k).filter(|key| truth.contains(key)).count())
    }
}
