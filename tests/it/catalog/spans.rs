//! Spans: the result of an ingest, paging, and given clips.

use reprise_server::catalog::{CatalogError, IngestedSpan, JobName, JobState};
use reprise_server::terms::{Level, SpanKey};
use serde_json::json;
use uuid::Uuid;

use super::samples::{add, add_ready, clip, ingested, lease, space, vector, video};
use super::{ALL, Opened, on_both};

on_both!(
    clips_are_paged_in_order_of_start,
    a_range_is_found_where_it_has_a_vector,
    hits_show_their_video,
    a_given_clip_gets_a_job_of_its_own,
    only_given_clips_can_be_changed,
    a_given_clip_keeps_its_key_through_an_ingest,
    a_clip_given_while_the_ingest_runs_is_kept,
    a_given_clip_ends_with_its_video,
    keys_are_never_used_again,
    an_empty_span_is_refused_whole,
);

async fn clips_are_paged_in_order_of_start(opened: &Opened) {
    let catalog = &*opened.catalog;
    let mut new = video("a");
    new.given = vec![clip(4000, 5000, json!({})), clip(4000, 4500, json!({})), clip(1, 2, json!({}))];
    let stored = add_ready(catalog, new, 7, &[]).await;
    assert_eq!(stored.clips, 10);
    let whole = catalog.view(ALL).clips(stored.id, None, 100).await.unwrap();
    let places: Vec<(i64, Uuid)> = whole.iter().map(|span| (span.start_ms, span.id)).collect();
    assert!(places.is_sorted() && places.len() == 10, "{places:?}");
    assert!(whole.iter().all(|span| span.level == Level::Clip && span.video == stored.id));
    let mut paged = vec![];
    while let Some(page) = Some(catalog.view(ALL).clips(stored.id, paged.last().copied(), 3).await.unwrap()) {
        if page.is_empty() {
            break;
        }
        paged.extend(page.iter().map(|span| (span.start_ms, span.id)));
    }
    assert_eq!(paged, places);
    for span in whole {
        assert_eq!(catalog.view(ALL).span(span.id).await.unwrap().as_ref(), Some(&span));
    }
    assert_eq!(catalog.view(ALL).span(Uuid::now_v7()).await.unwrap(), None);
}

async fn a_range_is_found_where_it_has_a_vector(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (tiny, other) = (space(catalog, "tiny", 4).await, space(catalog, "other", 3).await);
    let stored = add_ready(catalog, video("a"), 3, &[&tiny]).await;
    let view = catalog.view(ALL);
    let at = |start_ms, end_ms, space: u32| view.span_at(stored.id, start_ms, end_ms, space);
    let found = at(1000, 2000, tiny.key).await.unwrap().unwrap();
    assert_eq!((found.level, found.start_ms, found.end_ms), (Level::Clip, 1000, 2000));
    assert_eq!(at(0, 3000, tiny.key).await.unwrap().unwrap().level, Level::Video);
    assert_eq!(at(1000, 2001, tiny.key).await.unwrap(), None);
    assert_eq!(at(1000, 2000, other.key).await.unwrap(), None);
}

async fn hits_show_their_video(opened: &Opened) {
    let catalog = &*opened.catalog;
    let mut new = video("a");
    new.metadata = json!({"event": "vault"});
    let stored = add_ready(catalog, new, 3, &[]).await;
    let clips = catalog.view(ALL).clips(stored.id, None, 10).await.unwrap();
    let keys: Vec<SpanKey> = clips.iter().map(|span| span.key).chain([SpanKey::new(1 << 40)]).collect();
    let mut shown = catalog.view(ALL).spans_by_key(&keys).await.unwrap();
    shown.sort_by_key(|shown| shown.span.start_ms);
    assert_eq!(shown.iter().map(|shown| &shown.span).collect::<Vec<_>>(), clips.iter().collect::<Vec<_>>());
    for shown in shown {
        assert_eq!((shown.title.as_str(), &shown.video_metadata), ("a", &json!({"event": "vault"})));
        assert_eq!((shown.media_offset_ms, shown.duration_ms), (1075, 3000));
    }
    assert_eq!(catalog.view(ALL).spans_by_key(&[]).await.unwrap(), []);
}

async fn a_given_clip_gets_a_job_of_its_own(opened: &Opened) {
    let catalog = &*opened.catalog;
    let stored = add_ready(catalog, video("a"), 3, &[]).await;
    let (span, job) =
        catalog.view(ALL).add_given_clip(stored.id, clip(500, 9000, json!({"x": 1}))).await.unwrap().unwrap();
    assert_eq!((span.start_ms, span.end_ms, span.given, &span.metadata), (500, 3000, true, &json!({"x": 1})));
    assert_eq!((job.kind, job.state, job.video), (JobName::Fill, JobState::Queued, Some(stored.id)));
    assert_eq!(catalog.view(ALL).video(stored.id).await.unwrap().unwrap().job_id, Some(job.id));
    assert_eq!(catalog.view(ALL).add_given_clip(Uuid::now_v7(), clip(0, 1, json!({}))).await.unwrap(), None);
    for bad in [clip(3000, 4000, json!({})), clip(2, 2, json!({})), clip(0, 1, json!(null))] {
        let refused = catalog.view(ALL).add_given_clip(stored.id, bad).await;
        assert!(matches!(refused, Err(CatalogError::Invalid(_))), "{refused:?}");
    }
}

async fn only_given_clips_can_be_changed(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let stored = add_ready(catalog, video("a"), 2, &[&tiny]).await;
    let found = catalog.view(ALL).clips(stored.id, None, 1).await.unwrap().remove(0);
    assert!(matches!(
        catalog.view(ALL).update_clip(found.id, json!({}), None).await,
        Err(CatalogError::Conflict(_))
    ));
    assert!(matches!(catalog.view(ALL).delete_clip(found.id).await, Err(CatalogError::Conflict(_))));

    let (given, _) =
        catalog.view(ALL).add_given_clip(stored.id, clip(0, 100, json!({"x": 1}))).await.unwrap().unwrap();
    let changed = catalog.view(ALL).update_clip(given.id, json!({"y": [2]}), None).await.unwrap().unwrap();
    assert_eq!(changed.metadata, json!({"y": [2]}));
    assert_eq!(catalog.view(ALL).span(given.id).await.unwrap(), Some(changed.clone()));
    assert!(matches!(
        catalog.view(ALL).update_clip(given.id, json!(3), None).await,
        Err(CatalogError::Invalid(_))
    ));
    assert_eq!(catalog.view(ALL).delete_clip(given.id).await.unwrap(), Some(changed));
    assert_eq!(catalog.view(ALL).span(given.id).await.unwrap(), None);
    assert_eq!(catalog.view(ALL).delete_clip(given.id).await.unwrap(), None);
    assert_eq!(catalog.view(ALL).update_clip(given.id, json!({}), None).await.unwrap(), None);
}

async fn a_given_clip_keeps_its_key_through_an_ingest(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let mut new = video("a");
    new.given = vec![clip(100, 1500, json!({"event": "beam"})), clip(1000, 99_000, json!({}))];
    let (stored, _) = add(catalog, new).await;
    let leased = lease(catalog).await;
    assert_eq!(leased.given.len(), 2);
    let mut result = ingested(2, &[&tiny]);
    for (number, span) in leased.given.iter().enumerate() {
        let (unit, norm) = vector(1000 + number as u32, 4);
        let vectors = vec![(tiny.key, unit, norm)];
        let end_ms = span.end_ms.min(2000);
        let given = IngestedSpan {
            given: Some(span.id),
            level: span.level,
            start_ms: span.start_ms,
            end_ms,
            vectors,
        };
        result.spans.push(given);
    }
    catalog.finish_ingest(&leased.lease, result).await.unwrap();
    for (number, before) in leased.given.iter().enumerate() {
        let after = catalog.view(ALL).span(before.id).await.unwrap().unwrap();
        assert_eq!((after.key, after.given, &after.metadata), (before.key, true, &before.metadata));
        assert_eq!(after.end_ms, before.end_ms.min(2000));
        let (unit, norm) = vector(1000 + number as u32, 4);
        let raw: Vec<f32> = unit.values().iter().map(|value| value * norm).collect();
        let stored = catalog.view(ALL).raw_vector(after.key, tiny.key).await.unwrap().unwrap();
        assert!(stored.iter().zip(&raw).all(|(a, b)| (a - b).abs() < 1e-6), "{stored:?} {raw:?}");
    }
    assert_eq!(catalog.view(ALL).video(stored.id).await.unwrap().unwrap().clips, 4);
    assert_eq!(catalog.spans_without_vector(stored.id, tiny.key).await.unwrap(), []);
}

async fn a_clip_given_while_the_ingest_runs_is_kept(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let (stored, _) = add(catalog, video("a")).await;
    let leased = lease(catalog).await;
    let (given, fill) =
        catalog.view(ALL).add_given_clip(stored.id, clip(0, 1500, json!({}))).await.unwrap().unwrap();
    // Its fill job waits for the ingest, which creates the other spans.
    assert_eq!(catalog.lease_job(Uuid::now_v7(), &JobName::ALL, super::samples::LEASE).await.unwrap(), None);
    catalog.finish_ingest(&leased.lease, ingested(2, &[&tiny])).await.unwrap();
    let lacking = catalog.spans_without_vector(stored.id, tiny.key).await.unwrap();
    assert_eq!(lacking, [given]);
    assert_eq!(lease(catalog).await.job.id, fill.id);
}

async fn a_given_clip_ends_with_its_video(opened: &Opened) {
    let catalog = &*opened.catalog;
    let mut new = video("a");
    new.given = vec![clip(5000, 6000, json!({}))];
    add(catalog, new).await;
    let leased = lease(catalog).await;
    let given = &leased.given[0];
    let mut result = ingested(2, &[]);
    // The range lies past the end of the video and can't be cut to it. The clip stays, without a vector.
    let span = IngestedSpan {
        given: Some(given.id),
        level: Level::Clip,
        start_ms: 5000,
        end_ms: 2000,
        vectors: vec![],
    };
    result.spans.push(span);
    catalog.finish_ingest(&leased.lease, result).await.unwrap();
    assert_eq!(catalog.view(ALL).span(given.id).await.unwrap().as_ref(), Some(given));
}

async fn keys_are_never_used_again(opened: &Opened) {
    let catalog = &*opened.catalog;
    let mut largest = SpanKey::new(0);
    for _ in 0..3 {
        let stored = add_ready(catalog, video("a"), 3, &[]).await;
        let keys: Vec<SpanKey> =
            catalog.view(ALL).clips(stored.id, None, 10).await.unwrap().iter().map(|span| span.key).collect();
        assert!(keys.iter().all(|key| *key > largest), "{keys:?} after {largest}");
        largest = keys.into_iter().max().unwrap();
        catalog.view(ALL).delete_video(stored.id).await.unwrap();
    }
}

async fn an_empty_span_is_refused_whole(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (stored, _) = add(catalog, video("a")).await;
    let leased = lease(catalog).await;
    let mut result = ingested(2, &[]);
    result.spans[2].end_ms = 1000;
    let refused = catalog.finish_ingest(&leased.lease, result).await;
    assert!(matches!(refused, Err(CatalogError::Invalid(_))), "{refused:?}");
    assert_eq!(catalog.view(ALL).clips(stored.id, None, 10).await.unwrap(), []);
}
