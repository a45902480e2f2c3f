//! The lease of a backup, and a snapshot that later changes do not reach.

use std::time::Duration;

use reprise_server::catalog::archive::OF_VIDEO;
use reprise_server::catalog::{Catalog, CatalogError};
use serde_json::Value;
use uuid::Uuid;

use super::samples::{LEASE, add, add_ready, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_backup_holds_files_until_it_ends_or_dies,
    a_snapshot_stays_as_it_was,
    only_an_empty_catalog_is_restored_into,
);

async fn a_backup_holds_files_until_it_ends_or_dies(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (first, second) = (Uuid::now_v7(), Uuid::now_v7());
    assert!(!catalog.is_backed_up().await.unwrap());
    catalog.begin_backup(first, LEASE).await.unwrap();
    catalog.begin_backup(second, LEASE).await.unwrap();
    catalog.end_backup(first).await.unwrap();
    assert!(catalog.is_backed_up().await.unwrap(), "the second goes on");
    opened.clock.advance(LEASE - Duration::from_secs(1));
    assert!(catalog.renew_backup(second, LEASE).await.unwrap());
    opened.clock.advance(LEASE - Duration::from_secs(1));
    assert!(catalog.is_backed_up().await.unwrap());
    opened.clock.advance(Duration::from_secs(2));
    assert!(!catalog.is_backed_up().await.unwrap(), "it is dead");
    assert!(!catalog.renew_backup(second, LEASE).await.unwrap(), "a purge may have been there");
}

async fn rows(snapshot: &mut reprise_server::catalog::archive::Snapshot, of: Uuid) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for table in &OF_VIDEO {
        let add = |row| {
            all.push(row);
            Ok::<(), CatalogError>(())
        };
        snapshot.rows(table, Some(of), add).await.unwrap();
    }
    all
}

async fn ids(catalog: &Catalog) -> Vec<Uuid> {
    let mut snapshot = catalog.snapshot().await.unwrap();
    let videos = snapshot.videos().await.unwrap();
    snapshot.end().await.unwrap();
    videos.into_iter().map(|video| video.id).collect()
}

async fn a_snapshot_stays_as_it_was(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let kept = add_ready(catalog, video("a"), 3, &[&tiny]).await;
    let mut snapshot = catalog.snapshot().await.unwrap();
    let before: Vec<Uuid> = snapshot.videos().await.unwrap().into_iter().map(|video| video.id).collect();
    assert_eq!(before, [kept.id]);
    add(catalog, video("b")).await;
    catalog.view(ALL).delete_video(kept.id).await.unwrap().unwrap();
    catalog.purge_video(kept.id).await.unwrap();
    // The video, four spans with a vector each, and the job.
    assert_eq!(rows(&mut snapshot, kept.id).await.len(), 1 + 4 + 4 + 1);
    snapshot.end().await.unwrap();
    let after = ids(catalog).await;
    assert!(after.len() == 1 && after != before, "{after:?}");
}

async fn only_an_empty_catalog_is_restored_into(opened: &Opened) {
    let catalog = &*opened.catalog;
    space(catalog, "tiny", 4).await;
    catalog.must_be_empty().await.unwrap();
    let begun = catalog.begin_restore().await.unwrap();
    drop(begun);
    assert_eq!(catalog.spaces().await.unwrap().len(), 1, "a restore that was dropped changes nothing");
    add(catalog, video("a")).await;
    let refused = catalog.must_be_empty().await.unwrap_err();
    assert!(matches!(&refused, CatalogError::Conflict(text) if text.contains("1 videos")), "{refused}");
    assert!(catalog.begin_restore().await.is_err());
}
