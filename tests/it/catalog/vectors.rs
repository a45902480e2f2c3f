//! Spaces, vectors, fills, and the change log.

use std::collections::BTreeMap;

use reprise_server::catalog::{Catalog, CatalogError, Change, JobName, NewSpace, NewVector, StoredVector};
use reprise_server::terms::{Collection, KeySet, Level, SpanKey, UnitVector};
use reprise_server::vectors::differences;
use serde_json::json;
use uuid::Uuid;

use super::samples::{LEASE, add, add_ready, clip, filled, ingested, lease, space, vector, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_space_is_registered_once,
    vectors_are_read_by_key,
    the_newest_key_is_that_of_the_last_span,
    a_raw_vector_is_the_direction_times_its_norm,
    an_ingest_replaces_every_vector,
    vectors_of_the_wrong_length_are_refused,
    a_new_space_is_filled,
    a_fill_stores_only_what_is_missing,
    deleting_a_clip_is_a_change,
    what_an_index_lacks_is_told_but_for_what_changed_later,
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

async fn vectors_are_read_by_key(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (tiny, other) = (space(catalog, "tiny", 4).await, space(catalog, "other", 3).await);
    add_ready(catalog, video("a"), 5, &[&tiny, &other]).await;
    add_ready(catalog, video("b"), 5, &[&tiny]).await;
    let all = of_space(catalog, tiny.key).await;
    assert!(all.len() == 12 && all.is_sorted_by(|a, b| a.span < b.span));
    let of_level = |level| {
        all.iter().filter(move |stored| stored.level == level).map(|stored| stored.span).collect::<Vec<_>>()
    };
    for (level, count) in [(Level::Video, 2), (Level::Clip, 10), (Level::Moment, 0), (Level::Passage, 0)] {
        let keys = catalog.vector_keys(tiny.key, level).await.unwrap();
        assert_eq!(keys.iter().collect::<Vec<_>>(), of_level(level));
        assert_eq!(keys.len(), count);
    }
    let expected: Vec<UnitVector> = (0..6).chain(0..6).map(|seed| vector(seed, 4).0).collect();
    for (stored, expected) in all.iter().zip(&expected) {
        assert!(stored.unit.dot(expected) > 1.0 - 1e-6);
    }
    let asked = [all[7].span, all[2].span, SpanKey::new(1 << 40), all[2].span];
    let some = catalog.vectors_of(tiny.key, &asked).await.unwrap();
    assert_eq!(some, [all[2].clone(), all[7].clone()], "in order, each once, none that isn't there");
    assert_eq!(catalog.vectors_of(other.key, &[all[11].span]).await.unwrap(), [], "of the other video");
    assert_eq!(catalog.vectors_of(tiny.key, &[]).await.unwrap(), []);
    assert_eq!(of_space(catalog, other.key).await.len(), 6);
    let counts: Vec<i64> = catalog.spaces().await.unwrap().iter().map(|space| space.vectors).collect();
    assert_eq!(counts, [12, 6]);
}

async fn the_newest_key_is_that_of_the_last_span(opened: &Opened) {
    let catalog = &*opened.catalog;
    assert_eq!(catalog.newest_key().await.unwrap(), SpanKey::new(0), "without spans");
    let tiny = space(catalog, "tiny", 4).await;
    let mut before = SpanKey::new(0);
    for name in ["a", "b"] {
        add_ready(catalog, video(name), 3, &[&tiny]).await;
        let newest = of_space(catalog, tiny.key).await.last().unwrap().span;
        assert_eq!(catalog.newest_key().await.unwrap(), newest);
        assert!(before < newest);
        before = newest;
    }
    // A clip without vectors counts too: it may get them at any time.
    let stored = add_ready(catalog, video("c"), 1, &[&tiny]).await;
    let added = catalog.view(ALL).add_given_clip(stored.id, clip(0, 10, json!({}))).await.unwrap();
    let (given, _) = added.unwrap();
    assert_eq!(catalog.newest_key().await.unwrap(), given.key);
}

async fn a_raw_vector_is_the_direction_times_its_norm(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let stored = add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let clip = catalog.view(ALL).clips(stored.id, None, 1).await.unwrap().remove(0);
    let raw = catalog.view(ALL).raw_vector(clip.key, tiny.key).await.unwrap().unwrap();
    let (unit, norm) = vector(1, 4);
    for (raw, unit) in raw.iter().zip(unit.values()) {
        assert!((raw - unit * norm).abs() < 1e-6);
    }
    assert_eq!(catalog.view(ALL).raw_vector(clip.key, tiny.key + 1).await.unwrap(), None);
    assert_eq!(
        catalog.view(ALL).raw_vector(SpanKey::new(clip.key.number() + 100), tiny.key).await.unwrap(),
        None
    );
}

/// The vectors that a follower of `changes` has after reading from the beginning, in pages of `page`.
pub(super) async fn followed(catalog: &Catalog, page: u32) -> BTreeMap<(u32, SpanKey), UnitVector> {
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
                Some(vector) => held.insert((space, span), vector.unit),
                None => held.remove(&(space, span)),
            };
        }
    }
}

/// All stored vectors of a space, ordered by span key.
pub(super) async fn of_space(catalog: &Catalog, space: u32) -> Vec<StoredVector> {
    let mut keys = vec![];
    for level in Level::ALL {
        keys.extend(catalog.vector_keys(space, level).await.unwrap().iter());
    }
    catalog.vectors_of(space, &keys).await.unwrap()
}

/// All stored vectors.
pub(super) async fn stored(catalog: &Catalog) -> BTreeMap<(u32, SpanKey), UnitVector> {
    let mut all = BTreeMap::new();
    for space in catalog.spaces().await.unwrap() {
        all.extend(
            of_space(catalog, space.key)
                .await
                .into_iter()
                .map(|stored| ((space.key, stored.span), stored.unit)),
        );
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
        result.spans.push(reprise_server::catalog::IngestedSpan {
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
        // The only way to ingest the same video again from here: run the job again.
        again(opened, job.id).await;
    }
}

/// Queues a succeeded job again.
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
    assert_eq!(catalog.view(ALL).clips(stored.id, None, 10).await.unwrap(), []);
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
    // The video has an unfinished job now.
    assert_eq!(catalog.enqueue_fills(&[tiny.key, other.key]).await.unwrap(), 0);
    assert_eq!(lease(catalog).await.job.video, Some(pending.id));
    let leased = lease(catalog).await;
    assert_eq!((leased.job.kind, leased.job.video.unwrap()), (JobName::Fill, ready.id));
    let lacking = catalog.spans_without_vector(ready.id, other.key).await.unwrap();
    assert_eq!(lacking.len(), 3);
    let new = |span: &reprise_server::catalog::Span| {
        let (unit, norm) = vector(span.key.number() as u32, 3);
        NewVector { span: span.key, space: other.key, unit, norm }
    };
    catalog.finish_fill(&leased.lease, filled(lacking.iter().map(new).collect())).await.unwrap();
    assert_eq!(catalog.spans_without_vector(ready.id, other.key).await.unwrap(), []);
    assert_eq!(followed(catalog, 100).await, stored(catalog).await);
    assert_eq!(catalog.enqueue_fills(&[tiny.key, other.key]).await.unwrap(), 0);
}

async fn a_fill_stores_only_what_is_missing(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let stranger = add_ready(catalog, video("b"), 1, &[]).await;
    let there = catalog.view(ALL).clips(ready.id, None, 1).await.unwrap().remove(0);
    let foreign = catalog.view(ALL).clips(stranger.id, None, 1).await.unwrap().remove(0);
    let (given, _) =
        catalog.view(ALL).add_given_clip(ready.id, clip(0, 10, json!({}))).await.unwrap().unwrap();
    let before = catalog.last_seq().await.unwrap();
    let leased = lease(catalog).await;
    let new = |span: SpanKey| {
        let (unit, norm) = vector(7, 4);
        NewVector { span, space: tiny.key, unit, norm }
    };
    // An existing span, one that lacks a vector, a deleted one, and one of another video.
    let vectors = vec![new(there.key), new(given.key), new(SpanKey::new(1 << 40)), new(foreign.key)];
    catalog.finish_fill(&leased.lease, filled(vectors.clone())).await.unwrap();
    let changes = catalog.changes(before, 10).await.unwrap();
    assert_eq!(changes.iter().map(|change| change.span).collect::<Vec<_>>(), [given.key]);
    catalog.finish_fill(&leased.lease, filled(vectors)).await.unwrap();
    assert_eq!(catalog.changes(before, 10).await.unwrap(), changes);
    let cancelled = catalog.finish_ingest(&leased.lease, ingested(1, &[])).await;
    assert!(cancelled.is_ok(), "the same token: it is known to have finished");
}

async fn deleting_a_clip_is_a_change(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let (given, _) =
        catalog.view(ALL).add_given_clip(ready.id, clip(0, 10, json!({}))).await.unwrap().unwrap();
    let leased = catalog.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap().unwrap();
    let (unit, norm) = vector(7, 4);
    let vectors = vec![NewVector { span: given.key, space: tiny.key, unit, norm }];
    catalog.finish_fill(&leased.lease, filled(vectors)).await.unwrap();
    let seq = catalog.last_seq().await.unwrap();
    catalog.view(ALL).delete_clip(given.id).await.unwrap().unwrap();
    let changes = catalog.changes(seq, 10).await.unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].span, changes[0].space, changes[0].level), (given.key, tiny.key, Level::Clip));
    assert_eq!(changes[0].vector, None);
    // The insert's vector is gone too: a late follower never gets it.
    assert!(catalog.changes(seq - 1, 1).await.unwrap()[0].vector.is_none());
    assert_eq!(followed(catalog, 2).await, stored(catalog).await);
}

async fn what_an_index_lacks_is_told_but_for_what_changed_later(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let first = add_ready(catalog, video("a"), 3, &[&tiny]).await;
    let seq = catalog.last_seq().await.unwrap();
    let mut held = BTreeMap::new();
    for level in Level::ALL {
        held.insert(level, catalog.vector_keys(tiny.key, level).await.unwrap());
    }
    let nothing = KeySet::new();
    let check = async |held: &BTreeMap<Level, KeySet>, seq, missing: &KeySet, extra: &KeySet| {
        let found = differences(catalog, tiny.key, held, seq).await.unwrap();
        let (found_missing, found_extra) =
            found.iter().fold(<(KeySet, KeySet)>::default(), |(missing, extra), it| {
                assert_eq!(it.at, Collection { space: tiny.key, level: Level::Clip });
                (&missing | &it.missing, &extra | &it.extra)
            });
        assert_eq!((&found_missing, &found_extra), (missing, extra));
    };
    check(&held, seq, &nothing, &nothing).await;
    // The follower has not applied later changes yet.
    add_ready(catalog, video("b"), 2, &[&tiny]).await;
    catalog.view(ALL).delete_video(first.id).await.unwrap().unwrap();
    check(&held, seq, &nothing, &nothing).await;
    // At the newest change, they are applied.
    let seq = catalog.last_seq().await.unwrap();
    for level in Level::ALL {
        held.insert(level, catalog.vector_keys(tiny.key, level).await.unwrap());
    }
    check(&held, seq, &nothing, &nothing).await;
    let clips = held.get_mut(&Level::Clip).unwrap();
    let lost = clips.iter().next().unwrap();
    clips.remove(lost);
    let stray = SpanKey::new(1 << 40);
    clips.insert(stray);
    check(&held, seq, &KeySet::from_iter([lost]), &KeySet::from_iter([stray])).await;
}
