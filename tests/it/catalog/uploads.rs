//! Resumable uploads: their bounds, their end, and the video that they become.

use std::time::Duration;

use reprise_server::catalog::{
    Added, ApiKey, Catalog, CatalogError, FinishedUpload, KeyLimits, NewApiKey, NewPartialUpload, NewVideo,
    Scope, UploadBounds,
};
use uuid::Uuid;

use super::samples::video;
use super::{ALL, Opened, on_both};

on_both!(
    an_upload_belongs_to_its_key,
    an_upload_expires_after_its_last_byte,
    an_upload_is_finished_with_its_video,
    uploads_are_bounded,
    a_quota_bounds_uploads,
);

const HOUR: Duration = Duration::from_secs(3600);
const BOUNDS: UploadBounds =
    UploadBounds { uploads: 3, bytes: 1000, uploads_of_key: 2, bytes_of_key: 500, lasts: HOUR };

fn of(length: i64) -> NewPartialUpload {
    NewPartialUpload { length, metadata: "filename YQ==".to_owned(), repeat_key: None, bounds: BOUNDS }
}

async fn an_upload_belongs_to_its_key(opened: &Opened) {
    let [mine, theirs] = [Uuid::now_v7(), Uuid::now_v7()];
    let [my_view, their_view] = [mine, theirs].map(|key| opened.catalog.view(ALL).of_key(Some(key)));
    let upload = my_view.add_upload(&of(100)).await.unwrap();
    assert_eq!((upload.length, upload.received, &*upload.metadata), (100, 0, "filename YQ=="));
    assert_eq!(my_view.upload(upload.id).await.unwrap().as_ref(), Some(&upload));
    assert_eq!(their_view.upload(upload.id).await.unwrap(), None);
    assert_eq!(opened.catalog.view(ALL).upload(upload.id).await.unwrap(), None);
    let of_nobody = opened.catalog.view(ALL).add_upload(&of(100)).await.unwrap();
    assert_eq!(my_view.upload(of_nobody.id).await.unwrap(), None);
    assert!(opened.catalog.view(ALL).upload(of_nobody.id).await.unwrap().is_some());
}

async fn an_upload_expires_after_its_last_byte(opened: &Opened) {
    let (catalog, view) = (&*opened.catalog, opened.catalog.view(ALL));
    let upload = view.add_upload(&of(100)).await.unwrap();
    opened.clock.advance(HOUR / 2);
    let until = catalog.keep_received(upload.id, 40, HOUR).await.unwrap();
    assert_eq!(until, Some(upload.expires_at_ms + 1_800_000));
    opened.clock.advance(HOUR - Duration::from_secs(1));
    assert_eq!(catalog.forget_uploads().await.unwrap(), 0);
    assert_eq!(view.upload(upload.id).await.unwrap().unwrap().received, 40);
    opened.clock.advance(Duration::from_secs(1));
    assert_eq!(view.upload(upload.id).await.unwrap(), None);
    assert!(catalog.needs_part(upload.id).await.unwrap(), "its file is swept after its row");
    assert_eq!(catalog.forget_uploads().await.unwrap(), 1);
    assert!(!catalog.needs_part(upload.id).await.unwrap());
    assert_eq!(
        catalog.keep_received(upload.id, 50, HOUR).await.unwrap(),
        None,
        "nobody may promise its bytes"
    );
}

async fn an_upload_is_finished_with_its_video(opened: &Opened) {
    let (catalog, view) = (&*opened.catalog, opened.catalog.view(ALL));
    let upload = view.add_upload(&of(1000)).await.unwrap();
    catalog.keep_received(upload.id, 999, HOUR).await.unwrap();
    let new = NewVideo { upload: Some(upload.id), ..video("a") };
    let Added::New(added, job) = view.add_video(new, None).await.unwrap() else { panic!("it is new") };
    let made = FinishedUpload { video: added.id, job: Some(job.id), duplicate: false };
    let stored = view.upload(upload.id).await.unwrap().unwrap();
    assert_eq!((stored.received, stored.made), (1000, Some(made)));
    assert!(!catalog.needs_part(upload.id).await.unwrap());
    assert_eq!(catalog.keep_received(upload.id, 5, HOUR).await.unwrap(), None);
    assert_eq!(view.upload(upload.id).await.unwrap().unwrap().received, 1000, "it is complete");
    // A complete upload takes no room.
    let again = view.add_upload(&of(1000)).await.unwrap();
    let new = NewVideo { upload: Some(again.id), id: Uuid::now_v7(), ..video("a") };
    assert!(matches!(view.add_video(new, None).await.unwrap(), Added::Duplicate(..)));
    assert!(view.upload(again.id).await.unwrap().unwrap().made.unwrap().duplicate);
}

/// Begins an upload that must be refused.
async fn refused(catalog: &Catalog, key: Option<Uuid>, length: i64) -> CatalogError {
    catalog.view(ALL).of_key(key).add_upload(&of(length)).await.unwrap_err()
}

async fn uploads_are_bounded(opened: &Opened) {
    let catalog = &*opened.catalog;
    let key = Some(Uuid::now_v7());
    let view = catalog.view(ALL).of_key(key);
    assert!(matches!(refused(catalog, key, 501).await, CatalogError::Conflict(_)), "too many bytes of a key");
    view.add_upload(&of(300)).await.unwrap();
    assert!(matches!(refused(catalog, key, 201).await, CatalogError::Conflict(_)));
    let second = view.add_upload(&of(1)).await.unwrap();
    assert!(matches!(refused(catalog, key, 1).await, CatalogError::Conflict(_)), "too many of a key");
    assert!(matches!(refused(catalog, None, 700).await, CatalogError::Conflict(_)), "too many bytes in all");
    catalog.view(ALL).add_upload(&of(1)).await.unwrap();
    let other = Some(Uuid::now_v7());
    assert!(matches!(refused(catalog, other, 1).await, CatalogError::Conflict(_)), "too many in all");
    catalog.delete_upload(second.id).await.unwrap();
    catalog.view(ALL).of_key(other).add_upload(&of(1)).await.unwrap();
}

async fn a_quota_bounds_uploads(opened: &Opened) {
    let limits = KeyLimits { stored_bytes: Some(400), ..KeyLimits::default() };
    let (name, scopes) = ("small".to_owned(), vec![Scope::Write]);
    let new = NewApiKey { name, scopes, only: None, limits, expires_at_ms: None };
    let ApiKey { id, .. } = opened.catalog.add_key(Uuid::now_v7(), [0; 32], new).await.unwrap();
    let view = opened.catalog.view(ALL).of_key(Some(id));
    view.add_upload(&of(300)).await.unwrap();
    assert!(matches!(refused(&opened.catalog, Some(id), 101).await, CatalogError::OverQuota(_)));
    view.add_upload(&of(100)).await.unwrap();
}
