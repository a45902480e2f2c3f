//! Rows of `jobs`: reading, enqueueing, locking, finishing.

use reprise_encoders::Cause;
use serde_json::{Value, json};
use uuid::Uuid;

use super::stored::{level_name, named, parse_json, to_json};
use super::{evaluations, exports, videos};
use crate::catalog::database::{Row, Sql, Tx, values};
use crate::catalog::error::CatalogError;
use crate::catalog::types::*;
use crate::terms::Collection;

/// The columns that [`from_row`] reads, of `jobs j`.
macro_rules! job_columns {
    () => {
        "j.id, j.kind, j.video, j.params, j.state, j.stage, j.fraction, j.frames_done, j.frames_total, j.eta_s, \
         j.attempts, j.attempts_most, j.not_before_ms, j.reason, j.note, j.created_at_ms, j.updated_at_ms, \
         (SELECT r.file_name FROM refusals r WHERE r.id = j.id) AS refused_name, \
         (SELECT r.bytes FROM refusals r WHERE r.id = j.id) AS refused_bytes"
    };
}

macro_rules! lock_job {
    ($tail:literal) => {
        concat!(
            "SELECT ",
            job_columns!(),
            ", j.lease_token, j.lease_until_ms, j.deaths, j.progressed FROM jobs j WHERE j.id = $1",
            $tail
        )
    };
}

pub(in crate::catalog) use job_columns;

const BY_ID: &str = concat!("SELECT ", job_columns!(), " FROM jobs j WHERE j.id = $1");
const LOCK: Sql = Sql::Each { sqlite: lock_job!(""), postgres: lock_job!(" FOR UPDATE") };

/// A job to enqueue.
pub(in crate::catalog) struct NewJob {
    pub(in crate::catalog) kind: JobName,
    pub(in crate::catalog) video: Option<Uuid>,
    pub(in crate::catalog) params: Option<Value>,
    /// Whether the job waits while its video is pending.
    pub(in crate::catalog) needs_ready: bool,
}

impl NewJob {
    /// A job that makes the spans of a video, with a new `segmentation` if given.
    pub(in crate::catalog) fn ingest(video: Uuid, segmentation: Option<&Segmentation>) -> NewJob {
        let params = segmentation.map(|segmentation| json!({ SEGMENTATION: segmentation }));
        NewJob { kind: JobName::Ingest, video: Some(video), params, needs_ready: false }
    }

    /// A job that adds missing vectors of a video. It waits for the ingest, which makes the spans.
    pub(in crate::catalog) fn fill(video: Uuid) -> NewJob {
        NewJob { kind: JobName::Fill, video: Some(video), params: None, needs_ready: true }
    }

    /// The job of a file that is refused, to be stored as failed.
    pub(in crate::catalog) fn refused() -> NewJob {
        NewJob { kind: JobName::Ingest, video: None, params: None, needs_ready: false }
    }

    /// A job that writes down the speech of a video. It waits for the ingest: the video is searchable by its pictures first.
    pub(in crate::catalog) fn transcribe(video: Uuid, language: Option<&str>) -> NewJob {
        let params = language.map(|language| json!({ LANGUAGE: language }));
        NewJob { kind: JobName::Transcribe, video: Some(video), params, needs_ready: true }
    }

    /// A job that reads the text on screen in a video. It waits for the ingest.
    pub(in crate::catalog) fn read_text(video: Uuid) -> NewJob {
        NewJob { kind: JobName::ReadText, video: Some(video), params: None, needs_ready: true }
    }

    /// A job that makes an export. The export's row has its request.
    pub(in crate::catalog) fn export() -> NewJob {
        NewJob { kind: JobName::Export, video: None, params: None, needs_ready: false }
    }

    /// A job that asks the queries of an evaluation. The evaluation's row has its settings.
    pub(in crate::catalog) fn evaluation() -> NewJob {
        NewJob { kind: JobName::Evaluation, video: None, params: None, needs_ready: false }
    }

    /// A job that makes a map.
    pub(in crate::catalog) fn map(of: Collection) -> NewJob {
        let params = json!({ "space": of.space, "level": level_name(of.level) });
        NewJob { kind: JobName::Map, video: None, params: Some(params), needs_ready: false }
    }
}

/// Key of the new segmentation in an ingest's params; absent if the segmentation stays.
const SEGMENTATION: &str = "segmentation";

/// Key of the language in a transcription's params; absent if it is to be detected.
pub(in crate::catalog) const LANGUAGE: &str = "language";

/// The new segmentation that a job requests; `None` if the segmentation stays.
pub(in crate::catalog) fn new_segmentation(job: &Job) -> Result<Option<Segmentation>, CatalogError> {
    let stored = job.params.as_ref().and_then(|params| params.get(SEGMENTATION));
    let parse = |stored: &Value| serde_json::from_value(stored.clone());
    stored
        .map(parse)
        .transpose()
        .map_err(|error| CatalogError::Damaged(Cause::in_context(format!("job {}", job.id), error)))
}

/// Enqueues a job in the transaction that changes its video.
pub(in crate::catalog) async fn enqueue(tx: &mut Tx, new: NewJob) -> Result<Job, CatalogError> {
    let id = Uuid::now_v7();
    let now = tx.now_ms().await?;
    let params = new.params.as_ref().map(to_json).transpose()?;
    let sql = "INSERT INTO jobs (id, kind, video, params, needs_ready, attempts_most, state, created_at_ms, \
               updated_at_ms) VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, $7)";
    tx.execute(sql, values![id, new.kind.name(), new.video, params, new.needs_ready, MAX_ATTEMPTS, now])
        .await?;
    let job = read(tx, id).await?;
    job.ok_or_else(|| CatalogError::Damaged(format!("job {id} was stored and is not there").into()))
}

/// One job as this transaction reads it.
pub(in crate::catalog) async fn read(tx: &mut Tx, id: Uuid) -> Result<Option<Job>, CatalogError> {
    let row = tx.row(BY_ID, values![id]).await?;
    row.as_ref().map(from_row).transpose()
}

/// A job whose row is locked, after its video's row.
pub(in crate::catalog) struct Locked {
    pub(in crate::catalog) job: Job,
    /// Number of starts in a row whose process died without new progress, without this one.
    pub(in crate::catalog) deaths: i64,
    /// Whether this start has made progress.
    pub(in crate::catalog) progressed: bool,
    token: Option<Uuid>,
    until_ms: Option<i64>,
}

impl Locked {
    /// Whether this lease may still write for the job.
    pub(in crate::catalog) fn is_held_by(&self, lease: &Lease) -> bool {
        self.job.state == JobState::Running && self.token == Some(lease.token)
    }

    /// Whether this lease has finished the job.
    pub(in crate::catalog) fn was_finished_by(&self, lease: &Lease) -> bool {
        self.job.state == JobState::Succeeded && self.token == Some(lease.token)
    }

    /// Whether the lease has run out: the process died, or sent no heartbeat for too long.
    pub(in crate::catalog) fn has_died(&self, now: i64) -> bool {
        self.job.state == JobState::Running && self.until_ms.is_none_or(|until| until <= now)
    }

    /// The video of the job.
    pub(in crate::catalog) fn video(&self) -> Result<Uuid, CatalogError> {
        self.job
            .video
            .ok_or_else(|| CatalogError::Damaged(format!("job {} has no video", self.job.id).into()))
    }
}

/// Locks the job's video, then the job; `None` if the job is gone, or the caller may not see it.
pub(in crate::catalog) async fn lock(tx: &mut Tx, id: Uuid) -> Result<Option<Locked>, CatalogError> {
    let Some(row) = tx.row("SELECT video FROM jobs WHERE id = $1", values![id]).await? else {
        return Ok(None);
    };
    let is_seen = match row.get("video")? {
        Some(video) => videos::lock(tx, video).await?,
        None => {
            !tx.visibility().is_limited() || exports::sees(tx, id).await? || evaluations::owns(tx, id).await?
        }
    };
    if !is_seen {
        return Ok(None);
    }
    let Some(row) = tx.row(LOCK, values![id]).await? else { return Ok(None) };
    Ok(Some(Locked {
        job: from_row(&row)?,
        deaths: row.get("deaths")?,
        progressed: row.get("progressed")?,
        token: row.get("lease_token")?,
        until_ms: row.get("lease_until_ms")?,
    }))
}

/// Marks a queued or running job as cancelled. The token stays, so that the worker's next heartbeat reports it.
pub(in crate::catalog) async fn cancel(tx: &mut Tx, job: Uuid) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let sql = "UPDATE jobs SET state = 'cancelled', reason = 'cancelled by a user', lease_until_ms = NULL, \
               not_before_ms = NULL, eta_s = NULL, updated_at_ms = $2 WHERE id = $1";
    tx.execute(sql, values![job, now]).await?;
    Ok(())
}

/// Takes the running jobs of a video from their workers, who are told at the next heartbeat, and queues them. That counts
/// neither an attempt nor a death.
pub(in crate::catalog) async fn put_back(tx: &mut Tx, video: Uuid) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let sql = "UPDATE jobs SET state = 'queued', attempts = attempts - 1, \
               deaths = CASE WHEN progressed THEN 0 ELSE deaths END, lease_token = NULL, lease_until_ms = NULL, \
               stage = '', fraction = 0, frames_done = 0, frames_total = NULL, eta_s = NULL, updated_at_ms = $2 \
               WHERE video = $1 AND state = 'running'";
    tx.execute(sql, values![video, now]).await?;
    Ok(())
}

/// Marks a job as succeeded. The token stays, so that a repeated finish is recognised.
pub(in crate::catalog) async fn succeed(tx: &mut Tx, job: Uuid) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let sql = "UPDATE jobs SET state = 'succeeded', stage = 'done', fraction = 1, eta_s = NULL, reason = NULL, \
               lease_until_ms = NULL, updated_at_ms = $2 WHERE id = $1";
    tx.execute(sql, values![job, now]).await?;
    Ok(())
}

/// Stores what a job found, where that needs words.
pub(in crate::catalog) async fn note(tx: &mut Tx, job: Uuid, note: &str) -> Result<(), CatalogError> {
    tx.execute("UPDATE jobs SET note = $2 WHERE id = $1", values![job, note]).await?;
    Ok(())
}

pub(in crate::catalog) fn from_row(row: &Row) -> Result<Job, CatalogError> {
    let state = named(&row.get::<String>("state")?, &JobState::ALL.map(|state| (state, state.name())))?;
    let retry_at_ms: Option<i64> = row.get("not_before_ms")?;
    Ok(Job {
        id: row.get("id")?,
        kind: named(&row.get::<String>("kind")?, &JobName::ALL.map(|kind| (kind, kind.name())))?,
        video: row.get("video")?,
        params: row.get::<Option<String>>("params")?.as_deref().map(parse_json).transpose()?,
        state,
        progress: Progress {
            stage: row.get("stage")?,
            fraction: row.get("fraction")?,
            frames_done: row.get("frames_done")?,
            frames_total: row.get("frames_total")?,
            eta_s: row.get("eta_s")?,
        },
        attempts: row.get("attempts")?,
        attempts_most: row.get("attempts_most")?,
        retry_at_ms: retry_at_ms.filter(|_| state == JobState::Queued),
        reason: row.get("reason")?,
        note: row.get("note")?,
        refused: refused(row)?,
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}

fn refused(row: &Row) -> Result<Option<RefusedFile>, CatalogError> {
    let Some(file_name) = row.get("refused_name")? else { return Ok(None) };
    Ok(Some(RefusedFile { file_name, bytes: row.get("refused_bytes")? }))
}

/// Fails the pending video of an ingest that ended without success; returns whether there was one. A searchable video stays
/// searchable.
pub(in crate::catalog) async fn fail_pending_video(tx: &mut Tx, job: &Job) -> Result<bool, CatalogError> {
    if job.kind != JobName::Ingest {
        return Ok(false);
    }
    let sql = "UPDATE videos SET state = 'failed' WHERE id = $1 AND state = 'pending'";
    Ok(tx.execute(sql, values![job.video]).await? > 0)
}
