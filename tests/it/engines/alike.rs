//! The same vectors, filters, deletes and restores in every engine: the same answers.

use reprise_server::catalog::Visibility;
use std::collections::BTreeMap;
use std::sync::Arc;

use reprise_server::terms::{Collection, KeySet, Level, SpanKey, UnitVector};
use reprise_server::vectors::{Allowed, Ask, EngineKind, Hits, Vectors};
use reprise_tests::milvus::Empty;
use reprise_tests::postgres::vector_database;
use tokio_util::sync::CancellationToken;

use super::{Library, clustered};
use crate::faults::bed::until;

const DIM: usize = 32;
const VIDEOS: u64 = 20;
const CLIPS_PER_VIDEO: u64 = 500;
const QUERIES: usize = 200;
/// Numbers of allowed clips, beside a search without a filter.
const FILTERS: [u64; 4] = [1, 50, 1_000, 9_000];
/// Smallest mean recall at 10 of searches that need not be exact.
const RECALL: f64 = 0.99;

/// The vectors of the catalog's clips.
type Stored = BTreeMap<SpanKey, UnitVector>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_engine_finds_the_same_ten() {
    let Some(url) = vector_database().await else { return };
    let Some(milvus) = Empty::start().await else { return };
    let library = Library::new(DIM).await;
    for video in 0..VIDEOS {
        let clips = (0..CLIPS_PER_VIDEO).map(|clip| clustered(video * CLIPS_PER_VIDEO + clip, DIM));
        library.add(&format!("video {video}"), &clips.collect::<Vec<_>>()).await;
    }
    let engines = [
        library.vectors(EngineKind::Builtin, None).await,
        library.vectors(EngineKind::HnswRs, None).await,
        library.vectors(EngineKind::Pgvector, Some(url)).await,
        library.vectors(EngineKind::Milvus, Some(milvus.url())).await,
    ];
    let closing = CancellationToken::new();
    for engine in &engines {
        tokio::spawn(Arc::clone(engine).maintain(closing.clone()));
        engine.catch_up().await.unwrap();
    }
    check_all(&library, &engines).await;
    let videos = library.catalog.view(crate::catalog::ALL).videos(None, 2).await.unwrap();
    let [deleted, trashed] = [videos[0].id, videos[1].id];
    let view = library.catalog.view(&Visibility::All);
    view.delete_video(deleted).await.unwrap().unwrap();
    view.trash_video(trashed).await.unwrap().unwrap();
    for engine in &engines {
        engine.catch_up().await.unwrap();
    }
    check_all(&library, &engines).await;
    view.restore_video(trashed).await.unwrap().unwrap();
    for engine in &engines {
        engine.catch_up().await.unwrap();
    }
    check_all(&library, &engines).await;
    closing.cancel();
}

async fn check_all(library: &Library, engines: &[Arc<Vectors>]) {
    let space = library.space.key;
    let at = Collection { space, level: Level::Clip };
    let keys: Vec<SpanKey> = library.catalog.vector_keys(space, Level::Clip).await.unwrap().iter().collect();
    let stored = library.catalog.vectors_of(space, &keys).await.unwrap();
    let stored: Stored = stored.into_iter().map(|it| (it.span, it.unit)).collect();
    let step = keys.len() / QUERIES;
    let queries: Vec<UnitVector> =
        keys.iter().step_by(step).take(QUERIES).map(|key| stored[key].clone()).collect();
    for engine in engines {
        wait_for_graph(engine, at).await;
    }
    let filters = FILTERS.iter().map(|&allowed| {
        let every = (keys.len() as u64 / allowed).max(1) as usize;
        Some(keys.iter().copied().step_by(every).take(allowed as usize).collect::<KeySet>())
    });
    for only in std::iter::once(None).chain(filters) {
        let right = queries.iter().map(|query| nearest(&stored, query, only.as_ref())).collect();
        let asked = Asked { at, queries: &queries, only, right };
        for engine in engines {
            check(engine, &stored, &asked).await;
        }
    }
}

/// Queries, the keys that they may find, and the ten nearest of each.
struct Asked<'a> {
    at: Collection,
    queries: &'a [UnitVector],
    only: Option<KeySet>,
    right: Vec<Vec<SpanKey>>,
}

async fn wait_for_graph(engine: &Vectors, at: Collection) {
    let has_graph = async || {
        let status = engine.status().await.unwrap();
        status.collections.iter().any(|held| held.at == at && held.graph).then_some(())
    };
    until("the engine has a graph", has_graph).await;
}

/// Checks exact answers to the last hit, and the recall of the others.
async fn check(engine: &Vectors, stored: &Stored, asked: &Asked<'_>) {
    let (kind, Asked { at, queries, only, right }) = (engine.kind(), asked);
    let filter = only.as_ref().map(KeySet::len);
    let ask = Ask { k: 10, only: only.clone().map(Allowed::keys), exact: engine.limits().exact };
    let exact = engine.search(*at, queries, &ask).await.unwrap();
    let near = engine.search(*at, queries, &Ask { exact: false, ..ask }).await.unwrap();
    let mut recall = 0.0;
    for ((right, exact), near) in right.iter().zip(&exact).zip(&near) {
        let strangers =
            near.hits.iter().filter(|hit| !stored.contains_key(&hit.key) || !may(hit.key, only.as_ref()));
        assert_eq!(strangers.count(), 0, "{kind:?} with {filter:?} allowed");
        if engine.limits().exact {
            assert_eq!(keys_of(exact), *right, "{kind:?} with {filter:?} allowed");
        }
        let found = keys_of(near).into_iter().filter(|key| right.contains(key)).count();
        recall += found as f64 / right.len() as f64;
    }
    let recall = recall / queries.len() as f64;
    assert!(recall >= RECALL, "{kind:?} with {filter:?} allowed: recall@10 is {recall}");
}

fn may(key: SpanKey, only: Option<&KeySet>) -> bool {
    only.is_none_or(|only| only.contains(key))
}

fn keys_of(hits: &Hits) -> Vec<SpanKey> {
    hits.hits.iter().map(|hit| hit.key).collect()
}

fn nearest(stored: &Stored, query: &UnitVector, only: Option<&KeySet>) -> Vec<SpanKey> {
    let allowed = stored.iter().filter(|(key, _)| may(**key, only));
    let mut all: Vec<(f32, SpanKey)> = allowed.map(|(key, unit)| (query.dot(unit), *key)).collect();
    let by_rank =
        |one: &(f32, SpanKey), other: &(f32, SpanKey)| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1));
    if all.len() > 10 {
        all.select_nth_unstable_by(10, by_rank);
        all.truncate(10);
    }
    all.sort_by(by_rank);
    all.into_iter().map(|(_, key)| key).collect()
}
