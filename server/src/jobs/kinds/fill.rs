//! The fill job: encodes missing vectors, for new given clips, passages or spaces. Leaves out spaces whose fill is paused.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::catalog::JobName;
use crate::ingest;
use crate::jobs::error::JobError;
use crate::jobs::kind::{JobKind, Work};
use crate::jobs::need::Need;

/// Encodes the missing vectors of a video's spans. A fill job waits until the video's ingest has made the spans.
pub(super) struct Fill;

#[async_trait]
impl JobKind for Fill {
    fn name(&self) -> JobName {
        JobName::Fill
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Decoder]
    }

    fn places(&self, app: &App) -> Option<Arc<Semaphore>> {
        Some(Arc::clone(&app.fills))
    }

    async fn run(&self, work: Work) -> Result<(), JobError> {
        let spaces = ingest::fillable(&work.app).await?;
        let filled = ingest::missing(work.source()?).await?;
        work.report().await?;
        work.app.catalog.finish_fill(&work.lease, filled).await?;
        ingest::enqueue_new_spaces(&work.app, work.video()?.id, &spaces).await;
        Ok(())
    }
}
