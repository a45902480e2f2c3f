//! The trash: what is in it is hidden and comes back whole, until the purge has it.

use std::sync::Arc;
use std::time::Duration;

use reprise_server::catalog::{
    ApiKey, Catalog, CatalogError, CueKind, CueQuery, KeyLimits, LeaseStatus, Line, NewApiKey, NewVideo,
    Scope, Subtitles, Track, Video, VideoFilter, VideoState, Visibility,
};
use reprise_server::terms::Level;
use serde_json::json;
use uuid::Uuid;

use super::samples::{LEASE, add, add_ready, clip, ingested, lease, space, video};
use super::{ALL, Opened, on_both, spoken};

on_both!(
    a_video_comes_back_as_it_was,
    a_deleted_video_does_not_come_back,
    jobs_wait_with_their_video,
    the_trash_lasts,
    a_restore_and_the_purge_never_both_win,
    callers_with_a_filter_see_their_own_trash,
    the_trash_uses_a_quota,
);

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

async fn trashed(catalog: &Catalog) -> Vec<Uuid> {
    catalog.view(ALL).trashed_videos(None, 100).await.unwrap().into_iter().map(|video| video.id).collect()
}

/// The videos that the purge has.
async fn purged(catalog: &Catalog) -> Vec<Uuid> {
    let mut all = Vec::new();
    while let Some(next) = catalog.next_deleted(all.last().copied()).await.unwrap() {
        all.push(next.id);
    }
    all
}

/// What readers learn of a video.
async fn shown(catalog: &Catalog, of: &Video, space: u32) -> impl PartialEq + std::fmt::Debug {
    let view = catalog.view(ALL);
    let hits = view.cue_hits(&CueQuery::new("a clean entry"), &spoken(Level::Clip, None), 10).await.unwrap();
    (
        view.counts().await.unwrap(),
        view.clips(of.id, None, 100).await.unwrap(),
        view.cues(of.id, None, 100).await.unwrap(),
        hits,
        catalog.vector_keys(space, Level::Clip).await.unwrap(),
        catalog.vector_keys(space, Level::Video).await.unwrap(),
    )
}

fn said(text: &str) -> Subtitles {
    let track = Track {
        kind: CueKind::Speech,
        language: "en".to_owned(),
        provenance: "a.srt".to_owned(),
        is_machine: false,
    };
    let line = Line { start_ms: 1075, end_ms: 2075, text: text.to_owned() };
    Subtitles { track, lines: vec![line], warnings: vec![] }
}

async fn a_video_comes_back_as_it_was(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (view, tiny) = (catalog.view(ALL), space(catalog, "tiny", 4).await);
    add_ready(catalog, NewVideo { subtitles: vec![said("an entry")], ..video("other") }, 2, &[&tiny]).await;
    let new = NewVideo {
        given: vec![clip(0, 500, json!({"event": "beam"}))],
        subtitles: vec![said("a clean entry")],
        metadata: json!({"event": "vault"}),
        ..video("a")
    };
    let stored = add_ready(catalog, new, 3, &[&tiny]).await;
    let before = shown(catalog, &stored, tiny.key).await;
    let seq = catalog.last_seq().await.unwrap();

    let gone = view.trash_video(stored.id).await.unwrap().unwrap();
    assert_eq!((gone.id, gone.deleted_at_ms), (stored.id, None));
    assert_eq!(view.trash_video(stored.id).await.unwrap(), None, "it is in the trash");
    assert_eq!(view.video(stored.id).await.unwrap(), None);
    let counts = view.counts().await.unwrap();
    assert_eq!((counts.videos, counts.clips, counts.videos_trashed, counts.trashed_bytes), (1, 2, 1, 1000));
    let listed = view.trashed_videos(None, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].id, listed[0].clips), (1, stored.id, 4));
    assert!(listed[0].deleted_at_ms.is_some());
    assert_eq!(catalog.kept_ids(&[stored.id]).await.unwrap().len(), 1);
    assert_eq!(catalog.known_ids(&[stored.id]).await.unwrap().len(), 0);
    let removed = catalog.changes(seq, 100).await.unwrap();
    assert!(removed.len() >= 4 && removed.iter().all(|change| change.vector.is_none()), "{removed:?}");
    let seq = catalog.last_seq().await.unwrap();

    opened.clock.advance(Duration::from_secs(60));
    let back = view.restore_video(stored.id).await.unwrap().unwrap();
    assert!(back.restored_at_ms.is_some());
    assert_eq!(Video { restored_at_ms: None, ..back }, stored);
    assert_eq!(shown(catalog, &stored, tiny.key).await, before);
    let inserted = catalog.changes(seq, 100).await.unwrap();
    assert_eq!(inserted.len(), removed.len());
    assert!(inserted.iter().all(|change| change.vector.is_some()), "{inserted:?}");
    assert_eq!((trashed(catalog).await, purged(catalog).await), (vec![], vec![]));
    assert_eq!(view.restore_video(stored.id).await.unwrap(), None, "it is not in the trash");
}

async fn a_deleted_video_does_not_come_back(opened: &Opened) {
    let catalog = &*opened.catalog;
    let view = catalog.view(ALL);
    let [at_once, later] = [add(catalog, video("a")).await.0, add(catalog, video("b")).await.0];
    view.delete_video(at_once.id).await.unwrap().unwrap();
    view.trash_video(later.id).await.unwrap().unwrap();
    assert_eq!(purged(catalog).await, [at_once.id]);
    assert_eq!(trashed(catalog).await, [later.id]);
    assert!(view.delete_video(later.id).await.unwrap().is_some());
    assert_eq!(view.delete_video(later.id).await.unwrap(), None);
    assert!(trashed(catalog).await.is_empty());
    assert_eq!(view.counts().await.unwrap(), Default::default());
    for id in [at_once.id, later.id] {
        assert_eq!(view.restore_video(id).await.unwrap(), None);
        assert_eq!(catalog.kept_ids(&[id]).await.unwrap().len(), 0);
        catalog.purge_video(id).await.unwrap();
    }
    assert!(purged(catalog).await.is_empty());
    // A video that is not deleted survives a purge that comes too late.
    let kept = add(catalog, video("c")).await.0;
    catalog.purge_video(kept.id).await.unwrap();
    assert!(view.video(kept.id).await.unwrap().is_some());
}

async fn jobs_wait_with_their_video(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (view, tiny) = (catalog.view(ALL), space(catalog, "tiny", 4).await);
    let (stored, job) = add(catalog, video("a")).await;
    let running = lease(catalog).await;
    view.trash_video(stored.id).await.unwrap().unwrap();
    let beat = catalog.heartbeat(&running.lease, LEASE, &Default::default()).await.unwrap();
    assert_eq!(beat, LeaseStatus::Lost);
    let finished = catalog.finish_ingest(&running.lease, ingested(2, &[&tiny])).await;
    assert!(matches!(finished, Err(CatalogError::LeaseLost)), "{finished:?}");
    assert_eq!(view.job(job.id).await.unwrap(), None);
    let counts = view.counts().await.unwrap();
    assert_eq!((counts.jobs_queued, counts.jobs_running), (0, 0));
    opened.clock.advance(2 * LEASE);
    let kinds = reprise_server::catalog::JobName::ALL;
    assert!(
        catalog.lease_job(Uuid::now_v7(), &kinds, LEASE).await.unwrap().is_none(),
        "its video is in the trash"
    );

    view.restore_video(stored.id).await.unwrap().unwrap();
    let again = lease(catalog).await;
    assert_eq!((again.job.id, again.job.attempts), (job.id, 1), "the deletion costs no attempt");
    catalog.finish_ingest(&again.lease, ingested(2, &[&tiny])).await.unwrap();
    assert_eq!(view.video(stored.id).await.unwrap().unwrap().state, VideoState::Ready);
}

async fn the_trash_lasts(opened: &Opened) {
    let catalog = &*opened.catalog;
    let [first, second] = [add(catalog, video("a")).await.0, add(catalog, video("b")).await.0];
    catalog.view(ALL).trash_video(first.id).await.unwrap().unwrap();
    opened.clock.advance(Duration::from_secs(3600));
    catalog.view(ALL).trash_video(second.id).await.unwrap().unwrap();
    assert_eq!(catalog.empty_trash(WEEK).await.unwrap(), 0);
    opened.clock.advance(WEEK - Duration::from_secs(3600));
    assert_eq!(catalog.empty_trash(WEEK).await.unwrap(), 1);
    assert_eq!((purged(catalog).await, trashed(catalog).await), (vec![first.id], vec![second.id]));
    assert_eq!(catalog.empty_trash(WEEK).await.unwrap(), 0, "it was taken before");
    assert_eq!(catalog.empty_trash(Duration::ZERO).await.unwrap(), 1, "a shorter time holds for all");
}

async fn a_restore_and_the_purge_never_both_win(opened: &Opened) {
    let catalog = &*opened.catalog;
    let view = catalog.view(ALL);
    let stored = add(catalog, video("a")).await.0;
    for _ in 0..20 {
        view.trash_video(stored.id).await.unwrap().unwrap();
        let (restored, taken) =
            tokio::join!(view.restore_video(stored.id), catalog.empty_trash(Duration::ZERO));
        let is_restored = restored.unwrap().is_some();
        assert_eq!(is_restored, taken.unwrap() == 0);
        assert_eq!(is_restored, view.video(stored.id).await.unwrap().is_some());
        assert_eq!(is_restored, purged(catalog).await.is_empty());
        assert!(trashed(catalog).await.is_empty());
        if !is_restored {
            break;
        }
    }
}

async fn callers_with_a_filter_see_their_own_trash(opened: &Opened) {
    let catalog = &*opened.catalog;
    let of_team = |team: &str| NewVideo { metadata: json!({"team": team}), ..video(team) };
    let [mine, theirs] = [add(catalog, of_team("a")).await.0, add(catalog, of_team("b")).await.0];
    for id in [mine.id, theirs.id] {
        catalog.view(ALL).trash_video(id).await.unwrap().unwrap();
    }
    let filter = VideoFilter::parse(&json!({"field": "metadata.team", "eq": "a"})).unwrap();
    let visibility = Visibility::Matching(Arc::new(filter));
    let view = catalog.view(&visibility);
    let listed = view.trashed_videos(None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|video| video.id).collect::<Vec<_>>(), [mine.id]);
    assert_eq!(view.counts().await.unwrap().videos_trashed, 1);
    assert_eq!(view.restore_video(theirs.id).await.unwrap(), None);
    assert_eq!(view.delete_video(theirs.id).await.unwrap(), None);
    assert_eq!(view.restore_video(mine.id).await.unwrap().unwrap().id, mine.id);
    view.trash_video(mine.id).await.unwrap().unwrap();
    assert!(view.delete_video(mine.id).await.unwrap().is_some());
    assert_eq!(trashed(catalog).await, [theirs.id]);
}

/// A key that may store one video of the samples.
async fn small_key(catalog: &Catalog) -> ApiKey {
    let limits = KeyLimits { stored_bytes: Some(1500), ..KeyLimits::default() };
    let new = NewApiKey {
        name: "small".to_owned(),
        scopes: vec![Scope::Write],
        only: None,
        limits,
        expires_at_ms: None,
    };
    catalog.add_key(Uuid::now_v7(), [0; 32], new).await.unwrap()
}

async fn the_trash_uses_a_quota(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (view, key) = (catalog.view(ALL), small_key(catalog).await);
    let of_key = |name: &str| NewVideo { added_by: Some(key.id), ..video(name) };
    let stored = add(catalog, of_key("a")).await.0;
    view.trash_video(stored.id).await.unwrap().unwrap();
    let refused = view.add_video(of_key("b"), None).await;
    assert!(matches!(refused, Err(CatalogError::OverQuota(_))), "{refused:?}");
    view.delete_video(stored.id).await.unwrap().unwrap();
    add(catalog, of_key("b")).await;
}
