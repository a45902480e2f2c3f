//! The interface of vector engines: an engine stores unit vectors by key and finds the nearest ones.
//!
//! An engine returns keys and cosines, never vectors. It is a cache of the catalog, which has every vector, so engines
//! need not be durable.

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
    /// The engine's limits and abilities; constant while it is open.
    fn limits(&self) -> Limits;

    /// Declares a space. A second call changes nothing.
    ///
    /// # Errors
    /// [`EngineError::Redeclared`] if the number belongs to another space.
    async fn create(&self, space: &SpaceInfo) -> Result<(), EngineError>;

    /// Drops a space with all its vectors. A second call changes nothing.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be reached.
    async fn forget(&self, space: u32) -> Result<(), EngineError>;

    /// Stores `batch.put`, removes `batch.remove`, then records `batch.seq`. A replaced key is never absent meanwhile.
    /// Applying a batch twice changes nothing, so a caller may start over after a crash.
    ///
    /// # Errors
    /// [`EngineError::StaleWriter`] if a writer with a higher fencing number has written: nothing is applied. After
    /// another [`EngineError`], a part of the batch may be applied, and its seq is not recorded.
    async fn apply(&self, batch: Batch) -> Result<(), EngineError>;

    /// The newest change of the catalog that a new search includes; 0 before any.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be reached.
    async fn applied(&self) -> Result<i64, EngineError>;

    /// Back-pressure: returns when the engine can take more batches. Only the follower calls it.
    async fn ready(&self);

    /// The nearest live keys: one [`Hits`] per query, without hits for an empty collection.
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

    /// The collections of the engine and their sizes. Cheap: each search asks for it.
    ///
    /// # Errors
    /// [`EngineError`] if the engine can't be reached.
    async fn status(&self) -> Result<EngineStatus, EngineError>;

    /// Does the background work that is due, then more as it comes, until `closing`: seals, snapshots, repairs, graphs. If
    /// `closing` is cancelled already, it only does what is due.
    async fn maintain(&self, closing: CancellationToken) {
        closing.cancelled().await;
    }

    /// Stores the state for a later start. The engine is not used afterwards.
    async fn close(&self) {}
}

/// The parameters of a search.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Most hits per query, at most [`Limits::most_hits`].
    pub k: usize,
    /// The spans that may be returned, by filter and visibility; `None`: all.
    pub only: Option<Allowed>,
    /// Whether to compare every allowed vector. Needs [`Limits::exact`].
    pub exact: bool,
}

/// Spans that a search may return.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowed {
    /// Their keys. Keys unknown to the engine are ignored.
    pub keys: KeySet,
    /// The videos of these keys, or more, for engines that filter by video; `None` if not computed.
    pub videos: Option<Arc<[VideoNumber]>>,
}

impl Allowed {
    /// Only these keys.
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
    /// Sorts hits by score, descending; equal scores by key, ascending.
    pub fn sort(hits: &mut [Hit]) {
        hits.sort_by(Hit::by_rank);
    }

    /// Keeps the best `k` hits, sorted.
    pub fn keep_best(hits: &mut Vec<Hit>, k: usize) {
        if k < hits.len() {
            // Of ten thousand hits all but ten need no order.
            hits.select_nth_unstable_by(k, Hit::by_rank);
            hits.truncate(k);
        }
        Hit::sort(hits);
    }

    fn by_rank(one: &Hit, other: &Hit) -> std::cmp::Ordering {
        other.score.total_cmp(&one.score).then(one.key.cmp(&other.key))
    }
}

/// The hits of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits {
    /// By score, descending; equal scores by key, ascending.
    pub hits: Vec<Hit>,
    /// Whether the hits are all allowed live keys. Fewer hits than asked for, and not complete: the engine stopped
    /// early, at its own limits.
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

/// The limits and abilities of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest [`Ask::k`].
    pub most_hits: usize,
    /// The longest vectors.
    pub most_values: usize,
    /// Whether it can compare every allowed vector (exact search).
    pub exact: bool,
    /// Whether several servers share its data.
    pub shared: bool,
}

/// A vector to store.
#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    /// Its collection.
    pub at: Collection,
    /// Its span.
    pub key: SpanKey,
    /// The span's video.
    pub video: VideoNumber,
    /// The vector.
    pub unit: UnitVector,
}

/// A key to remove from a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// Its collection.
    pub at: Collection,
    /// The span.
    pub key: SpanKey,
}

/// Changes to apply together. No key is both put and removed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The vectors to store or replace.
    pub put: Vec<Put>,
    /// The keys to remove; unknown keys are ignored.
    pub remove: Vec<Removal>,
    /// The newest change of the catalog in the engine after this batch; `None`: the batch completes an earlier state.
    pub seq: Option<i64>,
    /// The fencing number of the caller's writer lease; later leases have higher numbers. An engine refuses batches of
    /// an older lease. 0 if only one process writes.
    pub fence: u64,
}

/// The highest fencing number of all applied batches.
#[derive(Debug, Default)]
pub(super) struct Fence(AtomicU64);

impl Fence {
    /// Refuses a batch of a stale writer.
    pub(super) fn check(&self, batch: &Batch) -> Result<(), EngineError> {
        let newest = self.0.fetch_max(batch.fence, Ordering::AcqRel);
        if batch.fence < newest {
            return Err(EngineError::StaleWriter { fence: batch.fence, newest });
        }
        Ok(())
    }
}

/// The collections of an engine and their sizes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineStatus {
    /// Rises when the engine has rebuilt a graph; 0 for engines that do not count.
    pub generation: u64,
    /// Every collection with a live vector, in order.
    pub collections: Vec<CollectionStatus>,
}

impl EngineStatus {
    /// Number of live vectors of a collection.
    pub fn live(&self, at: Collection) -> u64 {
        self.collections.iter().find(|held| held.at == at).map_or(0, |held| held.live)
    }

    /// Number of live vectors of a space, at all levels.
    pub fn live_in(&self, space: u32) -> u64 {
        self.collections.iter().filter(|held| held.at.space == space).map(|held| held.live).sum()
    }
}

/// The size of one collection of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectionStatus {
    /// The collection.
    pub at: Collection,
    /// Number of live vectors.
    pub live: u64,
    /// Bytes of memory, including mapped files.
    pub bytes: u64,
    /// Whether searches walk a graph; otherwise every answer is exact.
    pub graph: bool,
    /// Whether a part was lost, e.g. with a damaged file. Its keys must then be compared with the catalog.
    pub lost: bool,
}

/// Why an engine refused a call or failed.
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
    /// The vectors are longer than the engine supports: the operator must choose another engine for this model.
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
        /// The existing declaration.
        known: String,
        /// The refused declaration.
        declared: String,
    },
    /// Another server has taken the writer's lease. The caller must stop writing and request the lease again.
    #[error("lease {fence} to write to the vector engine has ended, lease {newest} writes now")]
    StaleWriter {
        /// The fencing number of the refused batch.
        fence: u64,
        /// The highest fencing number that the engine has seen.
        newest: u64,
    },
    /// The catalog failed when the engine read lost vectors from it.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The engine does not answer. Temporary: the caller should try again later.
    #[error("the vector engine does not answer")]
    Away(#[source] Box<dyn Error + Send + Sync>),
    /// The engine can't be used as it is: the operator must change it or its URL. The text says how.
    #[error("{0}")]
    Unusable(String),
    /// The engine holds the vectors of another library: the operator named the wrong one.
    #[error(
        "the vector engine holds the vectors of library {found}, and this is library {library}: name another database \
         with --index-url, or delete what it holds"
    )]
    Foreign {
        /// The library whose vectors it holds.
        found: String,
        /// The library of the catalog.
        library: String,
    },
    /// The engine itself failed.
    #[error("the vector engine failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

impl EngineError {
    /// The error for a number that belongs to the space `known`.
    pub(super) fn redeclared(known: &SpaceInfo, declared: &SpaceInfo) -> EngineError {
        let name = |space: &SpaceInfo| format!("{} of {} values", space.id, space.dim);
        EngineError::Redeclared { key: known.key, known: name(known), declared: name(declared) }
    }

    /// Refuses a vector of another length than those of its space. `None`: the space is not declared.
    pub(super) fn check_width(expected: Option<usize>, unit: &UnitVector) -> Result<(), EngineError> {
        let got = unit.values().len();
        match expected {
            Some(expected) if expected != got => Err(EngineError::Width { got, expected }),
            _ => Ok(()),
        }
    }
}
