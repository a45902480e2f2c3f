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
    /// Probes the video's file.
    pub(super) async fn media(&self) -> Result<Media, IngestError> {
        let gone = |_| IngestError::FileGone(self.video.file.clone());
        let file = self.app.storage.local(&StoredFile::of(&self.video.file)).await.map_err(gone)?;
        let path = file.path().to_owned();
        let limits = self.app.config.decode_limits();
        let probed = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || video::probe(&path, &limits)).await
        };
        let probe = probed??;
        self.progress.expect(probe.duration_ms, probe.frame_rate);
        Ok(Media { path, probe, limits })
    }
}
