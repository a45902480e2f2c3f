//! The vectors of one (space, level): rows, which of them are live, and a graph once there are enough of them.
//!
//! Writers take turns; searches run beside them on a picture of the state. A graph is built aside, from a picture,
//! while inserts and searches go on, then put in place in one step. It knows nothing of the other collections.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};
use roaring::RoaringBitmap;

use crate::graph::Graph;
use crate::plan::{self, Plan, Widths};
use crate::rows::Rows;
use crate::{Filter, Hit, Hits, IndexError, Mode, Settings, SpanKey, exact};

/// Dead rows under which rewriting is not worth it.
const DEAD_MOST: u64 = 1_024;
/// A rebuild links what arrived meanwhile until no more than this is left; writers wait for that rest only.
const CAUGHT_UP: u32 = 256;

pub(crate) struct Collection {
    dimension: usize,
    state: RwLock<State>,
    /// Held by whoever changes the state: rows are numbered and linked by one writer at a time.
    writer: Mutex<()>,
    /// Whether a rebuild is running.
    building: Mutex<bool>,
    built: Condvar,
    generation: Arc<AtomicU64>,
    settings: Settings,
}

struct State {
    view: View,
    /// Live keys.
    keys: Arc<RoaringBitmap>,
    /// The row of a live key.
    ordinals: HashMap<SpanKey, u32>,
}

/// What one search looks at: cheap to clone, and unchanged by later inserts and removals.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) rows: Rows,
    /// Ordinals of the live rows.
    pub(crate) live: Arc<RoaringBitmap>,
    /// Holds every row of `rows`.
    graph: Option<Arc<Graph>>,
}

impl Collection {
    pub(crate) fn new(dimension: usize, settings: Settings, generation: Arc<AtomicU64>) -> Collection {
        Collection {
            dimension,
            state: RwLock::new(State::new(dimension, None)),
            writer: Mutex::new(()),
            building: Mutex::new(false),
            built: Condvar::new(),
            generation,
            settings,
        }
    }

    pub(crate) fn insert(self: &Arc<Collection>, key: SpanKey, vector: &[f32]) -> Result<(), IndexError> {
        {
            let _writer = self.writer.lock();
            let (graph, next) = {
                let state = self.state.read();
                if state.holds(key, vector) {
                    return Ok(());
                }
                (state.view.graph.clone(), state.view.rows.len())
            };
            if next == u32::MAX {
                return Err(IndexError::Full);
            }
            // Linked before it is live: a search never finds a row that its graph lacks.
            if let Some(graph) = graph {
                graph.insert(next, vector);
            }
            self.state.write().put(key, vector);
        }
        self.rebuild_if_due();
        Ok(())
    }

    pub(crate) fn remove(self: &Arc<Collection>, key: SpanKey) {
        {
            let _writer = self.writer.lock();
            self.state.write().remove(key);
        }
        self.rebuild_if_due();
    }

    pub(crate) fn dimension(&self) -> usize {
        self.dimension
    }

    pub(crate) fn view(&self) -> View {
        self.state.read().view.clone()
    }

    pub(crate) fn keys(&self) -> Arc<RoaringBitmap> {
        Arc::clone(&self.state.read().keys)
    }

    pub(crate) fn vector(&self, key: SpanKey) -> Option<Vec<f32>> {
        let state = self.state.read();
        state.ordinals.get(&key).map(|&ordinal| state.view.rows.vector(ordinal).to_vec())
    }

    /// Adds a vector of which the graph will learn by the next rebuild: for filling a collection that nobody
    /// searches yet. Must not be used once there is a graph.
    pub(crate) fn fill(&self, key: SpanKey, vector: &[f32]) {
        self.state.write().put(key, vector);
    }

    pub(crate) fn has_graph(&self) -> bool {
        self.state.read().view.has_graph()
    }

    pub(crate) fn search(&self, query: &[f32], k: usize, filter: &Filter, mode: Mode) -> Hits {
        let (view, matching, plan) = {
            let state = self.state.read();
            let matching = match &filter.only {
                None => state.keys.len(),
                Some(only) => state.keys.intersection_len(only),
            };
            let plan = match mode {
                Mode::Auto => plan::choose(k, matching, &state.view, &self.settings, filter),
                Mode::Exact => Plan::Scan,
            };
            let plan = plan.resolve(|only| state.rows_of(only));
            (state.view.clone(), matching, plan)
        };
        let k = usize::try_from(matching).map_or(k, |matching| k.min(matching));
        let (hits, exact) = view.run(query, k, filter, plan);
        Hits { hits, matching, exact, unreadable: Vec::new() }
    }

    /// Rewrites the rows without the dead ones and builds a graph if there are enough; returns when it is in place.
    pub(crate) fn compact(&self) {
        let mut building = self.building.lock();
        while *building {
            self.built.wait(&mut building);
        }
        *building = true;
        drop(building);
        let _building = Building(self);
        self.rebuild();
    }

    /// Returns when no rebuild is running.
    pub(crate) fn settle(&self) {
        let mut building = self.building.lock();
        while *building {
            self.built.wait(&mut building);
        }
    }

    /// Starts a rebuild in the background if one is due and none is running.
    pub(crate) fn rebuild_if_due(self: &Arc<Collection>) {
        if !self.is_rebuild_due() {
            return;
        }
        let mut building = self.building.lock();
        if *building {
            return;
        }
        *building = true;
        drop(building);
        let collection = Arc::clone(self);
        let started = std::thread::Builder::new().name("index-rebuild".into()).spawn(move || {
            let _building = Building(&collection);
            while collection.is_rebuild_due() {
                collection.rebuild();
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for rebuilding the index: searches stay right but get slower");
            drop(Building(self));
        }
    }

    fn is_rebuild_due(&self) -> bool {
        let state = self.state.read();
        let live = state.view.live.len();
        let dead = u64::from(state.view.rows.len()) - live;
        let graph_is_due = state.view.graph.is_none() && live >= self.settings.graph_from;
        graph_is_due || (dead >= DEAD_MOST && dead >= live)
    }

    fn rebuild(&self) {
        let with_graph = self.keys().len() >= self.settings.graph_from;
        let mut next = State::new(self.dimension, with_graph.then(|| Graph::new(self.keys().len() as usize)));
        let mut taken = 0;
        loop {
            let view = self.view();
            let arrived = taken..view.rows.len();
            taken = arrived.end;
            let count = next.take(&view, arrived, threads_for_building());
            if count <= CAUGHT_UP {
                break;
            }
        }
        let writer = self.writer.lock();
        let view = self.view();
        next.take(&view, taken..view.rows.len(), threads_for_building());
        let gone = next.keys.as_ref() - self.keys().as_ref();
        for key in gone {
            next.remove(key);
        }
        let previous = std::mem::replace(&mut *self.state.write(), next);
        self.generation.fetch_add(1, Ordering::Relaxed);
        drop(writer);
        // Freeing a large graph takes a while: nobody waits for it.
        drop(previous);
    }
}

/// Says that the rebuild is over, also when it panicked.
struct Building<'a>(&'a Collection);

impl Drop for Building<'_> {
    fn drop(&mut self) {
        *self.0.building.lock() = false;
        self.0.built.notify_all();
    }
}

/// Half of the cores, for searches go on meanwhile; at most two, because hnsw_rs's concurrent insert takes locks in an
/// order that three or more inserting threads could deadlock on.
fn threads_for_building() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2).min(2))
}

impl State {
    fn new(dimension: usize, graph: Option<Graph>) -> State {
        let view = View { rows: Rows::new(dimension), live: Arc::default(), graph: graph.map(Arc::new) };
        State { view, keys: Arc::default(), ordinals: HashMap::new() }
    }

    fn holds(&self, key: SpanKey, vector: &[f32]) -> bool {
        self.ordinals.get(&key).is_some_and(|&ordinal| self.view.rows.vector(ordinal) == vector)
    }

    /// Makes `vector` the live one of `key`. The graph, if there is one, must hold or get the new row.
    fn put(&mut self, key: SpanKey, vector: &[f32]) {
        let ordinal = self.view.rows.len();
        self.view.rows.push(key, vector);
        let live = Arc::make_mut(&mut self.view.live);
        live.insert(ordinal);
        if let Some(replaced) = self.ordinals.insert(key, ordinal) {
            live.remove(replaced);
        } else {
            Arc::make_mut(&mut self.keys).insert(key);
        }
    }

    fn remove(&mut self, key: SpanKey) {
        if let Some(ordinal) = self.ordinals.remove(&key) {
            Arc::make_mut(&mut self.view.live).remove(ordinal);
            Arc::make_mut(&mut self.keys).remove(key);
        }
    }

    /// Copies the live rows among `ordinals` of another state; returns how many there were.
    fn take(&mut self, from: &View, ordinals: Range<u32>, threads: usize) -> u32 {
        let first = self.view.rows.len();
        for ordinal in from.live.range(ordinals) {
            self.put(from.rows.key(ordinal), from.rows.vector(ordinal));
        }
        let end = self.view.rows.len();
        if let Some(graph) = &self.view.graph {
            graph.insert_all(&self.view.rows, first..end, threads);
        }
        end - first
    }

    /// The live rows of `keys`, ascending.
    fn rows_of(&self, keys: &RoaringBitmap) -> Vec<u32> {
        let matching = keys & self.keys.as_ref();
        let mut rows: Vec<u32> = matching.iter().filter_map(|key| self.ordinals.get(&key).copied()).collect();
        rows.sort_unstable();
        rows
    }
}

impl View {
    pub(crate) fn has_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// The hits, and whether every matching vector was looked at.
    fn run(&self, query: &[f32], k: usize, filter: &Filter, plan: Plan<Vec<u32>>) -> (Vec<Hit>, bool) {
        match (plan, &self.graph) {
            (Plan::Nothing, _) => (Vec::new(), true),
            (Plan::Listed(rows), _) => (exact::scan(&self.rows, rows.into_iter(), query, k), true),
            (Plan::Walk(widths), Some(graph)) => match self.walk(graph, query, k, filter, widths) {
                Some(hits) => (hits, false),
                None => (self.scan(query, k, filter), true),
            },
            (Plan::Scan | Plan::Walk(_), _) => (self.scan(query, k, filter), true),
        }
    }

    /// Brute force over all live rows.
    fn scan(&self, query: &[f32], k: usize, filter: &Filter) -> Vec<Hit> {
        match &filter.only {
            None => exact::scan(&self.rows, self.live.iter(), query, k),
            Some(only) => {
                let matching = self.live.iter().filter(|&ordinal| only.contains(self.rows.key(ordinal)));
                exact::scan(&self.rows, matching, query, k)
            }
        }
    }

    /// Looks in the graph, wider each time, until it has found `k`; `None` if it has not.
    fn walk(
        &self,
        graph: &Graph,
        query: &[f32],
        k: usize,
        filter: &Filter,
        widths: Widths,
    ) -> Option<Vec<Hit>> {
        let is_match = |ordinal: &u32| {
            // The graph may already hold rows that are newer than this view: they are not live in it.
            self.live.contains(*ordinal)
                && filter.only.as_ref().is_none_or(|only| only.contains(self.rows.key(*ordinal)))
        };
        widths.into_iter().find_map(|width| {
            let matching = graph.search(query, width).into_iter().filter(is_match);
            let hits = exact::scan(&self.rows, matching, query, k);
            (hits.len() == k).then_some(hits)
        })
    }

    /// Whether the graph answers like brute force: the mean share of the true 10 nearest that it finds for `sample`
    /// live vectors spread over the rows. `None` without a graph.
    pub(crate) fn recall(&self, sample: usize) -> Option<f64> {
        let graph = self.graph.as_ref()?;
        let k = 10.min(self.live.len() as usize);
        let step = (self.live.len() as usize).div_ceil(sample.max(1)).max(1);
        let (mut found, mut wanted) = (0, 0);
        for ordinal in self.live.iter().step_by(step) {
            let query = self.rows.vector(ordinal);
            let truth = self.scan(query, k, &Filter::default());
            let worst = truth.last().map_or(-1.0, |hit| hit.score);
            let got = self.walk(graph, query, k, &Filter::default(), Widths::single(k)).unwrap_or_default();
            // By score, not by key: any of several equal vectors is right.
            found += got.iter().filter(|hit| hit.score >= worst).count();
            wanted += truth.len();
        }
        Some(found as f64 / wanted.max(1) as f64)
    }
}
