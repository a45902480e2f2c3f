//! Videos: adding, duplicates, repeated requests, paging, updating, deleting.

use std::time::Duration;

use reprise_server::catalog::{
    Added, CatalogError, IdempotencyKey, JobName, JobState, NextAttempt, VideoPatch, VideoState,
};
use serde_json::json;
use uuid::Uuid;

use super::samples::{add, add_ready, clip, lease, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_video_is_stored_with_its_job,
    the_same_bytes_are_the_same_video,
    a_repeated_request_gets_the_first_answer,
    a_key_used_for_another_request_is_a_conflict,
    the_same_key_at_the_same_time_adds_one_video,
    what_cannot_be_stored_is_refused,
    a_patch_changes_what_it_names,
    paging_neither_repeats_nor_skips_while_videos_are_added,
    deleting_takes_everything_with_it,
    an_ingest_notices_that_its_video_was_deleted,
    texts_come_back_as_they_were,
    a_database_answers_and_says_what_it_is,
);

async fn a_video_is_stored_with_its_job(opened: &Opened) {
    let catalog = &*opened.catalog;
    let mut new = video("a");
    new.metadata = json!({"event": "vault", "score": 13.466});
    new.recorded_at = Some("2024-07-01".to_owned());
    let (stored, job) = add(catalog, new.clone()).await;
    assert_eq!((stored.id, stored.state, stored.job_id), (new.id, VideoState::Pending, Some(job.id)));
    assert_eq!((&stored.metadata, &stored.recorded_at), (&new.metadata, &new.recorded_at));
    assert_eq!((&stored.segmentation, stored.clips, &stored.facts), (&new.segmentation, 0, &None));
    assert_eq!(
        (job.kind, job.state, job.video, job.attempts),
        (JobName::Ingest, JobState::Queued, Some(new.id), 0)
    );
    assert_eq!(catalog.view(ALL).video(new.id).await.unwrap().as_ref(), Some(&stored));
    assert_eq!(catalog.view(ALL).video_by_hash(&new.content_hash).await.unwrap(), Some(stored));
    assert_eq!(catalog.view(ALL).job(job.id).await.unwrap(), Some(job));
    assert_eq!(catalog.view(ALL).video(Uuid::now_v7()).await.unwrap(), None);
    assert_eq!(catalog.view(ALL).video_by_hash("none").await.unwrap(), None);
}

async fn the_same_bytes_are_the_same_video(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (first, job) = add(catalog, video("a")).await;
    let mut again = video("a");
    again.title = "another title".to_owned();
    let added = catalog.view(ALL).add_video(again, None).await.unwrap();
    assert_eq!(added, Added::Duplicate(Box::new(first.clone()), Some(Box::new(job))));
    assert_eq!(catalog.view(ALL).videos(None, 10).await.unwrap(), [first]);
    assert_eq!(catalog.view(ALL).counts().await.unwrap().jobs_queued, 1);
}

fn key(key: &str, body: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey { key: key.to_owned(), request_hash: format!("{body:0>64}") })
}

async fn a_repeated_request_gets_the_first_answer(opened: &Opened) {
    let catalog = &*opened.catalog;
    let first = catalog.view(ALL).add_video(video("a"), key("k", "1")).await.unwrap();
    assert_eq!(catalog.view(ALL).add_video(video("a"), key("k", "1")).await.unwrap(), first);
    let record = catalog.view(ALL).idempotent("k").await.unwrap().unwrap();
    let Added::New(stored, job) = first else { panic!("{first:?}") };
    assert_eq!((record.video, record.job, record.duplicate), (stored.id, Some(job.id), false));

    let duplicate = catalog.view(ALL).add_video(video("a"), key("k2", "1")).await.unwrap();
    assert!(matches!(duplicate, Added::Duplicate(..)));
    assert_eq!(catalog.view(ALL).add_video(video("a"), key("k2", "1")).await.unwrap(), duplicate);
    assert!(catalog.view(ALL).idempotent("k2").await.unwrap().unwrap().duplicate);
    assert_eq!(catalog.view(ALL).idempotent("unknown").await.unwrap(), None);
    assert_eq!(catalog.view(ALL).idempotent("nul\0").await.unwrap(), None);
}

async fn a_key_used_for_another_request_is_a_conflict(opened: &Opened) {
    let catalog = &*opened.catalog;
    catalog.view(ALL).add_video(video("a"), key("k", "1")).await.unwrap();
    let error = catalog.view(ALL).add_video(video("b"), key("k", "2")).await.unwrap_err();
    assert!(matches!(error, CatalogError::Conflict(_)), "{error}");
    assert_eq!(catalog.view(ALL).counts().await.unwrap().videos, 1);
}

async fn the_same_key_at_the_same_time_adds_one_video(opened: &Opened) {
    let catalog = &*opened.catalog;
    for round in 0..5 {
        let name = format!("video {round}");
        let view = catalog.view(ALL);
        let one = |_| view.add_video(video(&name), key(&name, "1"));
        let (a, b, c) = tokio::join!(one(0), one(1), one(2));
        let (a, b, c) = (a.unwrap(), b.unwrap(), c.unwrap());
        assert_eq!((&a, &a), (&b, &c));
        assert!(matches!(a, Added::New(..)));
    }
    assert_eq!(catalog.view(ALL).counts().await.unwrap().videos, 5);
}

async fn what_cannot_be_stored_is_refused(opened: &Opened) {
    let catalog = &*opened.catalog;
    let bad: [fn(&mut reprise_server::catalog::NewVideo); 6] = [
        |video| video.metadata = json!([1]),
        |video| video.recorded_at = Some("yesterday".to_owned()),
        |video| video.title = "nul\0".to_owned(),
        |video| video.given = vec![clip(5, 5, json!({}))],
        |video| video.given = vec![clip(-1, 5, json!({}))],
        |video| video.given = vec![clip(0, 5, json!("x"))],
    ];
    for spoil in bad {
        let mut new = video("a");
        spoil(&mut new);
        let error = catalog.view(ALL).add_video(new.clone(), None).await.unwrap_err();
        assert!(matches!(error, CatalogError::Invalid(_)), "{error} for {new:?}");
    }
    assert_eq!(catalog.view(ALL).counts().await.unwrap().videos, 0);
}

async fn a_patch_changes_what_it_names(opened: &Opened) {
    let catalog = &*opened.catalog;
    let mut new = video("a");
    new.recorded_at = Some("2024-07-01".to_owned());
    let (before, _) = add(catalog, new).await;
    let view = catalog.view(ALL);
    let update = |patch| view.update_video(before.id, patch);
    let unchanged = update(VideoPatch::default()).await.unwrap().unwrap();
    assert_eq!(unchanged, before);
    let patch = VideoPatch { title: Some("b".to_owned()), ..VideoPatch::default() };
    assert_eq!(update(patch).await.unwrap().unwrap().title, "b");
    let patch =
        VideoPatch { metadata: Some(json!({"x": null})), recorded_at: Some(None), ..VideoPatch::default() };
    let after = update(patch).await.unwrap().unwrap();
    assert_eq!(
        (after.title.as_str(), &after.metadata, &after.recorded_at),
        ("b", &json!({"x": null}), &None)
    );
    assert_eq!(catalog.view(ALL).video(before.id).await.unwrap(), Some(after));
    let patch = VideoPatch { recorded_at: Some(Some("soon".to_owned())), ..VideoPatch::default() };
    assert!(matches!(update(patch).await, Err(CatalogError::Invalid(_))));
    assert_eq!(catalog.view(ALL).update_video(Uuid::now_v7(), VideoPatch::default()).await.unwrap(), None);
}

async fn paging_neither_repeats_nor_skips_while_videos_are_added(opened: &Opened) {
    let catalog = &*opened.catalog;
    let mut expected = vec![];
    for number in 0..20 {
        expected.push(add(catalog, video(&format!("before {number}"))).await.0.id);
    }
    let mut seen = vec![];
    let mut after = None;
    for number in 0.. {
        let page = catalog.view(ALL).videos(after, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        seen.extend(page.iter().map(|video| video.id));
        if number < 5 {
            expected.push(add(catalog, video(&format!("meanwhile {number}"))).await.0.id);
        }
    }
    assert_eq!(seen, expected);
}

async fn deleting_takes_everything_with_it(opened: &Opened) {
    let catalog = &*opened.catalog;
    let space = space(catalog, "tiny", 4).await;
    let kept = add_ready(catalog, video("kept"), 2, &[&space]).await;
    let mut new = video("gone");
    new.metadata = json!({"event": "vault"});
    new.given = vec![clip(0, 500, json!({"event": "beam"}))];
    let added = catalog.view(ALL).add_video(new, key("k", "1")).await.unwrap();
    let Added::New(gone, job) = added else { panic!("{added:?}") };
    let leased = lease(catalog).await;
    catalog.finish_ingest(&leased.lease, super::samples::ingested(3, &[&space])).await.unwrap();
    let seq = catalog.last_seq().await.unwrap();

    let deleted = catalog.view(ALL).delete_video(gone.id).await.unwrap().unwrap();
    assert_eq!((deleted.id, deleted.clips, deleted.file), (gone.id, 4, gone.file));
    assert_eq!(catalog.view(ALL).delete_video(gone.id).await.unwrap(), None);
    assert_eq!(catalog.view(ALL).video(gone.id).await.unwrap(), None);
    assert_eq!(catalog.view(ALL).clips(gone.id, None, 10).await.unwrap(), []);
    assert_eq!(catalog.view(ALL).job(job.id).await.unwrap(), None);
    assert_eq!(catalog.view(ALL).idempotent("k").await.unwrap(), None);
    let changes = catalog.changes(seq, 100).await.unwrap();
    assert_eq!(changes.len(), 4);
    assert!(changes.iter().all(|change| change.vector.is_none()));
    let counts = catalog.view(ALL).counts().await.unwrap();
    assert_eq!((counts.videos, counts.videos_ready, counts.clips, counts.vectors), (1, 1, 2, 3));
    assert_eq!(catalog.view(ALL).clips(kept.id, None, 10).await.unwrap().len(), 2);
}

async fn an_ingest_notices_that_its_video_was_deleted(opened: &Opened) {
    let catalog = &*opened.catalog;
    let space = space(catalog, "tiny", 4).await;
    let (stored, _) = add(catalog, video("a")).await;
    let leased = lease(catalog).await;
    catalog.view(ALL).delete_video(stored.id).await.unwrap().unwrap();
    let beat = catalog.heartbeat(&leased.lease, super::samples::LEASE, &Default::default()).await.unwrap();
    assert_eq!(beat, reprise_server::catalog::LeaseStatus::Lost);
    let finished = catalog.finish_ingest(&leased.lease, super::samples::ingested(3, &[&space])).await;
    assert!(matches!(finished, Err(CatalogError::LeaseLost)));
    assert!(matches!(
        catalog.fail_job(&leased.lease, "x", NextAttempt::After(Duration::ZERO)).await,
        Err(CatalogError::LeaseLost)
    ));
    assert!(matches!(catalog.release_job(&leased.lease).await, Err(CatalogError::LeaseLost)));
    assert_eq!(catalog.view(ALL).counts().await.unwrap(), Default::default());
    // The same file may be added again.
    add(catalog, video("a")).await;
}

async fn texts_come_back_as_they_were(opened: &Opened) {
    let catalog = &*opened.catalog;
    let metadata = json!({
        "z": 1, "a": {"key with \"quotes\" and 'more'": "\u{0}\u{1}\u{10ffff}"}, "": [],
        "float": 100.0, "exponent": 1e300, "largest": u64::MAX, "smallest": i64::MIN, "tiny": 5e-324,
    });
    let title = "$() ; DROP TABLE videos; -- é 漢字 \u{1f3a5}";
    let mut new = video("a");
    (new.title, new.file_name, new.metadata) = (title.to_owned(), title.to_owned(), metadata.clone());
    let (stored, _) = add(catalog, new).await;
    assert_eq!((stored.title.as_str(), stored.file_name.as_str()), (title, title));
    assert_eq!(serde_json::to_string(&stored.metadata).unwrap(), serde_json::to_string(&metadata).unwrap());
}

async fn a_database_answers_and_says_what_it_is(opened: &Opened) {
    opened.catalog.ping().await.unwrap();
    assert!(opened.url.starts_with(opened.catalog.kind()), "{}", opened.catalog.kind());
    assert_eq!(opened.catalog.view(ALL).counts().await.unwrap(), Default::default());
}
