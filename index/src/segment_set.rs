//! The vectors of one (space, level): sealed segments, growing rows, and which rows are live.
//!
//! Writers take turns; searches run beside them on a snapshot of the state. `sealing.rs` turns grown rows into
//! segments.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::{Condvar, Mutex, RwLock};
use roaring::RoaringTreemap;

use crate::due;
use crate::exact::Best;
use crate::home::Home;
use crate::part::{Body, Part};
use crate::plan::{self, Plan, Width};
use crate::vector::cosine;
use crate::work::Work;
use crate::{Filter, Hits, IndexError, Mode, Scored, Scores, Settings, SpanKey, UnitVector};

/// A filter with at most this many times the matching keys is looked up as it is.
const VAIN: u64 = 2;
/// Bytes of growing vectors that are moved to a file at once; few in tests.
const SPILLED_AT_ONCE: usize = if cfg!(test) { 1 << 16 } else { 128 << 20 };

pub(crate) struct SegmentSet {
    pub(crate) dimension: usize,
    pub(crate) state: RwLock<State>,
    /// Held while the state changes: one writer at a time numbers rows.
    pub(crate) writer: Mutex<()>,
    pub(crate) work: Mutex<Work>,
    /// Notified when a job begins or ends.
    pub(crate) worked: Condvar,
    pub(crate) generation: Arc<AtomicU64>,
    pub(crate) settings: Settings,
    /// The folder of the segments.
    pub(crate) home: Arc<Home>,
}

pub(crate) struct State {
    /// The last part grows; the parts before it are frozen.
    pub(crate) held: Vec<Held>,
    /// Live keys.
    pub(crate) keys: Arc<RoaringTreemap>,
    /// The next part's id.
    next_id: u64,
}

/// A part, and the rows of its keys.
pub(crate) struct Held {
    pub(crate) id: u64,
    pub(crate) part: Part,
    /// The row of each key, recorded at insertion. Empty for segments, which look up keys themselves.
    ordinals: HashMap<SpanKey, u32>,
}

/// The state that one search reads: later inserts and removals do not change it.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) parts: Vec<Part>,
    pub(crate) keys: Arc<RoaringTreemap>,
}

impl SegmentSet {
    pub(crate) fn new(
        dimension: usize,
        settings: Settings,
        generation: Arc<AtomicU64>,
        home: Arc<Home>,
    ) -> SegmentSet {
        SegmentSet {
            dimension,
            state: RwLock::new(State::new(dimension)),
            writer: Mutex::new(()),
            work: Mutex::default(),
            worked: Condvar::new(),
            generation,
            settings,
            home,
        }
    }

    /// Inserts a vector without a seal.
    pub(crate) fn fill(&self, key: SpanKey, vector: &[f32]) -> Result<(), IndexError> {
        let _writer = self.writer.lock();
        let known = {
            let state = self.state.read();
            let known = state.find(key);
            if known.is_some_and(|(at, row)| state.held[at].part.vector(row) == Some(vector)) {
                return Ok(());
            }
            if state.growing().part.len() == u32::MAX {
                return Err(IndexError::Full);
            }
            known
        };
        self.state.write().put(key, vector, known);
        self.spill();
        Ok(())
    }

    /// Moves the vectors of many growing rows to a file. Call as the writer.
    fn spill(&self) {
        let rows = match &self.state.read().growing().part.body {
            Body::Growing(rows) if rows.spillable() >= SPILLED_AT_ONCE => rows.clone(),
            _ => return,
        };
        let Some(file) = self.home.scratch() else { return };
        let spilled = file.and_then(|file| rows.spill(file));
        let mut state = self.state.write();
        let Some(Body::Growing(rows)) = state.held.last_mut().map(|held| &mut held.part.body) else { return };
        rows.tried_to_spill();
        match spilled {
            Ok(spilled) => rows.adopt(spilled),
            Err(error) => tracing::warn!(%error, "vectors that wait for a graph stay in memory"),
        }
    }

    /// Removes a key without a merge; returns whether its part is now half dead.
    pub(crate) fn forget(&self, key: SpanKey) -> bool {
        let _writer = self.writer.lock();
        self.state.write().remove(key)
    }

    pub(crate) fn view(&self) -> View {
        self.state.read().view()
    }

    pub(crate) fn keys(&self) -> Arc<RoaringTreemap> {
        Arc::clone(&self.state.read().keys)
    }

    /// The vector of a live key; `None` if the key is absent or its vector cannot be read.
    pub(crate) fn vector(&self, key: SpanKey) -> Option<Vec<f32>> {
        let state = self.state.read();
        let (at, row) = state.find(key)?;
        state.held[at].part.vector(row).map(<[f32]>::to_vec)
    }

    pub(crate) fn scores(&self, keys: &RoaringTreemap, queries: &[UnitVector]) -> Scores {
        // Looks up rows under the lock and reads vectors after it, so that writers do not wait for scoring.
        let (parts, rows) = {
            let state = self.state.read();
            let live = keys & state.keys.as_ref();
            let rows = live.iter().filter_map(|key| Some((key, state.find(key)?)));
            let rows: Vec<(SpanKey, (usize, u32))> = rows.collect();
            (state.held.iter().map(|held| held.part.clone()).collect::<Vec<Part>>(), rows)
        };
        let mut scores = Scores::default();
        for (key, (part, row)) in rows {
            match parts[part].vector(row) {
                Some(vector) => {
                    let cosines = queries.iter().map(|query| cosine(query.values(), vector)).collect();
                    scores.scored.push(Scored { key, cosines });
                }
                None => scores.unreadable.push(key),
            }
        }
        scores
    }

    /// Adds a part of a snapshot. Returns `false` and adds nothing if one of its keys is in another part.
    pub(crate) fn adopt(&self, part: Part) -> bool {
        let _writer = self.writer.lock();
        let mut state = self.state.write();
        let keys = part.live_keys();
        if !state.keys.is_disjoint(&keys) {
            return false;
        }
        *Arc::make_mut(&mut state.keys) |= keys;
        state.add(part);
        true
    }

    pub(crate) fn search(&self, query: &[f32], k: usize, filter: &Filter, mode: Mode) -> Hits {
        self.view().search(query, k, filter, mode)
    }
}

impl State {
    fn new(dimension: usize) -> State {
        let growing = Held { id: 0, part: Part::growing(dimension), ordinals: HashMap::new() };
        State { held: vec![growing], keys: Arc::default(), next_id: 1 }
    }

    pub(crate) fn view(&self) -> View {
        let parts = self.held.iter().map(|held| held.part.clone()).filter(|part| part.len() > 0).collect();
        View { parts, keys: Arc::clone(&self.keys) }
    }

    pub(crate) fn growing(&self) -> &Held {
        // Never empty: `State::new` adds a part, and `freeze` adds the next one.
        &self.held[self.held.len() - 1]
    }

    /// The part and the row of a live key.
    fn find(&self, key: SpanKey) -> Option<(usize, u32)> {
        if !self.keys.contains(key) {
            return None;
        }
        self.held.iter().enumerate().find_map(|(at, held)| Some((at, held.find(key)?)))
    }

    /// Makes `vector` the live vector of `key`; `known` is the row that was live until now.
    fn put(&mut self, key: SpanKey, vector: &[f32], known: Option<(usize, u32)>) {
        if let Some((at, row)) = known {
            Arc::make_mut(&mut self.held[at].part.live).remove(row);
        } else {
            Arc::make_mut(&mut self.keys).insert(key);
        }
        let last = self.held.len() - 1;
        let Held { part, ordinals, .. } = &mut self.held[last];
        if let Body::Growing(rows) = &mut part.body {
            let row = rows.len();
            rows.push(key, vector);
            Arc::make_mut(&mut part.live).insert(row);
            ordinals.insert(key, row);
        }
    }

    /// Removes a key; returns whether its part is now half dead.
    fn remove(&mut self, key: SpanKey) -> bool {
        let Some((at, row)) = self.find(key) else { return false };
        let part = &mut self.held[at].part;
        Arc::make_mut(&mut part.live).remove(row);
        Arc::make_mut(&mut self.keys).remove(key);
        due::is_half_dead(part.live.len(), part.dead())
    }

    /// Freezes the growing part and starts a new one.
    pub(crate) fn freeze(&mut self, dimension: usize) {
        let id = self.take_id();
        self.held.push(Held { id, part: Part::growing(dimension), ordinals: HashMap::new() });
    }

    /// Adds a frozen part.
    pub(crate) fn add(&mut self, part: Part) {
        let ordinals = match &part.body {
            Body::Sealed(_) => HashMap::new(),
            Body::Growing(rows) => part.live.iter().map(|row| (rows.key(row), row)).collect(),
        };
        let id = self.take_id();
        let last = self.held.len() - 1;
        self.held.insert(last, Held { id, part, ordinals });
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }
}

impl Held {
    /// The live row of a key.
    pub(crate) fn find(&self, key: SpanKey) -> Option<u32> {
        let row = match &self.part.body {
            Body::Sealed(sealed) => sealed.find(key),
            Body::Growing(_) => self.ordinals.get(&key).copied(),
        };
        row.filter(|&row| self.part.live.contains(row))
    }
}

impl View {
    pub(crate) fn has_graph(&self) -> bool {
        self.parts.iter().any(Part::is_sealed)
    }

    /// Number of rows, live or dead.
    fn rows(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.len())).sum()
    }

    pub(crate) fn search(&self, query: &[f32], k: usize, filter: &Filter, mode: Mode) -> Hits {
        let matching = match &filter.only {
            None => self.keys.len(),
            Some(only) => self.keys.intersection_len(only),
        };
        let k = usize::try_from(matching).map_or(k, |matching| k.min(matching));
        let rows = self.rows();
        let plan = match mode {
            _ if k == 0 => Plan::Nothing,
            Mode::Exact => Plan::Scan,
            Mode::Auto => {
                plan::choose(k, matching, rows, filter.only.as_ref().map(|_| self.listed_per_node()))
            }
            Mode::Walk { ef } => Plan::Walk(Width {
                candidates: ef.max(k + plan::SPARE),
                passed: 0,
                slack: plan::slack(k, ef),
            }),
        };
        let mut best = Best::new(k);
        let mut exact = self.run(query, k, filter, plan, &mut best);
        let unreadable: Vec<SpanKey> = self.parts.iter().flat_map(|part| part.unreadable(filter)).collect();
        if best.len() + unreadable.len() < k {
            // The walks did not find enough: brute force returns every match.
            best = Best::new(k);
            exact = self.run(query, k, filter, Plan::Scan, &mut best);
        }
        Hits { hits: best.into_hits(), matching, exact: exact && unreadable.is_empty(), unreadable }
    }

    /// Keys that have all matching ones among them. An intersection costs more than looking up a few keys in vain.
    fn listed<'a>(&self, only: &'a RoaringTreemap) -> Cow<'a, RoaringTreemap> {
        if only.len() / VAIN <= self.keys.intersection_len(only) {
            Cow::Borrowed(only)
        } else {
            Cow::Owned(self.keys.as_ref() & only)
        }
    }

    /// Keys that are looked up and compared in the time of passing one node.
    fn listed_per_node(&self) -> u64 {
        let has_signs = self.parts.iter().all(Part::compares_signs);
        if has_signs { plan::SIGNS_PER_NODE } else { plan::CODES_PER_NODE }
    }

    /// Runs the plan and offers hits to `best`; returns whether every matching vector was compared.
    fn run(&self, query: &[f32], k: usize, filter: &Filter, plan: Plan, best: &mut Best) -> bool {
        match (plan, &filter.only) {
            (Plan::Nothing, _) => true,
            (Plan::Listed, Some(only)) => {
                let keys = self.listed(only);
                let mut exact = true;
                for part in &self.parts {
                    exact &= part.scan_listed(query, &keys, k, best);
                }
                exact
            }
            (Plan::Scan | Plan::Listed, _) => {
                self.parts.iter().for_each(|part| part.scan(query, filter, best));
                true
            }
            (Plan::Walk(width), _) => {
                let mut exact = true;
                for part in &self.parts {
                    exact &= part.walk(query, k, width, filter, best);
                }
                exact
            }
        }
    }

    /// The graphs' recall at 10 against brute force, over about `sample` live vectors as queries. `None` without a
    /// graph.
    pub(crate) fn recall(&self, sample: usize) -> Option<f64> {
        if !self.has_graph() {
            return None;
        }
        let live = self.keys.len() as usize;
        let (k, step) = (10.min(live), live.div_ceil(sample.max(1)).max(1));
        let width = usize::try_from(plan::wanted(k, self.rows())).unwrap_or(usize::MAX);
        let (mut found, mut wanted) = (0, 0);
        let rows = self.parts.iter().flat_map(|part| part.live.iter().map(move |row| (part, row)));
        for (part, row) in rows.step_by(step) {
            let Some(query) = part.vector(row) else { continue };
            let truth = self.search(query, k, &Filter::default(), Mode::Exact).hits;
            let worst = truth.last().map_or(-1.0, |hit| hit.score);
            let got = self.search(query, k, &Filter::default(), Mode::Walk { ef: width }).hits;
            // Compared by score, not by key: any of several equal vectors is correct.
            found += got.iter().filter(|hit| hit.score >= worst).count();
            wanted += truth.len();
        }
        Some(found as f64 / wanted.max(1) as f64)
    }
}
