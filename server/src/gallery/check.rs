//! Whether the index answers as it should: its keys compared with the catalog's, its graphs with brute force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reprise_index::SpaceLevel;
use tokio_util::sync::CancellationToken;

use super::snapshots::Mark;
use super::{Difference, Gallery, panicked};
use crate::catalog::{CatalogError, instant};

/// Stored vectors that a running server searches for to measure a graph: each costs a scan.
const SAMPLE: usize = 200;

/// How a running server checks its index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckSettings {
    /// Time from one look to the next, and to the first. Nothing is measured where nothing changed.
    pub every: Duration,
    /// Recall at 10, 0 to 1, under which there is a warning.
    pub recall_target: f64,
}

/// What the last check found of one (space, level).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checked {
    /// Recall at 10 of its graphs against brute force, 0 to 1; `None` where there is no graph: all searches are exact.
    pub recall_at_10: Option<f64>,
    /// Whether the index held the same keys as the catalog.
    pub keys_equal: bool,
    /// When, in Unix milliseconds.
    pub at_ms: i64,
    /// The index's generation when recall was measured.
    generation: u64,
}

#[derive(Default)]
pub(super) struct Checks {
    levels: BTreeMap<SpaceLevel, Checked>,
    /// The state that was checked; `None`: it is to be checked again.
    of: Option<Mark>,
}

impl Gallery {
    /// What the last check found; `None` before the first.
    pub fn checked(&self, at: SpaceLevel) -> Option<Checked> {
        self.checks.read().unwrap_or_else(PoisonError::into_inner).levels.get(&at).copied()
    }

    /// Checks now and then until `closing`.
    pub async fn check_until(self: Arc<Self>, settings: CheckSettings, closing: CancellationToken) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = tokio::time::sleep(settings.every) => {}
            }
            // A measurement that runs is not waited for: it ends with the process.
            tokio::select! {
                () = closing.cancelled() => return,
                done = self.check(settings.recall_target) => if let Err(error) = done {
                    tracing::warn!(%error, "the index can't be compared with the catalog");
                },
            }
        }
    }

    /// Compares keys and makes them equal if they are not; measures the graphs of a generation that was not measured.
    async fn check(&self, recall_target: f64) -> Result<(), CatalogError> {
        let now = self.mark();
        if self.checks.read().unwrap_or_else(PoisonError::into_inner).of == Some(now) {
            return Ok(());
        }
        let Some(differing) = self.compare_and_complete().await? else { return Ok(()) };
        let mut checked = BTreeMap::new();
        for at in self.index.levels().into_iter().chain(differing.iter().copied()) {
            let (generation, recall_at_10) = self.recall(at, recall_target).await?;
            let keys_equal = !differing.contains(&at);
            checked.insert(at, Checked { recall_at_10, keys_equal, at_ms: instant::now_ms(), generation });
        }
        let mut checks = self.checks.write().unwrap_or_else(PoisonError::into_inner);
        (checks.levels, checks.of) = (checked, differing.is_empty().then_some(now));
        Ok(())
    }

    /// The levels whose keys differed; `None` if somebody is filling a space, which is different meanwhile.
    async fn compare_and_complete(&self) -> Result<Option<BTreeSet<SpaceLevel>>, CatalogError> {
        let Ok(_nobody_fills) = self.filling.try_lock() else { return Ok(None) };
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

    /// Recall at 10, and the generation in which it was measured.
    async fn recall(&self, at: SpaceLevel, target: f64) -> Result<(u64, Option<f64>), CatalogError> {
        let generation = self.index.generation();
        let known = self.checked(at).filter(|known| known.generation == generation);
        if let Some(known) = known.filter(|known| known.recall_at_10.is_some()) {
            return Ok((generation, known.recall_at_10));
        }
        let index = Arc::clone(&self.index);
        let recall = tokio::task::spawn_blocking(move || index.check(at, SAMPLE)).await.map_err(panicked)?;
        if let Some(recall) = recall.filter(|recall| *recall < target) {
            tracing::warn!(
                space = at.space,
                level = ?at.level,
                recall,
                target,
                "the index finds less than it should; `reprise index rebuild` links it anew, larger codes are more exact"
            );
        }
        Ok((generation, recall))
    }
}
