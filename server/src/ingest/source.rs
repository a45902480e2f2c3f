//! The video that a job works on.

use std::sync::Arc;

use reprise_encoders::video;

use super::error::IngestError;
use super::pass::Media;
use super::progress::JobProgress;
use crate::app::App;
use crate::catalog::{Span, Video};
use crate::storage::StoredFile;

/// A stored video on its way into spans.
pub struct Source<'a> {
    /// The service.
    pub app: &'a App,
    /// The video, with the segmentation by which it is cut.
    pub video: &'a Video,
    /// The clips that its user gave.
    pub given: &'a [Span],
    /// How far the work is.
    pub progress: Arc<JobProgress>,
}

impl Source<'_> {
    /// Its file, probed.
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
