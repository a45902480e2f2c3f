//! reprise-index: nearest spans, and how good a ranking is.
//!
//! An approximate index per (space, level) over unit vectors, with removals, filters and snapshots; an
//! exact search beside it. Knows no async, no SQL and no candle.

mod aggregate;
mod build;
mod codes;
mod disk;
mod due;
pub mod eval;
mod exact;
mod home;
mod kernels;
mod memory;
mod part;
mod plan;
mod rows;
mod sealed;
mod sealing;
mod segment_set;
pub mod snapshot;
pub mod vector;
mod walk;

pub use aggregate::{Aggregation, QueryVectors, late_interaction};
pub use codes::Codes;
pub use snapshot::SnapshotError;
pub use vector::{UnitVector, cosine};

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use home::Home;
use segment_set::SegmentSet;

/// A span's number in the catalog. Segments number their rows with 32 bits.
pub type SpanKey = u64;

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

impl Level {
    /// All of them.
    pub const ALL: [Level; 4] = [Level::Video, Level::Clip, Level::Moment, Level::Passage];
}

/// Which vectors are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Collection {
    /// The space's dense number in the catalog.
    pub space: u32,
    /// The level.
    pub level: Level,
}

/// What a space must be for its vectors to be of use: a dense number alone means nothing in another catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceInfo {
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
    pub only: Option<Arc<RoaringTreemap>>,
}

impl Filter {
    fn lets_through(&self, key: SpanKey) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(key))
    }
}

/// How a search is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The graphs where they pay, with as many candidates as good answers take.
    Auto,
    /// The graphs, with `ef` candidates, at least eight more than are wanted: for measuring how recall and speed trade.
    Walk {
        /// Candidates.
        ef: usize,
    },
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
    /// Matching keys whose vectors can't be read, for a part of a segment's file is damaged: the caller scores them from
    /// the catalog and inserts them again.
    pub unreadable: Vec<SpanKey>,
}

/// The cosines of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Span.
    pub key: SpanKey,
    /// The cosine with each query, in the order of the queries.
    pub cosines: Vec<f32>,
}

/// The cosines of chosen keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// In order of key; dead keys are left out.
    pub scored: Vec<Scored>,
    /// Live keys whose vectors can't be read, as in [`Hits::unreadable`].
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
    /// 2^32 vectors were inserted into one (space, level) since they were last sealed. Nobody's fault:
    /// [`Index::seal`], or split the collection over several servers.
    #[error("this level of the space can't number any more vectors; seal it")]
    Full,
}

/// When what has grown is sealed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Live rows under which no segment is made: brute force is as fast.
    pub segment_from: u64,
    /// Rows from which those that grow are sealed.
    pub seal_from: u64,
    /// In which numbers segments hold what a walk compares.
    pub codes: Codes,
    /// Threads of a job in the background, of which there may be three at a time: one that seals what has grown, one that
    /// merges small segments and one that merges large ones.
    pub build_threads: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Half of the cores: searches go on meanwhile, and seldom more than one job at a time.
        Settings {
            segment_from: 1_024,
            seal_from: 4_096,
            codes: Codes::Int8,
            build_threads: cores.div_ceil(2),
        }
    }
}

/// All vectors that are searched: a cache of the catalog, shared by all threads.
///
/// Searches run beside inserts, removals and seals and wait for none of them. Sealing and merging start by themselves, in
/// threads of their own, when enough rows have grown, when segments of like sizes have come together, or when half of a
/// part's rows are dead. Inserts wait where they come faster than they can be sealed.
pub struct Index {
    spaces: RwLock<HashMap<u32, Declared>>,
    collections: RwLock<BTreeMap<Collection, Arc<SegmentSet>>>,
    generation: Arc<AtomicU64>,
    settings: Settings,
    home: Arc<Home>,
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
        Index::at_generation(1, settings, Home::default())
    }

    /// Empty, of generation 1, storing its segments under `folder`, where [`Index::save`] should write its snapshots
    /// too.
    pub fn in_folder(folder: &std::path::Path, settings: Settings) -> Index {
        Index::at_generation(1, settings, Home::at(folder))
    }

    fn at_generation(generation: u64, settings: Settings, home: Home) -> Index {
        Index {
            spaces: RwLock::default(),
            collections: RwLock::default(),
            generation: Arc::new(AtomicU64::new(generation)),
            settings,
            home: Arc::new(home),
            saving: Mutex::new(()),
        }
    }

    /// Says which space a number stands for; needed before [`Index::save`]. Answers whether that is news.
    pub fn declare(&self, space: &SpaceInfo) -> Result<bool, IndexError> {
        let mut spaces = self.spaces.write();
        let known = spaces.entry(space.key).or_insert_with(|| Declared { id: None, dim: space.dim });
        if known.dim != space.dim || known.id.as_ref().is_some_and(|id| *id != space.id) {
            return Err(IndexError::Redeclared {
                key: space.key,
                known: format!("{} of {} values", known.id.as_deref().unwrap_or("a space"), known.dim),
                declared: format!("{} of {} values", space.id, space.dim),
            });
        }
        Ok(known.id.replace(space.id.clone()).is_none())
    }

    /// Drops a space with all its vectors.
    pub fn forget(&self, space: u32) {
        self.collections.write().retain(|at, _| at.space != space);
        self.spaces.write().remove(&space);
    }

    /// Adds a vector; a key that is there is replaced, and is never absent meanwhile. The first vector of a space
    /// that was not declared fixes its dimension.
    pub fn insert(&self, at: Collection, key: SpanKey, vector: &UnitVector) -> Result<(), IndexError> {
        self.fitting(at, vector)?.insert(key, vector.values())
    }

    /// [`Index::insert`] for one of many: brute force finds them until [`Index::seal`] or [`Index::seal_what_is_due`] is
    /// called, so that one segment is made of all, not many on the way.
    pub fn fill(&self, at: Collection, key: SpanKey, vector: &UnitVector) -> Result<(), IndexError> {
        self.fitting(at, vector)?.fill(key, vector.values())
    }

    /// The collection for a vector, which must be of its dimension.
    fn fitting(&self, at: Collection, vector: &UnitVector) -> Result<Arc<SegmentSet>, IndexError> {
        let got = vector.values().len();
        let expected = self.dimension_or(at.space, got);
        if got != expected {
            return Err(IndexError::Dimension { got, expected });
        }
        Ok(self.collection_or_new(at, expected))
    }

    fn check_dimension(&self, space: u32, query: &UnitVector) -> Result<(), IndexError> {
        let got = query.values().len();
        match self.spaces.read().get(&space).map(|space| space.dim) {
            Some(expected) if expected != got => Err(IndexError::Dimension { got, expected }),
            _ => Ok(()),
        }
    }

    /// Removes a vector; nothing happens if it isn't there. No search that starts later returns it.
    pub fn remove(&self, at: Collection, key: SpanKey) {
        if let Some(collection) = self.collection(at) {
            collection.remove(key);
        }
    }

    /// The `k` nearest live vectors that `filter` lets through; fewer only if there are fewer. Nothing where the
    /// space or the level holds nothing.
    pub fn search(
        &self,
        at: Collection,
        query: &UnitVector,
        k: usize,
        filter: &Filter,
        mode: Mode,
    ) -> Result<Hits, IndexError> {
        self.check_dimension(at.space, query)?;
        Ok(self.collection(at).map_or_else(Hits::none, |found| found.search(query.values(), k, filter, mode)))
    }

    /// The cosines of exactly these keys with each query, the same to the last bit as a search answers.
    pub fn scores(
        &self,
        at: Collection,
        keys: &RoaringTreemap,
        queries: &[UnitVector],
    ) -> Result<Scores, IndexError> {
        queries.iter().try_for_each(|query| self.check_dimension(at.space, query))?;
        Ok(self.collection(at).map(|found| found.scores(keys, queries)).unwrap_or_default())
    }

    /// Live vectors.
    pub fn live(&self, at: Collection) -> u64 {
        self.collection(at).map_or(0, |collection| collection.keys().len())
    }

    /// Live keys.
    pub fn keys(&self, at: Collection) -> RoaringTreemap {
        self.collection(at).map(|collection| collection.keys().as_ref().clone()).unwrap_or_default()
    }

    /// Whether a key is live.
    pub fn contains(&self, at: Collection, key: SpanKey) -> bool {
        self.collection(at).is_some_and(|collection| collection.keys().contains(key))
    }

    /// The live vector of a key; `None` also where it can't be read.
    pub fn vector(&self, at: Collection, key: SpanKey) -> Option<UnitVector> {
        UnitVector::from_unit(self.collection(at)?.vector(key)?)
    }

    /// What is held: every (space, level) with at least one live vector, in order.
    pub fn levels(&self) -> Vec<Collection> {
        self.all().into_iter().filter(|(_, held)| !held.keys().is_empty()).map(|(at, _)| at).collect()
    }

    /// Rises whenever a seal replaced what is searched or a snapshot was loaded: a page that follows on one of
    /// another generation may miss or repeat a hit.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether `at` is searched through a graph; otherwise by brute force.
    pub fn has_graph(&self, at: Collection) -> bool {
        self.collection(at).is_some_and(|collection| collection.view().has_graph())
    }

    /// Bytes of memory that the vectors of `at` and their links take, mapped files included.
    pub fn bytes(&self, at: Collection) -> u64 {
        self.collection(at).map_or(0, |held| held.view().parts.iter().map(part::Part::bytes).sum())
    }

    /// Makes one segment of all live vectors of `at`, if they are many, and returns when that is in place. Searches,
    /// inserts and removals go on meanwhile.
    pub fn seal(&self, at: Collection) {
        self.seal_with(at, self.settings.build_threads, &|_, _| ());
    }

    /// [`Index::seal`] with so many threads; `report` hears now and then how many vectors are linked, of how many.
    pub fn seal_with(&self, at: Collection, threads: usize, report: &(dyn Fn(usize, usize) + Sync)) {
        if let Some(collection) = self.collection(at) {
            collection.seal(threads, report);
        }
    }

    /// Starts sealing in the background wherever that is due, as it may be after many [`Index::fill`] or [`Index::load`].
    pub fn seal_what_is_due(&self) {
        self.all().iter().for_each(|(_, collection)| collection.seal_if_due());
    }

    /// Returns at once, or where [`Index::fill`] came faster than seals when they have caught up: searches would get
    /// slower and slower.
    pub fn keep_pace(&self) {
        self.all().iter().for_each(|(_, collection)| collection.keep_pace());
    }

    /// Returns when no seal is running: for benchmarks and tests.
    pub fn settle(&self) {
        for (_, collection) in self.all() {
            collection.settle();
        }
    }

    /// Reads every vector of the segments' files that was not yet read, and answers the live keys of those that are
    /// damaged: to be inserted again from the catalog.
    pub fn verify(&self) -> Vec<(Collection, Vec<SpanKey>)> {
        let damaged = self.all().into_iter().map(|(at, collection)| {
            let view = collection.view();
            view.parts.iter().for_each(part::Part::verify);
            (at, view.parts.iter().flat_map(|part| part.unreadable(&Filter::default())).collect::<Vec<_>>())
        });
        damaged.filter(|(_, keys)| !keys.is_empty()).collect()
    }

    /// Recall at 10 of the graphs of `at` against brute force, 0 to 1, over about `sample` stored vectors as queries;
    /// `None` where there is no graph. Costs `sample` scans.
    pub fn check(&self, at: Collection, sample: usize) -> Option<f64> {
        self.collection(at)?.view().recall(sample)
    }

    fn all(&self) -> Vec<(Collection, Arc<SegmentSet>)> {
        self.collections.read().iter().map(|(&at, collection)| (at, Arc::clone(collection))).collect()
    }

    fn collection(&self, at: Collection) -> Option<Arc<SegmentSet>> {
        self.collections.read().get(&at).cloned()
    }

    fn dimension_or(&self, space: u32, dim: usize) -> usize {
        if let Some(declared) = self.spaces.read().get(&space) {
            return declared.dim;
        }
        self.spaces.write().entry(space).or_insert(Declared { id: None, dim }).dim
    }

    fn collection_or_new(&self, at: Collection, dimension: usize) -> Arc<SegmentSet> {
        if let Some(collection) = self.collection(at) {
            return collection;
        }
        let mut collections = self.collections.write();
        let (generation, home) = (Arc::clone(&self.generation), Arc::clone(&self.home));
        let new = || Arc::new(SegmentSet::new(dimension, self.settings, generation, home));
        Arc::clone(collections.entry(at).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests;
