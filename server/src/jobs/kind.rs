//! Kinds of job, and the input of one job.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::error::JobError;
use super::need::Need;
use crate::app::App;
use crate::catalog::{Job, JobName, Lease, Leased, Span, Video};
use crate::config::RetryWaits;
use crate::ingest::{JobProgress, Source};

/// A kind of job: one file in `kinds/` and one entry in its list.
#[async_trait]
pub trait JobKind: Send + Sync {
    /// Its stored name.
    fn name(&self) -> JobName;
    /// Requirements on a worker.
    fn needs(&self) -> &'static [Need];
    /// Places that limit the jobs of this kind at once, in this process. Default: none.
    fn places(&self, _app: &App) -> Option<Arc<Semaphore>> {
        None
    }
    /// The waits before further attempts. Default: the configured waits.
    fn retry(&self, configured: &RetryWaits) -> RetryWaits {
        configured.clone()
    }
    /// Whether it has runners of its own, because it may take hours beside which ingests must go on. Default: no.
    fn runs_apart(&self) -> bool {
        false
    }
    /// Does the work. Ends with one `Catalog::finish_*`, which checks the lease in its transaction.
    ///
    /// # Errors
    /// [`JobError`]. The catalog then stores nothing of this attempt.
    async fn run(&self, work: Work) -> Result<(), JobError>;
}

/// One leased job.
pub struct Work {
    /// The service.
    pub app: Arc<App>,
    /// The job.
    pub job: Job,
    /// Its video, with the segmentation that the job requests.
    pub video: Option<Video>,
    /// Clips of its video that the user gave.
    pub given: Vec<Span>,
    /// The lease, needed to finish the job.
    pub lease: Lease,
    /// Progress of the job, and its stop signal.
    pub progress: Arc<JobProgress>,
}

impl Work {
    pub(super) fn new(app: Arc<App>, leased: Leased, progress: Arc<JobProgress>) -> Work {
        let Leased { lease, job, video, given } = leased;
        Work { app, job, video, given, lease, progress }
    }

    /// The job's video.
    ///
    /// # Errors
    /// [`JobError::Final`] if the job has no video.
    pub fn video(&self) -> Result<&Video, JobError> {
        self.video.as_ref().ok_or_else(|| JobError::last(format!("job {} has no video", self.job.id)))
    }

    /// The input for [`crate::ingest`].
    ///
    /// # Errors
    /// [`JobError::Final`] if the job has no video.
    pub fn source(&self) -> Result<Source<'_>, JobError> {
        let (app, video) = (&*self.app, self.video()?);
        Ok(Source { app, video, given: &self.given, progress: Arc::clone(&self.progress) })
    }

    /// Stores the progress at once. Without this, the stored progress of a job would end at its last heartbeat.
    ///
    /// # Errors
    /// The catalog failed.
    pub async fn report(&self) -> Result<(), JobError> {
        let lease = self.app.config.lease();
        self.app.catalog.heartbeat(&self.lease, lease, &self.progress.heartbeat()).await?;
        Ok(())
    }
}
