//! Jobs for users: requesting, reading, cancelling, retrying.

use uuid::Uuid;

use super::database::{Sql, Tx, Value, values};
use super::error::CatalogError;
use super::events;
use super::tables::exports::is_seen;
use super::tables::jobs::{self, NewJob};
use super::tables::videos;
use super::types::*;
use super::view::View;
use super::wake::News;

impl View<'_> {
    /// Enqueues a job that cuts a ready video again; the stored segmentation changes when the job succeeds. `None` if
    /// there is no such video, `Err(Conflict)` if it is not ready or already being cut.
    pub async fn resegment(
        &self,
        video: Uuid,
        segmentation: &Segmentation,
    ) -> Result<Option<Job>, CatalogError> {
        let mut tx = self.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(None);
        }
        let state = videos::read(&mut tx, video).await?.map(|video| video.state);
        let sql =
            "SELECT id FROM jobs WHERE video = $1 AND kind = 'ingest' AND state IN ('queued', 'running')";
        let is_cut = tx.row(sql, values![video]).await?.is_some();
        if state != Some(VideoState::Ready) || is_cut {
            let text = "the video is not ready, or is being cut: wait until its jobs have ended";
            return Err(CatalogError::Conflict(text.to_owned()));
        }
        let job = jobs::enqueue(&mut tx, NewJob::ingest(video, Some(segmentation))).await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(Some(job))
    }

    /// Cancels a queued or running job; `Err(Conflict)` if it has ended.
    pub async fn cancel_job(&self, id: Uuid) -> Result<Option<Job>, CatalogError> {
        if self.is_refusal(id).await? {
            return Err(CatalogError::Conflict("the job has ended: failed".to_owned()));
        }
        let mut tx = self.begin().await?;
        let Some(found) = jobs::lock(&mut tx, id).await? else { return Ok(None) };
        if !matches!(found.job.state, JobState::Queued | JobState::Running) {
            return Err(CatalogError::Conflict(format!("the job has ended: {}", found.job.state.name())));
        }
        jobs::cancel(&mut tx, id).await?;
        if jobs::fail_pending_video(&mut tx, &found.job).await? {
            events::video_failed(&mut tx, &found.job, "cancelled by a user").await?;
        }
        let job = jobs::read(&mut tx, id).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Queues a failed or cancelled job with fresh attempts. A job that waits for its next attempt becomes due at once.
    /// `Err(Conflict)` otherwise.
    pub async fn retry_job(&self, id: Uuid) -> Result<Option<Job>, CatalogError> {
        if self.is_refusal(id).await? {
            let text = "the job can't be retried: its file was refused and is not kept; upload it again";
            return Err(CatalogError::Conflict(text.to_owned()));
        }
        let mut tx = self.begin().await?;
        let Some(found) = jobs::lock(&mut tx, id).await? else { return Ok(None) };
        match found.job.state {
            JobState::Failed | JobState::Cancelled if is_outdone(&mut tx, &found.job).await? => {
                let text = "the job can't be retried: a later one of its kind has done or does its work";
                return Err(CatalogError::Conflict(text.to_owned()));
            }
            JobState::Failed | JobState::Cancelled => start_over(&mut tx, &found.job).await?,
            JobState::Queued if found.job.retry_at_ms.is_some() => {
                let now = tx.now_ms().await?;
                let sql = "UPDATE jobs SET not_before_ms = NULL, updated_at_ms = $2 WHERE id = $1";
                tx.execute(sql, values![id, now]).await?;
            }
            state => {
                let text =
                    format!("only failed and cancelled jobs can be retried, this one is {}", state.name());
                return Err(CatalogError::Conflict(text));
            }
        }
        let job = jobs::read(&mut tx, id).await?;
        tx.announce(News::Jobs).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// One job.
    pub async fn job(&self, id: Uuid) -> Result<Option<Job>, CatalogError> {
        let mut values = values![id];
        let sql = self.seen("WHERE j.id = $1", &mut values);
        let row = self.row(Sql::Built(sql), values).await?;
        row.as_ref().map(jobs::from_row).transpose()
    }

    /// Jobs in order of id, newest first, before `before`.
    pub async fn jobs(
        &self,
        only: &JobFilter,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Job>, CatalogError> {
        let listed = "WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.kind = $2) \
                      AND ($3 IS NULL OR j.video = $3) AND j.id < $4";
        let mut values = values![
            only.state.map(|state| state.name().to_owned()),
            only.kind.map(|kind| kind.name().to_owned()),
            only.video,
            before.unwrap_or(Uuid::max()),
            limit,
        ];
        let mut sql = self.seen(listed, &mut values);
        sql.push_str(" ORDER BY j.id DESC LIMIT $5");
        self.rows(Sql::Built(sql), values).await?.iter().map(jobs::from_row).collect()
    }

    /// A select over the jobs that the caller sees: those of its videos, its exports, its refused files and its evaluations.
    /// Adds its values to those of the condition.
    fn seen(&self, condition: &str, values: &mut Vec<Value>) -> String {
        let (exports, refusals) = (is_seen(self.visibility()), self.sees_refusal(values));
        let evaluations = self.sees_evaluation_job(values);
        // A map has everybody's spans.
        let maps = if self.visibility().is_limited() { "FALSE" } else { "TRUE" };
        format!(
            "SELECT {} FROM jobs j {condition} \
             AND (EXISTS (SELECT 1 FROM visible_videos v WHERE v.id = j.video) OR (j.video IS NULL AND \
             (EXISTS (SELECT 1 FROM exports e WHERE e.id = j.id AND {exports}) OR \
             EXISTS (SELECT 1 FROM refusals r WHERE r.id = j.id AND {refusals}) OR \
             EXISTS (SELECT 1 FROM evaluations u WHERE u.id = j.id AND {evaluations}) OR (j.kind = 'map' AND {maps}))))",
            jobs::job_columns!(),
        )
    }
}

/// Whether a later job writes, or has written, the track that this one would write.
async fn is_outdone(tx: &mut Tx, job: &Job) -> Result<bool, CatalogError> {
    if !matches!(job.kind, JobName::Transcribe | JobName::ReadText) {
        return Ok(false);
    }
    let sql = "SELECT id FROM jobs WHERE video = $1 AND kind = $2 AND id > $3 \
               AND state IN ('queued', 'running', 'succeeded') LIMIT 1";
    Ok(tx.row(sql, values![job.video, job.kind.name(), job.id]).await?.is_some())
}

async fn start_over(tx: &mut Tx, job: &Job) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let sql = "UPDATE jobs SET state = 'queued', attempts = 0, deaths = 0, not_before_ms = NULL, reason = NULL, \
               lease_token = NULL, lease_until_ms = NULL, stage = '', fraction = 0, frames_done = 0, \
               frames_total = NULL, eta_s = NULL, updated_at_ms = $2 WHERE id = $1";
    tx.execute(sql, values![job.id, now]).await?;
    if job.kind == JobName::Ingest {
        let sql = "UPDATE videos SET state = 'pending' WHERE id = $1 AND state = 'failed'";
        tx.execute(sql, values![job.video]).await?;
    }
    Ok(())
}
