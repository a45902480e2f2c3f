//! Readings of the text on screen: requests and results.

use uuid::Uuid;

use super::cues;
use super::database::{Tx, values};
use super::error::CatalogError;
use super::results::held;
use super::store::Catalog;
use super::tables::jobs::{self, NewJob};
use super::tables::videos;
use super::types::*;
use super::view::View;
use super::wake::News;

impl View<'_> {
    /// Enqueues the reading of a video's text. `None` if there is no such video.
    ///
    /// # Errors
    /// [`CatalogError::Conflict`] if the video's ingest has failed, or its text is being read.
    pub async fn read_text(&self, video: Uuid) -> Result<Option<Job>, CatalogError> {
        let mut tx = self.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(None);
        }
        let state = videos::read(&mut tx, video).await?.map(|video| video.state);
        if state == Some(VideoState::Failed) {
            let why = "the video's ingest has failed: retry its job first";
            return Err(CatalogError::Conflict(why.to_owned()));
        }
        let sql =
            "SELECT id FROM jobs WHERE video = $1 AND kind = 'read_text' AND state IN ('queued', 'running')";
        if tx.row(sql, values![video]).await?.is_some() {
            let why = "the video's text is being read: wait until the job has ended, or cancel it";
            return Err(CatalogError::Conflict(why.to_owned()));
        }
        let job = jobs::enqueue(&mut tx, NewJob::read_text(video)).await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(Some(job))
    }
}

impl Catalog {
    /// Enqueues the reading of a new video's text, unless it was ever to be read: a repeated ingest enqueues nothing. Returns
    /// whether it did.
    pub async fn read_text_of_new(&self, video: Uuid) -> Result<bool, CatalogError> {
        let mut tx = self.database.begin().await?;
        let sql = "SELECT id FROM jobs WHERE video = $1 AND kind = 'read_text'";
        if !videos::lock(&mut tx, video).await? || tx.row(sql, values![video]).await?.is_some() {
            return Ok(false);
        }
        jobs::enqueue(&mut tx, NewJob::read_text(video)).await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Stores what was read on screen, in place of what machines read before, and finishes the job. A person's track in this
    /// language stays instead; the job's note then says so, as it does if there was nothing to read, or if the file is damaged.
    ///
    /// # Errors
    /// [`CatalogError::LeaseLost`] if the lease is lost or the job was cancelled; nothing has changed.
    pub async fn finish_reading(&self, lease: &Lease, read: &ReadText) -> Result<(), CatalogError> {
        cues::check_lines(read.cues.iter().map(|cue| &cue.line))?;
        let mut tx = self.database.begin().await?;
        let Some(found) = held(&mut tx, lease, JobName::ReadText).await? else { return Ok(()) };
        let video = found.video()?;
        let of_person = of_person(&mut tx, video, &read.track.language).await?;
        jobs::succeed(&mut tx, lease.job).await?;
        if let Some(note) = note(read, of_person.as_deref()) {
            jobs::note(&mut tx, lease.job, &note).await?;
        }
        if of_person.is_none() {
            cues::store_read(&mut tx, video, read).await?;
        }
        tx.commit().await
    }
}

/// What the job says beside its success. `of_person`: the provenance of the track that stays.
fn note(read: &ReadText, of_person: Option<&str>) -> Option<String> {
    let result = match of_person {
        Some(provenance) => Some(format!("a person's track ({provenance}) stays in place of what was read")),
        None => read.cues.is_empty().then(|| "no text is on screen".to_owned()),
    };
    let notes: Vec<String> = result.into_iter().chain(read.warnings.iter().cloned()).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The provenance of a person's track of text on screen in a language.
async fn of_person(tx: &mut Tx, video: Uuid, language: &str) -> Result<Option<String>, CatalogError> {
    let sql =
        "SELECT provenance FROM tracks WHERE video = $1 AND kind = 'ocr' AND language = $2 AND NOT machine";
    tx.row(sql, values![video, language]).await?.map(|row| row.get("provenance")).transpose()
}
