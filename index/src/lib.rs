//! reprise-index: nearest spans, and how good a ranking is.
//!
//! An approximate index per (space, level) over unit vectors, with removals, filters and snapshots; an
//! exact search beside it. Knows no async, no SQL and no candle.

mod collection;
pub mod eval;
mod exact;
mod graph;
mod plan;
mod rows;
pub mod snapshot;
pub mod vector;

pub use snapshot::SnapshotError;
pub use vector::UnitVector;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use collection::Collection;

/// A span's dense number.
pub type SpanKey = u32;

/// How much of a video a span covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// All of it.
    Video,
    /// One clip of the segmentation, or one given by the user.
    Clip,
    /// A window inside a clip.
    Moment,
    /// About half a minute of what is said.
    Passage,
}

/// Which vectors are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SpaceLevel {
    /// The space's dense number in the catalog.
    pub space: u32,
    /// The level.
    pub level: Level,
}

/// What a space must be for its vectors to be of use: a dense number alone means nothing in another catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceExpectation {
    /// The space's dense number in the catalog.
    pub key: u32,
    /// Its public id: the same weights, preprocessing and pooling have the same id everywhere.
    pub id: String,
    /// Values of a vector.
    pub dim: usize,
}

/// Which keys may be answered.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only these; `None`: all live ones. Keys that are not there do no harm.
    pub only: Option<Arc<RoaringBitmap>>,
}

/// How a search is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The graph where it pays.
    Auto,
    /// Brute force.
    Exact,
}

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Span.
    pub key: SpanKey,
    /// Cosine, -1 to 1; the same whether the graph or brute force found it.
    pub score: f32,
}

/// The answers of one search.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits {
    /// By score, descending; ties by key, ascending.
    pub hits: Vec<Hit>,
    /// Live keys that the filter lets through.
    pub matching: u64,
    /// Whether every matching vector was looked at.
    pub exact: bool,
    /// Keys whose vectors could not be read. Always empty as long as all vectors are held in memory.
    pub unreadable: Vec<SpanKey>,
}

impl Hits {
    fn none() -> Hits {
        Hits { hits: Vec::new(), matching: 0, exact: true, unreadable: Vec::new() }
    }
}

/// Why the index could not do it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The vector's length is not the space's: it was made by another encoder. The caller's fault.
    #[error("the vector has {got} values, the space has {expected}")]
    Dimension {
        /// Values of the vector.
        got: usize,
        /// Values of a vector of the space.
        expected: usize,
    },
    /// A space's number is already used for another space. The caller's fault: numbers must not be reused.
    #[error("space {key} is already declared as {known} and can't become {declared}")]
    Redeclared {
        /// The space's dense number.
        key: u32,
        /// What it is.
        known: String,
        /// What it was to become.
        declared: String,
    },
    /// 2^32 vectors were inserted into one (space, level) since its last rebuild. Nobody's fault: `compact`, or
    /// split the collection over several servers.
    #[error("this level of the space can't number any more vectors; compact it")]
    Full,
}

/// Where brute force ends and the graph begins. The defaults were measured at 512 values a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Live vectors of a (space, level) from which a graph is kept.
    pub graph_from: u64,
    /// Rows that brute force looks at in the time in which a walk through the graph gathers one candidate.
    pub rows_per_step: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { graph_from: 8_192, rows_per_step: 160 }
    }
}

/// All vectors that are searched: a cache of the catalog, shared by all threads.
///
/// Searches run beside inserts, removals and rebuilds and wait for none of them. A rebuild starts by itself, in a
/// thread of its own, when a level has become large enough for a graph or when half of its rows are dead.
pub struct Index {
    spaces: RwLock<HashMap<u32, Declared>>,
    collections: RwLock<BTreeMap<SpaceLevel, Arc<Collection>>>,
    generation: Arc<AtomicU64>,
    settings: Settings,
    saving: Mutex<()>,
}

/// What is known of a space.
#[derive(Debug, Clone)]
struct Declared {
    /// `None`: known only by its first vector.
    id: Option<String>,
    dim: usize,
}

impl Default for Index {
    fn default() -> Index {
        Index::new()
    }
}

impl Index {
    /// Empty, of generation 1.
    pub fn new() -> Index {
        Index::with_settings(Settings::default())
    }

    /// Empty, of generation 1, with other settings than the usual.
    pub fn with_settings(settings: Settings) -> Index {
        Index::at_generation(1, settings)
    }

    fn at_generation(generation: u64, settings: Settings) -> Index {
        Index {
            spaces: RwLock::default(),
            collections: RwLock::default(),
            generation: Arc::new(AtomicU64::new(generation)),
            settings,
            saving: Mutex::new(()),
        }
    }

    /// Says which space a number stands for; needed before [`Index::save`]. Saying it again changes nothing.
    pub fn declare(&self, space: &SpaceExpectation) -> Result<(), IndexError> {
        let mut spaces = self.spaces.write();
        let known = spaces
            .entry(space.key)
            .or_insert_with(|| Declared { id: Some(space.id.clone()), dim: space.dim });
        if known.dim != space.dim || known.id.as_ref().is_some_and(|id| *id != space.id) {
            return Err(IndexError::Redeclared {
                key: space.key,
                known: format!("{} of {} values", known.id.as_deref().unwrap_or("a space"), known.dim),
                declared: format!("{} of {} values", space.id, space.dim),
            });
        }
        known.id = Some(space.id.clone());
        Ok(())
    }

    /// Drops a space with all its vectors.
    pub fn forget(&self, space: u32) {
        self.collections.write().retain(|at, _| at.space != space);
        self.spaces.write().remove(&space);
    }

    /// Adds a vector; a key that is there is replaced, and is never absent meanwhile. The first vector of a space
    /// that was not declared fixes its dimension.
    pub fn insert(&self, at: SpaceLevel, key: SpanKey, vector: &UnitVector) -> Result<(), IndexError> {
        let got = vector.values().len();
        let expected = self.dimension_or(at.space, got);
        if got != expected {
            return Err(IndexError::Dimension { got, expected });
        }
        self.collection_or_new(at, expected).insert(key, vector.values())
    }

    /// Removes a vector; nothing happens if it isn't there. No search that starts later returns it.
    pub fn remove(&self, at: SpaceLevel, key: SpanKey) {
        if let Some(collection) = self.collection(at) {
            collection.remove(key);
        }
    }

    /// The `k` nearest live vectors that `filter` lets through; fewer only if there are fewer. Nothing where the
    /// space or the level holds nothing.
    pub fn search(
        &self,
        at: SpaceLevel,
        query: &UnitVector,
        k: usize,
        filter: &Filter,
        mode: Mode,
    ) -> Result<Hits, IndexError> {
        let got = query.values().len();
        if let Some(expected) = self.spaces.read().get(&at.space).map(|space| space.dim)
            && got != expected
        {
            return Err(IndexError::Dimension { got, expected });
        }
        Ok(self.collection(at).map_or_else(Hits::none, |found| found.search(query.values(), k, filter, mode)))
    }

    /// Live vectors.
    pub fn live(&self, at: SpaceLevel) -> u64 {
        self.collection(at).map_or(0, |collection| collection.keys().len())
    }

    /// Live keys.
    pub fn keys(&self, at: SpaceLevel) -> RoaringBitmap {
        self.collection(at).map(|collection| collection.keys().as_ref().clone()).unwrap_or_default()
    }

    /// The live vector of a key.
    pub fn vector(&self, at: SpaceLevel, key: SpanKey) -> Option<UnitVector> {
        UnitVector::from_unit(self.collection(at)?.vector(key)?)
    }

    /// What is held: every (space, level) with at least one live vector, in order.
    pub fn levels(&self) -> Vec<SpaceLevel> {
        self.all().into_iter().filter(|(_, held)| !held.keys().is_empty()).map(|(at, _)| at).collect()
    }

    /// Rises whenever a rebuild replaced what is searched or a snapshot was loaded: a page that follows on one of
    /// another generation may miss or repeat a hit.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether `at` is searched through a graph; otherwise by brute force.
    pub fn has_graph(&self, at: SpaceLevel) -> bool {
        self.collection(at).is_some_and(|collection| collection.has_graph())
    }

    /// Rewrites `at` without its removed vectors, with a new graph if it is large enough, and returns when that is
    /// in place. Searches and inserts go on meanwhile.
    pub fn compact(&self, at: SpaceLevel) {
        if let Some(collection) = self.collection(at) {
            collection.compact();
        }
    }

    /// Returns when no rebuild is running: for benchmarks and tests.
    pub fn settle(&self) {
        for (_, collection) in self.all() {
            collection.settle();
        }
    }

    /// Recall at 10 of the graph of `at` against brute force, 0 to 1, over about `sample` stored vectors as queries;
    /// `None` where there is no graph. Costs `sample` scans.
    pub fn check(&self, at: SpaceLevel, sample: usize) -> Option<f64> {
        self.collection(at)?.view().recall(sample)
    }

    fn all(&self) -> Vec<(SpaceLevel, Arc<Collection>)> {
        self.collections.read().iter().map(|(&at, collection)| (at, Arc::clone(collection))).collect()
    }

    fn collection(&self, at: SpaceLevel) -> Option<Arc<Collection>> {
        self.collections.read().get(&at).cloned()
    }

    fn dimension_or(&self, space: u32, dim: usize) -> usize {
        if let Some(declared) = self.spaces.read().get(&space) {
            return declared.dim;
        }
        self.spaces.write().entry(space).or_insert(Declared { id: None, dim }).dim
    }

    fn collection_or_new(&self, at: SpaceLevel, dimension: usize) -> Arc<Collection> {
        if let Some(collection) = self.collection(at) {
            return collection;
        }
        let mut collections = self.collections.write();
        let new = || Arc::new(Collection::new(dimension, self.settings, Arc::clone(&self.generation)));
        Arc::clone(collections.entry(at).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests;
