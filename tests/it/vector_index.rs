//! The promises of every vector engine, each checked against a sorted list of exact scores.
//!
//! A new engine joins `on_every_engine!`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use reprise_server::catalog::{self, Catalog};
use reprise_server::terms::{Collection, KeySet, Level, SpaceInfo, SpanKey, UnitVector, VideoNumber};
use reprise_server::vectors::builtin::{Builtin, Codes, Settings};
use reprise_server::vectors::{
    Allowed, Ask, Batch, EngineError, EngineKind, EngineStatus, Hit, Hits, HnswRs, Limits, Milvus, Pgvector,
    Put, Removal, Scored, VectorIndex, Vectors,
};
use reprise_tests::milvus::Empty;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::catalog::samples;
use crate::faults::bed::until;

const SPACE: u32 = 3;
const AT: Collection = Collection { space: SPACE, level: Level::Clip };
const DIM: usize = 24;
/// Enough vectors for every engine to search its graph.
const MANY: u64 = 4_000;
/// Settings that build segments and graphs even for small sets.
const EAGER: Settings =
    Settings { segment_from: 64, seal_from: 300, codes: Codes::Int4, memory: None, build_threads: 1 };

macro_rules! on_every_engine {
    ($($check:ident),+ $(,)?) => {
        on_every_engine!(@engine builtin, EngineKind::Builtin, $($check),+);
        on_every_engine!(@engine hnsw_rs, EngineKind::HnswRs, $($check),+);
        on_every_engine!(@engine pgvector, EngineKind::Pgvector, $($check),+);
        on_every_engine!(@engine milvus, EngineKind::Milvus, $($check),+);
    };
    (@engine $name:ident, $kind:expr, $($check:ident),+) => {
        mod $name {
            use super::*;

            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let Some(bed) = Bed::open($kind).await else { return };
                super::$check(&bed).await;
            })+
        }
    };
}

on_every_engine!(
    equal_scores_are_answered_by_key,
    a_batch_that_is_applied_twice_changes_nothing,
    a_vector_that_is_put_again_is_replaced,
    a_key_that_was_removed_is_in_no_answer,
    a_vector_of_another_width_is_refused,
    a_space_is_made_once_and_forgotten_whole,
    a_batch_that_died_before_its_seq_is_applied_again,
    a_writer_whose_lease_has_ended_is_refused,
    keys_are_listed_by_range,
    many_vectors_are_answered_like_a_sorted_list,
    whatever_is_applied_answers_are_those_of_a_sorted_list,
);

/// A vector engine with its catalog and folder.
struct Bed {
    engine: Arc<dyn VectorIndex>,
    _catalog: Arc<Catalog>,
    _folder: tempfile::TempDir,
    _maintained: DropGuard,
    _milvus: Option<Empty>,
}

impl Bed {
    /// An empty engine; `None`, after printing the reason, if its server is not installed.
    async fn open(kind: EngineKind) -> Option<Bed> {
        let folder = tempfile::tempdir().unwrap();
        let catalog = catalog::open(&catalog::embedded_url(folder.path())).await.unwrap();
        let index = folder.path().join("index");
        let mut milvus = None;
        let engine: Arc<dyn VectorIndex> = match kind {
            EngineKind::Builtin => Arc::new(Builtin::open(index, catalog.clone(), &[], EAGER).await.unwrap()),
            EngineKind::HnswRs => Arc::new(HnswRs::default()),
            EngineKind::Pgvector => {
                let url = reprise_tests::postgres::vector_database().await?;
                Arc::new(Pgvector::open(&url, catalog.library_id().await.unwrap()).await.unwrap())
            }
            EngineKind::Milvus => {
                let url = milvus.insert(Empty::start().await?).url();
                Arc::new(Milvus::open(&url, catalog.library_id().await.unwrap()).await.unwrap())
            }
        };
        engine.create(&space(SPACE, DIM)).await.unwrap();
        let closing = CancellationToken::new();
        let (kept, until) = (Arc::clone(&engine), closing.clone());
        tokio::spawn(async move { kept.maintain(until).await });
        let _maintained = closing.drop_guard();
        Some(Bed { engine, _catalog: catalog, _folder: folder, _maintained, _milvus: milvus })
    }

    async fn apply(&self, put: Vec<Put>, remove: &[u64], seq: Option<i64>) {
        let remove = remove.iter().map(|key| Removal { at: AT, key: SpanKey::new(*key) }).collect();
        self.engine.apply(Batch { put, remove, seq, ..Batch::default() }).await.unwrap();
    }

    async fn search(&self, query: &UnitVector, ask: &Ask) -> Hits {
        let mut found = self.engine.search(AT, std::slice::from_ref(query), ask).await.unwrap();
        assert_eq!(found.len(), 1, "one answer a query");
        found.remove(0)
    }

    async fn keys(&self) -> Vec<u64> {
        numbers(&self.engine.keys(AT, SpanKey::ALL).await.unwrap())
    }
}

fn space(key: u32, dim: usize) -> SpaceInfo {
    SpaceInfo { key, id: format!("space {key}"), dim }
}

fn numbers(keys: &KeySet) -> Vec<u64> {
    keys.iter().map(SpanKey::number).collect()
}

fn ask(k: usize) -> Ask {
    Ask { k, only: None, exact: false }
}

fn unit(raw: &[f32]) -> UnitVector {
    UnitVector::from_raw(raw).unwrap().0
}

/// A pseudo-random value in -0.5 .. 0.5, a function of its arguments.
fn noise(seed: u64, at: usize) -> f32 {
    let mut state = (seed << 20 | at as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((state ^ (state >> 31)) >> 40) as f32 / (1 << 24) as f32 - 0.5
}

/// A vector in one of 40 clusters around a common direction: real embeddings are neither uniform nor centred.
fn clustered(seed: u64) -> UnitVector {
    let cluster = 1_000_000 + seed % 40;
    let value = |at| 0.5 + noise(cluster, at) + 0.5 * noise(seed, at) / (1.0 + at as f32 / 8.0);
    unit(&(0..DIM).map(value).collect::<Vec<_>>())
}

fn put(key: u64, unit: UnitVector) -> Put {
    Put { at: AT, key: SpanKey::new(key), video: VideoNumber::new(1 + key / 10), unit }
}

/// The expected content of an engine.
type Model = BTreeMap<SpanKey, UnitVector>;

/// The nearest vectors by exact scores in f64.
fn nearest(model: &Model, query: &UnitVector, ask: &Ask) -> Vec<(SpanKey, f64)> {
    let may = |key: &SpanKey| ask.only.as_ref().is_none_or(|only| only.keys.contains(*key));
    let mut all: Vec<(SpanKey, f64)> =
        model.iter().filter(|(key, _)| may(key)).map(|(key, it)| (*key, cosine(query, it))).collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    all
}

fn cosine(one: &UnitVector, other: &UnitVector) -> f64 {
    one.values().iter().zip(other.values()).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
}

/// Checks one answer. Returns the share of the expected hits in it.
async fn check(bed: &Bed, model: &Model, query: &UnitVector, ask: &Ask) -> f64 {
    let right = nearest(model, query, ask);
    let got = bed.search(query, ask).await;
    let wanted = ask.k.min(right.len());
    assert_eq!(got.hits.len(), wanted, "nobody gets fewer than there are");
    assert_eq!(got.complete, right.len() <= ask.k, "{} of {}", ask.k, right.len());
    assert!(got.exact || !ask.exact || !bed.engine.limits().exact);
    let in_order = |pair: &[Hit]| {
        (pair[0].score, std::cmp::Reverse(pair[0].key)) > (pair[1].score, std::cmp::Reverse(pair[1].key))
    };
    assert!(got.hits.windows(2).all(in_order), "{:?}", got.hits);
    for hit in &got.hits {
        let stored = model.get(&hit.key).expect("a live key");
        assert!(ask.only.as_ref().is_none_or(|only| only.keys.contains(hit.key)), "a stranger: {hit:?}");
        assert!((f64::from(hit.score) - cosine(query, stored)).abs() < 1e-5, "a wrong score: {hit:?}");
    }
    if wanted == 0 {
        return 1.0;
    }
    let worst = right[wanted - 1].1 - 1e-6;
    let found = got.hits.iter().filter(|hit| f64::from(hit.score) >= worst).count();
    assert!(found == wanted || !got.exact, "an exact answer lacks the nearest");
    found as f64 / wanted as f64
}

async fn equal_scores_are_answered_by_key(bed: &Bed) {
    let same = clustered(1);
    let keys = [9_u64, 2, 1 << 40, 5, (1 << 40) + 1, 7];
    bed.apply(keys.iter().map(|key| put(*key, same.clone())).collect(), &[], Some(1)).await;
    bed.apply(vec![put(100, clustered(2))], &[], Some(2)).await;
    for exact in [false, true] {
        let found = bed.search(&same, &Ask { exact, ..ask(5) }).await;
        let got: Vec<u64> = found.hits.iter().map(|hit| hit.key.number()).collect();
        assert_eq!(got, [2, 5, 7, 9, 1 << 40]);
    }
}

async fn a_batch_that_is_applied_twice_changes_nothing(bed: &Bed) {
    bed.apply(vec![put(1, clustered(1)), put(2, clustered(2))], &[], Some(1)).await;
    for _ in 0..3 {
        bed.apply(vec![put(2, clustered(22)), put(3, clustered(3))], &[1, 99], Some(7)).await;
        assert_eq!(bed.keys().await, [2, 3]);
        assert_eq!(bed.engine.applied().await.unwrap(), 7);
        let status = bed.engine.status().await.unwrap();
        assert_eq!((status.live(AT), status.live_in(SPACE), status.collections.len()), (2, 2, 1));
        let found = bed.search(&clustered(22), &ask(5)).await;
        assert_eq!(found.hits[0].key, SpanKey::new(2));
    }
}

async fn a_vector_that_is_put_again_is_replaced(bed: &Bed) {
    let (first, second) = (unit(&axis(0)), unit(&axis(1)));
    bed.apply(vec![put(1, first.clone()), put(2, first.clone())], &[], Some(1)).await;
    bed.apply(vec![put(1, second.clone())], &[], Some(2)).await;
    let model = Model::from([(SpanKey::new(1), second.clone()), (SpanKey::new(2), first.clone())]);
    for query in [&first, &second] {
        assert_eq!(check(bed, &model, query, &ask(1)).await, 1.0);
        assert_eq!(check(bed, &model, query, &ask(9)).await, 1.0);
    }
    let asked: KeySet = [1, 2, 3].map(SpanKey::new).into_iter().collect();
    let scored = bed.engine.scores(AT, &asked, &[second, first]).await.unwrap();
    let got: Vec<_> = scored.iter().map(|it| (it.key.number(), it.cosines.clone())).collect();
    assert_eq!(got, [(1, vec![1.0, 0.0]), (2, vec![0.0, 1.0])]);
}

fn axis(at: usize) -> Vec<f32> {
    (0..DIM).map(|value| if value == at { 1.0 } else { 0.0 }).collect()
}

async fn a_key_that_was_removed_is_in_no_answer(bed: &Bed) {
    let all: Vec<Put> = (0..20).map(|key| put(key, clustered(key))).collect();
    bed.apply(all, &[], Some(1)).await;
    bed.apply(Vec::new(), &[3, 4, 99], Some(2)).await;
    let model: Model =
        (0..20).filter(|key| ![3, 4].contains(key)).map(|key| (SpanKey::new(key), clustered(key))).collect();
    for key in [3, 4, 5] {
        for exact in [false, true] {
            assert_eq!(check(bed, &model, &clustered(key), &Ask { exact, ..ask(20) }).await, 1.0);
        }
    }
    let asked: KeySet = [3, 5].map(SpanKey::new).into_iter().collect();
    let scored = bed.engine.scores(AT, &asked, &[clustered(1)]).await.unwrap();
    assert_eq!(scored.iter().map(|it| it.key.number()).collect::<Vec<_>>(), [5]);
    bed.apply(Vec::new(), &(0..20).collect::<Vec<_>>(), Some(3)).await;
    let nothing = bed.search(&clustered(1), &ask(3)).await;
    assert_eq!((nothing.hits.len(), nothing.complete), (0, true));
    assert_eq!(bed.engine.status().await.unwrap().live(AT), 0);
}

async fn a_vector_of_another_width_is_refused(bed: &Bed) {
    bed.apply(vec![put(1, clustered(1))], &[], Some(1)).await;
    let short = unit(&[1.0, 2.0]);
    let wrong = Batch { put: vec![put(2, short.clone())], seq: Some(2), ..Batch::default() };
    let asked: KeySet = [SpanKey::new(1)].into_iter().collect();
    let short = [short];
    let refused = [
        bed.engine.apply(wrong).await.err(),
        bed.engine.search(AT, &short, &ask(1)).await.err(),
        bed.engine.scores(AT, &asked, &short).await.err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(EngineError::Width { got: 2, expected: DIM })), "{error:?}");
    }
    assert_eq!((bed.engine.applied().await.unwrap(), bed.keys().await), (1, vec![1]));
}

async fn a_space_is_made_once_and_forgotten_whole(bed: &Bed) {
    bed.engine.create(&space(SPACE, DIM)).await.unwrap();
    for other in [space(SPACE, 2), SpaceInfo { id: "another".to_owned(), ..space(SPACE, DIM) }] {
        let error = bed.engine.create(&other).await.err();
        assert!(matches!(error, Some(EngineError::Redeclared { key: SPACE, .. })), "{error:?}");
    }
    bed.engine.create(&space(SPACE + 1, 2)).await.unwrap();
    let elsewhere = Collection { space: SPACE + 1, level: Level::Video };
    let kept = Put { at: elsewhere, unit: unit(&[1.0, 2.0]), ..put(7, clustered(1)) };
    bed.apply(vec![put(1, clustered(1)), kept], &[], Some(1)).await;
    for _ in 0..2 {
        bed.engine.forget(SPACE).await.unwrap();
        assert_eq!(bed.keys().await, [0_u64; 0]);
        assert_eq!(numbers(&bed.engine.keys(elsewhere, SpanKey::ALL).await.unwrap()), [7]);
    }
    bed.engine.create(&space(SPACE, 2)).await.unwrap();
}

async fn a_batch_that_died_before_its_seq_is_applied_again(bed: &Bed) {
    bed.apply(vec![put(1, clustered(1))], &[], Some(4)).await;
    // The vectors arrived, but the sequence number did not.
    bed.apply(vec![put(1, clustered(11)), put(2, clustered(2))], &[], None).await;
    assert_eq!(bed.engine.applied().await.unwrap(), 4);
    bed.apply(vec![put(1, clustered(11)), put(2, clustered(2))], &[], Some(6)).await;
    assert_eq!(bed.engine.applied().await.unwrap(), 6);
    let model = Model::from([(SpanKey::new(1), clustered(11)), (SpanKey::new(2), clustered(2))]);
    assert_eq!(check(bed, &model, &clustered(11), &ask(3)).await, 1.0);
}

async fn a_writer_whose_lease_has_ended_is_refused(bed: &Bed) {
    let batch = |key, fence| Batch {
        put: vec![put(key, clustered(key))],
        seq: i64::try_from(key).ok(),
        fence,
        ..Batch::default()
    };
    bed.engine.apply(batch(1, 4)).await.unwrap();
    bed.engine.apply(batch(2, 5)).await.unwrap();
    let error = bed.engine.apply(batch(3, 4)).await.err();
    assert!(matches!(error, Some(EngineError::StaleWriter { fence: 4, newest: 5 })), "{error:?}");
    assert_eq!((bed.engine.applied().await.unwrap(), bed.keys().await), (2, vec![1, 2]));
    bed.engine.apply(batch(3, 5)).await.unwrap();
    assert_eq!(bed.keys().await, [1, 2, 3]);
}

async fn keys_are_listed_by_range(bed: &Bed) {
    let keys = [3_u64, 10, 11, (1 << 32) - 1, 1 << 32, 1 << 50];
    bed.apply(keys.iter().map(|key| put(*key, clustered(*key))).collect(), &[], Some(1)).await;
    let within =
        async |from, to| numbers(&bed.engine.keys(AT, SpanKey::new(from)..SpanKey::new(to)).await.unwrap());
    assert_eq!(within(0, 11).await, [3, 10]);
    assert_eq!(within(11, 1 << 32).await, [11, (1 << 32) - 1]);
    assert_eq!(within(1 << 32, u64::MAX).await, [1 << 32, 1 << 50]);
    assert_eq!(within(5, 5).await, [0_u64; 0]);
    assert_eq!(bed.keys().await, keys);
}

async fn many_vectors_are_answered_like_a_sorted_list(bed: &Bed) {
    let mut model: Model = (0..MANY).map(|key| (SpanKey::new(key), clustered(key))).collect();
    let all: Vec<Put> = model.iter().map(|(key, unit)| put(key.number(), unit.clone())).collect();
    bed.apply(all, &[], Some(1)).await;
    let has_graph = async || {
        let status = bed.engine.status().await.unwrap();
        status.collections.first().filter(|held| held.graph).map(drop)
    };
    until("a graph is walked", has_graph).await;
    bed.engine.ready().await;
    check_many(bed, &model).await;
    // A fifth is deleted: too few for an engine to link its graph anew.
    let gone: Vec<u64> = (0..MANY).filter(|key| key % 5 == 0).collect();
    bed.apply(Vec::new(), &gone, Some(2)).await;
    gone.iter().for_each(|key| drop(model.remove(&SpanKey::new(*key))));
    check_many(bed, &model).await;
    // Three of five are deleted: each engine has linked its graph anew, or will.
    let gone: Vec<u64> = (0..MANY).filter(|key| key % 5 < 3).collect();
    bed.apply(Vec::new(), &gone, Some(3)).await;
    gone.iter().for_each(|key| drop(model.remove(&SpanKey::new(*key))));
    check_many(bed, &model).await;
}

/// Searches without a filter and with filters of 1 to 10^6 keys, automatic and exact.
async fn check_many(bed: &Bed, model: &Model) {
    let key_of_one = model.keys().next().copied().unwrap();
    let filters = [
        None,
        Some([key_of_one].into_iter().collect::<KeySet>()),
        Some((0..10_000).filter(|key| key % 3 == 0).map(SpanKey::new).collect()),
        Some((0..10_000).map(SpanKey::new).collect()),
        Some((1_000..1_001_000).map(SpanKey::new).collect()),
    ];
    for only in filters {
        let only = only.map(Allowed::keys);
        let mut recall = 0.0;
        const QUERIES: u64 = 30;
        for seed in 0..QUERIES {
            let query = clustered(9_000_000 + seed);
            let ask = Ask { k: 10, only: only.clone(), exact: false };
            recall += check(bed, model, &query, &ask).await;
            check(bed, model, &query, &Ask { exact: true, ..ask }).await;
        }
        let recall = recall / QUERIES as f64;
        let keys = only.as_ref().map(|only| only.keys.len());
        assert!(recall >= 0.95, "recall@10 is {recall} with a filter of {keys:?} keys");
        check(bed, model, &clustered(1), &Ask { k: 2 * MANY as usize, only, exact: false }).await;
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(Vec<(u64, u64)>),
    Remove(Vec<u64>),
    Search { seed: u64, k: usize, every: Option<u64>, exact: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => proptest::collection::vec((0..60_u64, 0..500_u64), 0..40).prop_map(Step::Put),
        2 => proptest::collection::vec(0..60_u64, 0..20).prop_map(Step::Remove),
        4 => (0..500_u64, 0..30_usize, proptest::option::of(1..7_u64), any::<bool>())
            .prop_map(|(seed, k, every, exact)| Step::Search { seed, k, every, exact }),
    ]
}

async fn whatever_is_applied_answers_are_those_of_a_sorted_list(bed: &Bed) {
    let mut runner = TestRunner::new(ProptestConfig { cases: 24, ..ProptestConfig::default() });
    let all = proptest::collection::vec(step(), 1..30);
    let runtime = tokio::runtime::Handle::current();
    let run = |steps: Vec<Step>| {
        runtime.block_on(take(bed, steps));
        Ok(())
    };
    tokio::task::block_in_place(|| runner.run(&all, run)).unwrap();
}

async fn take(bed: &Bed, steps: Vec<Step>) {
    bed.apply(Vec::new(), &bed.keys().await, None).await;
    let mut model = Model::new();
    for step in steps {
        match step {
            Step::Put(vectors) => {
                // The last vector of a key counts, as in a batch of changes.
                let last: BTreeMap<u64, u64> = vectors.into_iter().collect();
                bed.apply(last.iter().map(|it| put(*it.0, clustered(*it.1))).collect(), &[], None).await;
                model.extend(last.into_iter().map(|(key, seed)| (SpanKey::new(key), clustered(seed))));
            }
            Step::Remove(keys) => {
                bed.apply(Vec::new(), &keys, None).await;
                keys.iter().for_each(|key| drop(model.remove(&SpanKey::new(*key))));
            }
            Step::Search { seed, k, every, exact } => {
                let only =
                    every.map(|nth| Allowed::keys((0..80).step_by(nth as usize).map(SpanKey::new).collect()));
                check(bed, &model, &clustered(seed), &Ask { k, only, exact }).await;
            }
        }
    }
    assert!(bed.keys().await.iter().eq(model.keys().map(|key| key.number()).collect::<Vec<_>>().iter()));
}

/// An engine shared by several servers, whose coarse vectors give wrong scores.
struct Coarse(HnswRs);

const MOST_HITS: usize = 4;

#[async_trait]
impl VectorIndex for Coarse {
    fn limits(&self) -> Limits {
        Limits { most_hits: MOST_HITS, most_values: DIM, exact: false, shared: true }
    }

    async fn create(&self, space: &SpaceInfo) -> Result<(), EngineError> {
        self.0.create(space).await
    }

    async fn forget(&self, space: u32) -> Result<(), EngineError> {
        self.0.forget(space).await
    }

    async fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        self.0.apply(batch).await
    }

    async fn applied(&self) -> Result<i64, EngineError> {
        self.0.applied().await
    }

    async fn ready(&self) {}

    async fn search(
        &self,
        at: Collection,
        queries: &[UnitVector],
        ask: &Ask,
    ) -> Result<Vec<Hits>, EngineError> {
        assert!(ask.k <= MOST_HITS, "{} hits were asked for", ask.k);
        let mut found = self.0.search(at, queries, ask).await?;
        for hits in &mut found {
            hits.hits.iter_mut().for_each(|hit| hit.score = (hit.score * 2.0).round() / 2.0);
            hits.hits.reverse();
        }
        Ok(found)
    }

    async fn scores(
        &self,
        at: Collection,
        keys: &KeySet,
        queries: &[UnitVector],
    ) -> Result<Vec<Scored>, EngineError> {
        self.0.scores(at, keys, queries).await
    }

    async fn keys(&self, at: Collection, range: Range<SpanKey>) -> Result<KeySet, EngineError> {
        self.0.keys(at, range).await
    }

    async fn status(&self) -> Result<EngineStatus, EngineError> {
        self.0.status().await
    }
}

#[tokio::test]
async fn the_scores_of_a_shared_engine_are_those_of_the_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog::open(&catalog::embedded_url(folder.path())).await.unwrap();
    let row = samples::space(&catalog, "tiny", DIM).await;
    samples::add_ready(&catalog, samples::video("a"), 10, &[&row]).await;
    let at = Collection { space: row.key, level: Level::Clip };
    let spaces = vec![row.expectation()];
    let vectors = Vectors::over(Arc::new(Coarse(HnswRs::default())), catalog.clone(), spaces).await.unwrap();
    let vectors = Arc::new(vectors);
    vectors.catch_up().await.unwrap();
    assert_eq!(vectors.status().await.unwrap().live(at), 10);
    let keys: Vec<SpanKey> = catalog.vector_keys(row.key, Level::Clip).await.unwrap().iter().collect();
    let stored = catalog.vectors_of(row.key, &keys).await.unwrap();
    let query = clustered(5);
    let mut right: Vec<Hit> =
        stored.iter().map(|it| Hit { key: it.span, score: query.dot(&it.unit) }).collect();
    Hit::sort(&mut right);
    let found = vectors.search(at, &[query], &ask(9)).await.unwrap().remove(0);
    assert_eq!(found.hits, right[..MOST_HITS]);
    assert!(!found.complete);
    let wide = SpaceInfo { key: 99, id: "wide".to_owned(), dim: DIM + 1 };
    let refused = vectors.add(wide).await.err();
    assert!(matches!(refused, Some(EngineError::TooWide { most: DIM, .. })), "{refused:?}");
}
