//! Jobs that wait for their next attempt, and jobs of dead processes. The tests advance the clock.

use std::time::Duration;

use reprise_server::catalog::{
    Catalog, CatalogError, Heartbeat, Job, JobName, JobState, LeaseStatus, Leased, MAX_ATTEMPTS, MAX_DEATHS,
    NextAttempt, WriterRequest,
};
use uuid::Uuid;

use super::samples::{LEASE, add, ingested, lease, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_failed_job_waits_for_its_next_attempt,
    a_waiting_job_does_not_block_the_queue,
    a_waiting_job_can_be_tried_at_once_or_cancelled,
    a_job_over_which_three_processes_die_is_given_up,
    new_progress_forgives_deaths_and_attempts,
    a_planned_stop_is_no_death,
    an_attempt_that_failed_ends_the_row_of_deaths,
    kinds_that_a_worker_does_not_run_are_left_to_others,
    a_clock_that_is_set_back_blocks_no_job,
    a_clock_that_is_set_back_blocks_no_writer,
);

const SECOND: Duration = Duration::from_secs(1);

async fn try_lease(catalog: &Catalog) -> Option<Leased> {
    catalog.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap()
}

async fn read(catalog: &Catalog, id: Uuid) -> Job {
    catalog.view(ALL).job(id).await.unwrap().unwrap()
}

/// The process with the next job dies: its lease runs out.
async fn die(opened: &Opened) {
    lease(&opened.catalog).await;
    opened.clock.advance(LEASE);
}

/// The process with the next job keeps some work and then dies.
async fn progress_and_die(opened: &Opened) {
    let leased = lease(&opened.catalog).await;
    let beat = Heartbeat { has_kept: true, ..Heartbeat::default() };
    opened.catalog.heartbeat(&leased.lease, LEASE, &beat).await.unwrap();
    opened.clock.advance(LEASE);
}

async fn a_failed_job_waits_for_its_next_attempt(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (_, job) = add(catalog, video("a")).await;
    for (attempt, wait) in [5, 30, 180, 900].map(Duration::from_secs).into_iter().enumerate() {
        let leased = lease(catalog).await;
        assert_eq!((leased.job.attempts, leased.job.retry_at_ms), (attempt as i64 + 1, None));
        catalog.fail_job(&leased.lease, "no memory", NextAttempt::After(wait)).await.unwrap();
        let waiting = read(catalog, job.id).await;
        assert_eq!((waiting.state, waiting.reason.as_deref()), (JobState::Queued, Some("no memory")));
        assert_eq!(waiting.retry_at_ms, Some(waiting.updated_at_ms + wait.as_millis() as i64));
        opened.clock.advance(wait - Duration::from_millis(1));
        assert_eq!(try_lease(catalog).await, None, "attempt {attempt} came too early");
        opened.clock.advance(Duration::from_millis(1));
    }
    let last = lease(catalog).await;
    assert_eq!(last.job.attempts, MAX_ATTEMPTS);
    catalog.fail_job(&last.lease, "no memory", NextAttempt::After(SECOND)).await.unwrap();
    let failed = read(catalog, job.id).await;
    assert_eq!((failed.state, failed.retry_at_ms), (JobState::Failed, None));
}

async fn a_waiting_job_does_not_block_the_queue(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (first, _) = add(catalog, video("a")).await;
    let (second, _) = add(catalog, video("b")).await;
    let leased = lease(catalog).await;
    catalog.fail_job(&leased.lease, "busy", NextAttempt::After(900 * SECOND)).await.unwrap();
    let next = lease(catalog).await;
    assert_eq!(next.job.video, Some(second.id));
    catalog.finish_ingest(&next.lease, ingested(1, &[])).await.unwrap();
    // A job in its wait wakes no worker.
    catalog.wait_for_job(&JobName::ALL, Duration::ZERO).await;
    assert_eq!(try_lease(catalog).await, None);
    opened.clock.advance(900 * SECOND);
    assert_eq!(lease(catalog).await.job.video, Some(first.id));
}

async fn a_waiting_job_can_be_tried_at_once_or_cancelled(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (_, job) = add(catalog, video("a")).await;
    let fail = async || {
        let leased = lease(catalog).await;
        catalog.fail_job(&leased.lease, "busy", NextAttempt::After(900 * SECOND)).await.unwrap();
    };
    fail().await;
    let due = catalog.view(ALL).retry_job(job.id).await.unwrap().unwrap();
    assert_eq!((due.state, due.attempts, due.retry_at_ms), (JobState::Queued, 1, None));
    assert!(matches!(catalog.view(ALL).retry_job(job.id).await, Err(CatalogError::Conflict(_))));
    fail().await;
    let cancelled = catalog.view(ALL).cancel_job(job.id).await.unwrap().unwrap();
    assert_eq!((cancelled.state, cancelled.retry_at_ms), (JobState::Cancelled, None));
    opened.clock.advance(900 * SECOND);
    assert_eq!(try_lease(catalog).await, None);
}

async fn a_job_over_which_three_processes_die_is_given_up(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (_, job) = add(catalog, video("a")).await;
    for _ in 0..MAX_DEATHS {
        assert_ne!(read(catalog, job.id).await.state, JobState::Failed);
        die(opened).await;
    }
    assert_eq!(try_lease(catalog).await, None);
    let failed = read(catalog, job.id).await;
    assert_eq!(failed.state, JobState::Failed);
    let reason = failed.reason.unwrap();
    assert!(reason.contains("died 3 times in a row without new progress"), "{reason}");
    // A user may retry it, with a new count of deaths.
    catalog.view(ALL).retry_job(job.id).await.unwrap().unwrap();
    die(opened).await;
    die(opened).await;
    catalog.finish_ingest(&lease(catalog).await.lease, ingested(1, &[])).await.unwrap();
    assert_eq!(read(catalog, job.id).await.state, JobState::Succeeded);
}

async fn new_progress_forgives_deaths_and_attempts(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (_, job) = add(catalog, video("a")).await;
    for _ in 0..MAX_ATTEMPTS {
        die(opened).await;
        die(opened).await;
        progress_and_die(opened).await;
    }
    let leased = lease(catalog).await;
    assert_eq!((leased.job.id, leased.job.attempts), (job.id, 1), "the progress of the last start counts");
    catalog.finish_ingest(&leased.lease, ingested(1, &[])).await.unwrap();
}

async fn a_planned_stop_is_no_death(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (_, job) = add(catalog, video("a")).await;
    for _ in 0..2 * MAX_DEATHS {
        catalog.release_job(&lease(catalog).await.lease).await.unwrap();
    }
    die(opened).await;
    die(opened).await;
    catalog.release_job(&lease(catalog).await.lease).await.unwrap();
    // The release has not reset the count of deaths either.
    die(opened).await;
    assert_eq!(try_lease(catalog).await, None);
    assert_eq!(read(catalog, job.id).await.state, JobState::Failed);
}

async fn an_attempt_that_failed_ends_the_row_of_deaths(opened: &Opened) {
    let catalog = &*opened.catalog;
    add(catalog, video("a")).await;
    die(opened).await;
    die(opened).await;
    let leased = lease(catalog).await;
    catalog.fail_job(&leased.lease, "busy", NextAttempt::After(Duration::ZERO)).await.unwrap();
    die(opened).await;
    assert_eq!(lease(catalog).await.job.attempts, MAX_ATTEMPTS);
}

async fn kinds_that_a_worker_does_not_run_are_left_to_others(opened: &Opened) {
    let catalog = &*opened.catalog;
    add(catalog, video("a")).await;
    let other = [JobName::Transcribe, JobName::Fill];
    assert_eq!(catalog.lease_job(Uuid::now_v7(), &other, LEASE).await.unwrap(), None);
    assert_eq!(catalog.lease_job(Uuid::now_v7(), &[], LEASE).await.unwrap(), None);
    catalog.wait_for_job(&other, Duration::ZERO).await;
    assert!(catalog.lease_job(Uuid::now_v7(), &[JobName::Ingest], LEASE).await.unwrap().is_some());
}

async fn a_clock_that_is_set_back_blocks_no_job(opened: &Opened) {
    let catalog = &*opened.catalog;
    let ids = [add(catalog, video("a")).await.1.id, add(catalog, video("b")).await.1.id];
    let waits = lease(catalog).await;
    catalog.fail_job(&waits.lease, "busy", NextAttempt::After(900 * SECOND)).await.unwrap();
    let of_dead = lease(catalog).await;
    add(catalog, video("c")).await;
    let of_living = lease(catalog).await;
    opened.clock.set_back(3600 * SECOND);
    let beat = catalog.heartbeat(&of_living.lease, LEASE, &Heartbeat::default()).await.unwrap();
    assert_eq!(beat, LeaseStatus::Held);
    assert_eq!([lease(catalog).await.job.id, lease(catalog).await.job.id], ids);
    assert_eq!(try_lease(catalog).await, None, "a worker that lives lost its job");
    let late = catalog.finish_ingest(&of_dead.lease, ingested(1, &[])).await;
    assert!(matches!(late, Err(CatalogError::LeaseLost)), "{late:?}");
}

async fn a_clock_that_is_set_back_blocks_no_writer(opened: &Opened) {
    let by = |holder| WriterRequest { engine: "far", holder, lease: 4 * SECOND };
    let [dead, next] = [Uuid::new_v4(), Uuid::new_v4()];
    assert_eq!(opened.catalog.lease_writer(&by(dead)).await.unwrap(), Some(1));
    assert_eq!(opened.catalog.lease_writer(&by(next)).await.unwrap(), None);
    opened.clock.set_back(3600 * SECOND);
    assert_eq!(opened.catalog.lease_writer(&by(next)).await.unwrap(), Some(2));
    assert_eq!(opened.catalog.lease_writer(&by(dead)).await.unwrap(), None);
}
