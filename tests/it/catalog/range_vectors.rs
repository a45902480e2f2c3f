//! The cache of ranges' vectors: bounds, order of leaving, callers, and videos that go.

use std::sync::Arc;
use std::time::Duration;

use reprise_server::catalog::{Catalog, NewVideo, RangeBounds, RangeOf, Video, VideoFilter, Visibility};
use serde_json::json;
use uuid::Uuid;

use super::samples::{add_ready, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_range_is_found_again_in_its_space,
    the_least_recently_used_leave_first,
    a_range_goes_with_its_video,
    a_caller_finds_ranges_of_its_videos_only,
);

const WIDE: RangeBounds = RangeBounds { most: 100, most_bytes: 1 << 20 };
const MINUTES: Duration = Duration::from_secs(120);

async fn film(opened: &Opened, team: &str) -> (Video, u32) {
    let tiny = space(&opened.catalog, "tiny", 2).await;
    let content_hash = format!("{:064x}", Uuid::now_v7().as_u128());
    let new = NewVideo { metadata: json!({"team": team}), content_hash, ..video(team) };
    (add_ready(&opened.catalog, new, 1, &[&tiny]).await, tiny.key)
}

fn at(video: &Video, space: u32, start_ms: i64) -> RangeOf {
    RangeOf { space, video: video.id, start_ms, end_ms: start_ms + 1 }
}

async fn keep(catalog: &Catalog, range: RangeOf, bounds: RangeBounds) {
    catalog.keep_range_vector(&range, &[range.start_ms as f32, -0.5], bounds).await.unwrap();
}

/// Which of the ranges that start at these milliseconds are kept.
async fn kept(catalog: &Catalog, video: &Video, space: u32, starts: &[i64]) -> Vec<i64> {
    let mut kept = Vec::new();
    for start in starts {
        if catalog.view(ALL).range_vector(&at(video, space, *start)).await.unwrap().is_some() {
            kept.push(*start);
        }
    }
    kept
}

async fn a_range_is_found_again_in_its_space(opened: &Opened) {
    let (video, tiny) = film(opened, "a").await;
    let other = space(&opened.catalog, "other", 2).await.key;
    let range = at(&video, tiny, 7);
    keep(&opened.catalog, range, WIDE).await;
    let view = opened.catalog.view(ALL);
    assert_eq!(view.range_vector(&range).await.unwrap(), Some(vec![7.0, -0.5]));
    for none in [RangeOf { space: other, ..range }, RangeOf { end_ms: 9, ..range }, at(&video, tiny, 8)] {
        assert_eq!(view.range_vector(&none).await.unwrap(), None, "{none:?}");
    }
    opened.catalog.keep_range_vector(&range, &[0.25], WIDE).await.unwrap();
    assert_eq!(view.range_vector(&range).await.unwrap(), Some(vec![0.25]), "the newest one counts");
    let gone = RangeOf { video: Uuid::now_v7(), ..range };
    assert!(opened.catalog.keep_range_vector(&gone, &[1.0], WIDE).await.is_err());
}

async fn the_least_recently_used_leave_first(opened: &Opened) {
    let (video, tiny) = film(opened, "a").await;
    let three = RangeBounds { most: 3, ..WIDE };
    for start in [1, 2, 3] {
        keep(&opened.catalog, at(&video, tiny, start), three).await;
        opened.clock.advance(MINUTES);
    }
    assert_eq!(kept(&opened.catalog, &video, tiny, &[1]).await, [1], "a use, which counts");
    opened.clock.advance(MINUTES);
    keep(&opened.catalog, at(&video, tiny, 4), three).await;
    assert_eq!(kept(&opened.catalog, &video, tiny, &[1, 2, 3, 4]).await, [1, 3, 4]);
    opened.clock.advance(MINUTES);
    // Each vector has 8 bytes.
    keep(&opened.catalog, at(&video, tiny, 5), RangeBounds { most_bytes: 16, ..WIDE }).await;
    let left = kept(&opened.catalog, &video, tiny, &[1, 2, 3, 4, 5]).await;
    assert!(left.len() == 2 && left.contains(&5), "{left:?}");
    keep(&opened.catalog, at(&video, tiny, 6), RangeBounds { most_bytes: 7, ..WIDE }).await;
    assert!(kept(&opened.catalog, &video, tiny, &[1, 2, 3, 4, 5, 6]).await.is_empty());
}

async fn a_range_goes_with_its_video(opened: &Opened) {
    let (video, tiny) = film(opened, "a").await;
    let range = at(&video, tiny, 1);
    keep(&opened.catalog, range, WIDE).await;
    let view = opened.catalog.view(ALL);
    view.trash_video(video.id).await.unwrap().unwrap();
    assert_eq!(view.range_vector(&range).await.unwrap(), None, "the trash hides it");
    view.restore_video(video.id).await.unwrap().unwrap();
    assert!(view.range_vector(&range).await.unwrap().is_some());
    view.delete_video(video.id).await.unwrap().unwrap();
    opened.catalog.purge_video(video.id).await.unwrap();
    assert_eq!(view.range_vector(&range).await.unwrap(), None);
}

async fn a_caller_finds_ranges_of_its_videos_only(opened: &Opened) {
    let (video, tiny) = film(opened, "a").await;
    let range = at(&video, tiny, 1);
    keep(&opened.catalog, range, WIDE).await;
    for (team, is_seen) in [("a", true), ("b", false)] {
        let only = VideoFilter::parse(&json!({"field": "metadata.team", "eq": team})).unwrap();
        let reach = Visibility::Matching(Arc::new(only));
        let found = opened.catalog.view(&reach).range_vector(&range).await.unwrap();
        assert_eq!(found.is_some(), is_seen, "{team}");
    }
}
