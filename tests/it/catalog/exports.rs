//! Reels and exports: versions, visibility, deleted videos, ends, quotas.

use std::sync::Arc;
use std::time::Duration;

use reprise_server::catalog::{
    CatalogError, ExpiredExport, Export, Finished, JobName, JobState, KeyLimits, Leased, MadeExport,
    NewApiKey, NewExport, NewReel, NewVideo, RangeFault, ReelRange, ReelVersion, ReelVideo, Scope, Video,
    VideoFilter, Visibility,
};
use serde_json::json;
use uuid::Uuid;

use super::samples::{add_ready, lease, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_reel_is_changed_in_the_state_that_was_read,
    a_caller_sees_reels_whose_videos_it_sees,
    a_reel_outlives_its_videos,
    an_export_is_a_job_with_a_file_that_expires,
    a_caller_sees_exports_whose_videos_it_sees,
    a_deleted_video_ends_its_exports,
    a_file_counts_against_the_quota_of_its_key,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

fn range(video: Uuid, start_ms: i64, end_ms: i64) -> ReelRange {
    ReelRange { video, start_ms, end_ms, note: "é \"'".to_owned() }
}

fn reel(ranges: &[ReelRange]) -> NewReel {
    NewReel { name: "best".to_owned(), ranges: ranges.to_vec() }
}

/// A caller who sees the videos of a team.
fn team(name: &str) -> Visibility {
    let only = json!({"field": "metadata.team", "eq": name});
    Visibility::Matching(Arc::new(VideoFilter::parse(&only).unwrap()))
}

/// A searchable video of three seconds that belongs to a team.
async fn of_team(opened: &Opened, name: &str) -> Video {
    let tiny = space(&opened.catalog, "tiny", 4).await;
    let content_hash = format!("{:064x}", Uuid::now_v7().as_u128());
    let new = NewVideo { metadata: json!({"team": name}), content_hash, ..video(name) };
    add_ready(&opened.catalog, new, 3, &[&tiny]).await
}

async fn a_reel_is_changed_in_the_state_that_was_read(opened: &Opened) {
    let (view, film) = (opened.catalog.view(ALL), of_team(opened, "a").await.id);
    let ranges = [range(film, 1000, 2000), range(film, 0, 9000), range(film, 1000, 2000)];
    let first = view.add_reel(&reel(&ranges)).await.unwrap();
    assert_eq!(first.version, ReelVersion { version: 1, ranges: 3 });
    assert_eq!((&first.ranges[..], first.duration_ms), (&ranges[..], 11_000));
    let played = ReelVideo { id: film, media_offset_ms: Some(1075), plays_in_browsers: Some(true) };
    assert_eq!(first.videos, [played]);
    assert_eq!(view.reel(first.id).await.unwrap(), Some(first.clone()));
    let changed = view.update_reel(first.id, Some(&[first.version]), &reel(&ranges[1..])).await;
    let changed = changed.unwrap().unwrap();
    assert_eq!(changed.version, ReelVersion { version: 2, ranges: 2 });
    for expected in [&[first.version][..], &[]] {
        let stale = view.update_reel(first.id, Some(expected), &reel(&ranges)).await;
        assert!(matches!(stale, Err(CatalogError::Stale)), "{stale:?}");
        let stale = view.delete_reel(first.id, Some(expected)).await;
        assert!(matches!(stale, Err(CatalogError::Stale)), "{stale:?}");
    }
    assert_eq!(view.reel(first.id).await.unwrap(), Some(changed));
    let second = view.add_reel(&reel(&ranges)).await.unwrap();
    let listed: Vec<Uuid> = view.reels(None, 9).await.unwrap().into_iter().map(|it| it.id).collect();
    assert_eq!(listed, [second.id, first.id]);
    assert_eq!(view.reels(Some(second.id), 9).await.unwrap().len(), 1);
    assert_eq!(view.delete_reel(first.id, None).await.unwrap(), Some(()));
    assert_eq!(view.delete_reel(first.id, None).await.unwrap(), None);
    assert_eq!(view.update_reel(first.id, None, &reel(&ranges)).await.unwrap(), None);
    for (wrong, expected) in [
        (range(Uuid::nil(), 0, 1), RangeFault::NoVideo(Uuid::nil())),
        (range(film, 3000, 4000), RangeFault::AfterEnd),
    ] {
        match view.add_reel(&reel(&[ranges[0].clone(), wrong])).await {
            Err(CatalogError::Range { place: 1, fault }) => assert_eq!(fault, expected),
            other => panic!("{other:?}"),
        }
    }
}

async fn a_caller_sees_reels_whose_videos_it_sees(opened: &Opened) {
    let (a, b) = (of_team(opened, "a").await.id, of_team(opened, "b").await.id);
    let all = opened.catalog.view(ALL);
    let own = all.add_reel(&reel(&[range(a, 0, 1000)])).await.unwrap();
    let mixed = all.add_reel(&reel(&[range(a, 0, 1000), range(b, 0, 1000)])).await.unwrap();
    let (a_team, b_team) = (team("a"), team("b"));
    let (of_a, of_b) = (opened.catalog.view(&a_team), opened.catalog.view(&b_team));
    assert_eq!(of_a.reel(own.id).await.unwrap(), Some(own.clone()));
    assert_eq!(of_b.reel(own.id).await.unwrap(), None);
    assert_eq!(of_a.reel(mixed.id).await.unwrap(), None);
    assert_eq!(of_a.reels(None, 9).await.unwrap().len(), 1);
    assert_eq!(of_b.reels(None, 9).await.unwrap(), []);
    assert_eq!(of_b.update_reel(own.id, None, &reel(&[range(b, 0, 1)])).await.unwrap(), None);
    assert_eq!(of_b.delete_reel(mixed.id, None).await.unwrap(), None);
    let theirs = of_b.add_reel(&reel(&[range(a, 0, 1)])).await.map(drop);
    let moved = of_a.update_reel(own.id, None, &reel(&[range(b, 0, 1)])).await.map(drop);
    for (refused, hidden) in [(theirs, a), (moved, b)] {
        let Err(CatalogError::Range { place: 0, fault }) = refused else { panic!("{refused:?}") };
        assert_eq!(fault, RangeFault::NoVideo(hidden));
    }
    assert_eq!(all.reel(own.id).await.unwrap(), Some(own));
}

async fn a_reel_outlives_its_videos(opened: &Opened) {
    let (kept, gone) = (of_team(opened, "a").await.id, of_team(opened, "a").await.id);
    let view = opened.catalog.view(ALL);
    let before = view.add_reel(&reel(&[range(gone, 0, 1000), range(kept, 0, 2000)])).await.unwrap();
    view.delete_video(gone).await.unwrap().unwrap();
    for _ in 0..2 {
        let left = view.reel(before.id).await.unwrap().unwrap();
        assert_eq!(left.version, ReelVersion { version: 1, ranges: 1 });
        assert_eq!((&left.ranges[..], left.duration_ms), (&[range(kept, 0, 2000)][..], 2000));
        let stale = view.delete_reel(before.id, Some(&[before.version])).await;
        assert!(matches!(stale, Err(CatalogError::Stale)), "its state is another: {stale:?}");
        opened.catalog.purge_video(gone).await.unwrap();
    }
    view.delete_video(kept).await.unwrap().unwrap();
    assert_eq!(view.reel(before.id).await.unwrap().unwrap().ranges, []);
    assert_eq!(opened.catalog.view(&team("a")).reel(before.id).await.unwrap(), None);
}

fn new_export(ranges: &[ReelRange], added_by: Option<Uuid>) -> NewExport {
    NewExport { request: json!({"é": 1}), ranges: ranges.to_vec(), added_by }
}

fn made(file: &str) -> MadeExport {
    MadeExport {
        file: format!("exports/{file}"),
        file_name: "é.mp4".to_owned(),
        media_type: "video/mp4".to_owned(),
        bytes: 1000,
        content_hash: "0".repeat(64),
        report: json!({"ranges": []}),
    }
}

/// Leases and finishes the next job, which must make this export.
async fn finish(opened: &Opened, export: &Export, shown: &[Uuid]) -> Finished {
    let Leased { lease, job, .. } = lease(&opened.catalog).await;
    assert_eq!((job.id, job.kind, job.video), (export.job.id, JobName::Export, None));
    opened.catalog.finish_export(&lease, &made("a"), shown, DAY).await.unwrap()
}

async fn an_export_is_a_job_with_a_file_that_expires(opened: &Opened) {
    let (catalog, film) = (&opened.catalog, of_team(opened, "a").await.id);
    let view = catalog.view(ALL);
    let export = view.add_export(&new_export(&[range(film, 0, 1000)], None)).await.unwrap();
    assert_eq!(view.job(export.job.id).await.unwrap(), Some(export.job.clone()));
    assert_eq!(view.export(export.job.id).await.unwrap(), Some(export.clone()));
    assert_eq!(finish(opened, &export, &[film]).await, Finished::Stored);
    let stored = view.export(export.job.id).await.unwrap().unwrap();
    assert_eq!((stored.job.state, stored.made), (JobState::Succeeded, Some(made("a"))));
    assert!(catalog.export_files().await.unwrap().contains("exports/a"));
    assert_eq!(catalog.expired_exports(DAY).await.unwrap(), []);
    opened.clock.advance(DAY);
    assert_eq!(view.export(export.job.id).await.unwrap(), None);
    assert_eq!(view.exports(None, 9).await.unwrap(), []);
    let expired = ExpiredExport { id: export.job.id, file: Some("exports/a".to_owned()) };
    assert_eq!(catalog.expired_exports(DAY).await.unwrap(), [expired]);
    for _ in 0..2 {
        catalog.purge_export(export.job.id).await.unwrap();
        assert_eq!(view.job(export.job.id).await.unwrap(), None);
    }

    // One that was cancelled has no file, and goes a day later.
    let other = view.add_export(&new_export(&[range(film, 0, 1000)], None)).await.unwrap();
    view.cancel_job(other.job.id).await.unwrap().unwrap();
    assert_eq!(catalog.expired_exports(DAY).await.unwrap(), []);
    opened.clock.advance(DAY);
    assert_eq!(catalog.expired_exports(DAY).await.unwrap(), [ExpiredExport { id: other.job.id, file: None }]);

    // One that its user deletes stops, and goes at once.
    let third = view.add_export(&new_export(&[range(film, 0, 1000)], None)).await.unwrap();
    let leased = lease(catalog).await;
    assert_eq!(view.end_export(third.job.id).await.unwrap(), Some(()));
    let late = catalog.finish_export(&leased.lease, &made("c"), &[film], DAY).await;
    assert!(matches!(late, Err(CatalogError::LeaseLost)), "{late:?}");
    assert_eq!(view.export(third.job.id).await.unwrap(), None);
    assert_eq!(view.end_export(third.job.id).await.unwrap(), None);
    assert_eq!(catalog.expired_exports(DAY).await.unwrap().len(), 2);
}

async fn a_caller_sees_exports_whose_videos_it_sees(opened: &Opened) {
    let (a, b) = (of_team(opened, "a").await.id, of_team(opened, "b").await.id);
    let (a_team, b_team) = (team("a"), team("b"));
    let (of_a, of_b) = (opened.catalog.view(&a_team), opened.catalog.view(&b_team));
    let own = of_a.add_export(&new_export(&[range(a, 0, 1000)], None)).await.unwrap();
    let mixed = new_export(&[range(a, 0, 1000), range(b, 0, 1000)], None);
    let mixed_export = opened.catalog.view(ALL).add_export(&mixed).await.unwrap();
    let refused = of_a.add_export(&mixed).await;
    assert!(matches!(refused, Err(CatalogError::Range { place: 1, .. })), "{refused:?}");
    for (view, export, expected) in
        [(of_a, &own, true), (of_b, &own, false), (of_a, &mixed_export, false), (of_b, &mixed_export, false)]
    {
        let id = export.job.id;
        assert_eq!(view.export(id).await.unwrap().is_some(), expected);
        assert_eq!(view.job(id).await.unwrap().is_some(), expected);
        if !expected {
            assert_eq!(view.end_export(id).await.unwrap(), None);
            assert_eq!(view.cancel_job(id).await.unwrap(), None);
            assert_eq!(view.retry_job(id).await.unwrap(), None);
        }
    }
    let only = Default::default();
    let exports = async |view: reprise_server::catalog::View<'_>| {
        let jobs = view.jobs(&only, None, 99).await.unwrap();
        let of_exports = jobs.iter().filter(|job| job.kind == JobName::Export).count();
        (of_exports, view.exports(None, 9).await.unwrap().len())
    };
    assert_eq!(exports(of_a).await, (1, 1));
    assert_eq!(exports(of_b).await, (0, 0));
    assert_eq!(exports(opened.catalog.view(ALL)).await, (2, 2));
    assert!(of_a.cancel_job(own.job.id).await.unwrap().is_some());
}

async fn a_deleted_video_ends_its_exports(opened: &Opened) {
    let (kept, gone) = (of_team(opened, "a").await.id, of_team(opened, "a").await.id);
    let view = opened.catalog.view(ALL);
    let both = new_export(&[range(kept, 0, 1000), range(gone, 0, 1000)], None);
    let early = view.add_export(&both).await.unwrap();
    assert_eq!(finish(opened, &early, &[kept, gone]).await, Finished::Stored);
    let late = view.add_export(&both).await.unwrap();
    view.delete_video(gone).await.unwrap().unwrap();
    assert_eq!(view.export(early.job.id).await.unwrap(), None, "its file shows the video");
    assert_eq!(opened.catalog.expired_exports(DAY).await.unwrap().len(), 1);
    // The other one is made without it.
    let Leased { lease, .. } = lease(&opened.catalog).await;
    let finish =
        async |shown: &[Uuid]| opened.catalog.finish_export(&lease, &made("b"), shown, DAY).await.unwrap();
    assert_eq!(finish(&[kept, gone]).await, Finished::Outdated);
    assert_eq!(finish(&[kept]).await, Finished::Stored);
    assert_eq!(finish(&[kept]).await, Finished::Stored, "a repeated finish changes nothing");
    assert!(view.export(late.job.id).await.unwrap().unwrap().made.is_some());
}

async fn a_file_counts_against_the_quota_of_its_key(opened: &Opened) {
    let (catalog, film) = (&opened.catalog, of_team(opened, "a").await.id);
    let key = NewApiKey {
        name: "x".to_owned(),
        scopes: vec![Scope::Write],
        only: None,
        limits: KeyLimits { stored_bytes: Some(1500), ..KeyLimits::default() },
        expires_at_ms: None,
    };
    let key = catalog.add_key(Uuid::now_v7(), [0; 32], key).await.unwrap().id;
    let view = catalog.view(ALL);
    let first = view.add_export(&new_export(&[range(film, 0, 1000)], Some(key))).await.unwrap();
    assert_eq!(finish(opened, &first, &[film]).await, Finished::Stored);
    view.add_export(&new_export(&[range(film, 0, 1000)], Some(key))).await.unwrap();
    let Leased { lease, .. } = lease(catalog).await;
    let over = catalog.finish_export(&lease, &made("b"), &[film], DAY).await;
    assert!(matches!(&over, Err(CatalogError::OverQuota(text)) if text.contains("2000")), "{over:?}");
    assert_eq!(view.end_export(first.job.id).await.unwrap(), Some(()));
    catalog.purge_export(first.job.id).await.unwrap();
    let stored = catalog.finish_export(&lease, &made("b"), &[film], DAY).await.unwrap();
    assert_eq!(stored, Finished::Stored);
}
