//! Spaces, vectors, fills, and the log of changes.

use std::collections::BTreeMap;

use reprise::catalog::{Catalog, CatalogError, Change, JobKind, NewSpace, NewVector};
use reprise_index::{Level, UnitVector};
use serde_json::json;
use uuid::Uuid;

use super::samples::{LEASE, add, add_ready, clip, ingested, lease, space, vector, video};
use super::{Opened, on_both};

on_both!(
    a_space_is_registered_once,
    vectors_are_paged_in_order_of_key,
    a_raw_vector_is_the_direction_times_its_norm,
    an_ingest_replaces_every_vector,
    vectors_of_the_wrong_length_are_refused,
    a_new_space_is_filled,
    a_fill_stores_only_what_is_missing,
    deleting_a_clip_is_a_change,
);

async fn a_space_is_registered_once(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    assert_eq!(space(catalog, "tiny", 4).await, tiny);
    let other = space(catalog, "other", 3).await;
    assert_ne!(tiny.key, other.key);
    let renamed = NewSpace { name: "renamed".to_owned(), ..other.space.clone() };
    let renamed = catalog.register_space(&renamed).await.unwrap();
    assert_eq!((renamed.key, renamed.space.name.as_str()), (other.key, "renamed"));
    let wrong = NewSpace { dim: 5, ..tiny.space.clone() };
    assert!(matches!(catalog.register_space(&wrong).await, Err(CatalogError::Conflict(_))));
    assert_eq!(catalog.spaces().await.unwrap(), [tiny, renamed]);
}

async fn vectors_are_paged_in_order_of_key(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (tiny, other) = (space(catalog, "tiny", 4).await, space(catalog, "other", 3).await);
    add_ready(catalog, video("a"), 5, &[&tiny, &other]).await;
    add_ready(catalog, video("b"), 5, &[&tiny]).await;
    let mut paged = vec![];
    loop {
        let after = paged.last().map(|stored: &reprise::catalog::StoredVector| stored.span);
        let page = catalog.vectors(tiny.key, after, 5).await.unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert!(paged.len() == 12 && paged.is_sorted_by(|a, b| a.span < b.span));
    assert_eq!(paged.iter().filter(|stored| stored.level == Level::Video).count(), 2);
    let expected: Vec<UnitVector> = (0..6).chain(0..6).map(|seed| vector(seed, 4).0).collect();
    for (stored, expected) in paged.iter().zip(&expected) {
        assert!(stored.unit.dot(expected) > 1.0 - 1e-6);
    }
    assert_eq!(catalog.vectors(other.key, None, 100).await.unwrap().len(), 6);
    let counts: Vec<i64> = catalog.spaces().await.unwrap().iter().map(|space| space.vectors).collect();
    assert_eq!(counts, [12, 6]);
}

async fn a_raw_vector_is_the_direction_times_its_norm(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let stored = add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let clip = catalog.clips(stored.id, None, 1).await.unwrap().remove(0);
    let raw = catalog.raw_vector(clip.key, tiny.key).await.unwrap().unwrap();
    let (unit, norm) = vector(1, 4);
    for (raw, unit) in raw.iter().zip(unit.values()) {
        assert!((raw - unit * norm).abs() < 1e-6);
    }
    assert_eq!(catalog.raw_vector(clip.key, tiny.key + 1).await.unwrap(), None);
    assert_eq!(catalog.raw_vector(clip.key + 100, tiny.key).await.unwrap(), None);
}

/// What a follower of `changes` holds, from the beginning, in pages of `page`.
pub(super) async fn followed(catalog: &dyn Catalog, page: u32) -> BTreeMap<(u32, u32), UnitVector> {
    let mut held = BTreeMap::new();
    let mut seq = 0;
    loop {
        let changes = catalog.changes(seq, page).await.unwrap();
        if changes.is_empty() {
            return held;
        }
        for Change { seq: next, span, space, vector, .. } in changes {
            assert!(next > seq);
            seq = next;
            match vector {
                Some(vector) => held.insert((space, span), vector),
                None => held.remove(&(space, span)),
            };
        }
    }
}

/// What is stored.
pub(super) async fn stored(catalog: &dyn Catalog) -> BTreeMap<(u32, u32), UnitVector> {
    let mut all = BTreeMap::new();
    for space in catalog.spaces().await.unwrap() {
        let vectors = catalog.vectors(space.key, None, 1_000_000).await.unwrap();
        all.extend(vectors.into_iter().map(|stored| ((space.key, stored.span), stored.unit)));
    }
    all
}

async fn an_ingest_replaces_every_vector(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (tiny, other) = (space(catalog, "tiny", 4).await, space(catalog, "other", 3).await);
    let mut new = video("a");
    new.given = vec![clip(0, 500, json!({}))];
    let (_, job) = add(catalog, new).await;
    for (clips, spaces) in [(3, vec![&tiny, &other]), (5, vec![&tiny]), (2, vec![&other])] {
        let leased = lease(catalog).await;
        let mut result = ingested(clips, &spaces);
        result.spans.push(reprise::catalog::IngestedSpan {
            given: Some(leased.given[0].id),
            level: Level::Clip,
            start_ms: 0,
            end_ms: 500,
            vectors: spaces.iter().map(|space| (space.key, vector(clips, space.space.dim).0, 2.0)).collect(),
        });
        catalog.finish_ingest(&leased.lease, result).await.unwrap();
        let now = stored(catalog).await;
        assert_eq!(now.len(), (clips as usize + 2) * spaces.len());
        assert_eq!(followed(catalog, 3).await, now);
        assert!(now.contains_key(&(spaces[0].key, leased.given[0].key)));
        // The only way to a second ingest of the same video from here: the job is made to run again.
        again(opened, job.id).await;
    }
}

/// Queues a job that has succeeded, as a later feature may.
async fn again(opened: &Opened, job: Uuid) {
    use sqlx::Connection;
    let sql = "UPDATE jobs SET state = 'queued', lease_token = NULL WHERE id = $1";
    let done = if opened.catalog.kind() == "sqlite" {
        let mut connection = sqlx::SqliteConnection::connect(&opened.url).await.unwrap();
        sqlx::query(sql).bind(job).execute(&mut connection).await.unwrap().rows_affected()
    } else {
        let mut connection = sqlx::PgConnection::connect(&opened.url).await.unwrap();
        sqlx::query(sql).bind(job).execute(&mut connection).await.unwrap().rows_affected()
    };
    assert_eq!(done, 1);
}

async fn vectors_of_the_wrong_length_are_refused(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let (stored, _) = add(catalog, video("a")).await;
    let leased = lease(catalog).await;
    for (key, dim) in [(tiny.key, 3), (tiny.key + 1, 4)] {
        let mut result = ingested(1, &[]);
        result.spans[0].vectors.push((key, vector(1, dim).0, 1.0));
        let refused = catalog.finish_ingest(&leased.lease, result).await;
        assert!(matches!(refused, Err(CatalogError::Invalid(_))), "{refused:?}");
    }
    assert_eq!(catalog.clips(stored.id, None, 10).await.unwrap(), []);
    catalog.finish_ingest(&leased.lease, ingested(1, &[&tiny])).await.unwrap();
}

async fn a_new_space_is_filled(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("a"), 2, &[&tiny]).await;
    assert_eq!(catalog.enqueue_fills(&[tiny.key]).await.unwrap(), 0);
    let other = space(catalog, "other", 3).await;
    let (pending, _) = add(catalog, video("pending")).await;
    assert_eq!(catalog.enqueue_fills(&[tiny.key, other.key]).await.unwrap(), 1);
    // It has an unfinished job now.
    assert_eq!(catalog.enqueue_fills(&[tiny.key, other.key]).await.unwrap(), 0);
    assert_eq!(lease(catalog).await.video.id, pending.id);
    let leased = lease(catalog).await;
    assert_eq!((leased.job.kind, leased.video.id), (JobKind::Fill, ready.id));
    let lacking = catalog.spans_without_vector(ready.id, other.key).await.unwrap();
    assert_eq!(lacking.len(), 3);
    let new = |span: &reprise::catalog::Span| {
        let (unit, norm) = vector(span.key, 3);
        NewVector { span: span.key, space: other.key, unit, norm }
    };
    catalog.finish_fill(&leased.lease, lacking.iter().map(new).collect(), Vec::new()).await.unwrap();
    assert_eq!(catalog.spans_without_vector(ready.id, other.key).await.unwrap(), []);
    assert_eq!(followed(catalog, 100).await, stored(catalog).await);
    assert_eq!(catalog.enqueue_fills(&[tiny.key, other.key]).await.unwrap(), 0);
}

async fn a_fill_stores_only_what_is_missing(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let stranger = add_ready(catalog, video("b"), 1, &[]).await;
    let there = catalog.clips(ready.id, None, 1).await.unwrap().remove(0);
    let foreign = catalog.clips(stranger.id, None, 1).await.unwrap().remove(0);
    let (given, _) = catalog.add_given_clip(ready.id, clip(0, 10, json!({}))).await.unwrap().unwrap();
    let before = catalog.last_seq().await.unwrap();
    let leased = lease(catalog).await;
    let new = |span: u32| {
        let (unit, norm) = vector(7, 4);
        NewVector { span, space: tiny.key, unit, norm }
    };
    // One that is there, one that is missing, one that is gone, one of another video.
    let vectors = vec![new(there.key), new(given.key), new(4_000_000_000), new(foreign.key)];
    catalog.finish_fill(&leased.lease, vectors.clone(), Vec::new()).await.unwrap();
    let changes = catalog.changes(before, 10).await.unwrap();
    assert_eq!(changes.iter().map(|change| change.span).collect::<Vec<_>>(), [given.key]);
    catalog.finish_fill(&leased.lease, vectors, Vec::new()).await.unwrap();
    assert_eq!(catalog.changes(before, 10).await.unwrap(), changes);
    let cancelled = catalog.finish_ingest(&leased.lease, ingested(1, &[])).await;
    assert!(cancelled.is_ok(), "the same token: it is known to have finished");
}

async fn deleting_a_clip_is_a_change(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let (given, _) = catalog.add_given_clip(ready.id, clip(0, 10, json!({}))).await.unwrap().unwrap();
    let leased = catalog.lease_job(Uuid::now_v7(), LEASE).await.unwrap().unwrap();
    let (unit, norm) = vector(7, 4);
    let vectors = vec![NewVector { span: given.key, space: tiny.key, unit, norm }];
    catalog.finish_fill(&leased.lease, vectors, Vec::new()).await.unwrap();
    let seq = catalog.last_seq().await.unwrap();
    catalog.delete_clip(given.id).await.unwrap().unwrap();
    let changes = catalog.changes(seq, 10).await.unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].span, changes[0].space, changes[0].level), (given.key, tiny.key, Level::Clip));
    assert_eq!(changes[0].vector, None);
    // The insert's vector is gone as well: who comes late never sees it.
    assert!(catalog.changes(seq - 1, 1).await.unwrap()[0].vector.is_none());
    assert_eq!(followed(catalog, 2).await, stored(catalog).await);
}
