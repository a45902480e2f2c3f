//! Maps: parts and pages, one job at a time, failures.

use std::time::Duration;

use reprise_server::catalog::{
    CatalogError, JobFilter, JobName, JobState, Lease, MapPoint, MapState, NewMap, NextAttempt, Visibility,
};
use reprise_server::terms::{Collection, KeySet, Level, SpanKey};
use uuid::Uuid;

use super::samples::{add_ready, lease, space, video};
use super::{ALL, Opened, on_both};

on_both!(a_map_is_made_by_one_job_and_anew_after_a_tenth, points_are_found_in_parts, a_failed_map_waits,);

fn at(keys: &KeySet) -> Vec<MapPoint> {
    keys.iter().map(|key| MapPoint { key, x: key.number() as f32 / 1e6, y: -0.5 }).collect()
}

fn waited_for(made_at_ms: Option<i64>) -> MapState {
    MapState { made_at_ms, is_waited_for: true, trouble: None }
}

async fn a_map_is_made_by_one_job_and_anew_after_a_tenth(opened: &Opened) {
    let catalog = &opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    add_ready(catalog, video("a"), 20, &[&tiny]).await;
    let of = Collection { space: tiny.key, level: Level::Clip };
    for _ in 0..2 {
        assert_eq!(catalog.ask_for_map(of).await.unwrap(), waited_for(None));
    }
    let leased = lease(catalog).await;
    assert_eq!((leased.job.kind, leased.job.video), (JobName::Map, None));
    let params = serde_json::from_value::<Collection>(leased.job.params.clone().unwrap()).unwrap();
    assert_eq!(params, of);
    assert_eq!(catalog.ask_for_map(of).await.unwrap(), waited_for(None), "it is being made");
    let keys = catalog.vector_keys(of.space, of.level).await.unwrap();
    let map = NewMap { of, seq: catalog.last_seq().await.unwrap(), anchors: 20, points: at(&keys) };
    for _ in 0..2 {
        catalog.finish_map(&leased.lease, &map).await.unwrap();
    }
    let made = catalog.map_made_at(of).await.unwrap();
    let fresh = MapState { made_at_ms: made, ..MapState::default() };
    assert_eq!(catalog.ask_for_map(of).await.unwrap(), fresh);
    let page = catalog.view(ALL).map_page(of, None, 100).await.unwrap();
    assert_eq!((page.spans.len(), page.next), (20, None));
    add_ready(catalog, video("b"), 2, &[&tiny]).await;
    assert_eq!(catalog.ask_for_map(of).await.unwrap(), fresh, "a tenth and no more");
    assert_eq!(catalog.view(ALL).map_page(of, None, 100).await.unwrap().spans.len(), 20);
    add_ready(catalog, video("c"), 1, &[&tiny]).await;
    assert_eq!(catalog.ask_for_map(of).await.unwrap(), waited_for(made));
    let leased = lease(catalog).await;
    catalog.finish_map(&leased.lease, &map).await.unwrap();
    let only = JobFilter { kind: Some(JobName::Map), ..JobFilter::default() };
    let jobs = catalog.view(ALL).jobs(&only, None, 9).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [leased.job.id], "the older one is gone");
    let strange = Lease { job: leased.job.id, token: Uuid::nil() };
    let late = catalog.finish_map(&strange, &map).await;
    assert!(matches!(late, Err(CatalogError::LeaseLost)), "{late:?}");
}

async fn points_are_found_in_parts(opened: &Opened) {
    let catalog = &opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let film = add_ready(catalog, video("a"), 30, &[&tiny]).await.id;
    let of = Collection { space: tiny.key, level: Level::Clip };
    catalog.ask_for_map(of).await.unwrap();
    let leased = lease(catalog).await;
    let keys = catalog.vector_keys(of.space, of.level).await.unwrap();
    // Keys of other spans around them, so that they lie in several parts; every third has no point.
    let others = (1_000_000..1_009_000).map(SpanKey::new);
    let some: KeySet = keys.iter().filter(|key| key.number() % 3 > 0).chain(others).collect();
    let map = NewMap { of, seq: 0, anchors: 1, points: at(&some) };
    catalog.finish_map(&leased.lease, &map).await.unwrap();
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let page = catalog.view(ALL).map_page(of, after, 7).await.unwrap();
        found.extend(page.spans.iter().map(|span| span.point));
        assert!(page.spans.iter().all(|span| span.video == film));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.sort_by_key(|point| point.key);
    let expected: Vec<MapPoint> = at(&some).into_iter().filter(|point| keys.contains(point.key)).collect();
    assert_eq!(found, expected);
    catalog.view(ALL).delete_video(film).await.unwrap().unwrap();
    assert_eq!(catalog.view(ALL).map_page(of, None, 100).await.unwrap().spans, []);
    let filter =
        reprise_server::catalog::VideoFilter::parse(&serde_json::json!({"field": "metadata.x", "eq": 1}));
    let nothing = Visibility::Matching(std::sync::Arc::new(filter.unwrap()));
    let page = catalog.view(&nothing).map_page(of, Some(Uuid::nil()), 100).await.unwrap();
    assert_eq!(page.spans, []);
}

async fn a_failed_map_waits(opened: &Opened) {
    let catalog = &opened.catalog;
    let of = Collection { space: 1, level: Level::Video };
    catalog.ask_for_map(of).await.unwrap();
    let leased = lease(catalog).await;
    catalog.fail_job(&leased.lease, "no memory", NextAttempt::Never).await.unwrap();
    let state = catalog.ask_for_map(of).await.unwrap();
    assert_eq!((state.is_waited_for, state.trouble.as_deref()), (false, Some("no memory")));
    opened.clock.advance(Duration::from_secs(601));
    assert_eq!(catalog.ask_for_map(of).await.unwrap(), waited_for(None));
    let only = JobFilter { kind: Some(JobName::Map), state: Some(JobState::Queued), ..JobFilter::default() };
    assert_eq!(catalog.view(ALL).jobs(&only, None, 9).await.unwrap().len(), 1);
}
