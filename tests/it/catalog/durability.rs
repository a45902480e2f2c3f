//! No partial changes: dropped calls, two processes, reopening, and a schema that is newer or damaged.

use std::time::Duration;

use futures_util::FutureExt;
use reprise_server::catalog::{self, Added, CatalogError, VideoPatch, VideoState};
use reprise_server::terms::SpanKey;
use serde_json::json;

use super::samples::{add, add_ready, clip, ingested, lease, space, video};
use super::vectors::{followed, stored};
use super::{ALL, Opened, on_both};

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
    let beside = catalog::open_to_read(&opened.url).await.unwrap();
    assert_eq!(stored(&beside).await, before);
    beside.close().await;
    catalog.close().await;
    assert!(catalog.ping().await.is_err());
    let again = catalog::open(&opened.url).await.unwrap();
    assert_eq!(again.view(ALL).video(ready.id).await.unwrap(), Some(ready.clone()));
    assert_eq!(ready.state, VideoState::Ready);
    assert_eq!(ready.warnings, ["truncated"]);
    assert_eq!(ready.facts, Some(super::samples::facts(3000)));
    assert_eq!(stored(&again).await, before);
    assert_eq!(space(&again, "tiny", 4).await.key, tiny.key);
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
        add(catalog, video(&format!("video {number}"))).await;
    }
    for catalog in catalogs {
        assert_eq!(catalog.view(ALL).counts().await.unwrap().videos, 4);
        catalog.close().await;
    }
}

/// Polls the call `polls` times, then drops it unfinished.
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
        let added = dropped_after(polls, catalog.view(ALL).add_video(new.clone(), None)).await;
        // The dropped call may still be running; this call waits for its end.
        let again = catalog.view(ALL).add_video(new, None).await.unwrap();
        assert!(added.is_none() || matches!(again, Added::Duplicate(..)));
        let leased = lease(catalog).await;
        assert_eq!((leased.job.video.unwrap(), leased.given.len()), (id, 1));
        let seq = catalog.last_seq().await.unwrap();
        let done = dropped_after(polls, catalog.finish_ingest(&leased.lease, ingested(200, &[&tiny]))).await;
        // A change of the same video waits for the end of the dropped call.
        let after = catalog.view(ALL).update_video(id, VideoPatch::default()).await.unwrap().unwrap();
        let changes = catalog.changes(seq, 1000).await.unwrap().len();
        match after.state {
            VideoState::Ready => assert_eq!((after.clips, changes), (201, 201)),
            _ => assert_eq!((after.clips, changes, done.is_some()), (1, 0, false)),
        }
        finished += usize::from(done.is_some());
        // The same call completes the ingest, whatever the dropped one did.
        catalog.finish_ingest(&leased.lease, ingested(200, &[&tiny])).await.unwrap();
        assert_eq!(catalog.view(ALL).video(id).await.unwrap().unwrap().clips, 201);
    }
    assert!(finished < 40, "no call was dropped half-way");
    assert_eq!(followed(catalog, 1000).await, stored(catalog).await);
}

/// Runs a statement without the catalog.
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
        Err(CatalogError::Schema(text)) => {
            assert!(text.contains("migration 9999") && text.contains("a newer reprise"), "{text}");
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("opened"),
    }
}

async fn a_vector_that_cannot_be_read_is_named(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let key = catalog.view(ALL).clips(ready.id, None, 1).await.unwrap()[0].key;
    let sql = if catalog.kind() == "sqlite" {
        "UPDATE embeddings SET unit = x'0000' WHERE span = (SELECT max(span) FROM embeddings)"
    } else {
        "UPDATE embeddings SET unit = '\\x0000' WHERE span = (SELECT max(span) FROM embeddings)"
    };
    execute(opened, sql).await;
    for error in [
        catalog.view(ALL).raw_vector(key, tiny.key).await.unwrap_err(),
        catalog.vectors_of(tiny.key, &[key]).await.unwrap_err(),
        catalog.changes(0, 10).await.unwrap_err(),
    ] {
        assert!(
            matches!(&error, CatalogError::Damaged(text) if text.to_string().contains(&key.to_string())),
            "{error}"
        );
    }
}

/// After the migrations of this version, everything from an earlier version is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_catalog_of_an_earlier_version_keeps_all_that_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let migrations = folder.path().join("migrations");
    std::fs::create_dir(&migrations).unwrap();
    let first = "../migrations/sqlite/0001_catalog.sql";
    std::fs::copy(first, migrations.join("0001_catalog.sql")).unwrap();
    let url = catalog::embedded_url(folder.path());
    let options = url.parse::<sqlx::sqlite::SqliteConnectOptions>().unwrap().create_if_missing(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::migrate::Migrator::new(migrations).await.unwrap().run(&pool).await.unwrap();
    let old = "INSERT INTO videos VALUES (x'0190163d8694739baea5966c26f8ad91', 'h', 'f', 'f', 1, 't', '{}', NULL, \
               NULL, 1, 'ready', '{\"policy\": \"content\", \"params\": {}}', NULL, 1000, 0, '[]'); \
               INSERT INTO spaces VALUES (1, 's', 's', 's', 1, 1); \
               INSERT INTO spans (key, id, video, level, given, start_ms, end_ms, metadata) VALUES \
               (7, x'0190163d8694739baea5966c26f8ad92', x'0190163d8694739baea5966c26f8ad91', 'clip', 1, 0, 1000, '{}'), \
               (9, x'0190163d8694739baea5966c26f8ad93', x'0190163d8694739baea5966c26f8ad91', 'clip', 1, 0, 900, '{}'); \
               DELETE FROM spans WHERE key = 9; \
               INSERT INTO span_attributes VALUES (7, x'2f61', 'number', 1.0, NULL); \
               INSERT INTO embeddings VALUES (1, 7, x'0000803f', 2.0)";
    sqlx::raw_sql(old).execute(&pool).await.unwrap();
    pool.close().await;

    let opened = catalog::open(&url).await.unwrap();
    assert_eq!(opened.view(ALL).raw_vector(SpanKey::new(7), 1).await.unwrap(), Some(vec![2.0]));
    let videos = opened.view(ALL).videos(None, 10).await.unwrap();
    assert_eq!((videos.len(), videos[0].clips), (1, 1));
    let filter =
        reprise_server::catalog::Filter::parse(&serde_json::json!({"field": "metadata.a", "eq": 1})).unwrap();
    assert_eq!(
        opened.view(ALL).keys_matching(&filter).await.unwrap().iter().collect::<Vec<_>>(),
        [SpanKey::new(7)]
    );
    let new =
        reprise_server::catalog::GivenClip { start_ms: 0, end_ms: 500, metadata: serde_json::json!({}) };
    let (span, _) = opened.view(ALL).add_given_clip(videos[0].id, new).await.unwrap().unwrap();
    assert_eq!(span.key, SpanKey::new(10), "a key is never used again");
    opened.view(ALL).delete_video(videos[0].id).await.unwrap().unwrap();
    assert_eq!(
        opened.view(ALL).raw_vector(SpanKey::new(7), 1).await.unwrap(),
        None,
        "what refers to a span goes with it"
    );
    opened.close().await;
}
