//! Followers of the change log during concurrent writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use reprise_server::catalog::{Catalog, CatalogError, JobName, Visibility};
use uuid::Uuid;

use super::samples::{LEASE, add, ingested, space, video};
use super::vectors::{followed, stored};
use super::{Opened, on_both};

on_both!(a_follower_never_skips_a_change, a_video_can_be_deleted_while_its_ingest_runs);

/// Ingests and deletes until no job is left. Two of these tasks run beside the follower.
async fn work(catalog: Arc<Catalog>, spaces: Vec<reprise_server::catalog::SpaceRow>) {
    let spaces: Vec<&reprise_server::catalog::SpaceRow> = spaces.iter().collect();
    while let Some(leased) = catalog.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap() {
        let clips = 1 + u32::from(leased.video.as_ref().unwrap().content_hash.as_bytes()[63]) % 7;
        catalog.finish_ingest(&leased.lease, ingested(clips, &spaces)).await.unwrap();
        if clips % 2 == 0 {
            catalog.view(&Visibility::All).delete_video(leased.job.video.unwrap()).await.unwrap().unwrap();
        }
    }
}

async fn a_follower_never_skips_a_change(opened: &Opened) {
    let catalog = &opened.catalog;
    let spaces = vec![space(catalog, "tiny", 4).await, space(catalog, "other", 3).await];
    for number in 0..40 {
        add(catalog, video(&format!("video {number}"))).await;
    }
    let workers: Vec<_> = (0..4).map(|_| tokio::spawn(work(catalog.clone(), spaces.clone()))).collect();
    let mut held = BTreeMap::new();
    let mut seq = 0;
    loop {
        let ended = workers.iter().all(|worker| worker.is_finished());
        let changes = catalog.changes(seq, 7).await.unwrap();
        if changes.is_empty() && ended {
            break;
        }
        for change in changes {
            seq = change.seq;
            match change.vector {
                Some(vector) => held.insert((change.space, change.span), vector.unit),
                None => held.remove(&(change.space, change.span)),
            };
        }
    }
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(held, stored(catalog).await);
    assert_eq!(seq, catalog.last_seq().await.unwrap());
    assert_eq!(followed(catalog, 1000).await, held);
}

async fn a_video_can_be_deleted_while_its_ingest_runs(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    for number in 0..10 {
        let (stored, job) = add(catalog, video(&format!("video {number}"))).await;
        let leased = super::samples::lease(catalog).await;
        let view = catalog.view(&Visibility::All);
        let (finished, deleted, cancelled) = tokio::join!(
            catalog.finish_ingest(&leased.lease, ingested(20, &[&tiny])),
            view.delete_video(stored.id),
            view.cancel_job(job.id),
        );
        assert!(matches!(finished, Ok(()) | Err(CatalogError::LeaseLost)), "{finished:?}");
        assert!(deleted.unwrap().is_some());
        assert!(matches!(cancelled, Ok(_) | Err(CatalogError::Conflict(_))), "{cancelled:?}");
    }
    assert_eq!(catalog.view(&Visibility::All).counts().await.unwrap(), Default::default());
    assert_eq!(followed(catalog, 100).await, BTreeMap::new());
}
