//! Transcriptions: requests, finished windows, results.

use uuid::Uuid;

use super::cues;
use super::database::{Tx, values};
use super::error::CatalogError;
use super::results::held;
use super::store::Catalog;
use super::tables::jobs::{self, NewJob};
use super::tables::stored::{parse_json, to_json};
use super::tables::{tracks, videos};
use super::types::*;
use super::view::View;
use super::wake::News;

impl View<'_> {
    /// Enqueues the transcription of a video. `None` if there is no such video.
    ///
    /// # Errors
    /// [`CatalogError::Conflict`] if the video's ingest has failed, or it is being transcribed; [`CatalogError::ConflictOf`] if a
    /// person's subtitles are in the way, or a machine's track is and is not to be replaced.
    pub async fn transcribe(
        &self,
        video: Uuid,
        asked: &NewTranscription,
    ) -> Result<Option<Job>, CatalogError> {
        let mut tx = self.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(None);
        }
        let state = videos::read(&mut tx, video).await?.map(|video| video.state);
        if state == Some(VideoState::Failed) {
            return Err(conflict("the video's ingest has failed: retry its job first"));
        }
        let sql =
            "SELECT id FROM jobs WHERE video = $1 AND kind = 'transcribe' AND state IN ('queued', 'running')";
        if tx.row(sql, values![video]).await?.is_some() {
            return Err(conflict(
                "the video is being transcribed: wait until the job has ended, or cancel it",
            ));
        }
        check_free(&mut tx, video, asked).await?;
        let job = jobs::enqueue(&mut tx, NewJob::transcribe(video, asked.language.as_deref())).await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(Some(job))
    }
}

impl Catalog {
    /// Enqueues the transcription of a newly ingested video, in a language that is detected. Not if a person's subtitles say
    /// what is spoken, or the video was ever to be transcribed: a repeated ingest enqueues nothing. Returns whether it did.
    pub async fn transcribe_new(&self, video: Uuid) -> Result<bool, CatalogError> {
        let mut tx = self.database.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(false);
        }
        let sql = "SELECT id FROM jobs WHERE video = $1 AND kind = 'transcribe'";
        let was_asked = tx.row(sql, values![video]).await?.is_some();
        if was_asked || !speech(&mut tx, video).await?.is_empty() {
            return Ok(false);
        }
        jobs::enqueue(&mut tx, NewJob::transcribe(video, None)).await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// The windows that a job has finished with a model, in order.
    pub async fn transcript_windows(
        &self,
        job: Uuid,
        model: &str,
    ) -> Result<Vec<TranscriptWindow>, CatalogError> {
        let sql = "SELECT content FROM transcript_windows WHERE job = $1 AND model = $2 ORDER BY place";
        let rows = self.database.rows(sql, values![job, model]).await?;
        rows.iter().map(|row| parse_json(&row.get::<String>("content")?)).collect()
    }

    /// Stores a finished window of a running job. The first window of another model deletes those of the one before.
    ///
    /// # Errors
    /// [`CatalogError::LeaseLost`] if the lease is lost or the job was cancelled.
    pub async fn keep_transcript_window(
        &self,
        lease: &Lease,
        of: WindowsOf<'_>,
        window: &TranscriptWindow,
    ) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        if held(&mut tx, lease, JobName::Transcribe).await?.is_none() {
            return Err(CatalogError::LeaseLost);
        }
        let sql = "DELETE FROM transcript_windows WHERE job = $1 AND (model <> $2 OR place >= $3)";
        let place = i64::try_from(of.place).unwrap_or(i64::MAX);
        tx.execute(sql, values![lease.job, of.model, place]).await?;
        let sql = "INSERT INTO transcript_windows (job, place, model, content) VALUES ($1, $2, $3, $4)";
        tx.execute(sql, values![lease.job, place, of.model, to_json(window)?]).await?;
        tx.commit().await
    }

    /// Stores what a transcription has heard, in place of what machines heard before, and finishes its job. A person's
    /// subtitles in this language stay instead; the job's note then says so.
    ///
    /// # Errors
    /// [`CatalogError::LeaseLost`] if the lease is lost or the job was cancelled; nothing has changed.
    pub async fn finish_transcription(&self, lease: &Lease, heard: &Transcript) -> Result<(), CatalogError> {
        heard.subtitles.iter().try_for_each(cues::check)?;
        let mut tx = self.database.begin().await?;
        let Some(found) = held(&mut tx, lease, JobName::Transcribe).await? else { return Ok(()) };
        let video = found.video()?;
        let mut note = heard.note.clone();
        let mut stored = heard.subtitles.as_ref();
        if let Some(subtitles) = stored
            && let Some(of_person) = in_the_way(&mut tx, video, &subtitles.track.language).await?
        {
            note = Some(of_person);
            stored = None;
        }
        jobs::succeed(&mut tx, lease.job).await?;
        if let Some(note) = note {
            jobs::note(&mut tx, lease.job, &note).await?;
        }
        // Those of failed and cancelled jobs were kept for a retry.
        let sql = "DELETE FROM transcript_windows WHERE job IN (SELECT id FROM jobs WHERE video = $1 \
                   AND kind = 'transcribe' AND state NOT IN ('queued', 'running'))";
        tx.execute(sql, values![video]).await?;
        if let Some(subtitles) = stored {
            cues::store_heard(&mut tx, video, subtitles).await?;
        }
        tx.commit().await
    }
}

fn conflict(text: impl Into<String>) -> CatalogError {
    CatalogError::Conflict(text.into())
}

/// The tracks of speech of a video.
async fn speech(tx: &mut Tx, video: Uuid) -> Result<Vec<Track>, CatalogError> {
    let sql = "SELECT t.kind, t.language, t.provenance, t.machine FROM tracks t \
               WHERE t.video = $1 AND t.kind = 'speech' ORDER BY t.language";
    tx.rows(sql, values![video]).await?.iter().map(tracks::from_row).collect()
}

/// Refuses a transcription whose track could not be stored.
async fn check_free(tx: &mut Tx, video: Uuid, asked: &NewTranscription) -> Result<(), CatalogError> {
    if let Some(language) = &asked.language
        && let Some(why) = in_the_way(tx, video, language).await?
    {
        let reason = format!("{why}; delete them to have speech transcribed in their place");
        return Err(CatalogError::ConflictOf { field: "language", reason });
    }
    let of_machine = speech(tx, video).await?.into_iter().find(|track| track.is_machine);
    match of_machine.filter(|_| !asked.replace) {
        Some(Track { language, provenance, .. }) => {
            let reason = format!(
                "the video has a transcript in `{language}` by {provenance}: send \"replace\": true to make it again"
            );
            Err(CatalogError::ConflictOf { field: "replace", reason })
        }
        None => Ok(()),
    }
}

/// Says which of a person's subtitles make a machine's in `language` needless.
async fn in_the_way(tx: &mut Tx, video: Uuid, language: &str) -> Result<Option<String>, CatalogError> {
    let all = speech(tx, video).await?;
    let of_person = all.into_iter().find(|track| !track.is_machine && outranks(&track.language, language));
    Ok(of_person.map(|Track { language: theirs, provenance, .. }| {
        format!(
            "a person's subtitles in `{theirs}` ({provenance}) stay in place of a transcript in `{language}`"
        )
    }))
}
