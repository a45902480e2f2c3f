//! Checks the engine: compares its keys with the catalog's, and its graphs with exact search.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Ask, Difference, EngineError, Hits, Vectors};
use crate::catalog::instant;
use crate::terms::{Collection, SpanKey, UnitVector};

/// Queries (stored vectors) for the recall of a running server. Each costs a scan.
const SAMPLE: usize = 200;
/// Queries per search.
const QUERIES_AT_ONCE: usize = 20;

/// Settings of a running server's index checks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckSettings {
    /// Interval of the checks, also before the first one. A check without changes measures nothing.
    pub every: Duration,
    /// Recall at 10, 0 to 1, below which a warning is logged.
    pub recall_target: f64,
}

/// The result of the last check of one collection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checked {
    /// Recall at 10 of its graphs against exact search, 0 to 1. `None` without a graph or exact search.
    pub recall_at_10: Option<f64>,
    /// Whether the engine held the same keys as the catalog.
    pub keys_equal: bool,
    /// Time of the check, in Unix milliseconds.
    pub at_ms: i64,
    /// The engine's generation when recall was measured.
    generation: u64,
}

#[derive(Default)]
pub(super) struct Checks {
    collections: BTreeMap<Collection, Checked>,
    /// The checked state; `None` requests another check.
    of: Option<State>,
}

/// A state of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    seq: i64,
    generation: u64,
}

impl Vectors {
    /// The result of the last check; `None` before the first.
    pub fn checked(&self, at: Collection) -> Option<Checked> {
        self.checks.read().unwrap_or_else(PoisonError::into_inner).collections.get(&at).copied()
    }

    /// Checks at intervals until `closing`.
    pub async fn check_until(self: Arc<Self>, settings: CheckSettings, closing: CancellationToken) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = tokio::time::sleep(settings.every) => {}
            }
            // Does not wait for a running measurement: it ends with the process.
            tokio::select! {
                () = closing.cancelled() => return,
                done = self.check(settings.recall_target) => if let Err(error) = done {
                    tracing::warn!(%error, "the index can't be compared with the catalog");
                },
            }
        }
    }

    /// Compares the keys and repairs differences. Measures the recall of each generation once.
    async fn check(&self, recall_target: f64) -> Result<(), EngineError> {
        let now =
            State { seq: self.engine.applied().await?, generation: self.engine.status().await?.generation };
        if self.checks.read().unwrap_or_else(PoisonError::into_inner).of == Some(now) {
            return Ok(());
        }
        let Some(differing) = self.compare_and_complete().await? else { return Ok(()) };
        let status = self.engine.status().await?;
        let mut checked = BTreeMap::new();
        for at in differing.iter().copied() {
            checked.insert(at, Checked::now(None, false, status.generation));
        }
        for held in &status.collections {
            let recall_at_10 = match held.graph {
                true => self.recall_of(held.at, status.generation, recall_target).await?,
                false => None,
            };
            let keys_equal = !differing.contains(&held.at);
            checked.insert(held.at, Checked::now(recall_at_10, keys_equal, status.generation));
        }
        let mut checks = self.checks.write().unwrap_or_else(PoisonError::into_inner);
        (checks.collections, checks.of) = (checked, differing.is_empty().then_some(now));
        Ok(())
    }

    /// Repairs and returns the collections whose keys differ. `None` while a space is being filled, and on a server that
    /// does not write to its shared engine.
    async fn compare_and_complete(&self) -> Result<Option<BTreeSet<Collection>>, EngineError> {
        let Ok(_nobody_fills) = self.filling.try_lock() else { return Ok(None) };
        if let Some(writer) = &self.writer
            && writer.fence(&self.catalog).await?.is_none()
        {
            return Ok(None);
        }
        let mut differing = BTreeSet::new();
        for space in self.spaces() {
            let differences = self.differences(space.key).await?;
            for Difference { at, missing, extra } in &differences {
                tracing::warn!(
                    space = space.id,
                    level = ?at.level,
                    missing = missing.len(),
                    extra = extra.len(),
                    "the index holds other spans than the catalog; it is made to hold the same"
                );
                differing.insert(*at);
            }
            if !differences.is_empty() {
                self.complete_space(&space, &|_, _| ()).await?;
            }
        }
        Ok(Some(differing))
    }

    /// Recall at 10; an earlier measurement of the same generation is reused.
    async fn recall_of(
        &self,
        at: Collection,
        generation: u64,
        target: f64,
    ) -> Result<Option<f64>, EngineError> {
        let known = self.checked(at).filter(|known| known.generation == generation);
        if let Some(recall) = known.and_then(|known| known.recall_at_10) {
            return Ok(Some(recall));
        }
        let recall = self.recall(at, SAMPLE).await?;
        if let Some(recall) = recall.filter(|recall| *recall < target) {
            tracing::warn!(
                space = at.space,
                level = ?at.level,
                recall,
                target,
                "the index finds less than it should; `reprise index rebuild` links it anew, larger codes are more exact"
            );
        }
        Ok(recall)
    }

    /// Mean recall at 10 against exact search, 0 to 1, with about `sample` stored vectors as queries. Without exact search
    /// the share of these vectors that find themselves. `None` for an empty collection.
    ///
    /// # Errors
    /// [`EngineError`] if the engine or the catalog can't be read.
    pub async fn recall(&self, at: Collection, sample: usize) -> Result<Option<f64>, EngineError> {
        let keys = self.engine.keys(at, SpanKey::ALL).await?;
        let step = usize::try_from(keys.len()).unwrap_or(usize::MAX).div_ceil(sample.max(1)).max(1);
        let chosen: Vec<SpanKey> = keys.iter().step_by(step).collect();
        let (mut found, mut wanted) = (0, 0);
        for keys in chosen.chunks(QUERIES_AT_ONCE) {
            let stored = self.catalog.vectors_of(at.space, keys).await?;
            let queries: Vec<UnitVector> = stored.into_iter().map(|it| it.unit).collect();
            let ask = |exact| Ask { k: 10, only: None, exact };
            if !self.limits().exact {
                let ask = Ask { k: 10, only: None, exact: false };
                wanted += queries.len();
                for (hits, query) in self.search(at, &queries, &ask).await?.iter().zip(&queries) {
                    let itself = query.dot(query) - 1e-3;
                    found += usize::from(hits.hits.first().is_some_and(|hit| hit.score >= itself));
                }
                continue;
            }
            let right = self.engine.search(at, &queries, &ask(true)).await?;
            let got = self.engine.search(at, &queries, &ask(false)).await?;
            wanted += right.iter().map(|right| right.hits.len()).sum::<usize>();
            found += right.iter().zip(&got).map(|(right, got)| as_good(right, got)).sum::<usize>();
        }
        Ok((wanted > 0).then(|| found as f64 / wanted as f64))
    }
}

impl Checked {
    fn now(recall_at_10: Option<f64>, keys_equal: bool, generation: u64) -> Checked {
        Checked { recall_at_10, keys_equal, at_ms: instant::now_ms(), generation }
    }
}

/// Hits that score at least as well as the last correct one. By score: any of several equal vectors is correct.
fn as_good(right: &Hits, got: &Hits) -> usize {
    let worst = right.hits.last().map_or(-1.0, |hit| hit.score);
    got.hits.iter().filter(|hit| hit.score >= worst).count().min(right.hits.len())
}
