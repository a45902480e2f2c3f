//! The seam between the service and vector engines: an engine stores unit vectors by key and finds the nearest.
//!
//! An engine answers keys and cosines, never vectors. It is a cache of the catalog: every vector can be read from there
//! again, and engines need not be durable.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::catalog::CatalogError;
use crate::terms::{Collection, KeySet, SpaceInfo, SpanKey, UnitVector, VideoNumber};

/// A vector engine.
#[async_trait]
pub trait VectorIndex: Send + Sync {
    /// What the engine can do; the same for as long as it is open.
    fn limits(&self) -> Limits;

    /// Makes room for a space's vectors. A second call changes nothing.
    ///
    /// # Errors
    /// [`EngineError::Redeclared`] if the number stands for another space.
    async fn create(&self, space: &SpaceInfo) -> Result<(), EngineError>;

    /// Drops a space with all its vectors. A second call changes nothing.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be reached.
    async fn forget(&self, space: u32) -> Result<(), EngineError>;

    /// Puts, then removes, then remembers `batch.seq`. A key that is put again is replaced and never absent meanwhile. The
    /// same batch again changes nothing, so a caller that died in between may start over.
    ///
    /// # Errors
    /// [`EngineError::StaleWriter`] if a writer with a higher fencing number has written: nothing is applied. Other
    /// [`EngineError`]: some of the batch may be applied, and its seq is not remembered.
    async fn apply(&self, batch: Batch) -> Result<(), EngineError>;

    /// The newest change of the catalog that a search beginning now sees; 0 before any.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be reached.
    async fn applied(&self) -> Result<i64, EngineError>;

    /// Back-pressure: returns when more batches are welcome. Only the follower waits for it.
    async fn ready(&self);

    /// The nearest live keys, one [`Hits`] for each query. Nothing where the collection holds nothing.
    ///
    /// # Errors
    /// [`EngineError::Width`] for a query of another length.
    async fn search(
        &self,
        at: Collection,
        queries: &[UnitVector],
        ask: &Ask,
    ) -> Result<Vec<Hits>, EngineError>;

    /// The cosines of exactly these keys with each query, in order of key. Dead keys are left out.
    ///
    /// # Errors
    /// [`EngineError::Width`] for a query of another length.
    async fn scores(
        &self,
        at: Collection,
        keys: &KeySet,
        queries: &[UnitVector],
    ) -> Result<Vec<Scored>, EngineError>;

    /// The live keys in a range, to compare with the catalog.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be reached.
    async fn keys(&self, at: Collection, range: Range<SpanKey>) -> Result<KeySet, EngineError>;

    /// What the engine holds.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be reached.
    async fn status(&self) -> Result<EngineStatus, EngineError>;

    /// Does the engine's own upkeep until `closing`: seals, snapshots, mending. Nothing for a remote engine.
    async fn maintain(&self, closing: CancellationToken) {
        closing.cancelled().await;
    }

    /// Stores what a later start should find. The engine is not used afterwards.
    async fn close(&self) {}
}

/// How a search is done.
#[derive(Debug, Clone)]
pub struct Ask {
    /// At most this many hits for each query, and no more than [`Limits::most_hits`].
    pub k: usize,
    /// The spans that may be answered, by filter and visibility; `None`: all.
    pub only: Option<Allowed>,
    /// Compare every allowed vector. Needs [`Limits::exact`].
    pub exact: bool,
}

/// Spans that may be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowed {
    /// Their keys. Keys that the engine doesn't hold do no harm.
    pub keys: KeySet,
    /// The videos in which the keys lie, or more, for engines that push a filter down; `None` if nobody looked.
    pub videos: Option<Arc<[VideoNumber]>>,
}

impl Allowed {
    /// These keys alone.
    pub fn keys(keys: KeySet) -> Allowed {
        Allowed { keys, videos: None }
    }
}

/// A stored vector near a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its span.
    pub key: SpanKey,
    /// The cosine, -1 to 1.
    pub score: f32,
}

impl Hit {
    /// Sorts hits as every ranking is sorted: by score, descending; equal scores by key, ascending.
    pub fn sort(hits: &mut [Hit]) {
        hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.key.cmp(&other.key)));
    }
}

/// The hits of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits {
    /// By score, descending; equal scores by key, ascending.
    pub hits: Vec<Hit>,
    /// Whether no allowed live key is missing.
    pub complete: bool,
    /// Whether every allowed vector was compared.
    pub exact: bool,
}

/// The cosines of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// The span.
    pub key: SpanKey,
    /// Its cosine with each query, in the order of the queries.
    pub cosines: Vec<f32>,
}

/// What an engine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest [`Ask::k`].
    pub most_hits: usize,
    /// The longest vectors.
    pub most_values: usize,
    /// Whether it can compare every allowed vector.
    pub exact: bool,
    /// Whether several servers use the same one.
    pub shared: bool,
}

/// A vector to store.
#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    /// Where.
    pub at: Collection,
    /// Its span.
    pub key: SpanKey,
    /// The span's video.
    pub video: VideoNumber,
    /// The vector.
    pub unit: UnitVector,
}

/// A key to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// Where.
    pub at: Collection,
    /// The span.
    pub key: SpanKey,
}

/// Changes that are applied together. No key is both put and removed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// To store or replace.
    pub put: Vec<Put>,
    /// To remove; a key that isn't there does no harm.
    pub remove: Vec<Removal>,
    /// The newest change of the catalog that the engine has seen with this batch; `None`: the batch completes an earlier
    /// state.
    pub seq: Option<i64>,
    /// The fencing number of the caller's writer lease: a later lease has a higher number. An engine refuses the batches of
    /// an older lease than it has seen. 0 where one process alone writes.
    pub fence: u64,
}

/// The highest fencing number that an engine of this process has seen.
#[derive(Debug, Default)]
pub(super) struct Fence(AtomicU64);

impl Fence {
    /// Lets a batch through, or refuses it as a stale writer's.
    pub(super) fn check(&self, batch: &Batch) -> Result<(), EngineError> {
        let newest = self.0.fetch_max(batch.fence, Ordering::AcqRel);
        if batch.fence < newest {
            return Err(EngineError::StaleWriter { fence: batch.fence, newest });
        }
        Ok(())
    }
}

/// What an engine holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineStatus {
    /// Rises when the engine rebuilt what it searches; 0 where an engine does not count.
    pub generation: u64,
    /// Every collection with a live vector, in order.
    pub collections: Vec<CollectionStatus>,
}

impl EngineStatus {
    /// The live vectors of a collection.
    pub fn live(&self, at: Collection) -> u64 {
        self.collections.iter().find(|held| held.at == at).map_or(0, |held| held.live)
    }

    /// The live vectors of all levels of a space.
    pub fn live_in(&self, space: u32) -> u64 {
        self.collections.iter().filter(|held| held.at.space == space).map(|held| held.live).sum()
    }
}

/// What an engine holds of one collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectionStatus {
    /// Which.
    pub at: Collection,
    /// Live vectors.
    pub live: u64,
    /// Bytes of memory, mapped files included.
    pub bytes: u64,
    /// Whether searches walk a graph; otherwise every answer is exact.
    pub graph: bool,
    /// Whether a part was lost, e.g. with a damaged file: its keys must be compared with the catalog.
    pub lost: bool,
}

/// Why an engine did not do it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The vector belongs to another space: the caller's fault.
    #[error("the vector has {got} values, the space has {expected}")]
    Width {
        /// Values of the vector.
        got: usize,
        /// Values of a vector of the space.
        expected: usize,
    },
    /// The vectors are longer than the engine stores: the operator must choose another engine for this model.
    #[error("space {space} has vectors of {values} values, this engine stores at most {most}")]
    TooWide {
        /// The space's public id.
        space: String,
        /// Values of its vectors.
        values: usize,
        /// [`Limits::most_values`].
        most: usize,
    },
    /// The number of the space is already used for another one: the caller's fault.
    #[error("space {key} is already declared as {known} and can't become {declared}")]
    Redeclared {
        /// The space's number.
        key: u32,
        /// What it is.
        known: String,
        /// What it was to become.
        declared: String,
    },
    /// Another server holds the writer's lease since: nobody's fault. The caller must stop writing and ask for the lease.
    #[error("lease {fence} to write to the vector engine has ended, lease {newest} writes now")]
    StaleWriter {
        /// The fencing number of the refused batch.
        fence: u64,
        /// The highest fencing number that the engine has seen.
        newest: u64,
    },
    /// The catalog, from which the engine reads what it lost, failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The engine itself failed.
    #[error("the vector engine failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}
