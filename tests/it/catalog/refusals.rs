//! Refused files: failed jobs without a video, bounded in number, for some days.

use std::sync::Arc;
use std::time::Duration;

use reprise_server::catalog::{
    CatalogError, IdempotencyKey, Job, JobFilter, JobState, MOST_REFUSALS_OF_KEY, NewRefusal, RefusedFile,
    VideoFilter, Visibility,
};
use serde_json::json;
use uuid::Uuid;

use super::samples::{add, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_refused_file_is_a_failed_job,
    a_repeated_request_is_listed_once,
    callers_with_a_filter_see_those_of_their_key,
    the_oldest_of_a_key_make_room,
    refusals_expire,
);

fn refusal(name: &str, key: Option<Uuid>) -> NewRefusal {
    let file = RefusedFile { file_name: format!("{name}.mp4"), bytes: Some(7) };
    NewRefusal { file, reason: format!("not a video: {name}\0"), added_by: key, repeat: None }
}

async fn jobs(opened: &Opened) -> Vec<Job> {
    opened.catalog.view(ALL).jobs(&JobFilter::default(), None, 2000).await.unwrap()
}

async fn a_refused_file_is_a_failed_job(opened: &Opened) {
    let view = opened.catalog.view(ALL);
    let job = view.add_refusal(&refusal("a", None)).await.unwrap();
    assert_eq!(
        (job.state, job.video, job.reason.as_deref()),
        (JobState::Failed, None, Some("not a video: a"))
    );
    assert_eq!(job.refused, Some(RefusedFile { file_name: "a.mp4".to_owned(), bytes: Some(7) }));
    let cut_off = RefusedFile { file_name: "b.mp4".to_owned(), bytes: None };
    let other = NewRefusal { file: cut_off.clone(), ..refusal("b", None) };
    assert_eq!(view.add_refusal(&other).await.unwrap().refused, Some(cut_off));
    let failed = JobFilter { state: Some(JobState::Failed), ..JobFilter::default() };
    assert_eq!(view.jobs(&failed, None, 1).await.unwrap().len(), 1);
    assert_eq!(view.jobs(&failed, None, 9).await.unwrap().len(), 2);
    assert_eq!(view.job(job.id).await.unwrap(), Some(job.clone()));
    for changed in [view.retry_job(job.id).await, view.cancel_job(job.id).await] {
        assert!(matches!(changed, Err(CatalogError::Conflict(_))), "{changed:?}");
    }
    assert_eq!(view.counts().await.unwrap().jobs_failed, 2);
    let kinds = reprise_server::catalog::JobName::ALL;
    let lease = opened.catalog.lease_job(Uuid::now_v7(), &kinds, super::samples::LEASE).await.unwrap();
    assert_eq!(lease, None, "there is nothing to do");
}

async fn a_repeated_request_is_listed_once(opened: &Opened) {
    let view = opened.catalog.view(ALL);
    let of_request = |key: &str, hash: &str| {
        let repeat = IdempotencyKey { key: key.to_owned(), request_hash: hash.to_owned() };
        NewRefusal { repeat: Some(repeat), ..refusal("a", None) }
    };
    let first = view.add_refusal(&of_request("k", "1")).await.unwrap();
    assert_eq!(view.add_refusal(&of_request("k", "1")).await.unwrap(), first);
    assert_ne!(view.add_refusal(&of_request("k", "2")).await.unwrap().id, first.id);
    assert_ne!(view.add_refusal(&of_request("l", "1")).await.unwrap().id, first.id);
    opened.clock.advance(Duration::from_secs(25 * 3600));
    assert_ne!(
        view.add_refusal(&of_request("k", "1")).await.unwrap().id,
        first.id,
        "a day later it is another"
    );
    assert_eq!(jobs(opened).await.len(), 4);
}

async fn callers_with_a_filter_see_those_of_their_key(opened: &Opened) {
    let [mine, theirs] = [Uuid::now_v7(), Uuid::now_v7()];
    let filter = VideoFilter::parse(&json!({"field": "metadata.team", "eq": "a"})).unwrap();
    let visibility = Visibility::Matching(Arc::new(filter));
    let [my_view, their_view] = [mine, theirs].map(|key| opened.catalog.view(&visibility).of_key(Some(key)));
    let my_job = my_view.add_refusal(&refusal("mine", Some(mine))).await.unwrap();
    let their_job = their_view.add_refusal(&refusal("theirs", Some(theirs))).await.unwrap();
    let no_key = opened.catalog.view(ALL).add_refusal(&refusal("root", None)).await.unwrap();
    let listed = my_view.jobs(&JobFilter::default(), None, 9).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&my_job));
    assert_eq!(my_view.counts().await.unwrap().jobs_failed, 1);
    for job in [&their_job, &no_key] {
        assert_eq!(my_view.job(job.id).await.unwrap(), None);
        assert_eq!(my_view.retry_job(job.id).await.unwrap(), None);
    }
    assert!(matches!(my_view.retry_job(my_job.id).await, Err(CatalogError::Conflict(_))));
    assert_eq!(jobs(opened).await.len(), 3, "a caller who sees all videos sees them all");
    let unknown = opened.catalog.view(&visibility);
    assert_eq!(unknown.jobs(&JobFilter::default(), None, 9).await.unwrap(), []);
}

async fn the_oldest_of_a_key_make_room(opened: &Opened) {
    let view = opened.catalog.view(ALL);
    let [busy, quiet] = [Uuid::now_v7(), Uuid::now_v7()];
    let kept = view.add_refusal(&refusal("quiet", Some(quiet))).await.unwrap();
    let first = view.add_refusal(&refusal("first", Some(busy))).await.unwrap();
    for _ in 1..MOST_REFUSALS_OF_KEY {
        view.add_refusal(&refusal("more", Some(busy))).await.unwrap();
    }
    assert!(view.job(first.id).await.unwrap().is_some());
    view.add_refusal(&refusal("last", Some(busy))).await.unwrap();
    assert_eq!(view.job(first.id).await.unwrap(), None);
    assert!(view.job(kept.id).await.unwrap().is_some());
    assert_eq!(jobs(opened).await.len() as i64, MOST_REFUSALS_OF_KEY + 1);
}

async fn refusals_expire(opened: &Opened) {
    let view = opened.catalog.view(ALL);
    let (_, ingest) = add(&opened.catalog, video("a")).await;
    view.add_refusal(&refusal("old", None)).await.unwrap();
    opened.clock.advance(Duration::from_secs(3600));
    let young = view.add_refusal(&refusal("young", None)).await.unwrap();
    opened.clock.advance(Duration::from_secs(1800));
    assert_eq!(opened.catalog.forget_refusals(Duration::from_secs(3600)).await.unwrap(), 1);
    let left: Vec<Uuid> = jobs(opened).await.into_iter().map(|job| job.id).collect();
    assert_eq!(left, [young.id, ingest.id], "other jobs stay");
}
