//! The video of a job.

use std::sync::Arc;

use reprise_encoders::video;

use super::error::IngestError;
use super::pass::Media;
use super::progress::JobProgress;
use crate::app::App;
use crate::catalog::{Span, Video};
use crate::storage::StoredFile;

/// The input of an ingest.
pub struct Source<'a> {
    /// The service.
    pub app: &'a App,
    /// The video, with its segmentation.
    pub video: &'a Video,
    /// Clips given by the user.
    pub given: &'a [Span],
    /// Progress of the job.
    pub progress: Arc<JobProgress>,
}

impl Source<'_> {
    /// The video's file and its probe, which its upload may have left.
    pub(super) async fn media(&self) -> Result<Media, IngestError> {
        let gone = |_| IngestError::FileGone(self.video.file.clone());
        let stored = StoredFile::of(&self.video.file);
        let path = self.app.storage.local(&stored).await.map_err(gone)?.path().to_owned();
        let limits = self.app.config.decode_limits();
        let probe = match self.app.probes.take(&stored) {
            Some(probe) => probe,
            None => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || video::probe(&path, &limits)).await??
            }
        };
        self.progress.expect(probe.duration_ms, probe.frame_rate);
        Ok(Media { path, probe, limits })
    }
}
