//! The ingest job: turns a video into searchable spans.

use async_trait::async_trait;
use reprise_encoders::EncodeError;
use reprise_encoders::video::VideoError;

use crate::catalog::{JobName, VideoState};
use crate::ingest::{self, IngestError, Stop, Whole};
use crate::jobs::error::JobError;
use crate::jobs::kind::{JobKind, Work};
use crate::jobs::need::Need;
use crate::transcription;

/// Cuts a video and encodes its spans. A ready video is cut again.
pub(super) struct Ingest;

#[async_trait]
impl JobKind for Ingest {
    fn name(&self) -> JobName {
        JobName::Ingest
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Decoder]
    }

    async fn run(&self, work: Work) -> Result<(), JobError> {
        let (app, video) = (&work.app, work.video()?);
        let spaces = app.spaces.all();
        let replaced = ingest::found_clips(app, video).await?;
        let Whole { ingested, thumbnails } = ingest::whole(work.source()?).await?;
        work.report().await?;
        // Before the ingest ends: a crash in between repeats the ingest, and loses no transcription.
        transcription::after_ingest(app, video, &ingested.facts).await?;
        if app.config.screen_text.read_text && video.state != VideoState::Ready {
            // It waits for the end of the ingest. A crash in between repeats the ingest, and enqueues nothing twice.
            app.catalog.read_text_of_new(video.id).await?;
        }
        app.catalog.finish_ingest(&work.lease, ingested).await?;
        for clip in replaced {
            if let Err(error) = app.storage.remove_pictures(clip).await {
                tracing::warn!(%error, %clip, "the pictures of a replaced clip could not be removed");
            }
        }
        ingest::keep_thumbnails(app, video.id, thumbnails).await;
        ingest::enqueue_passages(app, video.id).await;
        ingest::enqueue_new_spaces(app, video.id, &spaces).await;
        Ok(())
    }
}

impl From<IngestError> for JobError {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Catalog(error) => error.into(),
            IngestError::Stopped(Stop::Closing) | IngestError::Encode(EncodeError::Closed) => {
                JobError::Stopping
            }
            IngestError::Stopped(Stop::Cancelled | Stop::Lost) => JobError::NotHeld,
            IngestError::Video(VideoError::Ffmpeg(_)) | IngestError::Reader(_) => JobError::passing(error),
            // Every attempt would fail alike, because of the file.
            IngestError::Video(_)
            | IngestError::Encode(EncodeError::BadInput(_))
            | IngestError::FileGone(_)
            | IngestError::TooManyClips { .. } => JobError::last(error),
            IngestError::Encode(_) | IngestError::Features(_) | IngestError::Panicked(_) => {
                JobError::passing(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogError;

    #[track_caller]
    fn check(error: impl Into<IngestError>, expected: &str) {
        let error = JobError::from(error.into());
        let got = match &error {
            JobError::NotHeld => "not held",
            JobError::Stopping => "stopping",
            JobError::Unmet(_) => "unmet",
            JobError::Final(_) => "final",
            JobError::Passing(_) => "passing",
        };
        assert_eq!(got, expected, "{error}");
    }

    #[test]
    fn what_the_file_is_to_blame_for_is_not_tried_again() {
        check(VideoError::NotVideo("text".into()), "final");
        check(VideoError::OverLimit("time".into()), "final");
        check(IngestError::FileGone("videos/a.mp4".into()), "final");
        check(IngestError::TooManyClips { most: 9 }, "final");
        check(EncodeError::BadInput("no frames".into()), "final");
        check(CatalogError::Invalid("3 values".into()), "final");
    }

    #[test]
    fn what_may_go_better_next_time_is_tried_again() {
        check(VideoError::Ffmpeg("no memory".into()), "passing");
        check(EncodeError::Failed("device lost".into()), "passing");
        check(EncodeError::Stuck { seconds: 121 }, "passing");
        check(CatalogError::Damaged("no space on disk".into()), "passing");
    }

    #[test]
    fn a_closing_server_hands_its_job_back() {
        check(IngestError::Stopped(Stop::Closing), "stopping");
        check(EncodeError::Closed, "stopping");
    }

    #[test]
    fn a_job_that_someone_else_decides_about_is_dropped() {
        check(IngestError::Stopped(Stop::Cancelled), "not held");
        check(IngestError::Stopped(Stop::Lost), "not held");
        check(CatalogError::LeaseLost, "not held");
    }
}
