//! Leases jobs, runs them one at a time, and stores their outcome.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use reprise_encoders::with_causes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use super::error::JobError;
use super::kind::{JobKind, Work};
use super::kinds::KINDS;
use super::need::{Checking, MetNeeds, Need};
use super::retry::wait_after;
use crate::app::App;
use crate::catalog::{Job, JobName, Lease, LeaseStatus, Leased, NextAttempt};
use crate::ingest::{JobProgress, Stop};
use crate::telemetry::names;

/// Interval of heartbeats, which renew the lease and store progress. Shorter for a short lease.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A lease lasts for at least this many heartbeats.
const HEARTBEATS_PER_LEASE: u32 = 5;
/// Longest sleep of an idle runner.
const IDLE: Duration = Duration::from_secs(5);

/// One worker of the job queue.
struct Runner {
    app: Arc<App>,
    id: Uuid,
    /// Kinds of job of its duty.
    kinds: Vec<&'static dyn JobKind>,
    needs: Arc<MetNeeds>,
    closing: CancellationToken,
}

/// The kinds of job that a runner takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Those that may not wait behind a long one.
    Usual,
    /// Those that have runners of their own.
    Apart,
}

/// Leases and runs jobs until `closing`. Then returns the current job to the queue.
pub async fn run_forever(app: Arc<App>, duty: Duty, needs: Arc<MetNeeds>, closing: CancellationToken) {
    let runner = Runner { app, id: Uuid::now_v7(), kinds: kinds_of(duty), needs, closing };
    while let Some(mut open) = runner.closing.run_until_cancelled(runner.open_kinds()).await {
        match runner.app.catalog.lease_job(runner.id, &open.names, runner.app.config.lease()).await {
            Ok(Some(leased)) => {
                open.keep_place_of(leased.job.kind);
                let checking = open.checking.take();
                runner.run(leased, checking).await;
            }
            Ok(None) => runner.idle(open).await,
            Err(error) => {
                tracing::warn!(%error, "no job can be leased; trying again");
                runner.idle(open).await;
            }
        }
    }
}

/// The kinds of job that a runner may start now.
struct OpenKinds {
    names: Vec<JobName>,
    /// Places of the kinds that have few.
    held: HashMap<JobName, OwnedSemaphorePermit>,
    /// Held while a need of these kinds is unchecked.
    checking: Option<Checking>,
}

impl OpenKinds {
    /// Frees the places of the other kinds.
    fn keep_place_of(&mut self, kind: JobName) {
        self.held.retain(|held, _| *held == kind);
    }
}

fn kinds_of(duty: Duty) -> Vec<&'static dyn JobKind> {
    KINDS.iter().copied().filter(|kind| kind.runs_apart() == (duty == Duty::Apart)).collect()
}

impl Runner {
    /// The needs of its kinds of job.
    fn all_needs(&self) -> impl Iterator<Item = Need> {
        self.kinds.iter().flat_map(|kind| kind.needs()).copied()
    }

    /// Waits while another runner checks a need.
    async fn open_kinds(&self) -> OpenKinds {
        let checking = self.needs.start_checking(self.all_needs()).await;
        let mut open = OpenKinds { names: Vec::new(), held: HashMap::new(), checking };
        for kind in self.kinds.iter().filter(|kind| self.needs.allow(kind.needs(), &self.app)) {
            let place = kind.places(&self.app).map(Semaphore::try_acquire_owned);
            match place {
                Some(Err(_)) => continue,
                Some(Ok(place)) => drop(open.held.insert(kind.name(), place)),
                None => {}
            }
            open.names.push(kind.name());
        }
        open
    }

    async fn idle(&self, open: OpenKinds) {
        let OpenKinds { names, held, checking } = open;
        // Another runner may need them meanwhile.
        drop((held, checking));
        tokio::select! {
            () = self.closing.cancelled() => {}
            () = self.app.catalog.wait_for_job(&names, IDLE) => {}
            () = self.wait_for_place(&names) => {}
        }
    }

    /// Waits until a kind that is not in `open` has a place. Forever if there is none.
    async fn wait_for_place(&self, open: &[JobName]) {
        let closed = self
            .kinds
            .iter()
            .filter(|kind| !open.contains(&kind.name()) && self.needs.allow(kind.needs(), &self.app));
        let places = closed.filter_map(|kind| kind.places(&self.app)).map(Semaphore::acquire_owned);
        let mut places: FuturesUnordered<_> = places.collect();
        if places.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    async fn run(&self, leased: Leased, checking: Option<Checking>) {
        let Some(kind) = self.kinds.iter().copied().find(|kind| kind.name() == leased.job.kind) else {
            return tracing::error!(kind = ?leased.job.kind, "a job was leased that this process does not run");
        };
        let started = Instant::now();
        let (job, lease) = (leased.job.clone(), leased.lease.clone());
        let progress = Arc::new(JobProgress::new());
        let beating = tokio::spawn(beat(Arc::clone(&self.app), lease.clone(), Arc::clone(&progress)));
        let stopping = tokio::spawn({
            let (closing, progress) = (self.closing.clone(), Arc::clone(&progress));
            async move {
                closing.cancelled().await;
                progress.stop(Stop::Closing);
            }
        });
        let span = tracing::info_span!("job", kind = kind.name().name());
        let work = Work::new(Arc::clone(&self.app), leased, progress);
        let needs = Arc::clone(&self.needs);
        let run = async move {
            needs.check(kind.needs(), &work.app).await.map_err(JobError::Unmet)?;
            drop(checking);
            kind.run(work).await
        };
        let ended = caught(run.instrument(span)).await;
        beating.abort();
        stopping.abort();
        let outcome = match ended {
            Ok(()) => "succeeded",
            Err(error) => self.store_failure(kind, &job, &lease, error).await,
        };
        self.app.vectors.nudge().await;
        let seconds = started.elapsed().as_secs_f64();
        metrics::counter!(names::JOBS.name, "outcome" => outcome).increment(1);
        metrics::histogram!(names::JOB_SECONDS.name).record(seconds);
        let video = job.video.map(tracing::field::display);
        tracing::info!(job = %job.id, video, outcome, seconds, "job ended");
    }

    /// Stores the outcome of a failed or stopped job. Returns its label for the metrics.
    async fn store_failure(
        &self,
        kind: &dyn JobKind,
        job: &Job,
        lease: &Lease,
        error: JobError,
    ) -> &'static str {
        let catalog = &self.app.catalog;
        let reason = with_causes(&error);
        let (stored, outcome) = match error {
            JobError::NotHeld => (Ok(()), "dropped"),
            JobError::Stopping => (catalog.release_job(lease).await, "released"),
            JobError::Unmet(need) => {
                let kind = kind.name().name();
                tracing::warn!(kind, ?need, "jobs are left to other processes: a need is not met");
                (catalog.release_job(lease).await, "released")
            }
            JobError::Final(_) => (catalog.fail_job(lease, &reason, NextAttempt::Never).await, "failed"),
            JobError::Passing(_) => {
                let waits = kind.retry(&self.app.config.retry_waits);
                let wait = wait_after(&waits, job.attempts, random(lease));
                (catalog.fail_job(lease, &reason, NextAttempt::After(wait)).await, "retried")
            }
        };
        if let Err(error) = stored {
            tracing::warn!(%error, reason, job = %lease.job, "a job's end could not be stored; its lease will run out");
        }
        outcome
    }
}

/// A number from 0 to 1, from the random last bits of the lease's token.
fn random(lease: &Lease) -> f64 {
    f64::from(lease.token.as_u128() as u32) / f64::from(u32::MAX)
}

/// Runs `work` in its own task, so that a panic ends only this job.
async fn caught(work: impl Future<Output = Result<(), JobError>> + Send + 'static) -> Result<(), JobError> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|panic| Err(JobError::passing(format!("a part of the job panicked: {panic}"))))
}

/// Renews the lease until aborted, and passes stop signals to the job.
async fn beat(app: Arc<App>, lease: Lease, progress: Arc<JobProgress>) {
    let extend = app.config.lease();
    let every = HEARTBEAT.min(extend / HEARTBEATS_PER_LEASE);
    loop {
        match app.catalog.heartbeat(&lease, extend, &progress.heartbeat()).await {
            Ok(LeaseStatus::Held) => {}
            Ok(LeaseStatus::Cancelled) => progress.stop(Stop::Cancelled),
            Ok(LeaseStatus::Lost) => progress.stop(Stop::Lost),
            Err(error) => tracing::warn!(%error, "a heartbeat could not be stored"),
        }
        tokio::time::sleep(every).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_job_and_says_what_it_was() {
        let ended = caught(async { panic!("a frame of no size") }).await;
        let error = ended.expect_err("the panic is an error");
        assert!(matches!(&error, JobError::Passing(_)), "{error:?}");
        assert!(error.to_string().contains("a frame of no size"), "{error}");
    }
}
