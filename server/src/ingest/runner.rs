//! Leases jobs, runs them one at a time, and tells the catalog how they ended.

use std::sync::Arc;
use std::time::Duration;

use reprise_encoders::EncodeError;
use reprise_encoders::video::VideoError;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::embed::PassError;
use super::job;
use super::watch::{Stop, Watch};
use crate::app::App;
use crate::catalog::{Beat, CatalogError, Leased};

/// How often a running job renews its lease and stores its progress, unless the lease is shorter than that.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A lease outlives this many heartbeats that fail.
const HEARTBEATS_PER_LEASE: u32 = 5;
/// How long an idle runner sleeps at most.
const IDLE: Duration = Duration::from_secs(5);

/// One worker of the job queue.
struct Runner {
    app: Arc<App>,
    id: Uuid,
    lease: Duration,
    closing: CancellationToken,
}

/// Leases and runs jobs until `closing`; the job at hand is handed back then.
pub async fn run_forever(app: Arc<App>, closing: CancellationToken) {
    let lease = Duration::from_secs_f64(app.config.lease_seconds);
    let runner = Runner { app, id: Uuid::now_v7(), lease, closing };
    while !runner.closing.is_cancelled() {
        match runner.app.catalog.lease_job(runner.id, runner.lease).await {
            Ok(Some(leased)) => runner.run(leased).await,
            Ok(None) => runner.idle().await,
            Err(error) => {
                tracing::warn!(%error, "no job can be leased; trying again");
                runner.idle().await;
            }
        }
    }
}

/// Why a job did not succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobError {
    #[error(transparent)]
    Pass(#[from] PassError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("the stored file is gone: {0}")]
    FileGone(String),
}

impl From<VideoError> for JobError {
    fn from(error: VideoError) -> Self {
        JobError::Pass(PassError::Video(error))
    }
}

impl Runner {
    async fn idle(&self) {
        tokio::select! {
            () = self.closing.cancelled() => {}
            () = self.app.catalog.wait_for_job(IDLE) => {}
        }
    }

    async fn run(&self, leased: Leased) {
        let started = std::time::Instant::now();
        let began_with = self.app.spaces.now().all().len();
        let watch = Arc::new(Watch::new());
        let beat = beat(Arc::clone(&self.app), leased.clone(), self.lease, Arc::clone(&watch));
        let beating = tokio::spawn(beat);
        let stopping = tokio::spawn({
            let (closing, watch) = (self.closing.clone(), Arc::clone(&watch));
            async move {
                closing.cancelled().await;
                watch.stop(Stop::Closing);
            }
        });
        let ended = caught(job::run(Arc::clone(&self.app), leased.clone(), watch)).await;
        beating.abort();
        stopping.abort();
        let outcome = match &ended {
            Ok(()) => {
                self.complete(&leased, began_with).await;
                "succeeded"
            }
            Err(error) => self.give_up(&leased, error).await,
        };
        if let Err(error) = self.app.vectors.catch_up().await {
            tracing::warn!(%error, "the index can't follow the catalog");
        }
        metrics::counter!("reprise_jobs_total", "outcome" => outcome).increment(1);
        metrics::histogram!("reprise_job_seconds").record(started.elapsed().as_secs_f64());
        let seconds = started.elapsed().as_secs_f64();
        tracing::info!(job = %leased.lease.job, video = %leased.video.id, outcome, seconds, "job ended");
    }

    /// Asks for what a job could not know of: it began before a space was added, and no one else asks for a video that
    /// is at work.
    async fn complete(&self, leased: &Leased, began_with: usize) {
        if self.app.spaces.now().all().len() == began_with {
            return;
        }
        if let Err(error) = self.app.catalog.enqueue_fill(leased.video.id).await {
            let video = leased.video.id;
            tracing::warn!(%error, %video, "a video waits for the next start to be filled into a new space");
        }
    }

    async fn give_up(&self, leased: &Leased, error: &JobError) -> &'static str {
        let catalog = &self.app.catalog;
        let (told, outcome) = match disposition(error) {
            Disposition::Drop => (Ok(()), "dropped"),
            Disposition::Release => (catalog.release_job(&leased.lease).await, "released"),
            Disposition::Fail => (catalog.fail_job(&leased.lease, &error.to_string(), false).await, "failed"),
            Disposition::Retry => {
                (catalog.fail_job(&leased.lease, &error.to_string(), true).await, "retried")
            }
        };
        if let Err(untold) = told {
            tracing::warn!(%untold, %error, job = %leased.lease.job, "a job's end could not be stored; its lease will run out");
        }
        outcome
    }
}

/// What becomes of a job that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disposition {
    /// Someone else decides about it now.
    Drop,
    /// Queued again; this attempt doesn't count.
    Release,
    /// It will fail again: the file is to blame.
    Fail,
    /// It may go better next time.
    Retry,
}

fn disposition(error: &JobError) -> Disposition {
    match error {
        JobError::Catalog(CatalogError::LeaseLost) => Disposition::Drop,
        JobError::Catalog(CatalogError::Conflict(_) | CatalogError::Invalid(_)) | JobError::FileGone(_) => {
            Disposition::Fail
        }
        JobError::Catalog(_) => Disposition::Retry,
        JobError::Pass(error) => match error {
            PassError::Stopped(Stop::Closing) | PassError::Encode(EncodeError::Closed) => {
                Disposition::Release
            }
            PassError::Stopped(Stop::Cancelled | Stop::Lost) => Disposition::Drop,
            PassError::Video(VideoError::Ffmpeg(_)) => Disposition::Retry,
            PassError::Video(_) | PassError::Encode(EncodeError::BadInput(_)) => Disposition::Fail,
            PassError::Encode(_) | PassError::Features(_) | PassError::Panicked(_) => Disposition::Retry,
        },
    }
}

/// Runs `work` as a task of its own, so that a panic ends this job and not the runner.
async fn caught(work: impl Future<Output = Result<(), JobError>> + Send + 'static) -> Result<(), JobError> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|panic| Err(PassError::Panicked(panic.to_string()).into()))
}

/// Renews the lease until aborted, and passes a stop on to the job.
async fn beat(app: Arc<App>, leased: Leased, lease: Duration, watch: Arc<Watch>) {
    let every = HEARTBEAT.min(lease / HEARTBEATS_PER_LEASE);
    loop {
        match app.catalog.heartbeat(&leased.lease, lease, &watch.progress()).await {
            Ok(Beat::Held) => {}
            Ok(Beat::Cancelled) => watch.stop(Stop::Cancelled),
            Ok(Beat::Lost) => watch.stop(Stop::Lost),
            Err(error) => tracing::warn!(%error, "a heartbeat could not be stored"),
        }
        tokio::time::sleep(every).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: impl Into<JobError>, expected: Disposition) {
        let error = error.into();
        assert_eq!(disposition(&error), expected, "{error}");
    }

    #[test]
    fn what_the_file_is_to_blame_for_is_not_tried_again() {
        check(VideoError::NotVideo("text".into()), Disposition::Fail);
        check(VideoError::OverLimit("time".into()), Disposition::Fail);
        check(JobError::FileGone("videos/a.mp4".into()), Disposition::Fail);
        check(PassError::Encode(EncodeError::BadInput("no frames".into())), Disposition::Fail);
        check(CatalogError::Invalid("3 values".into()), Disposition::Fail);
    }

    #[test]
    fn what_may_go_better_next_time_is_tried_again() {
        check(VideoError::Ffmpeg("no memory".into()), Disposition::Retry);
        check(PassError::Encode(EncodeError::Failed("device lost".into())), Disposition::Retry);
        check(PassError::Panicked("index out of bounds".into()), Disposition::Retry);
        check(CatalogError::Database("disk full".into()), Disposition::Retry);
    }

    #[test]
    fn a_closing_server_hands_its_job_back() {
        check(PassError::Stopped(Stop::Closing), Disposition::Release);
        check(PassError::Encode(EncodeError::Closed), Disposition::Release);
    }

    #[test]
    fn a_job_that_someone_else_decides_about_is_dropped() {
        check(PassError::Stopped(Stop::Cancelled), Disposition::Drop);
        check(PassError::Stopped(Stop::Lost), Disposition::Drop);
        check(CatalogError::LeaseLost, Disposition::Drop);
    }

    #[tokio::test]
    async fn a_panic_ends_the_job_and_says_what_it_was() {
        let ended = caught(async { panic!("a frame of no size") }).await;
        let error = ended.expect_err("the panic is an error");
        assert!(error.to_string().contains("a frame of no size"), "{error}");
        check(error, Disposition::Retry);
    }
}
