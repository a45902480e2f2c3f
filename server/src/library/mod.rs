//! Adds, deletes, restores and recuts videos, and replaces their subtitles.
//!
//! Files and rows change together. A file is on disk before its row, and a row is hidden before its file is removed.
//! [`tend`] removes what a crash leaves. Independent of HTTP.

mod add;
mod purge;
mod subtitles;

use std::io;

use reprise_encoders::video::VideoError;
use uuid::Uuid;

use crate::app::Authorized;
use crate::catalog::{CatalogError, Job, Segmentation, Video};
use crate::subtitles::Unreadable;
use crate::vectors::EngineError;

pub use add::{AddedVideo, NewUpload, SourceFile, VideoDetails};
pub use purge::tend;
pub use subtitles::read_subtitles;

/// Changes the videos of a service.
pub struct Library<'a> {
    app: &'a Authorized,
}

/// Why the library refused a call or failed; nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The caller named an unknown video.
    #[error("there is no video {0}")]
    NoVideo(Uuid),
    /// The caller named an unknown clip.
    #[error("there is no clip {0}")]
    NoClip(Uuid),
    /// The caller named a language without a track in this video.
    #[error("the video has no subtitles in `{0}`")]
    NoTrack(String),
    /// The caller named an unknown line of this video.
    #[error("the video has no line {0}; its track may have been replaced")]
    NoLine(Uuid),
    /// The caller used a key for two different requests.
    #[error("this Idempotency-Key was used for another request")]
    KeyReused,
    /// The caller repeated a request whose video was deleted meanwhile.
    #[error("the video that this Idempotency-Key made was deleted; use a new key")]
    KeyOutlived,
    /// The caller requested only given clips, but the video has none.
    #[error("the video has no clips of your own; add some first")]
    NoGivenClips,
    /// The caller's file is not a video.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// The caller's file holds no subtitles.
    #[error(transparent)]
    Subtitles(#[from] Unreadable),
    /// The catalog refused or failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The vector engine failed.
    #[error(transparent)]
    Vectors(#[from] EngineError),
    /// The disk failed or is full.
    #[error("a file can't be stored or read")]
    Storage(#[from] io::Error),
    /// The caller's file was refused; `job` is the failed job that lists it.
    #[error("{error}")]
    Refused {
        /// The failed job.
        job: Uuid,
        /// Why it was refused.
        error: Box<LibraryError>,
    },
    /// A task panicked; an internal fault.
    #[error("a task of the library panicked")]
    Panicked(#[from] tokio::task::JoinError),
}

impl<'a> Library<'a> {
    /// The library of a service.
    pub fn of(app: &'a Authorized) -> Library<'a> {
        Library { app }
    }

    /// Deletes a video: later answers do not contain it. It stays in the trash for the configured time. `for_good`: its files
    /// and rows are purged in the background at once, also if it is in the trash already.
    ///
    /// # Errors
    /// [`LibraryError::NoVideo`].
    pub async fn delete(&self, video: Uuid, for_good: bool) -> Result<(), LibraryError> {
        let deleted = if for_good || self.app.config.trash_days == 0 {
            self.app.view().delete_video(video).await?
        } else {
            self.app.view().trash_video(video).await?
        };
        deleted.ok_or(LibraryError::NoVideo(video))?;
        self.app.deleted.notify_one();
        self.app.vectors.nudge().await;
        Ok(())
    }

    /// Takes a video out of the trash. A video that is not in the trash stays as it is, so the call may be repeated.
    ///
    /// # Errors
    /// [`LibraryError::NoVideo`], also once the purge has begun.
    pub async fn restore(&self, id: Uuid) -> Result<Video, LibraryError> {
        let Some(video) = self.app.view().restore_video(id).await? else {
            return self.app.view().video(id).await?.ok_or(LibraryError::NoVideo(id));
        };
        self.app.vectors.nudge().await;
        crate::ingest::enqueue_lacking(self.app, &video).await;
        Ok(self.app.view().video(id).await?.unwrap_or(video))
    }

    /// Deletes a given clip with its vectors and pictures.
    ///
    /// # Errors
    /// [`LibraryError::NoClip`]; [`LibraryError::Catalog`] with a conflict for a found clip.
    pub async fn delete_clip(&self, clip: Uuid) -> Result<(), LibraryError> {
        self.app.view().delete_clip(clip).await?.ok_or(LibraryError::NoClip(clip))?;
        self.app.vectors.nudge().await;
        if let Err(error) = self.app.storage.remove_pictures(clip).await {
            tracing::warn!(%error, %clip, "the pictures of a deleted clip could not be removed");
        }
        Ok(())
    }

    /// Requests a new segmentation of a ready video; returns the job.
    ///
    /// # Errors
    /// [`LibraryError::NoVideo`], [`LibraryError::NoGivenClips`]; [`LibraryError::Catalog`] with a conflict if the
    /// video is not ready.
    pub async fn recut(&self, video: Uuid, segmentation: Segmentation) -> Result<Job, LibraryError> {
        let found = self.app.view().video(video).await?.ok_or(LibraryError::NoVideo(video))?;
        if segmentation == (Segmentation::Given {}) {
            let clips = self.app.view().clips(found.id, None, u32::MAX).await?;
            if !clips.iter().any(|clip| clip.given) {
                return Err(LibraryError::NoGivenClips);
            }
        }
        self.app.view().resegment(video, &segmentation).await?.ok_or(LibraryError::NoVideo(video))
    }
}
