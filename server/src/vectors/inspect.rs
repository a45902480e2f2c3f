//! Compares a shared engine with the catalog and with exact search. Changes nothing.

use std::collections::BTreeMap;

use super::builtin::{Inspected, Inspection};
use super::{Difference, EngineError, Vectors};
use crate::terms::Collection;

impl Vectors {
    /// Compares each collection with the catalog. Recall uses about `sample` stored vectors as queries. Servers may be
    /// running.
    ///
    /// # Errors
    /// [`EngineError`] if the engine or the catalog can't be read.
    pub async fn inspect(&self, sample: usize) -> Result<Inspection, EngineError> {
        let seq = self.engine.applied().await?;
        let status = self.engine.status().await?;
        let mut differing: BTreeMap<Collection, Difference> = BTreeMap::new();
        for space in self.spaces() {
            differing.extend(self.differences(space.key).await?.into_iter().map(|it| (it.at, it)));
        }
        let mut collections = Vec::new();
        for held in &status.collections {
            let difference = differing.remove(&held.at);
            let (missing, extra) = difference.map(|it| (it.missing, it.extra)).unwrap_or_default();
            let recall_at_10 = if held.graph { self.recall(held.at, sample).await? } else { None };
            collections.push(Inspected {
                at: held.at,
                vectors: held.live,
                bytes: held.bytes,
                graph: held.graph,
                recall_at_10,
                missing,
                extra,
                damaged: 0,
            });
        }
        collections.extend(differing.into_values().map(Inspected::absent));
        let newest = self.catalog.last_seq().await?;
        Ok(Inspection { seq, newest, generation: status.generation, collections, left_out: Vec::new() })
    }
}
