//! What a kind of job is, and what one job of it gets to work with.

use std::sync::Arc;

use async_trait::async_trait;

use super::error::JobError;
use crate::app::App;
use crate::catalog::{Job, JobName, Lease, Leased, Span, Video};
use crate::config::RetryWaits;
use crate::ingest::{JobProgress, Source};

/// A kind of job: one file in `kinds/` and one line in its list.
#[async_trait]
pub trait JobKind: Send + Sync {
    /// Its name, as it is stored.
    fn name(&self) -> JobName;
    /// What a worker must have to run it.
    fn needs(&self) -> &'static [Need];
    /// The waits before further attempts, unless the settings' ones serve.
    fn retry(&self, configured: &RetryWaits) -> RetryWaits {
        configured.clone()
    }
    /// Does the work. Ends with one `Catalog::finish_*`, which checks the lease in its transaction.
    ///
    /// # Errors
    /// [`JobError`]: the catalog keeps nothing of this attempt.
    async fn run(&self, work: Work) -> Result<(), JobError>;
}

/// What a worker must have to run a kind of job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// An ffmpeg that runs.
    Decoder,
}

impl Need {
    /// Whether this process has it. Blocks for a moment.
    pub fn is_met(self) -> bool {
        match self {
            Need::Decoder => reprise_encoders::video::ffmpeg::can_decode(),
        }
    }
}

/// One leased job.
pub struct Work {
    /// The service.
    pub app: Arc<App>,
    /// The job.
    pub job: Job,
    /// Its video, with the segmentation that the job asks for.
    pub video: Option<Video>,
    /// The given spans of its video.
    pub given: Vec<Span>,
    /// The right to finish it.
    pub lease: Lease,
    /// Where it says how far it is, and hears that it must stop.
    pub progress: Arc<JobProgress>,
}

impl Work {
    pub(super) fn new(app: Arc<App>, leased: Leased, progress: Arc<JobProgress>) -> Work {
        let Leased { lease, job, video, given } = leased;
        Work { app, job, video, given, lease, progress }
    }

    /// The video of a job that is about one.
    ///
    /// # Errors
    /// The job has none.
    pub fn video(&self) -> Result<&Video, JobError> {
        self.video.as_ref().ok_or_else(|| JobError::last(format!("job {} has no video", self.job.id)))
    }

    /// The video as [`crate::ingest`] takes it.
    ///
    /// # Errors
    /// The job has none.
    pub fn source(&self) -> Result<Source<'_>, JobError> {
        let (app, video) = (&*self.app, self.video()?);
        Ok(Source { app, video, given: &self.given, progress: Arc::clone(&self.progress) })
    }

    /// Stores how far the job came. Without it a job that ends between two heartbeats would show less.
    ///
    /// # Errors
    /// The catalog failed.
    pub async fn report(&self) -> Result<(), JobError> {
        let lease = self.app.config.lease();
        self.app.catalog.heartbeat(&self.lease, lease, &self.progress.heartbeat()).await?;
        Ok(())
    }
}
