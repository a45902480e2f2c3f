//! Compares the index with a trivial model: a map from key to vector and a sorted list of scores.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use roaring::RoaringTreemap;

use super::*;

const AT: Collection = Collection { space: 3, level: Level::Clip };
const DIM: usize = 24;
/// Builds graphs and seals from small sets on, so that small tests cover them.
const EAGER: Settings =
    Settings { segment_from: 64, seal_from: 300, codes: Codes::Int4, memory: None, build_threads: 1 };
/// Brute force only, at the sizes of these tests.
const PATIENT: Settings = Settings { segment_from: 1 << 40, seal_from: 1 << 40, ..EAGER };
/// The codes that can confuse nearly equal vectors.
const COARSE: [Codes; 2] = [Codes::Int8, Codes::Int4];

fn space() -> SpaceInfo {
    SpaceInfo { key: AT.space, id: "a-space".into(), dim: DIM }
}

/// A pseudo-random value in -0.5 .. 0.5, the same for the same arguments.
fn noise(seed: u64, at: usize) -> f32 {
    let mut state = (seed << 20 | at as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((state ^ (state >> 31)) >> 40) as f32 / (1 << 24) as f32 - 0.5
}

/// A vector of one of 40 clusters around a common direction: real embeddings are neither uniform nor centred.
fn clustered(seed: u64) -> UnitVector {
    let cluster = 1_000_000 + seed % 40;
    let raw: Vec<f32> = (0..DIM)
        .map(|at| 0.5 + noise(cluster, at) + 0.5 * noise(seed, at) / (1.0 + at as f32 / 8.0))
        .collect();
    UnitVector::from_raw(&raw).expect("has a direction").0
}

/// The catalog's state: the live vectors, and every change by its sequence number.
#[derive(Default, Clone)]
struct Model {
    live: BTreeMap<SpanKey, UnitVector>,
    changes: Vec<(SpanKey, Option<u64>)>,
}

impl Model {
    fn search(&self, query: &UnitVector, k: usize, filter: &Filter) -> Vec<(SpanKey, f64)> {
        let dot = |vector: &UnitVector| -> f64 {
            vector
                .values()
                .iter()
                .zip(query.values())
                .map(|(&left, &right)| f64::from(left) * f64::from(right))
                .sum()
        };
        let passes = |key: SpanKey| filter.only.as_ref().is_none_or(|only| only.contains(key));
        let mut all: Vec<_> = self
            .live
            .iter()
            .filter(|(key, _)| passes(**key))
            .map(|(key, vector)| (*key, dot(vector)))
            .collect();
        all.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        all.truncate(k);
        all
    }

    fn matching(&self, filter: &Filter) -> usize {
        self.live.keys().filter(|key| filter.only.as_ref().is_none_or(|only| only.contains(**key))).count()
    }
}

/// Checks the invariants of every answer; returns the share of the true hits in it.
#[track_caller]
fn check(index: &Index, model: &Model, query: &UnitVector, k: usize, filter: &Filter, mode: Mode) -> f64 {
    let got = index.search(AT, query, k, filter, mode).expect("a vector of the space");
    let expected = model.search(query, k, filter);
    assert_eq!(got.matching, model.matching(filter) as u64);
    assert_eq!(got.hits.len(), expected.len(), "fewer than min(k, matches) came back");
    assert!(got.unreadable.is_empty());
    assert!(got.exact || mode != Mode::Exact);
    for pair in got.hits.windows(2) {
        let in_order =
            pair[0].score > pair[1].score || pair[0].score == pair[1].score && pair[0].key < pair[1].key;
        assert!(in_order, "{pair:?} is out of order");
    }
    for hit in &got.hits {
        let vector = model.live.get(&hit.key).expect("only live keys come back");
        assert!(filter.only.as_ref().is_none_or(|only| only.contains(hit.key)), "{hit:?} is filtered out");
        assert!((hit.score - vector.dot(query)).abs() < 1e-5, "{hit:?} has the score of another vector");
    }
    let worst = expected.last().map_or(-2.0, |(_, score)| *score);
    let found = got.hits.iter().filter(|hit| f64::from(hit.score) >= worst - 1e-5).count();
    if got.exact {
        assert_eq!(found, expected.len(), "brute force missed a hit");
    }
    found as f64 / expected.len().max(1) as f64
}

/// Mean recall at 10 over `queries` queries.
#[track_caller]
fn recall(index: &Index, model: &Model, queries: u64, filter: &Filter) -> f64 {
    recall_in(index, model, queries, filter, Mode::Auto)
}

#[track_caller]
fn recall_in(index: &Index, model: &Model, queries: u64, filter: &Filter, mode: Mode) -> f64 {
    let of = |seed| check(index, model, &clustered(9_000_000 + seed), 10, filter, mode);
    (0..queries).map(of).sum::<f64>() / queries as f64
}

fn filled(settings: Settings, keys: std::ops::Range<u64>) -> (Index, Model) {
    let (index, mut model) = (Index::with_settings(settings), Model::default());
    index.declare(&space()).expect("a new space");
    for key in keys {
        insert(&index, &mut model, key, key);
    }
    (index, model)
}

fn insert(index: &Index, model: &mut Model, key: SpanKey, seed: u64) {
    let vector = clustered(seed);
    index.insert(AT, key, &vector).expect("a vector of the space");
    model.live.insert(key, vector);
    model.changes.push((key, Some(seed)));
}

fn remove(index: &Index, model: &mut Model, key: SpanKey) {
    index.remove(AT, key);
    model.live.remove(&key);
    model.changes.push((key, None));
}

fn only(keys: impl IntoIterator<Item = SpanKey>) -> Filter {
    Filter { only: Some(Arc::new(RoaringTreemap::from_iter(keys))) }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(SpanKey, u64),
    InsertMany(u64),
    Remove(SpanKey),
    RemoveEvery(u64),
    Seal,
    Save,
    Kill(u64),
    Search { seed: u64, k: usize, every: Option<u64> },
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..1_500_u64;
    prop_oneof![
        4 => (key.clone(), 0..5_000_u64).prop_map(|(key, seed)| Step::Insert(key, seed)),
        2 => (1..600_u64).prop_map(Step::InsertMany),
        4 => key.prop_map(Step::Remove),
        1 => (2..9_u64).prop_map(Step::RemoveEvery),
        1 => Just(Step::Seal),
        1 => Just(Step::Save),
        2 => (0..60_u64).prop_map(Step::Kill),
        6 => (0..5_000_u64, 0..40_usize, proptest::option::of(prop_oneof![1..200_u64, Just(1_000), Just(10_000)]))
            .prop_map(|(seed, k, every)| Step::Search { seed, k, every }),
    ]
}

/// An index as a start builds it: from the snapshot, if there is one, and the later changes.
fn started(folder: &Path, settings: Settings, model: &Model) -> Index {
    let (index, seq) = match Index::load(folder, &[space()], settings) {
        Ok(loaded) => {
            assert!(loaded.left_out.is_empty());
            (loaded.index, loaded.seq as usize)
        }
        Err(SnapshotError::Missing(_)) => (Index::in_folder(folder, settings), 0),
        Err(error) => panic!("{error}"),
    };
    index.declare(&space()).expect("the space that it is");
    for (key, seed) in &model.changes[seq..] {
        match seed {
            Some(seed) => index.insert(AT, *key, &clustered(*seed)).expect("a vector of the space"),
            None => index.remove(AT, *key),
        }
    }
    index
}

fn run(settings: Settings, steps: &[Step]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut model = Model::default();
    let mut index = started(folder.path(), settings, &model);
    (0..300).for_each(|key| insert(&index, &mut model, key, key));
    let mut highest = 300;
    for step in steps {
        match *step {
            Step::Insert(key, seed) => insert(&index, &mut model, key, seed),
            Step::InsertMany(count) => {
                (highest..highest + count).for_each(|key| insert(&index, &mut model, key, key));
                highest += count;
            }
            Step::Remove(key) => remove(&index, &mut model, key),
            Step::RemoveEvery(nth) => {
                (0..highest).step_by(nth as usize).for_each(|key| remove(&index, &mut model, key));
            }
            Step::Seal => index.seal(AT),
            Step::Save => index.save(folder.path(), model.changes.len() as u64).expect("is saved"),
            Step::Kill(steps) => {
                disk::killed_after(steps, || {
                    if steps % 3 > 0 {
                        index.seal(AT);
                    }
                    let _ = index.save(folder.path(), model.changes.len() as u64);
                });
                index.settle();
                index = started(folder.path(), settings, &model);
            }
            Step::Search { seed, k, every } => {
                let filter =
                    every.map_or_else(Filter::default, |nth| only((0..highest).step_by(nth as usize)));
                check(&index, &model, &clustered(seed), k, &filter, Mode::Auto);
                check(&index, &model, &clustered(seed), k, &filter, Mode::Exact);
            }
        }
    }
    assert_eq!(index.live(AT), model.live.len() as u64);
    assert!(index.keys(AT).iter().eq(model.live.keys().copied()));
    for mode in [Mode::Auto, Mode::Walk { ef: 64 }] {
        let found = recall_in(&index, &model, 30, &Filter::default(), mode);
        assert!(found > 0.97, "recall@10 is {found} in {mode:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_a_graph_answers_like_a_sorted_list(steps in proptest::collection::vec(step(), 1..40)) {
        run(EAGER, &steps);
    }

    #[test]
    fn whatever_happens_brute_force_answers_like_a_sorted_list(steps in proptest::collection::vec(step(), 1..40)) {
        run(PATIENT, &steps);
    }
}

#[test]
fn what_is_not_there_has_no_hits() {
    let index = Index::new();
    let query = clustered(1);
    let nothing = Hits { hits: vec![], matching: 0, exact: true, unreadable: vec![] };
    assert_eq!(index.search(AT, &query, 10, &Filter::default(), Mode::Auto), Ok(nothing.clone()));
    index.insert(AT, 5, &query).unwrap();
    let elsewhere = Collection { level: Level::Video, ..AT };
    assert_eq!(index.search(elsewhere, &query, 10, &Filter::default(), Mode::Auto), Ok(nothing));
    index.remove(AT, 5);
    index.remove(AT, 6);
    index.remove(elsewhere, 5);
    assert_eq!(index.levels(), []);
    assert_eq!(index.check(AT, 10), None);
}

#[test]
fn the_first_vector_or_the_declaration_fixes_the_dimension() {
    let short = UnitVector::from_raw(&[1.0, 2.0]).unwrap().0;
    let wrong = IndexError::Dimension { got: 2, expected: DIM };
    let index = Index::new();
    index.insert(AT, 1, &clustered(1)).unwrap();
    assert_eq!(index.insert(Collection { level: Level::Video, ..AT }, 2, &short), Err(wrong));
    let index = Index::new();
    index.declare(&space()).unwrap();
    index.declare(&space()).unwrap();
    let wrong = IndexError::Dimension { got: 2, expected: DIM };
    assert_eq!(index.search(AT, &short, 1, &Filter::default(), Mode::Auto), Err(wrong));
    for other in [SpaceInfo { dim: 2, ..space() }, SpaceInfo { id: "another".into(), ..space() }] {
        assert!(matches!(index.declare(&other), Err(IndexError::Redeclared { key: 3, .. })));
    }
    index.forget(AT.space);
    index.insert(AT, 1, &short).unwrap();
}

#[test]
fn a_vector_that_is_inserted_again_changes_nothing() {
    let (index, model) = filled(EAGER, 0..200);
    index.settle();
    let before = index.generation();
    for _ in 0..20 {
        for key in 0..200 {
            index.insert(AT, key, &clustered(key)).unwrap();
        }
    }
    index.settle();
    assert_eq!(index.generation(), before);
    assert_eq!(recall(&index, &model, 20, &Filter::default()), 1.0);
}

#[test]
fn a_graph_is_built_by_itself_and_again_when_half_is_dead() {
    let (index, mut model) = filled(EAGER, 0..4_000);
    index.settle();
    assert!(index.has_graph(AT));
    let before = index.generation();
    for key in 0..2_500 {
        remove(&index, &mut model, key);
    }
    index.settle();
    assert!(index.generation() > before);
    assert!(recall(&index, &model, 50, &Filter::default()) > 0.97);
    assert!(index.check(AT, 100).unwrap() > 0.97);
}

#[test]
fn a_flood_is_sealed_while_it_comes() {
    let (index, mut model) = filled(EAGER, 0..0);
    let growing = || index.collection(AT).unwrap().state.read().growing().part.len();
    for key in 0..6_000 {
        insert(&index, &mut model, key, key);
        // The next seal may begin a few inserts after the last one ended.
        assert!(growing() < 900, "{} rows grew before they were sealed", growing());
    }
    index.settle();
    assert!(index.collection(AT).unwrap().view().parts.len() < 8, "segments were not merged");
    assert!(recall(&index, &model, 50, &Filter::default()) > 0.97);
}

#[test]
fn a_set_that_shrank_is_searched_by_brute_force_again() {
    let (index, mut model) = filled(EAGER, 0..500);
    index.settle();
    (10..500).for_each(|key| remove(&index, &mut model, key));
    index.seal(AT);
    assert!(!index.has_graph(AT));
    assert_eq!(recall(&index, &model, 5, &Filter::default()), 1.0);
}

#[test]
fn the_graph_finds_the_nearest_whatever_the_filter() {
    for codes in COARSE {
        check_filters(Settings { codes, ..EAGER });
    }
}

#[track_caller]
fn check_filters(settings: Settings) {
    let (index, model) = filled(settings, 0..6_000);
    index.settle();
    for nth in [1, 2, 3, 10, 100, 1_000, 5_999] {
        let found = recall(&index, &model, 40, &only((0..6_000).step_by(nth)));
        assert!(found > 0.97, "recall@10 is {found} where one of {nth} matches");
    }
    // One cluster, far from most queries.
    let found = recall(&index, &model, 80, &only((0..6_000).filter(|key| key % 40 == 7)));
    assert!(found > 0.97, "recall@10 is {found} where one cluster matches");
    // Brute force would hide a bad graph: it answers when a walk finds too little, or what its codes can't tell apart.
    for (filter, mode) in [
        (Filter::default(), Mode::Auto),
        (Filter::default(), Mode::Walk { ef: 64 }),
        (only((0..6_000).step_by(2)), Mode::Auto),
        (only((0..6_000).step_by(2).chain([1 << 40])), Mode::Auto),
    ] {
        for seed in 0..20 {
            let answer = index.search(AT, &clustered(seed), 10, &filter, mode).unwrap();
            assert!(!answer.exact, "the graph was not asked: {mode:?}");
        }
    }
    // Few listed rows are compared by their vectors, many by their codes first.
    for (nth, exact) in [(10, false), (100, true)] {
        let answer = index.search(AT, &clustered(1), 10, &only((0..6_000).step_by(nth)), Mode::Auto).unwrap();
        assert_eq!(answer.exact, exact, "one of {nth} matches");
    }
}

#[test]
fn threads_build_the_segment_that_one_builds() {
    for codes in Codes::ALL {
        let (index, model) = filled(Settings { codes, build_threads: 3, ..EAGER }, 0..2_000);
        index.seal(AT);
        for (key, vector) in &model.live {
            assert_eq!(index.vector(AT, *key).as_ref(), Some(vector), "{codes:?}: key {key}");
        }
        let found = recall_in(&index, &model, 40, &Filter::default(), Mode::Walk { ef: 64 });
        assert!(found > 0.97, "{codes:?}: recall@10 is {found}");
        let of =
            |seed| index.search(AT, &clustered(seed), 10, &Filter::default(), Mode::Walk { ef: 64 }).unwrap();
        assert!((0..40).all(|seed| !of(seed).exact), "{codes:?}: the graph was not asked");
    }
}

#[test]
fn memory_is_counted_before_a_seal_and_after() {
    let (index, _) = filled(PATIENT, 0..1_000);
    assert_eq!((index.bytes(AT), index.live(AT)), (1_000 * (DIM as u64 * 4 + 8), 1_000));
    let (index, _) = filled(EAGER, 0..0);
    (0..1_000).for_each(|key| index.fill(AT, key, &clustered(key)).unwrap());
    index.seal(AT);
    // Keys, links, codes and vectors, in whole pages.
    assert_eq!(index.bytes(AT), 249_856 + 98_304);
    assert!(index.contains(AT, 999) && !index.contains(AT, 1_000));
}

/// Black frames and still slides: a thousand vectors, equal up to `spread`.
#[track_caller]
fn check_crowd(codes: Codes, spread: f32, crowd: std::ops::Range<u64>, others: std::ops::Range<u64>) {
    // One seal, at the end: the graph then does not depend on when others began.
    let (index, mut model) = filled(Settings { codes, seal_from: 1 << 40, ..EAGER }, 0..0);
    let black = clustered(77_777);
    for key in crowd.start.min(others.start)..crowd.end.max(others.end) {
        if others.contains(&key) {
            insert(&index, &mut model, key, key);
            continue;
        }
        let values: Vec<f32> = (0..DIM).map(|at| black.values()[at] + spread * noise(key, at)).collect();
        let vector = UnitVector::from_raw(&values).expect("has a direction").0;
        index.insert(AT, key, &vector).expect("a vector of the space");
        model.live.insert(key, vector);
    }
    index.seal(AT);
    let found = check(&index, &model, &black, 50, &Filter::default(), Mode::Auto);
    assert!(found > 0.97, "recall@50 is {found} for the crowd itself");
    let graph_alone = index.check(AT, 300).expect("there is a graph");
    assert!(graph_alone > 0.97, "{codes:?}, {spread}: recall@10 of the graph is {graph_alone}");
    for filter in [Filter::default(), only(others)] {
        let found = recall(&index, &model, 200, &filter);
        assert!(found > 0.97, "recall@10 is {found}");
    }
}

#[test]
fn a_crowd_of_equal_vectors_hides_nothing() {
    for (codes, spread) in
        COARSE.into_iter().flat_map(|codes| [0.0, 1e-6, 1e-2].map(|spread| (codes, spread)))
    {
        check_crowd(codes, spread, 0..1_000, 1_000..3_000);
        check_crowd(codes, spread, 2_000..3_000, 0..2_000);
    }
}

/// A thousand equal vectors have one error of their codes. If it is small by chance, it tells nothing of the others'.
#[test]
fn what_is_nearer_than_a_crowd_of_equal_vectors_is_found() {
    for codes in COARSE {
        let (index, mut model) = filled(Settings { codes, ..EAGER }, 0..2_000);
        let pull = |seed: u64, by: f32| -> UnitVector {
            let (near, noise) = (clustered(seed % 100), clustered(5_000_000 + seed));
            let values = near.values().iter().zip(noise.values()).map(|(near, noise)| near + by * noise);
            UnitVector::from_raw(&values.collect::<Vec<_>>()).expect("has a direction").0
        };
        for key in 2_000..7_000 {
            // A hundred crowds of fifty, and fewer vectors nearer to the query.
            let vector = pull(key % 100, 0.3);
            index.insert(AT, key, &vector).expect("a vector of the space");
            model.live.insert(key, vector);
        }
        for key in 7_000..7_300 {
            let vector = pull(100 * key + key % 100, 0.25);
            index.insert(AT, key, &vector).expect("a vector of the space");
            model.live.insert(key, vector);
        }
        index.seal(AT);
        for k in [1, 10] {
            let of =
                |seed| check(&index, &model, &clustered(seed), k, &Filter::default(), Mode::Walk { ef: 96 });
            let found = (0..100).map(of).sum::<f64>() / 100.0;
            assert!(found > 0.99, "{codes:?}: recall@{k} is {found}");
        }
    }
}

#[test]
fn searches_beside_writers_and_rebuilds_are_never_short_and_never_stale() {
    let (index, _) = filled(EAGER, 0..2_000);
    index.settle();
    // Removed before any search starts: no answer may contain them.
    let gone = RoaringTreemap::from_iter((0..2_000).filter(|key| key % 10 == 0));
    gone.iter().for_each(|key| index.remove(AT, key));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..3_u64 {
                for key in 2_000..2_600 {
                    index.insert(AT, key, &clustered(key + round)).unwrap();
                }
                index.seal(AT);
                (2_000..2_600).step_by(2).for_each(|key| index.remove(AT, key));
            }
            stop.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            let mut seed = 0;
            while !stop.load(Ordering::Relaxed) {
                seed += 1;
                let got = index.search(AT, &clustered(seed), 10, &Filter::default(), Mode::Auto).unwrap();
                assert_eq!(got.hits.len(), 10);
                assert!(got.hits.iter().all(|hit| !gone.contains(hit.key)));
                let keys = RoaringTreemap::from_iter(got.hits.iter().map(|hit| hit.key));
                assert_eq!(keys.len(), 10, "a key came back twice");
            }
        });
    });
}

#[test]
fn a_seal_makes_nobody_wait() {
    let (index, mut model) = filled(EAGER, 0..2_000);
    index.settle();
    let (begun, is_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            index.seal_with(AT, 1, &|done, all| {
                if done == all {
                    begun.send(()).unwrap();
                    may_go_on.lock().unwrap().recv().unwrap();
                }
            });
        });
        // The seal is paused here: a call that waited for it would never return.
        is_begun.recv().unwrap();
        for key in 0..300 {
            remove(&index, &mut model, key);
            insert(&index, &mut model, 5_000 + key, key);
        }
        assert!(recall(&index, &model, 20, &Filter::default()) > 0.97);
        check(&index, &model, &clustered(3), 10, &Filter::default(), Mode::Exact);
        go_on.send(()).unwrap();
    });
    assert!(index.keys(AT).iter().eq(model.live.keys().copied()), "an update was lost");
    assert!(recall(&index, &model, 50, &Filter::default()) > 0.97);
}

#[test]
fn a_crowd_of_threads_loses_no_update() {
    const THREADS: u64 = 4;
    let index = Index::with_settings(EAGER);
    index.declare(&space()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let index = &index;
            scope.spawn(move || {
                for key in (thread..4_000).step_by(THREADS as usize) {
                    index.insert(AT, key, &clustered(key)).unwrap();
                    if key % 5 == 0 {
                        index.remove(AT, key);
                    }
                    let query = clustered(key + 1);
                    let got = index.search(AT, &query, 5, &Filter::default(), Mode::Auto).unwrap();
                    let is_own = |key: u64| key % THREADS == thread;
                    let is_gone = |old: u64| is_own(old) && old.is_multiple_of(5) && old <= key;
                    assert!(!got.hits.iter().any(|hit| is_gone(hit.key)), "a deleted key came back");
                }
            });
        }
    });
    index.settle();
    assert!(index.keys(AT).iter().eq((0..4_000).filter(|key| key % 5 > 0)));
}
