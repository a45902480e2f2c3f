//! An engine's server is killed and started again, in the middle of batches, searches and rebuilds.

use reprise_server::catalog::Visibility;
use std::sync::Arc;
use std::time::Duration;

use reprise_server::terms::{Collection, Level};
use reprise_server::vectors::{Ask, EngineError, EngineKind, EngineSettings, Vectors};
use tokio_util::sync::CancellationToken;

use super::{Library, Outside, clustered};
use crate::faults::bed::{Random, until};

const DIM: usize = 16;
const CLIPS: u64 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pgvector_heals_after_every_death() {
    check(EngineKind::Pgvector, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn milvus_heals_after_every_death() {
    check(EngineKind::Milvus, if reprise_tests::is_full() { 20 } else { 4 }).await;
}

async fn check(kind: EngineKind, kills: u64) {
    let Some(mut outside) = Outside::start(kind).await else { return };
    let library = Arc::new(Library::new(DIM).await);
    let vectors = library.vectors(kind, Some(outside.url())).await;
    let closing = CancellationToken::new();
    let follower = tokio::spawn(Arc::clone(&vectors).follow(closing.clone()));
    let writer = tokio::spawn(write(Arc::clone(&library), closing.clone()));
    let searcher = tokio::spawn(search(Arc::clone(&library), Arc::clone(&vectors), closing.clone()));
    let mut random = Random(7);
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(50 + random.below(400))).await;
        outside.kill();
        outside.start_again().await;
    }
    closing.cancel();
    writer.await.unwrap();
    searcher.await.unwrap();
    follower.await.unwrap();
    agree(&library, &vectors).await;
    rebuild_among_deaths(kind, kills, &library, outside, &vectors).await;
}

/// Adds and deletes videos.
async fn write(library: Arc<Library>, closing: CancellationToken) {
    let mut number = 0;
    while !closing.is_cancelled() {
        let clips: Vec<_> = (0..CLIPS).map(|clip| clustered(number * CLIPS + clip, DIM)).collect();
        let video = library.add(&format!("video {number}"), &clips).await;
        if number % 3 == 0 {
            library.catalog.view(&Visibility::All).delete_video(video).await.unwrap();
        }
        number += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Searches all the time. An engine that is away is the only error.
async fn search(library: Arc<Library>, vectors: Arc<Vectors>, closing: CancellationToken) {
    let at = Collection { space: library.space.key, level: Level::Clip };
    let ask = Ask { k: 10, only: None, exact: false };
    while !closing.is_cancelled() {
        let found = vectors.search(at, &[clustered(5, DIM)], &ask).await;
        assert!(matches!(found, Ok(_) | Err(EngineError::Away(_))), "{found:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Rebuilds the engine again and again while its server is killed. An interrupted rebuild goes on where it was.
async fn rebuild_among_deaths(
    kind: EngineKind,
    kills: u64,
    library: &Arc<Library>,
    mut outside: Outside,
    vectors: &Arc<Vectors>,
) {
    let settings = library.settings(kind, Some(outside.url()));
    let rebuilding = Arc::clone(library);
    let done = CancellationToken::new();
    let until_done = done.clone();
    let rebuilder = tokio::spawn(async move {
        let mut rebuilt = 0;
        while !until_done.is_cancelled() || rebuilt == 0 {
            match rebuild(&settings, &rebuilding).await {
                Ok(()) => rebuilt += 1,
                // An engine that is not there at a start is a mistake of the operator.
                Err(EngineError::Away(_) | EngineError::Unusable(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    });
    let mut random = Random(8);
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(50 + random.below(400))).await;
        outside.kill();
        outside.start_again().await;
    }
    done.cancel();
    rebuilder.await.unwrap();
    agree(library, vectors).await;
}

async fn rebuild(settings: &EngineSettings, library: &Library) -> Result<(), EngineError> {
    let vectors = Vectors::open_to_mend(settings.clone(), Arc::clone(&library.catalog)).await?;
    vectors.begin_anew().await?;
    vectors.fill_up(&|_| ()).await?;
    Ok(())
}

/// Waits until the engine has caught up, and checks that it holds the catalog's vectors and nothing else.
async fn agree(library: &Library, vectors: &Arc<Vectors>) {
    let caught_up = async || {
        match vectors.catch_up().await {
            Ok(()) => {}
            Err(EngineError::Away(_)) => return None,
            Err(error) => panic!("{error:?}"),
        }
        (vectors.state().await.unwrap().behind() == Some(0)).then_some(())
    };
    until("the engine has caught up", caught_up).await;
    let inspection = vectors.inspect(50).await.unwrap();
    for held in &inspection.collections {
        assert!(held.missing.is_empty() && held.extra.is_empty(), "{held:?}");
    }
    let at = Collection { space: library.space.key, level: Level::Clip };
    let stored = library.catalog.vector_keys(at.space, at.level).await.unwrap();
    let live = inspection.collections.iter().find(|held| held.at == at).map_or(0, |held| held.vectors);
    assert_eq!(live, stored.len());
}
