//! The built-in engine: the index crate with snapshots in a folder. Repairs damaged files from the catalog.

mod inspect;
mod mend;
mod rebuild;
mod snapshots;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use reprise_index::snapshot::Loaded;
use reprise_index::{Filter, Index, IndexError, Mode, SnapshotError};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

use super::{
    Ask, Batch, CollectionStatus, EngineError, EngineStatus, Fence, Hit, Hits, Limits, ROWS_PER_READ, Scored,
    VectorIndex,
};
use crate::catalog::{Catalog, StoredVector};
use crate::terms::{Collection, KeySet, SpaceInfo, SpanKey, UnitVector};

pub use inspect::{InspectError, Inspected, Inspection, inspect};
pub use rebuild::{RebuildError, Rebuilt, Step, rebuild};
pub use reprise_index::{Codes, Settings};

use mend::Damage;
use snapshots::{Mark, Snapshots};

/// Interval of the check for finished seals, which make a snapshot due.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The index crate as an engine in this process.
pub struct Builtin {
    index: Arc<Index>,
    catalog: Arc<Catalog>,
    folder: PathBuf,
    /// The newest change in the index.
    applied: AtomicI64,
    fence: Fence,
    /// Whether the loaded snapshot lacked damaged parts.
    lost: AtomicBool,
    snapshots: Lock<Snapshots>,
    /// Held during a change of the index: one batch or repair at a time.
    changing: Mutex<()>,
    /// Held while a snapshot is written or a space is declared, because a half-written snapshot would not list the
    /// space. Batches go on meanwhile: a server that loads the snapshot applies them again.
    saving: Mutex<()>,
    /// Notified after each batch.
    changed: Notify,
    damage: Damage,
}

impl Builtin {
    /// Loads the snapshot in `folder`. Starts empty if none fits `spaces` and the catalog.
    ///
    /// # Errors
    /// [`EngineError::Catalog`] if the catalog can't be read; [`EngineError::Redeclared`] for two spaces of one number.
    pub async fn open(
        folder: PathBuf,
        catalog: Arc<Catalog>,
        spaces: &[SpaceInfo],
        settings: Settings,
    ) -> Result<Builtin, EngineError> {
        let newest = catalog.last_seq().await?;
        let Some(snapshot) = load(folder.clone(), spaces.to_vec(), settings, newest).await else {
            return Builtin::empty(folder, catalog, spaces, settings);
        };
        let builtin = Builtin::new(snapshot.index, folder, catalog, snapshot.seq);
        builtin.lost.store(!snapshot.is_whole, Ordering::Release);
        builtin.snapshots().are_as(builtin.mark());
        Ok(builtin)
    }

    fn empty(
        folder: PathBuf,
        catalog: Arc<Catalog>,
        spaces: &[SpaceInfo],
        settings: Settings,
    ) -> Result<Builtin, EngineError> {
        let index = Index::in_folder(&folder, settings);
        for space in spaces {
            index.declare(space)?;
        }
        Ok(Builtin::new(index, folder, catalog, 0))
    }

    fn new(index: Index, folder: PathBuf, catalog: Arc<Catalog>, applied: i64) -> Builtin {
        let mark = Mark { seq: applied, generation: index.generation() };
        Builtin {
            index: Arc::new(index),
            catalog,
            folder,
            applied: AtomicI64::new(applied),
            fence: Fence::default(),
            lost: AtomicBool::new(false),
            snapshots: Lock::new(Snapshots::new(mark)),
            changing: Mutex::default(),
            saving: Mutex::default(),
            changed: Notify::new(),
            damage: Damage::default(),
        }
    }

    fn snapshots(&self) -> MutexGuard<'_, Snapshots> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self) -> Mark {
        Mark { seq: self.applied.load(Ordering::Acquire), generation: self.index.generation() }
    }

    /// Writes each due snapshot until `closing`.
    async fn save_until(&self, closing: &CancellationToken) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = self.changed.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let is_due = self.snapshots().is_due(self.mark());
            if is_due {
                self.save().await;
            }
        }
    }

    /// Writes a snapshot if the last one is outdated. Failures are only logged: the catalog has everything.
    async fn save(&self) {
        if let Err(error) = self.try_save().await {
            tracing::warn!(%error, "the index snapshot could not be written");
        }
    }

    async fn try_save(&self) -> Result<(), RebuildError> {
        let _one = self.saving.lock().await;
        let now = self.mark();
        if !self.snapshots().begin(now) {
            return Ok(());
        }
        let (index, folder) = (Arc::clone(&self.index), self.folder.clone());
        tokio::task::spawn_blocking(move || index.save(&folder, now.seq.unsigned_abs()))
            .await
            .map_err(failed)??;
        self.snapshots().finish();
        // The snapshot names the index's present parts.
        self.lost.store(false, Ordering::Release);
        Ok(())
    }

    /// The catalog's vectors for keys that can't be read from the index's files; requests their repair.
    async fn stored(&self, at: Collection, keys: &[SpanKey]) -> Result<Vec<StoredVector>, EngineError> {
        self.damage.report(at, keys);
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(ROWS_PER_READ) {
            found.extend(self.catalog.vectors_of(at.space, keys).await?);
        }
        found.retain(|stored| stored.level == at.level);
        Ok(found)
    }
}

#[async_trait]
impl VectorIndex for Builtin {
    fn limits(&self) -> Limits {
        Limits { most_hits: usize::MAX, most_values: usize::MAX, exact: true, shared: false }
    }

    async fn create(&self, space: &SpaceInfo) -> Result<(), EngineError> {
        let _nobody_saves = self.saving.lock().await;
        let _one = self.changing.lock().await;
        if self.index.declare(space)? {
            // The snapshot does not list the space.
            self.snapshots().are_outdated();
        }
        Ok(())
    }

    async fn forget(&self, space: u32) -> Result<(), EngineError> {
        let _nobody_saves = self.saving.lock().await;
        let _one = self.changing.lock().await;
        self.index.forget(space);
        self.snapshots().are_outdated();
        Ok(())
    }

    async fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        let _one = self.changing.lock().await;
        self.fence.check(&batch)?;
        let (index, seq) = (Arc::clone(&self.index), batch.seq);
        if seq.is_none() {
            // The index will differ from the snapshot although its seq stays.
            self.snapshots().are_outdated();
        }
        tokio::task::spawn_blocking(move || fill(&index, &batch)).await.map_err(failed)??;
        if let Some(seq) = seq {
            self.applied.store(seq, Ordering::Release);
            // Batches without a seq complete an earlier state: they are sealed together, here.
            self.index.seal_what_is_due();
            self.changed.notify_one();
        }
        Ok(())
    }

    async fn applied(&self) -> Result<i64, EngineError> {
        Ok(self.applied.load(Ordering::Acquire))
    }

    async fn ready(&self) {
        let index = Arc::clone(&self.index);
        if let Err(panic) = tokio::task::spawn_blocking(move || index.keep_pace()).await {
            tracing::warn!(%panic, "nobody could wait for the index's seals");
        }
    }

    async fn search(
        &self,
        at: Collection,
        queries: &[UnitVector],
        ask: &Ask,
    ) -> Result<Vec<Hits>, EngineError> {
        let filter = Filter { only: ask.only.as_ref().map(|only| Arc::clone(only.keys.bitmap())) };
        let mode = if ask.exact { Mode::Exact } else { Mode::Auto };
        let (index, queries, k) = (Arc::clone(&self.index), queries.to_vec(), ask.k);
        // Cancelled when the caller is gone.
        let abandoned = CancellationToken::new();
        let _awaited = abandoned.clone().drop_guard();
        let search = move || -> Result<Vec<_>, IndexError> {
            let awaited = queries.into_iter().take_while(|_| !abandoned.is_cancelled());
            let found = awaited.map(|query| {
                let found = index.search(at, &query, k, &filter, mode)?;
                Ok((query, found))
            });
            found.collect()
        };
        let found = tokio::task::spawn_blocking(search).await.map_err(failed)??;
        let mut all = Vec::with_capacity(found.len());
        for (query, found) in found {
            let complete = found.matching <= k as u64;
            let hits = found.hits.iter().map(|hit| Hit { key: hit.key.into(), score: hit.score });
            let mut hits = Hits { hits: hits.collect(), complete, exact: found.exact };
            if !found.unreadable.is_empty() {
                let keys: Vec<SpanKey> = found.unreadable.into_iter().map(SpanKey::new).collect();
                let stored = self.stored(at, &keys).await?;
                hits.hits.extend(stored.iter().map(|it| Hit { key: it.span, score: query.dot(&it.unit) }));
                Hit::keep_best(&mut hits.hits, k);
                hits.exact |= ask.exact;
            }
            all.push(hits);
        }
        Ok(all)
    }

    async fn scores(
        &self,
        at: Collection,
        keys: &KeySet,
        queries: &[UnitVector],
    ) -> Result<Vec<Scored>, EngineError> {
        let (index, keys, queries) = (Arc::clone(&self.index), keys.clone(), queries.to_vec());
        let score = move || {
            let scores = index.scores(at, keys.bitmap(), &queries);
            (scores, queries)
        };
        let (scores, queries) = tokio::task::spawn_blocking(score).await.map_err(failed)?;
        let scores = scores?;
        let scored = scores.scored.into_iter();
        let mut all: Vec<Scored> =
            scored.map(|it| Scored { key: it.key.into(), cosines: it.cosines }).collect();
        if !scores.unreadable.is_empty() {
            let keys: Vec<SpanKey> = scores.unreadable.into_iter().map(SpanKey::new).collect();
            for stored in self.stored(at, &keys).await? {
                let cosines = queries.iter().map(|query| query.dot(&stored.unit)).collect();
                all.push(Scored { key: stored.span, cosines });
            }
            all.sort_by_key(|it| it.key);
        }
        Ok(all)
    }

    async fn keys(&self, at: Collection, range: Range<SpanKey>) -> Result<KeySet, EngineError> {
        Ok(KeySet::from(self.index.keys(at)).within(range))
    }

    async fn status(&self) -> Result<EngineStatus, EngineError> {
        let lost = self.lost.load(Ordering::Acquire);
        let held = |at| CollectionStatus {
            at,
            live: self.index.live(at),
            bytes: self.index.bytes(at),
            graph: self.index.has_graph(at),
            lost,
        };
        let collections = self.index.levels().into_iter().map(held).collect();
        Ok(EngineStatus { generation: self.index.generation(), collections })
    }

    async fn maintain(&self, closing: CancellationToken) {
        tokio::join!(self.verify_until(&closing), self.mend_until(&closing), self.save_until(&closing));
    }

    async fn close(&self) {
        self.save().await;
    }
}

/// Applies a batch to the index; does not seal.
fn fill(index: &Index, batch: &Batch) -> Result<(), IndexError> {
    batch.put.iter().try_for_each(|it| index.fill(it.at, it.key.number(), &it.unit))?;
    batch.remove.iter().for_each(|it| index.remove(it.at, it.key.number()));
    Ok(())
}

/// A loaded snapshot.
struct Snapshot {
    index: Index,
    /// Its newest change.
    seq: i64,
    /// Whether no part was damaged.
    is_whole: bool,
}

/// Loads the snapshot; `None` if it can't be used.
async fn load(folder: PathBuf, spaces: Vec<SpaceInfo>, settings: Settings, newest: i64) -> Option<Snapshot> {
    if !folder.exists() {
        return None;
    }
    let refused = |why: &dyn std::fmt::Display| {
        tracing::warn!(%why, "the index snapshot is refused; rebuilding from the catalog");
        None
    };
    match tokio::task::spawn_blocking(move || Index::load(&folder, &spaces, settings)).await {
        Ok(Ok(Loaded { index, seq, left_out })) => match i64::try_from(seq) {
            Ok(seq) if seq <= newest => {
                for error in &left_out {
                    tracing::warn!(%error, "a part of the index is read from the catalog instead");
                }
                tracing::info!(seq, "the index snapshot is loaded");
                Some(Snapshot { index, seq, is_whole: left_out.is_empty() })
            }
            _ => {
                refused(&format!("it is at change {seq}, the catalog at {newest}: it is of another catalog"))
            }
        },
        Ok(Err(error)) => refused(&error),
        Err(panic) => refused(&panic),
    }
}

fn failed(panic: tokio::task::JoinError) -> EngineError {
    EngineError::Failed(Box::new(panic))
}

impl From<IndexError> for EngineError {
    fn from(error: IndexError) -> EngineError {
        match error {
            IndexError::Dimension { got, expected } => EngineError::Width { got, expected },
            IndexError::Redeclared { key, known, declared } => {
                EngineError::Redeclared { key, known, declared }
            }
            IndexError::Full => EngineError::Failed(Box::new(error)),
        }
    }
}

impl From<SnapshotError> for RebuildError {
    fn from(error: SnapshotError) -> RebuildError {
        RebuildError::Unwritten(error)
    }
}
