//! The evaluation job: asks spaces the queries of an evaluation.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::catalog::JobName;
use crate::evaluations::{self, EvaluationError};
use crate::ingest::Stop;
use crate::jobs::error::JobError;
use crate::jobs::kind::{JobKind, Work};
use crate::jobs::need::Need;

/// Asks spaces the queries of an evaluation. A long one must not hold up the ingest, so one runs at a time.
pub(super) struct Evaluation;

#[async_trait]
impl JobKind for Evaluation {
    fn name(&self) -> JobName {
        JobName::Evaluation
    }

    fn needs(&self) -> &'static [Need] {
        // A query may be a range of a video, which is decoded.
        &[Need::Decoder]
    }

    fn places(&self, app: &App) -> Option<Arc<Semaphore>> {
        Some(Arc::clone(&app.evaluations))
    }

    async fn run(&self, work: Work) -> Result<(), JobError> {
        Box::pin(evaluations::run(&work.app, &work.lease, &work.progress)).await?;
        Ok(())
    }
}

impl From<EvaluationError> for JobError {
    fn from(error: EvaluationError) -> Self {
        match error {
            EvaluationError::Stopped(Stop::Closing) => JobError::Stopping,
            EvaluationError::Stopped(Stop::Cancelled | Stop::Lost) => JobError::NotHeld,
            EvaluationError::Catalog(error) => error.into(),
            // Every attempt would fail alike, until somebody acts.
            EvaluationError::Deleted
            | EvaluationError::NoOwner
            | EvaluationError::Unreadable(_)
            | EvaluationError::NoSpace(_) => JobError::last(error),
            EvaluationError::Search(_) => JobError::passing(error),
        }
    }
}
