//! The export job: makes the file of an export.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::catalog::{Finished, JobName, MadeExport, Visibility};
use crate::exports::{self, ExportError, ExportRequest};
use crate::ingest::Stop;
use crate::jobs::error::JobError;
use crate::jobs::kind::{JobKind, Work};
use crate::jobs::need::Need;
use crate::storage::{Storage, StoredFile};

/// Makes the file of an export. A long one must not hold up the ingest, so few run at once.
pub(super) struct Export;

#[async_trait]
impl JobKind for Export {
    fn name(&self) -> JobName {
        JobName::Export
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Decoder]
    }

    fn places(&self, app: &App) -> Option<Arc<Semaphore>> {
        Some(Arc::clone(&app.exports))
    }

    async fn run(&self, work: Work) -> Result<(), JobError> {
        let app = &work.app;
        let export = app.catalog.view(&Visibility::All).export(work.job.id).await?;
        let export = export.ok_or_else(|| JobError::last("the export was deleted"))?;
        let request: ExportRequest = serde_json::from_value(export.request).map_err(JobError::last)?;
        let (name, file_name) = (file_of(&work, &request), request.file_name());
        let media_type = request.media_type().to_owned();
        let made = exports::make(Arc::clone(app), request, Arc::clone(&work.progress)).await?;
        work.report().await?;
        let (content_hash, bytes) = (made.file.content_hash().to_owned(), made.file.bytes());
        let file = app.storage.keep(made.file, &name).await.map_err(JobError::passing)?;
        let stored = MadeExport {
            file: file.name().to_owned(),
            file_name,
            media_type,
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            content_hash,
            report: serde_json::to_value(made.report).map_err(JobError::last)?,
        };
        let lasts = app.config.export_lasts();
        match app.catalog.finish_export(&work.lease, &stored, &made.shown, lasts).await {
            Ok(Finished::Stored) => Ok(()),
            Ok(Finished::Outdated) => {
                forget(app, &file).await;
                Err(JobError::passing("a video was deleted while it was exported"))
            }
            Err(error) => {
                // Otherwise the row may name the file. A file without a row is swept.
                if !error.outcome_is_unknown() {
                    forget(app, &file).await;
                }
                Err(error.into())
            }
        }
    }
}

fn file_of(work: &Work, request: &ExportRequest) -> String {
    Storage::export_name(work.job.id, work.lease.token, request.extension())
}

/// Removes a file that no row names.
async fn forget(app: &App, file: &StoredFile) {
    if let Err(error) = app.storage.remove(file).await {
        tracing::warn!(%error, file = file.name(), "the file of a dropped export waits for the next sweep");
    }
}

impl From<ExportError> for JobError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Stopped(Stop::Closing) => JobError::Stopping,
            ExportError::Stopped(Stop::Cancelled | Stop::Lost) => JobError::NotHeld,
            ExportError::Catalog(error) => error.into(),
            // Every attempt would fail alike, because of the request.
            ExportError::NothingLeft(_)
            | ExportError::TooLarge { .. }
            | ExportError::TooLong { .. }
            | ExportError::TooLongForTimecode
            | ExportError::List(_) => JobError::last(error),
            ExportError::Video { .. } | ExportError::Storage(_) | ExportError::Panicked(_) => {
                JobError::passing(error)
            }
        }
    }
}
