//! Jobs: leases, progress, attempts, cancelling, retrying, waiting.

use std::time::Duration;

use reprise_server::catalog::{
    CatalogError, Heartbeat, JobFilter, JobName, JobState, Lease, LeaseStatus, MAX_ATTEMPTS, MAX_DEATHS,
    NextAttempt, Progress, VideoState,
};
use serde_json::json;
use uuid::Uuid;

use super::samples::{LEASE, add, add_ready, clip, ingested, lease, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    jobs_are_leased_oldest_first,
    a_heartbeat_stores_progress,
    a_lease_that_ran_out_is_taken_over,
    a_job_whose_workers_die_is_given_up,
    a_released_job_does_not_count_the_attempt,
    a_failed_job_may_be_tried_again,
    a_cancelled_job_stops_its_worker,
    an_ended_job_cannot_be_cancelled_nor_a_good_one_retried,
    finishing_twice_changes_nothing,
    jobs_are_listed_newest_first,
    workers_never_share_a_job,
    a_waiting_worker_is_woken,
    waiting_ends_by_itself,
    news_reach_other_processes,
);

async fn jobs_are_leased_oldest_first(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (first, first_job) = add(catalog, video("a")).await;
    let (second, _) = add(catalog, video("b")).await;
    let leased = lease(catalog).await;
    assert_eq!(
        (leased.job.video.unwrap(), leased.lease.job, leased.job.id),
        (first.id, first_job.id, first_job.id)
    );
    assert_eq!((leased.job.state, leased.job.attempts), (JobState::Running, 1));
    assert_eq!(lease(catalog).await.job.video.unwrap(), second.id);
    assert_eq!(catalog.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap(), None);
    let counts = catalog.view(ALL).counts().await.unwrap();
    assert_eq!((counts.jobs_queued, counts.jobs_running, counts.media_bytes), (0, 2, 2000));
}

async fn a_heartbeat_stores_progress(opened: &Opened) {
    let catalog = &*opened.catalog;
    add(catalog, video("a")).await;
    let leased = lease(catalog).await;
    let progress = Progress {
        stage: "decode".to_owned(),
        fraction: 0.25,
        frames_done: 100,
        frames_total: Some(400),
        eta_s: Some(1.5),
    };
    let beat = Heartbeat { progress: progress.clone(), has_kept: false };
    assert_eq!(catalog.heartbeat(&leased.lease, LEASE, &beat).await.unwrap(), LeaseStatus::Held);
    let job = catalog.view(ALL).job(leased.job.id).await.unwrap().unwrap();
    assert_eq!(job.progress, progress);
    assert!(job.updated_at_ms >= job.created_at_ms);
    let stranger = Lease { token: Uuid::now_v7(), ..leased.lease };
    assert_eq!(catalog.heartbeat(&stranger, LEASE, &Heartbeat::default()).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(catalog.view(ALL).job(leased.job.id).await.unwrap().unwrap().progress, progress);
}

async fn a_lease_that_ran_out_is_taken_over(opened: &Opened) {
    let catalog = &*opened.catalog;
    add(catalog, video("a")).await;
    let dead = catalog.lease_job(Uuid::now_v7(), &JobName::ALL, Duration::ZERO).await.unwrap().unwrap();
    let progress = Progress { stage: "decode".to_owned(), fraction: 0.5, ..Progress::default() };
    let beat = Heartbeat { progress, has_kept: false };
    // The lease is over, but no other worker has the job: it may continue.
    assert_eq!(catalog.heartbeat(&dead.lease, Duration::ZERO, &beat).await.unwrap(), LeaseStatus::Held);
    let heir = lease(catalog).await;
    assert_eq!((heir.job.id, heir.job.attempts, heir.job.progress), (dead.job.id, 2, Progress::default()));
    assert_ne!(heir.lease.token, dead.lease.token);
    assert_eq!(catalog.heartbeat(&dead.lease, LEASE, &beat).await.unwrap(), LeaseStatus::Lost);
    assert!(matches!(
        catalog.finish_ingest(&dead.lease, ingested(1, &[])).await,
        Err(CatalogError::LeaseLost)
    ));
    assert!(matches!(
        catalog.fail_job(&dead.lease, "x", NextAttempt::Never).await,
        Err(CatalogError::LeaseLost)
    ));
    assert!(matches!(catalog.release_job(&dead.lease).await, Err(CatalogError::LeaseLost)));
    catalog.finish_ingest(&heir.lease, ingested(1, &[])).await.unwrap();
}

async fn a_job_whose_workers_die_is_given_up(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (poison, job) = add(catalog, video("poison")).await;
    let (next, _) = add(catalog, video("next")).await;
    for attempt in 1..=MAX_DEATHS {
        let leased = catalog.lease_job(Uuid::now_v7(), &JobName::ALL, Duration::ZERO).await.unwrap().unwrap();
        assert_eq!((leased.job.id, leased.job.attempts), (job.id, attempt));
    }
    assert_eq!(lease(catalog).await.job.video.unwrap(), next.id);
    let job = catalog.view(ALL).job(job.id).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempts), (JobState::Failed, MAX_DEATHS));
    assert!(job.reason.unwrap().contains("given up"));
    assert_eq!(catalog.view(ALL).video(poison.id).await.unwrap().unwrap().state, VideoState::Failed);
    assert_eq!(catalog.view(ALL).counts().await.unwrap().jobs_failed, 1);
}

async fn a_released_job_does_not_count_the_attempt(opened: &Opened) {
    let catalog = &*opened.catalog;
    add(catalog, video("a")).await;
    for _ in 0..MAX_ATTEMPTS + 2 {
        let leased = lease(catalog).await;
        assert_eq!(leased.job.attempts, 1);
        catalog.release_job(&leased.lease).await.unwrap();
        assert_eq!(catalog.view(ALL).job(leased.job.id).await.unwrap().unwrap().state, JobState::Queued);
        assert!(matches!(catalog.release_job(&leased.lease).await, Err(CatalogError::LeaseLost)));
    }
}

async fn a_failed_job_may_be_tried_again(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (stored, job) = add(catalog, video("a")).await;
    catalog
        .fail_job(&lease(catalog).await.lease, "encoder busy\0", NextAttempt::After(Duration::ZERO))
        .await
        .unwrap();
    let found = catalog.view(ALL).job(job.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.reason.as_deref()), (JobState::Queued, Some("encoder busy")));
    catalog.fail_job(&lease(catalog).await.lease, "no video stream", NextAttempt::Never).await.unwrap();
    let found = catalog.view(ALL).job(job.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.attempts), (JobState::Failed, 2));
    assert_eq!(catalog.view(ALL).video(stored.id).await.unwrap().unwrap().state, VideoState::Failed);
    assert_eq!(catalog.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap(), None);

    let retried = catalog.view(ALL).retry_job(job.id).await.unwrap().unwrap();
    assert_eq!((retried.state, retried.attempts, retried.reason), (JobState::Queued, 0, None));
    assert_eq!(catalog.view(ALL).video(stored.id).await.unwrap().unwrap().state, VideoState::Pending);
    for attempt in 1..=MAX_ATTEMPTS {
        let leased = lease(catalog).await;
        assert_eq!(leased.job.attempts, attempt);
        catalog.fail_job(&leased.lease, "again", NextAttempt::After(Duration::ZERO)).await.unwrap();
    }
    assert_eq!(catalog.view(ALL).job(job.id).await.unwrap().unwrap().state, JobState::Failed);
}

async fn a_cancelled_job_stops_its_worker(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (stored, job) = add(catalog, video("a")).await;
    let leased = lease(catalog).await;
    let cancelled = catalog.view(ALL).cancel_job(job.id).await.unwrap().unwrap();
    assert_eq!(cancelled.state, JobState::Cancelled);
    assert_eq!(
        catalog.heartbeat(&leased.lease, LEASE, &Heartbeat::default()).await.unwrap(),
        LeaseStatus::Cancelled
    );
    let finished = catalog.finish_ingest(&leased.lease, ingested(2, &[])).await;
    assert!(matches!(finished, Err(CatalogError::LeaseLost)));
    assert_eq!(catalog.view(ALL).clips(stored.id, None, 10).await.unwrap(), []);
    assert_eq!(catalog.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap(), None);
    catalog.view(ALL).retry_job(job.id).await.unwrap().unwrap();
    assert_eq!(
        catalog.heartbeat(&leased.lease, LEASE, &Heartbeat::default()).await.unwrap(),
        LeaseStatus::Lost
    );
    catalog.finish_ingest(&lease(catalog).await.lease, ingested(2, &[])).await.unwrap();
    assert_eq!(catalog.view(ALL).video(stored.id).await.unwrap().unwrap().state, VideoState::Ready);
}

async fn an_ended_job_cannot_be_cancelled_nor_a_good_one_retried(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (_, job) = add(catalog, video("a")).await;
    assert!(matches!(catalog.view(ALL).retry_job(job.id).await, Err(CatalogError::Conflict(_))));
    catalog.finish_ingest(&lease(catalog).await.lease, ingested(1, &[])).await.unwrap();
    assert!(matches!(catalog.view(ALL).retry_job(job.id).await, Err(CatalogError::Conflict(_))));
    assert!(matches!(catalog.view(ALL).cancel_job(job.id).await, Err(CatalogError::Conflict(_))));
    assert_eq!(catalog.view(ALL).cancel_job(Uuid::now_v7()).await.unwrap(), None);
    assert_eq!(catalog.view(ALL).retry_job(Uuid::now_v7()).await.unwrap(), None);
    assert_eq!(catalog.view(ALL).job(Uuid::now_v7()).await.unwrap(), None);
}

async fn finishing_twice_changes_nothing(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let (stored, job) = add(catalog, video("a")).await;
    let leased = lease(catalog).await;
    catalog.finish_ingest(&leased.lease, ingested(3, &[&tiny])).await.unwrap();
    let (clips, seq) =
        (catalog.view(ALL).clips(stored.id, None, 10).await.unwrap(), catalog.last_seq().await.unwrap());
    catalog.finish_ingest(&leased.lease, ingested(5, &[&tiny])).await.unwrap();
    assert_eq!(catalog.view(ALL).clips(stored.id, None, 10).await.unwrap(), clips);
    assert_eq!(catalog.last_seq().await.unwrap(), seq);
    let job = catalog.view(ALL).job(job.id).await.unwrap().unwrap();
    assert_eq!((job.state, job.progress.fraction), (JobState::Succeeded, 1.0));
}

async fn jobs_are_listed_newest_first(opened: &Opened) {
    let catalog = &*opened.catalog;
    let ready = add_ready(catalog, video("ready"), 2, &[]).await;
    for number in 0..5 {
        add(catalog, video(&format!("video {number}"))).await;
    }
    let (_, fill) =
        catalog.view(ALL).add_given_clip(ready.id, clip(0, 10, json!({}))).await.unwrap().unwrap();
    let all = catalog.view(ALL).jobs(&JobFilter::default(), None, 100).await.unwrap();
    assert!(all.len() == 7 && all.is_sorted_by(|a, b| a.id > b.id), "{all:?}");
    let mut paged = vec![];
    loop {
        let before = paged.last().map(|job: &reprise_server::catalog::Job| job.id);
        let page = catalog.view(ALL).jobs(&JobFilter::default(), before, 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    let count = async |only: JobFilter| catalog.view(ALL).jobs(&only, None, 100).await.unwrap().len();
    assert_eq!(count(JobFilter { state: Some(JobState::Queued), ..JobFilter::default() }).await, 6);
    assert_eq!(count(JobFilter { state: Some(JobState::Succeeded), ..JobFilter::default() }).await, 1);
    assert_eq!(count(JobFilter { video: Some(ready.id), ..JobFilter::default() }).await, 2);
    let fills = JobFilter { kind: Some(JobName::Fill), video: Some(ready.id), state: Some(JobState::Queued) };
    assert_eq!(catalog.view(ALL).jobs(&fills, None, 100).await.unwrap(), [fill]);
}

async fn workers_never_share_a_job(opened: &Opened) {
    let catalog = &opened.catalog;
    for number in 0..30 {
        add(catalog, video(&format!("video {number}"))).await;
    }
    let worker = || {
        let catalog = catalog.clone();
        tokio::spawn(async move {
            let mut taken = vec![];
            while let Some(leased) = catalog.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap() {
                taken.push(leased.job.id);
            }
            taken
        })
    };
    let workers: Vec<_> = (0..4).map(|_| worker()).collect();
    let mut taken = vec![];
    for worker in workers {
        taken.extend(worker.await.unwrap());
    }
    let leased = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!((leased, taken.len()), (30, 30));
}

/// Far longer than any test takes: without a wake-up the test hangs, so no race hides the failure.
const LONG: Duration = Duration::from_secs(3600);

async fn a_waiting_worker_is_woken(opened: &Opened) {
    // A second process of the same service.
    let other = reprise_server::catalog::open(&opened.url).await.unwrap();
    let ((), _) = tokio::join!(opened.catalog.wait_for_job(&JobName::ALL, LONG), add(&other, video("a")));
    // A job is queued: no wait at all.
    opened.catalog.wait_for_job(&JobName::ALL, LONG).await;
    let leased = lease(&opened.catalog).await;
    let tiny = space(&opened.catalog, "tiny", 4).await;
    let finish = other.finish_ingest(&leased.lease, ingested(1, &[&tiny]));
    let ((), finished) = tokio::join!(opened.catalog.wait_for_change(0, LONG), finish);
    finished.unwrap();
    other.close().await;
}

async fn waiting_ends_by_itself(opened: &Opened) {
    opened.catalog.wait_for_job(&JobName::ALL, Duration::ZERO).await;
    opened.catalog.wait_for_change(0, Duration::ZERO).await;
    // A running job with a valid lease does not end the wait.
    add(&opened.catalog, video("a")).await;
    lease(&opened.catalog).await;
    opened.catalog.wait_for_job(&JobName::ALL, Duration::from_millis(1)).await;
}

/// SQLite has no notifications: there, other processes look once a second.
async fn news_reach_other_processes(opened: &Opened) {
    if opened.catalog.kind() == "sqlite" {
        return;
    }
    let mut listener = sqlx::postgres::PgListener::connect(&opened.url).await.unwrap();
    listener.listen_all(["reprise_jobs", "reprise_changes"]).await.unwrap();
    let mut heard = async || listener.recv().await.unwrap().channel().to_owned();
    add(&opened.catalog, video("a")).await;
    assert_eq!(heard().await, "reprise_jobs");
    let tiny = space(&opened.catalog, "tiny", 4).await;
    let leased = lease(&opened.catalog).await;
    opened.catalog.finish_ingest(&leased.lease, ingested(1, &[&tiny])).await.unwrap();
    let mut both = [heard().await, heard().await];
    both.sort();
    assert_eq!(both, ["reprise_changes", "reprise_jobs"]);
}
