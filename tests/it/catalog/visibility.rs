//! What a caller with a filter sees and may change, on both databases.

use std::sync::Arc;

use reprise_server::catalog::{CatalogError, Filter, VideoFilter, VideoPatch, Visibility};
use serde_json::{Value, json};
use uuid::Uuid;

use super::samples::{add, add_ready, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_view_holds_what_its_filter_selects,
    a_view_changes_what_it_shows_and_nothing_else,
    the_same_bytes_are_added_once_in_each_view,
);

fn matching(filter: &Value) -> Visibility {
    Visibility::Matching(Arc::new(
        VideoFilter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}")),
    ))
}

/// Compares what a view shows with what the same filter selects among all videos.
async fn check(opened: &Opened, filter: &Value) {
    let parsed = Filter::parse(filter).unwrap();
    let (visibility, all) = (matching(filter), opened.catalog.view(ALL));
    let view = opened.catalog.view(&visibility);
    let expected = all.videos_matching(Some(&parsed)).await.unwrap();
    assert_eq!(view.videos_matching(None).await.unwrap(), expected, "{filter}");
    assert_eq!(view.keys_allowed(None).await.unwrap(), Some(all.keys_matching(&parsed).await.unwrap()));
    let shown = view.videos(None, 100).await.unwrap();
    assert_eq!(shown.len(), expected.len(), "{filter}");
    assert_eq!(view.counts().await.unwrap().videos, shown.len() as i64, "{filter}");
    let jobs = view.jobs(&Default::default(), None, 100).await.unwrap();
    assert_eq!(jobs.len(), shown.len(), "each video has one job: {filter}");
}

async fn a_view_holds_what_its_filter_selects(opened: &Opened) {
    let metadata = [
        json!({}),
        json!({"x": 1}),
        json!({"x": [1, 2], "y": "a"}),
        json!({"y": "b"}),
        json!({"x": {"z": true}}),
    ];
    let tiny = space(&opened.catalog, "tiny", 4).await;
    for (number, metadata) in metadata.into_iter().enumerate() {
        let new = reprise_server::catalog::NewVideo { metadata, ..video(&number.to_string()) };
        add_ready(&opened.catalog, new, 2, &[&tiny]).await;
    }
    for filter in [
        json!({"field": "metadata.x", "eq": 1}),
        json!({"field": "metadata.x", "exists": false}),
        json!({"field": "metadata.x.z", "eq": true}),
        json!({"field": "metadata.y", "in": ["a", "b", 3]}),
        json!({"field": "metadata.y", "in": []}),
        json!({"not": {"field": "metadata.y", "gte": "b"}}),
        json!({"all": [{"field": "metadata.x", "gt": 1}, {"any": [{"field": "metadata.y", "lt": "b"}]}]}),
    ] {
        check(opened, &filter).await;
    }
    check(opened, &json!({"all": []})).await;
    check(opened, &json!({"any": []})).await;
}

async fn a_view_changes_what_it_shows_and_nothing_else(opened: &Opened) {
    let of_team =
        |team: &str| reprise_server::catalog::NewVideo { metadata: json!({"team": team}), ..video(team) };
    let (mine, my_job) = add(&opened.catalog, of_team("a")).await;
    let (theirs, their_job) = add(&opened.catalog, of_team("b")).await;
    let visibility = matching(&json!({"field": "metadata.team", "eq": "a"}));
    let view = opened.catalog.view(&visibility);
    let title = || VideoPatch { title: Some("new".to_owned()), ..VideoPatch::default() };
    let team = |team: &str| VideoPatch { metadata: Some(json!({"team": team})), ..VideoPatch::default() };

    assert_eq!(view.update_video(theirs.id, title()).await.unwrap(), None);
    assert!(view.cancel_job(their_job.id).await.unwrap().is_none());
    assert!(view.add_given_clip(theirs.id, super::samples::clip(0, 9, json!({}))).await.unwrap().is_none());
    assert_eq!(view.delete_video(theirs.id).await.unwrap(), None);
    let refused = view.update_video(mine.id, team("b")).await;
    assert!(matches!(refused, Err(CatalogError::Outside)), "{refused:?}");
    let refused = view.add_video(of_team("c"), None).await;
    assert!(matches!(refused, Err(CatalogError::Outside)));

    assert_eq!(view.update_video(mine.id, title()).await.unwrap().unwrap().metadata, json!({"team": "a"}));
    assert!(view.cancel_job(my_job.id).await.unwrap().is_some());
    assert_eq!(
        opened.catalog.view(ALL).videos(None, 9).await.unwrap().len(),
        2,
        "nothing was added or deleted"
    );
    assert!(view.delete_video(mine.id).await.unwrap().is_some());
}

async fn the_same_bytes_are_added_once_in_each_view(opened: &Opened) {
    let views = ["a", "b"].map(|team| matching(&json!({"field": "metadata.team", "eq": team})));
    for _ in 0..2 {
        for (team, visibility) in ["a", "b"].into_iter().zip(&views) {
            let new = reprise_server::catalog::NewVideo { metadata: json!({"team": team}), ..video("same") };
            let view = opened.catalog.view(visibility);
            // Two requests at once are added once too.
            let (one, other) =
                tokio::join!(view.add_video(new.clone(), None), view.add_video(fresh(&new), None));
            one.unwrap();
            other.unwrap();
            assert_eq!(view.videos(None, 9).await.unwrap().len(), 1, "team {team}");
        }
    }
    assert_eq!(opened.catalog.view(ALL).videos(None, 9).await.unwrap().len(), 2);
}

fn fresh(new: &reprise_server::catalog::NewVideo) -> reprise_server::catalog::NewVideo {
    reprise_server::catalog::NewVideo { id: Uuid::now_v7(), ..new.clone() }
}
