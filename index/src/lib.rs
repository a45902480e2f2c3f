//! reprise-index: nearest-neighbour search over span vectors, and retrieval metrics.
//!
//! One approximate index per (space, level) over unit vectors, with exact search, removals, filters and snapshots. It
//! uses no async, no SQL and no candle.

mod aggregate;
mod background;
mod budget;
mod build;
mod codes;
mod disk;
mod due;
mod duplicates;
pub mod eval;
mod exact;
mod home;
mod kernels;
mod memory;
mod order;
mod part;
mod plan;
mod rotation;
mod rows;
mod sealed;
mod sealing;
mod segment_set;
pub mod snapshot;
mod unfinished;
pub mod vector;
mod walk;
mod work;

pub use aggregate::{Aggregation, NEGATIVE_SHARE, QueryVectors, late_interaction, rocchio};
pub use background::Background;
pub use codes::Codes;
pub use duplicates::{SampledSpan, duplicate_cosine};
pub use snapshot::SnapshotError;
pub use vector::{UnitVector, cosine};

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use budget::Budget;
use home::Home;
use segment_set::SegmentSet;

/// A span's number in the catalog. Segments number their rows with 32 bits.
pub type SpanKey = u64;

/// Size of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The whole video.
    Video,
    /// A clip from the segmentation or from a user.
    Clip,
    /// A short interval inside a clip.
    Moment,
    /// The text of about half a minute of speech.
    Passage,
}

impl Level {
    /// All levels.
    pub const ALL: [Level; 4] = [Level::Video, Level::Clip, Level::Moment, Level::Passage];
}

/// Identifies one collection: only vectors of the same space and level are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Collection {
    /// The space's number in the catalog.
    pub space: u32,
    /// The level.
    pub level: Level,
}

/// The identity of a space: a number alone means nothing in another catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceInfo {
    /// The space's number in the catalog.
    pub key: u32,
    /// The space's public id: equal weights, preprocessing and pooling give the same id everywhere.
    pub id: String,
    /// Values of a vector.
    pub dim: usize,
}

/// The keys that a search may return.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only these keys; `None`: all live keys. Keys that are not in the index are ignored.
    pub only: Option<Arc<RoaringTreemap>>,
}

impl Filter {
    fn lets_through(&self, key: SpanKey) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(key))
    }
}

/// How a search runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Graphs where they save time, with enough candidates for good recall.
    Auto,
    /// Graphs with `ef` candidates, at least eight more than `k`: to measure recall against speed.
    Walk {
        /// Number of candidates.
        ef: usize,
    },
    /// Brute force.
    Exact,
}

/// One found span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The span's key.
    pub key: SpanKey,
    /// Cosine, -1 to 1; the same from the graph and from brute force.
    pub score: f32,
}

/// The result of one search.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits {
    /// By score, descending; ties by key, ascending.
    pub hits: Vec<Hit>,
    /// Number of live keys that pass the filter.
    pub matching: u64,
    /// Whether every matching vector was compared.
    pub exact: bool,
    /// Matching keys whose vectors cannot be read, because part of a segment's file is damaged. The caller scores them
    /// from the catalog and inserts them again.
    pub unreadable: Vec<SpanKey>,
}

/// The cosines of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// The span's key.
    pub key: SpanKey,
    /// The cosine with each query, in the order of the queries.
    pub cosines: Vec<f32>,
}

/// The cosines of chosen keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// In order of key; dead keys are left out.
    pub scored: Vec<Scored>,
    /// Live keys whose vectors cannot be read, as in [`Hits::unreadable`].
    pub unreadable: Vec<SpanKey>,
}

impl Hits {
    fn none() -> Hits {
        Hits { hits: Vec::new(), matching: 0, exact: true, unreadable: Vec::new() }
    }
}

/// Why the index refused a call.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The vector's length is not the space's: another encoder made it. The caller's fault.
    #[error("the vector has {got} values, the space has {expected}")]
    Dimension {
        /// Values of the given vector.
        got: usize,
        /// Values of a vector of the space.
        expected: usize,
    },
    /// The number already belongs to another space. The caller's fault: numbers must not be reused.
    #[error("space {key} is already declared as {known} and can't become {declared}")]
    Redeclared {
        /// The space's number.
        key: u32,
        /// The existing declaration.
        known: String,
        /// The refused declaration.
        declared: String,
    },
    /// 2^32 vectors were inserted into one (space, level) since the last seal. Call [`Index::seal`], or split the
    /// collection over several servers.
    #[error("this level of the space can't number any more vectors; seal it")]
    Full,
}

/// When and how growing rows are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The fewest live rows for a segment: below, brute force is as fast.
    pub segment_from: u64,
    /// The number of growing rows that starts a seal.
    pub seal_from: u64,
    /// The format of the codes in segments.
    pub codes: Codes,
    /// The memory for links and codes of segments, in bytes; `None`: as much as they take. What does not fit gets smaller
    /// codes, and if those do not fit, it is mapped from its file. A seal takes more for a while.
    pub memory: Option<u64>,
    /// Threads of a background job. Up to three jobs run at once: a seal, a merge of small segments, and a merge of
    /// large ones.
    pub build_threads: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Half of the cores: searches go on meanwhile, and usually one job runs at a time.
        Settings {
            segment_from: 1_024,
            seal_from: 4_096,
            codes: Codes::default(),
            memory: None,
            build_threads: cores.div_ceil(2),
        }
    }
}

/// All searchable vectors: a cache of the catalog, shared by all threads.
///
/// Searches run beside inserts, removals and seals and never wait for them. Background threads seal when enough rows
/// have grown. They merge when segments of similar sizes pile up, or when half of a part's rows are dead. Inserts wait
/// while they come faster than seals finish.
pub struct Index {
    spaces: RwLock<HashMap<u32, Declared>>,
    collections: RwLock<BTreeMap<Collection, Arc<SegmentSet>>>,
    generation: Arc<AtomicU64>,
    settings: Settings,
    home: Arc<Home>,
    saving: Mutex<()>,
}

/// A space's id and dimension.
#[derive(Debug, Clone)]
struct Declared {
    /// `None` if only a first vector declared the space.
    id: Option<String>,
    dim: usize,
}

impl Default for Index {
    fn default() -> Index {
        Index::new()
    }
}

impl Index {
    /// An empty index of generation 1.
    pub fn new() -> Index {
        Index::with_settings(Settings::default())
    }

    /// An empty index of generation 1 with these settings.
    pub fn with_settings(settings: Settings) -> Index {
        Index::at_generation(1, settings, None)
    }

    /// An empty index of generation 1 that stores its segments under `folder`. [`Index::save`] should write its
    /// snapshots there too.
    pub fn in_folder(folder: &std::path::Path, settings: Settings) -> Index {
        Index::at_generation(1, settings, Some(folder))
    }

    fn at_generation(generation: u64, settings: Settings, folder: Option<&std::path::Path>) -> Index {
        Index {
            spaces: RwLock::default(),
            collections: RwLock::default(),
            generation: Arc::new(AtomicU64::new(generation)),
            settings,
            home: Arc::new(Home::new(folder, Budget::new(settings.memory))),
            saving: Mutex::new(()),
        }
    }

    /// Declares the space of a number; [`Index::save`] needs it. Returns whether it was not declared before.
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

    /// Inserts a vector, or replaces the key's vector; the key is never absent meanwhile. The first vector of an
    /// undeclared space fixes its dimension.
    pub fn insert(&self, at: Collection, key: SpanKey, vector: &UnitVector) -> Result<(), IndexError> {
        self.fitting(at, vector)?.insert(key, vector.values())
    }

    /// [`Index::insert`] for bulk loading: brute force finds the vectors until [`Index::seal`] or
    /// [`Index::seal_what_is_due`], which then builds one segment instead of many.
    pub fn fill(&self, at: Collection, key: SpanKey, vector: &UnitVector) -> Result<(), IndexError> {
        self.fitting(at, vector)?.fill(key, vector.values())
    }

    /// The collection of a vector, after a check of the vector's dimension.
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

    /// Removes a vector, if it exists. Searches that start later do not return it.
    pub fn remove(&self, at: Collection, key: SpanKey) {
        if let Some(collection) = self.collection(at) {
            collection.remove(key);
        }
    }

    /// The `k` nearest live vectors that pass `filter`; fewer only if fewer exist. Empty for an unknown space or level.
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

    /// The cosines of exactly these keys with each query, equal to a search's scores to the last bit.
    pub fn scores(
        &self,
        at: Collection,
        keys: &RoaringTreemap,
        queries: &[UnitVector],
    ) -> Result<Scores, IndexError> {
        queries.iter().try_for_each(|query| self.check_dimension(at.space, query))?;
        Ok(self.collection(at).map(|found| found.scores(keys, queries)).unwrap_or_default())
    }

    /// Number of live vectors.
    pub fn live(&self, at: Collection) -> u64 {
        self.collection(at).map_or(0, |collection| collection.keys().len())
    }

    /// The live keys.
    pub fn keys(&self, at: Collection) -> RoaringTreemap {
        self.collection(at).map(|collection| collection.keys().as_ref().clone()).unwrap_or_default()
    }

    /// Whether a key is live.
    pub fn contains(&self, at: Collection, key: SpanKey) -> bool {
        self.collection(at).is_some_and(|collection| collection.keys().contains(key))
    }

    /// The vector of a live key; `None` also if it cannot be read.
    pub fn vector(&self, at: Collection, key: SpanKey) -> Option<UnitVector> {
        UnitVector::from_unit(self.collection(at)?.vector(key)?)
    }

    /// Every (space, level) with at least one live vector, in order.
    pub fn levels(&self) -> Vec<Collection> {
        self.all().into_iter().filter(|(_, held)| !held.keys().is_empty()).map(|(at, _)| at).collect()
    }

    /// Rises when a seal replaces segments or a snapshot is loaded. A page that continues from another generation may
    /// miss or repeat a hit.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether searches of `at` use a graph.
    pub fn has_graph(&self, at: Collection) -> bool {
        self.collection(at).is_some_and(|collection| collection.view().has_graph())
    }

    /// Bytes of memory that the vectors and links of `at` take, including mapped files.
    pub fn bytes(&self, at: Collection) -> u64 {
        self.collection(at).map_or(0, |held| held.view().parts.iter().map(part::Part::bytes).sum())
    }

    /// Bytes of process memory that the links and codes of all segments take. Mapped ones are not counted.
    pub fn memory(&self) -> u64 {
        self.home.budget.taken()
    }

    /// Builds one segment of all live vectors of `at`, if they are enough, and returns when it is in place. Searches,
    /// inserts and removals go on meanwhile.
    pub fn seal(&self, at: Collection) {
        self.seal_with(at, self.settings.build_threads, &|_, _| ());
    }

    /// [`Index::seal`] with `threads` threads; `report` receives the number of linked vectors and their total.
    pub fn seal_with(&self, at: Collection, threads: usize, report: &(dyn Fn(usize, usize) + Sync)) {
        if let Some(collection) = self.collection(at) {
            collection.seal(threads, report);
        }
    }

    /// Starts all due seals in the background, for example after many [`Index::fill`] calls or after [`Index::load`].
    pub fn seal_what_is_due(&self) {
        self.all().iter().for_each(|(_, collection)| collection.seal_if_due());
    }

    /// Waits while [`Index::fill`] comes faster than seals finish: otherwise searches would become slower and slower.
    pub fn keep_pace(&self) {
        self.all().iter().for_each(|(_, collection)| collection.keep_pace());
    }

    /// Waits until no seal runs: for benchmarks and tests.
    pub fn settle(&self) {
        for (_, collection) in self.all() {
            collection.settle();
        }
    }

    /// Reads every unread vector of the segments' files. Returns the live keys of damaged vectors, for the caller to
    /// insert again from the catalog.
    pub fn verify(&self) -> Vec<(Collection, Vec<SpanKey>)> {
        let damaged = self.all().into_iter().map(|(at, collection)| {
            let view = collection.view();
            view.parts.iter().for_each(part::Part::verify);
            (at, view.parts.iter().flat_map(|part| part.unreadable(&Filter::default())).collect::<Vec<_>>())
        });
        damaged.filter(|(_, keys)| !keys.is_empty()).collect()
    }

    /// Recall at 10 of the graphs of `at` against brute force, 0 to 1, with about `sample` stored vectors as queries.
    /// `None` without a graph. Costs `sample` scans.
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
