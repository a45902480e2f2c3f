//! More allowed keys than a statement lists, and longer vectors than usual, on engines of their own servers.

use std::sync::Arc;

use reprise_server::terms::{Collection, KeySet, Level, SpaceInfo, SpanKey, UnitVector, VideoNumber};
use reprise_server::vectors::{Allowed, Ask, Batch, EngineKind, Milvus, Pgvector, Put, VectorIndex};
use reprise_tests::milvus::Empty;
use reprise_tests::postgres::vector_database;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::clustered;
use crate::faults::bed::until;

const AT: Collection = Collection { space: 1, level: Level::Clip };

macro_rules! on_outside_engines {
    ($($check:ident),+ $(,)?) => {
        mod pgvector {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                super::run(super::EngineKind::Pgvector, super::$check).await;
            })+
        }

        mod milvus {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                super::run(super::EngineKind::Milvus, super::$check).await;
            })+
        }
    };
}

on_outside_engines!(many_allowed_keys_are_no_strangers, long_vectors_pass_every_limit);

type Engine = Arc<dyn VectorIndex>;

async fn run<F: Future<Output = ()>>(kind: EngineKind, check: impl FnOnce(Engine) -> F) {
    let library = Uuid::new_v4();
    let mut milvus = None;
    let engine: Engine = match kind {
        EngineKind::Milvus => {
            let Some(empty) = Empty::start().await else { return };
            Arc::new(Milvus::open(&milvus.insert(empty).url(), library).await.unwrap())
        }
        _ => {
            let Some(url) = vector_database().await else { return };
            Arc::new(Pgvector::open(&url, library).await.unwrap())
        }
    };
    let closing = CancellationToken::new();
    let (kept, until) = (Arc::clone(&engine), closing.clone());
    let keeper = tokio::spawn(async move { kept.maintain(until).await });
    check(engine).await;
    closing.cancel();
    keeper.await.unwrap();
}

async fn fill(engine: &Engine, vectors: impl Iterator<Item = (u64, UnitVector)>) {
    let put =
        |(key, unit)| Put { at: AT, key: SpanKey::new(key), video: VideoNumber::new(1 + key / 10), unit };
    let all: Vec<Put> = vectors.map(put).collect();
    for part in all.chunks(4_000) {
        engine.apply(Batch { put: part.to_vec(), ..Batch::default() }).await.unwrap();
    }
    engine.apply(Batch { seq: Some(1), ..Batch::default() }).await.unwrap();
    let has_graph = async || {
        let status = engine.status().await.unwrap();
        status.collections.iter().any(|held| held.graph).then_some(())
    };
    until("the engine has a graph", has_graph).await;
}

async fn many_allowed_keys_are_no_strangers(engine: Engine) {
    const DIM: usize = 24;
    engine.create(&SpaceInfo { key: AT.space, id: "many".to_owned(), dim: DIM }).await.unwrap();
    fill(&engine, (0..14_000).map(|key| (key, clustered(key, DIM)))).await;
    // Videos hold ten keys each; nine of ten are allowed.
    let keys: KeySet = (0..12_000).filter(|key| key % 10 > 0).map(SpanKey::new).collect();
    let videos: Vec<VideoNumber> = (1..=1_200).map(VideoNumber::new).collect();
    let queries: Vec<UnitVector> = (0..20).map(|seed| clustered(900_000 + seed, DIM)).collect();
    for only in [Allowed { keys: keys.clone(), videos: Some(videos.into()) }, Allowed::keys(keys)] {
        for k in [1, 10, 10_800] {
            let ask = Ask { k, only: Some(only.clone()), exact: false };
            for hits in engine.search(AT, &queries[..1], &ask).await.unwrap() {
                assert!(hits.hits.len() * 10 >= k * 9, "{} of {k}", hits.hits.len());
                assert!(hits.hits.iter().all(|hit| only.keys.contains(hit.key)), "a stranger");
            }
        }
        let ask = Ask { k: 50, only: Some(only), exact: false };
        let all = engine.search(AT, &queries, &ask).await.unwrap();
        assert!(all.iter().all(|hits| hits.hits.len() == 50 && !hits.complete));
    }
    let asked: KeySet = (0..20_000).map(SpanKey::new).collect();
    let scored = engine.scores(AT, &asked, &queries[..2]).await.unwrap();
    assert_eq!(scored.len(), 14_000);
    assert!(scored.windows(2).all(|pair| pair[0].key < pair[1].key));
    assert_eq!(engine.keys(AT, SpanKey::ALL).await.unwrap().len(), 14_000);
}

async fn long_vectors_pass_every_limit(engine: Engine) {
    const DIM: usize = 3_000;
    const COUNT: u64 = 2_100;
    engine.create(&SpaceInfo { key: AT.space, id: "long".to_owned(), dim: DIM }).await.unwrap();
    fill(&engine, (0..COUNT).map(|key| (key, clustered(key, DIM)))).await;
    let query = [clustered(5, DIM)];
    // pgvector keeps such vectors in 16 bits a value.
    let keys: KeySet = (0..COUNT).map(SpanKey::new).collect();
    let scored = engine.scores(AT, &keys, &query).await.unwrap();
    assert_eq!(scored.len() as u64, COUNT);
    assert!((scored[5].cosines[0] - 1.0).abs() < 1e-3, "{}", scored[5].cosines[0]);
    let found = engine.search(AT, &query, &Ask { k: 3, only: None, exact: false }).await.unwrap().remove(0);
    assert_eq!((found.hits.len(), found.hits[0].key), (3, SpanKey::new(5)));
}
