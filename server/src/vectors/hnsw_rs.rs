//! The crate hnsw_rs as an engine: a graph in memory, built again at each start.
//!
//! The crate cannot remove points, and its filter may panic or return too few. So this engine keeps the vectors itself.
//! It drops dead and excluded points from the graph's results and scores the rest again. If too few are left, it
//! compares every allowed vector. Only one thread links at a time: with more the crate may deadlock.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use hnsw_rs::anndists::dist::distances::Distance;
use hnsw_rs::hnsw::Hnsw;
use tokio::sync::Mutex;

use super::{
    Ask, Batch, CollectionStatus, EngineError, EngineStatus, Fence, Hit, Hits, Limits, Scored, VectorIndex,
};
use crate::terms::{Collection, KeySet, SpaceInfo, SpanKey, UnitVector, cosine};

/// Links of a point in each upper layer; the lowest has twice as many.
const LINKS: usize = 16;
/// HNSW's efConstruction: candidates kept while a point is linked.
const CANDIDATES_LINKING: usize = 200;
/// Fewest candidates of a search.
const CANDIDATES: usize = 128;
const LAYERS: usize = 16;
/// Up to this many allowed vectors are compared one by one, which is as fast.
const COMPARED: u64 = 2_000;
/// A graph is rebuilt when more than one in this many points is dead.
const DEAD_SHARE: usize = 3;

/// The crate hnsw_rs as an engine in this process.
#[derive(Default)]
pub struct HnswRs {
    inner: Arc<Inner>,
    /// Held while points are linked: one thread at a time.
    linking: Mutex<()>,
}

#[derive(Default)]
struct Inner {
    spaces: RwLock<BTreeMap<u32, SpaceInfo>>,
    collections: RwLock<BTreeMap<Collection, Arc<RwLock<Points>>>>,
    applied: AtomicI64,
    fence: Fence,
    /// Number of rebuilt graphs.
    rebuilds: AtomicU64,
}

/// The points of one collection.
struct Points {
    graph: Hnsw<'static, f32, Cosine>,
    /// By number in the graph; dead points stay until the rebuild.
    all: Vec<Point>,
    /// The number of each key's live point.
    live: HashMap<SpanKey, usize>,
    keys: KeySet,
}

#[derive(Clone)]
struct Point {
    key: SpanKey,
    unit: Arc<UnitVector>,
}

/// One minus the cosine, at least 0: the crate asserts that.
struct Cosine;

impl Distance<f32> for Cosine {
    fn eval(&self, one: &[f32], other: &[f32]) -> f32 {
        (1.0 - cosine(one, other)).max(0.0)
    }
}

impl Points {
    /// Links these points in order.
    fn linked(points: Vec<Point>) -> Points {
        let graph = Hnsw::new(LINKS, points.len().max(COMPARED as usize), LAYERS, CANDIDATES_LINKING, Cosine);
        let mut linked = Points { graph, all: Vec::new(), live: HashMap::new(), keys: KeySet::new() };
        points.into_iter().for_each(|point| linked.link(point));
        linked
    }

    /// Links a point and makes it the live one of its key.
    fn link(&mut self, point: Point) {
        let number = self.all.len();
        self.graph.insert_slice((point.unit.values(), number));
        self.live.insert(point.key, number);
        self.keys.insert(point.key);
        self.all.push(point);
    }

    fn put(&mut self, key: SpanKey, unit: &UnitVector) {
        if self.live.get(&key).is_none_or(|&number| *self.all[number].unit != *unit) {
            self.link(Point { key, unit: Arc::new(unit.clone()) });
        }
    }

    fn remove(&mut self, key: SpanKey) {
        self.live.remove(&key);
        self.keys.remove(key);
    }

    fn is_stale(&self) -> bool {
        (self.all.len() - self.live.len()) * DEAD_SHARE > self.all.len()
    }

    /// The live points in order of insertion.
    fn live_points(&self) -> Vec<Point> {
        let is_live = |(number, point): &(usize, &Point)| self.live.get(&point.key) == Some(number);
        self.all.iter().enumerate().filter(is_live).map(|(_, point)| point.clone()).collect()
    }

    fn search(&self, query: &UnitVector, ask: &Ask) -> Hits {
        let only = ask.only.as_ref().map(|only| &only.keys);
        let matching = match only {
            None => self.keys.len(),
            Some(only) => self.keys.intersection_len(only),
        };
        let complete = matching <= ask.k as u64;
        let k = if complete { matching as usize } else { ask.k };
        let walked = match ask.exact || matching <= COMPARED {
            true => None,
            false => self.walk(query, k, only, matching),
        };
        // If the walk found too few, compare all.
        match walked.filter(|hits| hits.len() == k) {
            Some(hits) => Hits { hits, complete, exact: false },
            None => Hits { hits: self.compare(query, k, only), complete, exact: true },
        }
    }

    /// The nearest allowed points by a graph walk. `None` if the walk would need more than a quarter of all points.
    fn walk(&self, query: &UnitVector, k: usize, only: Option<&KeySet>, matching: u64) -> Option<Vec<Hit>> {
        // Asks for more than `k`, so that enough remain without the dead and excluded points.
        let points = self.all.len();
        let wanted = (k as u64).saturating_mul(points as u64) / matching.max(1);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).saturating_mul(2).max(CANDIDATES);
        if wanted > points / 4 {
            return None;
        }
        let found = self.graph.search(query.values(), wanted, wanted);
        let mut hits: Vec<Hit> = found
            .iter()
            .filter_map(|neighbour| {
                let number = neighbour.get_origin_id();
                let point = self.all.get(number)?;
                let is_live = self.live.get(&point.key) == Some(&number);
                let may = is_live && only.is_none_or(|only| only.contains(point.key));
                may.then(|| Hit { key: point.key, score: query.dot(&point.unit) })
            })
            .collect();
        Hit::keep_best(&mut hits, k);
        Some(hits)
    }

    /// The nearest of all allowed vectors, by exact search.
    fn compare(&self, query: &UnitVector, k: usize, only: Option<&KeySet>) -> Vec<Hit> {
        let hit =
            |(key, &number): (&SpanKey, &usize)| Hit { key: *key, score: query.dot(&self.all[number].unit) };
        let mut hits: Vec<Hit> = match only {
            None => self.live.iter().map(hit).collect(),
            Some(only) => {
                let both = &self.keys & only;
                both.iter().filter_map(|key| self.live.get_key_value(&key)).map(hit).collect()
            }
        };
        Hit::keep_best(&mut hits, k);
        hits
    }

    fn scores(&self, keys: &KeySet, queries: &[UnitVector]) -> Vec<Scored> {
        let both = &self.keys & keys;
        let scored = both.iter().filter_map(|key| {
            let unit = &self.all[*self.live.get(&key)?].unit;
            Some(Scored { key, cosines: queries.iter().map(|query| query.dot(unit)).collect() })
        });
        scored.collect()
    }

    /// An estimate: each vector twice (here and in the graph), and the graph's links.
    fn bytes(&self) -> u64 {
        let values = self.all.first().map_or(0, |point| point.unit.values().len());
        (self.all.len() * (2 * values * 4 + 3 * LINKS * 8)) as u64
    }
}

impl Inner {
    fn points(&self, at: Collection) -> Option<Arc<RwLock<Points>>> {
        self.collections.read().unwrap_or_else(PoisonError::into_inner).get(&at).cloned()
    }

    fn points_or_new(&self, at: Collection) -> Arc<RwLock<Points>> {
        let mut collections = self.collections.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(collections.entry(at).or_insert_with(|| Arc::new(RwLock::new(Points::linked(Vec::new())))))
    }

    fn check_width(&self, space: u32, unit: &UnitVector) -> Result<(), EngineError> {
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner);
        EngineError::check_width(spaces.get(&space).map(|space| space.dim), unit)
    }

    fn apply(&self, batch: &Batch) -> Result<(), EngineError> {
        self.fence.check(batch)?;
        batch.put.iter().try_for_each(|it| self.check_width(it.at.space, &it.unit))?;
        // Locks once per point: a search then waits for one link, not for a whole batch.
        for it in &batch.put {
            let points = self.points_or_new(it.at);
            points.write().unwrap_or_else(PoisonError::into_inner).put(it.key, &it.unit);
        }
        for it in &batch.remove {
            if let Some(points) = self.points(it.at) {
                points.write().unwrap_or_else(PoisonError::into_inner).remove(it.key);
            }
        }
        let all: Vec<_> =
            self.collections.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        all.iter().for_each(|points| self.link_anew_if_stale(points));
        if let Some(seq) = batch.seq {
            self.applied.store(seq, Ordering::Release);
        }
        Ok(())
    }

    /// Searches use the old graph until the new one is complete. No point changes meanwhile.
    fn link_anew_if_stale(&self, points: &RwLock<Points>) {
        let live = {
            let points = points.read().unwrap_or_else(PoisonError::into_inner);
            if !points.is_stale() {
                return;
            }
            points.live_points()
        };
        let linked = Points::linked(live);
        *points.write().unwrap_or_else(PoisonError::into_inner) = linked;
        self.rebuilds.fetch_add(1, Ordering::Relaxed);
    }

    fn search(&self, at: Collection, queries: &[UnitVector], ask: &Ask) -> Result<Vec<Hits>, EngineError> {
        queries.iter().try_for_each(|query| self.check_width(at.space, query))?;
        let Some(points) = self.points(at) else {
            let nothing = Hits { hits: Vec::new(), complete: true, exact: true };
            return Ok(vec![nothing; queries.len()]);
        };
        let points = points.read().unwrap_or_else(PoisonError::into_inner);
        Ok(queries.iter().map(|query| points.search(query, ask)).collect())
    }

    fn scores(
        &self,
        at: Collection,
        keys: &KeySet,
        queries: &[UnitVector],
    ) -> Result<Vec<Scored>, EngineError> {
        queries.iter().try_for_each(|query| self.check_width(at.space, query))?;
        let Some(points) = self.points(at) else { return Ok(Vec::new()) };
        let points = points.read().unwrap_or_else(PoisonError::into_inner);
        Ok(points.scores(keys, queries))
    }
}

impl HnswRs {
    /// Runs `work` on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.map_err(|panic| EngineError::Failed(Box::new(panic)))?
    }
}

#[async_trait]
impl VectorIndex for HnswRs {
    fn limits(&self) -> Limits {
        Limits { most_hits: usize::MAX, most_values: usize::MAX, exact: true, shared: false }
    }

    async fn create(&self, space: &SpaceInfo) -> Result<(), EngineError> {
        let mut spaces = self.inner.spaces.write().unwrap_or_else(PoisonError::into_inner);
        let known = spaces.entry(space.key).or_insert_with(|| space.clone());
        if known != space {
            return Err(EngineError::redeclared(known, space));
        }
        Ok(())
    }

    async fn forget(&self, space: u32) -> Result<(), EngineError> {
        let _one = self.linking.lock().await;
        self.inner.spaces.write().unwrap_or_else(PoisonError::into_inner).remove(&space);
        let mut collections = self.inner.collections.write().unwrap_or_else(PoisonError::into_inner);
        collections.retain(|at, _| at.space != space);
        Ok(())
    }

    async fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        let _one = self.linking.lock().await;
        self.blocking(move |inner| inner.apply(&batch)).await
    }

    async fn applied(&self) -> Result<i64, EngineError> {
        Ok(self.inner.applied.load(Ordering::Acquire))
    }

    async fn ready(&self) {
        // `apply` links its whole batch, so no work piles up.
    }

    async fn search(
        &self,
        at: Collection,
        queries: &[UnitVector],
        ask: &Ask,
    ) -> Result<Vec<Hits>, EngineError> {
        let (queries, ask) = (queries.to_vec(), ask.clone());
        self.blocking(move |inner| inner.search(at, &queries, &ask)).await
    }

    async fn scores(
        &self,
        at: Collection,
        keys: &KeySet,
        queries: &[UnitVector],
    ) -> Result<Vec<Scored>, EngineError> {
        let (keys, queries) = (keys.clone(), queries.to_vec());
        self.blocking(move |inner| inner.scores(at, &keys, &queries)).await
    }

    async fn keys(&self, at: Collection, range: Range<SpanKey>) -> Result<KeySet, EngineError> {
        let Some(points) = self.inner.points(at) else { return Ok(KeySet::new()) };
        let keys = points.read().unwrap_or_else(PoisonError::into_inner).keys.clone();
        Ok(keys.within(range))
    }

    async fn status(&self) -> Result<EngineStatus, EngineError> {
        let collections = self.inner.collections.read().unwrap_or_else(PoisonError::into_inner);
        let held = collections.iter().filter_map(|(&at, points)| {
            let points = points.read().unwrap_or_else(PoisonError::into_inner);
            let live = points.keys.len();
            let graph = live > COMPARED;
            (live > 0).then(|| CollectionStatus { at, live, bytes: points.bytes(), graph, lost: false })
        });
        let collections = held.collect();
        Ok(EngineStatus { generation: 1 + self.inner.rebuilds.load(Ordering::Relaxed), collections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(key: u64, values: [f32; 4]) -> Point {
        Point {
            key: SpanKey::new(key),
            unit: Arc::new(UnitVector::from_raw(&values).expect("it has a direction").0),
        }
    }

    #[test]
    fn an_estimate_counts_each_vector_twice_and_its_links() {
        let points = Points::linked(vec![point(1, [1.0, 0.0, 0.0, 0.0]), point(2, [0.0, 1.0, 0.0, 0.0])]);
        assert_eq!(points.bytes(), 2 * (2 * 4 * 4 + 3 * 16 * 8));
        assert_eq!(Points::linked(Vec::new()).bytes(), 0);
    }

    #[test]
    fn the_distance_is_one_minus_the_cosine() {
        for (one, other, expected) in
            [([1.0, 0.0], [1.0, 0.0], 0.0), ([1.0, 0.0], [0.0, 1.0], 1.0), ([1.0, 0.0], [-1.0, 0.0], 2.0)]
        {
            assert_eq!(Cosine.eval(&one, &other), expected, "{one:?} {other:?}");
        }
    }
}
