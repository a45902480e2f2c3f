//! The read_text job: reads the text on screen in a video.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::catalog::{JobName, VideoState};
use crate::ingest;
use crate::jobs::error::JobError;
use crate::jobs::kind::{JobKind, Work};
use crate::jobs::need::Need;

/// Reads the text on screen as cues. One video at a time, so that ingests go on beside it.
pub(super) struct ReadText;

#[async_trait]
impl JobKind for ReadText {
    fn name(&self) -> JobName {
        JobName::ReadText
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Decoder, Need::TextReader]
    }

    fn places(&self, app: &App) -> Option<Arc<Semaphore>> {
        Some(Arc::clone(&app.readings))
    }

    async fn run(&self, work: Work) -> Result<(), JobError> {
        if work.video()?.state != VideoState::Ready {
            return Err(JobError::last("the video is not searchable: its ingest has failed"));
        }
        let read = ingest::text_on_screen(work.source()?).await?;
        work.report().await?;
        work.app.catalog.finish_reading(&work.lease, &read).await?;
        ingest::enqueue_passages(&work.app, work.video()?.id).await;
        Ok(())
    }
}
