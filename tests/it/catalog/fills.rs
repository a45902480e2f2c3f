//! Fills whose space is paused: running ones return to the queue, and the pause is stored.

use reprise_server::catalog::{Heartbeat, JobName, LeaseStatus};
use reprise_server::terms::SpanKey;

use super::samples::{LEASE, add, add_ready, lease, space, video};
use super::{ALL, Opened, on_both};

on_both!(a_pause_returns_running_fills_to_the_queue, a_clip_is_found_from_a_key_on);

async fn a_pause_returns_running_fills_to_the_queue(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let ready = add_ready(catalog, video("a"), 2, &[&tiny]).await;
    let other = space(catalog, "other", 3).await;
    assert_eq!(catalog.enqueue_fills(&[other.key]).await.unwrap(), 1);
    let fill = lease(catalog).await;
    let (pending, _) = add(catalog, video("pending")).await;
    let ingest = lease(catalog).await;
    for _ in 0..2 {
        catalog.pause_fill(other.key).await.unwrap();
        assert_eq!(catalog.paused_fills().await.unwrap(), [other.key]);
    }
    let beat = Heartbeat::default();
    assert_eq!(catalog.heartbeat(&fill.lease, LEASE, &beat).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(catalog.heartbeat(&ingest.lease, LEASE, &beat).await.unwrap(), LeaseStatus::Held);
    let again = lease(catalog).await;
    assert_eq!((again.job.id, again.job.kind, again.job.attempts), (fill.job.id, JobName::Fill, 1));
    assert_eq!((again.job.video, ingest.job.video), (Some(ready.id), Some(pending.id)));
    catalog.resume_fill(other.key).await.unwrap();
    assert!(catalog.paused_fills().await.unwrap().is_empty());
}

async fn a_clip_is_found_from_a_key_on(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    assert!(catalog.clip_from(SpanKey::new(0)).await.unwrap().is_none());
    let first = add_ready(catalog, video("a"), 1, &[&tiny]).await;
    let second = add_ready(catalog, video("b"), 1, &[&tiny]).await;
    let (clip, of) = catalog.clip_from(SpanKey::new(0)).await.unwrap().unwrap();
    assert_eq!((clip.video, &of), (first.id, &first));
    let next = SpanKey::new(clip.key.number() + 1);
    assert_eq!(catalog.clip_from(next).await.unwrap().unwrap().1, second);
    catalog.view(ALL).delete_video(second.id).await.unwrap();
    assert!(catalog.clip_from(next).await.unwrap().is_none());
}
