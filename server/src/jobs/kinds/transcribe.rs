//! The transcribe job: writes down the speech of a video.

use async_trait::async_trait;
use reprise_encoders::EncodeError;
use reprise_encoders::video::VideoError;

use crate::catalog::JobName;
use crate::ingest::Stop;
use crate::jobs::error::JobError;
use crate::jobs::kind::{JobKind, Work};
use crate::jobs::need::Need;
use crate::transcription::{self, TranscriptionError};

/// Writes down the speech of a video. It may take hours, so it has runners of its own.
pub(super) struct Transcribe;

#[async_trait]
impl JobKind for Transcribe {
    fn name(&self) -> JobName {
        JobName::Transcribe
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Decoder, Need::Transcriber]
    }

    fn runs_apart(&self) -> bool {
        true
    }

    async fn run(&self, work: Work) -> Result<(), JobError> {
        let asked = transcription::Work {
            app: &work.app,
            video: work.video()?,
            job: &work.job,
            lease: &work.lease,
            progress: &work.progress,
        };
        transcription::run(asked).await?;
        Ok(())
    }
}

impl From<TranscriptionError> for JobError {
    fn from(error: TranscriptionError) -> Self {
        match error {
            TranscriptionError::Stopped(Stop::Closing) | TranscriptionError::Model(EncodeError::Closed) => {
                JobError::Stopping
            }
            TranscriptionError::Stopped(Stop::Cancelled | Stop::Lost) => JobError::NotHeld,
            TranscriptionError::Catalog(error) => error.into(),
            TranscriptionError::Video(VideoError::Ffmpeg(_)) => JobError::passing(error),
            // Every attempt would fail alike, until somebody acts.
            TranscriptionError::Video(_)
            | TranscriptionError::Model(EncodeError::BadInput(_))
            | TranscriptionError::FileGone(_)
            | TranscriptionError::TooLong
            | TranscriptionError::NotReady => JobError::last(error),
            TranscriptionError::Model(_)
            | TranscriptionError::NoTranscriber
            | TranscriptionError::Unreadable(_)
            | TranscriptionError::Panicked(_) => JobError::passing(error),
        }
    }
}
