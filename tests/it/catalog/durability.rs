//! Nothing half: dropped calls, two processes, opening again, and a schema that is newer or damaged.

use std::time::Duration;

use futures_util::FutureExt;
use reprise::catalog::{self, Added, CatalogError, VideoPatch, VideoState};
use serde_json::json;

use super::samples::{add, add_ready, clip, ingested, lease, space, video};
use super::vectors::{followed, stored};
use super::{Opened, on_both};

on_both!(
    what_was_stored_is_there_when_opened_again,
    two_processes_open_at_once,
    a_dropped_call_leaves_all_or_nothing,
    a_schema_from_the_future_is_refused,
    a_vector_that_cannot_be_read_is_named,
);

async fn what_was_stored_is_there_when_opened_again(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("a"), 3, &[&tiny]).await;
    let before = stored(catalog).await;
    catalog.close().await;
    assert!(catalog.ping().await.is_err());
    let again = catalog::open(&opened.url).await.unwrap();
    assert_eq!(again.video(ready.id).await.unwrap(), Some(ready.clone()));
    assert_eq!(ready.state, VideoState::Ready);
    assert_eq!(ready.warnings, ["truncated"]);
    assert_eq!(ready.facts, Some(super::samples::facts(3000)));
    assert_eq!(stored(&*again).await, before);
    assert_eq!(space(&*again, "tiny", 4).await.key, tiny.key);
    again.close().await;
}

async fn two_processes_open_at_once(opened: &Opened) {
    let fresh = if opened.catalog.kind() == "sqlite" {
        format!("{}.fresh", opened.url)
    } else {
        match reprise_tests::postgres::database().await {
            Some(url) => url,
            None => return,
        }
    };
    let open = || {
        tokio::spawn({
            let url = fresh.clone();
            async move { catalog::open(&url).await }
        })
    };
    let all: Vec<_> = (0..4).map(|_| open()).collect();
    let mut catalogs = vec![];
    for one in all {
        catalogs.push(one.await.unwrap().unwrap());
    }
    for (number, catalog) in catalogs.iter().enumerate() {
        add(&**catalog, video(&format!("video {number}"))).await;
    }
    for catalog in catalogs {
        assert_eq!(catalog.counts().await.unwrap().videos, 4);
        catalog.close().await;
    }
}

/// Polls the call `polls` times, then drops it where it stands.
async fn dropped_after<T>(polls: usize, call: impl Future<Output = T>) -> Option<T> {
    let mut call = Box::pin(call);
    for _ in 0..polls {
        if let Some(done) = (&mut call).now_or_never() {
            return Some(done);
        }
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
    None
}

async fn a_dropped_call_leaves_all_or_nothing(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let mut finished = 0;
    for polls in 0..40 {
        let mut new = video(&format!("video {polls}"));
        new.given = vec![clip(0, 10, json!({"x": polls}))];
        let id = new.id;
        let added = dropped_after(polls, catalog.add_video(new.clone(), None)).await;
        // It may still be going on where it was dropped; this waits for its end.
        let again = catalog.add_video(new, None).await.unwrap();
        assert!(added.is_none() || matches!(again, Added::Duplicate(..)));
        let leased = lease(catalog).await;
        assert_eq!((leased.video.id, leased.given.len()), (id, 1));
        let seq = catalog.last_seq().await.unwrap();
        let done = dropped_after(polls, catalog.finish_ingest(&leased.lease, ingested(200, &[&tiny]))).await;
        // A change of the same video waits for the end of what was dropped.
        let after = catalog.update_video(id, VideoPatch::default()).await.unwrap().unwrap();
        let changes = catalog.changes(seq, 1000).await.unwrap().len();
        match after.state {
            VideoState::Ready => assert_eq!((after.clips, changes), (201, 201)),
            _ => assert_eq!((after.clips, changes, done.is_some()), (1, 0, false)),
        }
        finished += usize::from(done.is_some());
        // Whatever happened, the same call completes it.
        catalog.finish_ingest(&leased.lease, ingested(200, &[&tiny])).await.unwrap();
        assert_eq!(catalog.video(id).await.unwrap().unwrap().clips, 201);
    }
    assert!(finished < 40, "no call was dropped half-way");
    assert_eq!(followed(catalog, 1000).await, stored(catalog).await);
}

/// Runs a statement behind the catalog's back.
async fn execute(opened: &Opened, sql: &'static str) {
    use sqlx::Connection;
    if opened.catalog.kind() == "sqlite" {
        let mut connection = sqlx::SqliteConnection::connect(&opened.url).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    } else {
        let mut connection = sqlx::PgConnection::connect(&opened.url).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
}

async fn a_schema_from_the_future_is_refused(opened: &Opened) {
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
               SELECT 9999, 'from the future', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1";
    execute(opened, sql).await;
    match catalog::open(&opened.url).await {
        Err(CatalogError::Database(text)) => assert!(text.contains("9999"), "{text}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("opened"),
    }
}

async fn a_vector_that_cannot_be_read_is_named(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let key = catalog.clips(ready.id, None, 1).await.unwrap()[0].key;
    let sql = if catalog.kind() == "sqlite" {
        "UPDATE embeddings SET unit = x'0000' WHERE span = (SELECT max(span) FROM embeddings)"
    } else {
        "UPDATE embeddings SET unit = '\\x0000' WHERE span = (SELECT max(span) FROM embeddings)"
    };
    execute(opened, sql).await;
    for error in [
        catalog.raw_vector(key, tiny.key).await.unwrap_err(),
        catalog.vectors(tiny.key, None, 10).await.unwrap_err(),
        catalog.changes(0, 10).await.unwrap_err(),
    ] {
        assert!(matches!(&error, CatalogError::Damaged(text) if text.contains(&key.to_string())), "{error}");
    }
}
