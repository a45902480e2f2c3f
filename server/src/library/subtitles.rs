//! Replaces and deletes the subtitles of a video.

use uuid::Uuid;

use super::{Library, LibraryError};
use crate::catalog::{Cue, CueKind, LineChange, Subtitles, Track};
use crate::subtitles;

/// Parses a subtitle file; detects SubRip or WebVTT by its content.
///
/// # Errors
/// [`LibraryError::Subtitles`] if no cue can be read.
pub async fn read_subtitles(
    bytes: Vec<u8>,
    language: String,
    provenance: &str,
) -> Result<Subtitles, LibraryError> {
    let parsed = tokio::task::spawn_blocking(move || subtitles::parse(&bytes)).await??;
    // The video lists warnings of all its files, so each one names its file.
    let warnings = parsed.warnings.iter().map(|it| format!("subtitles {language}, {it}")).collect();
    let track =
        Track { kind: CueKind::Speech, language, provenance: provenance.to_owned(), is_machine: false };
    Ok(Subtitles { track, lines: parsed.lines, warnings })
}

impl Library<'_> {
    /// Stores subtitles and replaces those of the same language. Their words are searchable at once.
    ///
    /// # Errors
    /// [`LibraryError::NoVideo`].
    pub async fn replace_subtitles(&self, video: Uuid, new: &Subtitles) -> Result<(), LibraryError> {
        if !self.app.view().replace_cues(video, new).await? {
            return Err(LibraryError::NoVideo(video));
        }
        self.subtitles_changed(video).await
    }

    /// Replaces the text of a line. Its track counts as a person's from then on, and no transcription replaces it.
    ///
    /// # Errors
    /// [`LibraryError::NoLine`]; [`CatalogError::Stale`](crate::catalog::CatalogError::Stale) if it has another text than the
    /// change expects.
    pub async fn correct_line(
        &self,
        video: Uuid,
        line: Uuid,
        change: &LineChange,
    ) -> Result<Cue, LibraryError> {
        let corrected = self.app.view().correct_line(video, line, change).await?;
        let corrected = corrected.ok_or(LibraryError::NoLine(line))?;
        self.subtitles_changed(video).await?;
        Ok(corrected)
    }

    /// Deletes the track of a kind and language; later answers do not contain it.
    ///
    /// # Errors
    /// [`LibraryError::NoTrack`].
    pub async fn delete_track(&self, video: Uuid, kind: CueKind, language: &str) -> Result<(), LibraryError> {
        if !self.app.view().delete_track(video, kind, language).await? {
            return Err(LibraryError::NoTrack(language.to_owned()));
        }
        self.app.vectors.nudge().await;
        Ok(())
    }

    /// Removes replaced passages from the index, and enqueues the encoding of new ones.
    pub(super) async fn subtitles_changed(&self, video: Uuid) -> Result<(), LibraryError> {
        self.app.vectors.nudge().await;
        crate::ingest::enqueue_passages(self.app, video).await;
        Ok(())
    }
}
