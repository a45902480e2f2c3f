//! Jobs: leased to one worker at a time until a deadline, so that a dead worker's job comes back.

use std::time::Duration;

use uuid::Uuid;

use super::database::{Database, Sql, Tx, values};
use super::rows::{self, job_columns, kind_name, state_name};
use super::types::*;
use super::{CatalogError, postgres, spans, videos};

/// Longest stored reason, in characters.
const MAX_REASON: usize = 4000;

/// Enqueues a job in the transaction of what it works on.
pub(super) async fn enqueue(tx: &mut Tx, kind: JobKind, video: Uuid, now: i64) -> Result<Job, CatalogError> {
    let id = Uuid::now_v7();
    let sql = "INSERT INTO jobs (id, kind, video, state, created_at_ms, updated_at_ms) \
               VALUES ($1, $2, $3, 'queued', $4, $4)";
    tx.execute(sql, values![id, kind_name(kind), video, now]).await?;
    let job = read(tx, id).await?;
    job.ok_or_else(|| CatalogError::Damaged(format!("job {id} was stored and is not there")))
}

pub(super) async fn resegment(
    database: &Database,
    video: Uuid,
    segmentation: &Segmentation,
) -> Result<Option<Job>, CatalogError> {
    let mut tx = database.begin().await?;
    if !videos::lock(&mut tx, video).await? {
        return Ok(None);
    }
    let state = videos::read(&mut tx, video).await?.map(|video| video.state);
    let sql = "SELECT id FROM jobs WHERE video = $1 AND kind = 'ingest' AND state IN ('queued', 'running')";
    let is_cut = tx.row(sql, values![video]).await?.is_some();
    if state != Some(VideoState::Ready) || is_cut {
        let text = "the video is not ready, or is being cut: wait until its jobs have ended";
        return Err(CatalogError::Conflict(text.to_owned()));
    }
    let now = tx.now_ms().await?;
    let job = enqueue(&mut tx, JobKind::Ingest, video, now).await?;
    let sql = "UPDATE jobs SET segmentation = $2 WHERE id = $1";
    tx.execute(sql, values![job.id, rows::to_json(segmentation)?]).await?;
    postgres::notify_jobs(&mut tx).await?;
    tx.commit().await?;
    Ok(Some(job))
}

/// How a job's video is to be cut, if otherwise than it is.
pub(super) async fn new_segmentation(tx: &mut Tx, job: Uuid) -> Result<Option<Segmentation>, CatalogError> {
    let row = tx.row("SELECT segmentation FROM jobs WHERE id = $1", values![job]).await?;
    let text: Option<String> = row.map(|row| row.get("segmentation")).transpose()?.flatten();
    text.as_deref().map(rows::json).transpose()
}

const BY_ID: &str = concat!("SELECT ", job_columns!(), " FROM jobs j WHERE j.id = $1");

/// One job, as this transaction sees it.
pub(super) async fn read(tx: &mut Tx, id: Uuid) -> Result<Option<Job>, CatalogError> {
    let row = tx.row(BY_ID, values![id]).await?;
    row.as_ref().map(rows::job).transpose()
}

pub(super) async fn get(database: &Database, id: Uuid) -> Result<Option<Job>, CatalogError> {
    let row = database.row(BY_ID, values![id]).await?;
    row.as_ref().map(rows::job).transpose()
}

pub(super) async fn list(
    database: &Database,
    only: &JobFilter,
    before: Option<Uuid>,
    limit: u32,
) -> Result<Vec<Job>, CatalogError> {
    let sql = concat!(
        "SELECT ",
        job_columns!(),
        " FROM jobs j WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.kind = $2) \
         AND ($3 IS NULL OR j.video = $3) AND j.id < $4 ORDER BY j.id DESC LIMIT $5"
    );
    let values = values![
        only.state.map(|state| state_name(state).to_owned()),
        only.kind.map(|kind| kind_name(kind).to_owned()),
        only.video,
        before.unwrap_or(Uuid::max()),
        limit,
    ];
    database.rows(sql, values).await?.iter().map(rows::job).collect()
}

/// The next job to lease: $1 token, $2 deadline, $3 worker, $4 now, $5 attempts at most. A `fill` waits for
/// its video's `ingest`, which makes the spans.
macro_rules! lease_next {
    ($skip_locked:literal) => {
        concat!(
            "UPDATE jobs SET state = 'running', attempts = attempts + 1, lease_token = $1, lease_until_ms = $2, \
             worker = $3, updated_at_ms = $4, stage = '', fraction = 0, frames_done = 0, frames_total = NULL, \
             eta_s = NULL WHERE id = (SELECT j.id FROM jobs j JOIN videos v ON v.id = j.video \
             WHERE j.state IN ('queued', 'running') AND (j.state = 'queued' OR j.lease_until_ms <= $4) \
             AND j.attempts < $5 AND (j.kind = 'ingest' OR v.state <> 'pending') \
             ORDER BY j.id LIMIT 1",
            $skip_locked,
            ") RETURNING id, video"
        )
    };
}

const LEASE_NEXT: (&str, &str) = (lease_next!(""), lease_next!(" FOR UPDATE OF j SKIP LOCKED"));

pub(super) async fn lease(
    database: &Database,
    worker: Uuid,
    lease: Duration,
) -> Result<Option<Leased>, CatalogError> {
    give_up(database).await?;
    let mut tx = database.begin().await?;
    let now = tx.now_ms().await?;
    let token = Uuid::now_v7();
    let (sqlite, postgres) = LEASE_NEXT;
    let values = values![token, deadline(now, lease), worker, now, MAX_ATTEMPTS];
    let Some(row) = tx.row(Sql::Each { sqlite, postgres }, values).await? else { return Ok(None) };
    let (id, video): (Uuid, Uuid) = (row.get("id")?, row.get("video")?);
    let gone = || CatalogError::Damaged(format!("job {id} has no video"));
    let job = read(&mut tx, id).await?.ok_or_else(gone)?;
    let given = spans::given(&mut tx, video).await?;
    let mut video = videos::read(&mut tx, video).await?.ok_or_else(gone)?;
    if let Some(segmentation) = new_segmentation(&mut tx, id).await? {
        video.segmentation = segmentation;
    }
    tx.commit().await?;
    Ok(Some(Leased { lease: Lease { job: id, token }, job, video, given }))
}

fn deadline(now: i64, lease: Duration) -> i64 {
    now.saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX))
}

const USED_UP: &str = "SELECT j.id FROM jobs j WHERE j.state IN ('queued', 'running') \
                       AND (j.state = 'queued' OR j.lease_until_ms <= $1) AND j.attempts >= $2 ORDER BY j.id";

/// Fails the jobs whose attempts are used up: their workers died each time.
async fn give_up(database: &Database) -> Result<(), CatalogError> {
    let now = database.now_ms().await?;
    for row in database.rows(USED_UP, values![now, MAX_ATTEMPTS]).await? {
        let id: Uuid = row.get("id")?;
        let mut tx = database.begin().await?;
        let Some(found) = lock(&mut tx, id).await? else { continue };
        let now = tx.now_ms().await?;
        if found.job.attempts < MAX_ATTEMPTS || !found.may_be_leased(now) {
            continue;
        }
        let last = found.job.reason.as_deref().map_or(String::new(), |reason| format!("; before: {reason}"));
        let reason = format!(
            "given up after {} attempts: the worker died or lost its lease{last}",
            found.job.attempts
        );
        end_as_failed(&mut tx, &found.job, &reason, now).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// A job whose row and whose video's row are locked, the video's first.
pub(super) struct Locked {
    pub(super) job: Job,
    token: Option<Uuid>,
    until_ms: Option<i64>,
}

impl Locked {
    /// Whether this start of the job may still write.
    pub(super) fn is_held_by(&self, lease: &Lease) -> bool {
        self.job.state == JobState::Running && self.token == Some(lease.token)
    }

    /// Whether this start of the job has finished it.
    pub(super) fn was_finished_by(&self, lease: &Lease) -> bool {
        self.job.state == JobState::Succeeded && self.token == Some(lease.token)
    }

    fn may_be_leased(&self, now: i64) -> bool {
        match self.job.state {
            JobState::Queued => true,
            JobState::Running => self.until_ms.is_none_or(|until| until <= now),
            _ => false,
        }
    }
}

/// Locks the job's video, then the job; `None` if it is gone.
pub(super) async fn lock(tx: &mut Tx, id: Uuid) -> Result<Option<Locked>, CatalogError> {
    let Some(row) = tx.row("SELECT video FROM jobs WHERE id = $1", values![id]).await? else {
        return Ok(None);
    };
    if !videos::lock(tx, row.get("video")?).await? {
        return Ok(None);
    }
    let sql = Sql::Each { sqlite: LOCK.0, postgres: LOCK.1 };
    let Some(row) = tx.row(sql, values![id]).await? else { return Ok(None) };
    Ok(Some(Locked {
        job: rows::job(&row)?,
        token: row.get("lease_token")?,
        until_ms: row.get("lease_until_ms")?,
    }))
}

macro_rules! lock_job {
    ($tail:literal) => {
        concat!(
            "SELECT ",
            job_columns!(),
            ", j.lease_token, j.lease_until_ms FROM jobs j WHERE j.id = $1",
            $tail
        )
    };
}

const LOCK: (&str, &str) = (lock_job!(""), lock_job!(" FOR UPDATE"));

pub(super) async fn heartbeat(
    database: &Database,
    lease: &Lease,
    extend: Duration,
    progress: &Progress,
) -> Result<Beat, CatalogError> {
    let mut tx = database.begin().await?;
    let now = tx.now_ms().await?;
    let sql = "UPDATE jobs SET lease_until_ms = $3, stage = $4, fraction = $5, frames_done = $6, \
               frames_total = $7, eta_s = $8, updated_at_ms = $9 \
               WHERE id = $1 AND lease_token = $2 AND state = 'running'";
    let values = values![
        lease.job,
        lease.token,
        deadline(now, extend),
        progress.stage.as_str(),
        progress.fraction,
        progress.frames_done,
        progress.frames_total,
        progress.eta_s,
        now,
    ];
    if tx.execute(sql, values).await? > 0 {
        tx.commit().await?;
        return Ok(Beat::Held);
    }
    let sql = "SELECT id FROM jobs WHERE id = $1 AND lease_token = $2 AND state = 'cancelled'";
    let cancelled = tx.row(sql, values![lease.job, lease.token]).await?.is_some();
    Ok(if cancelled { Beat::Cancelled } else { Beat::Lost })
}

pub(super) async fn release(database: &Database, lease: &Lease) -> Result<(), CatalogError> {
    let mut tx = database.begin().await?;
    let now = tx.now_ms().await?;
    let sql = "UPDATE jobs SET state = 'queued', attempts = attempts - 1, lease_token = NULL, \
               lease_until_ms = NULL, updated_at_ms = $3 \
               WHERE id = $1 AND lease_token = $2 AND state = 'running'";
    if tx.execute(sql, values![lease.job, lease.token, now]).await? == 0 {
        return Err(CatalogError::LeaseLost);
    }
    postgres::notify_jobs(&mut tx).await?;
    tx.commit().await
}

pub(super) async fn fail(
    database: &Database,
    lease: &Lease,
    reason: &str,
    retry: bool,
) -> Result<(), CatalogError> {
    let mut tx = database.begin().await?;
    let found = lock(&mut tx, lease.job).await?.filter(|found| found.is_held_by(lease));
    let Some(found) = found else { return Err(CatalogError::LeaseLost) };
    let now = tx.now_ms().await?;
    if retry && found.job.attempts < MAX_ATTEMPTS {
        let sql = "UPDATE jobs SET state = 'queued', reason = $2, lease_token = NULL, lease_until_ms = NULL, \
                   eta_s = NULL, updated_at_ms = $3 WHERE id = $1";
        tx.execute(sql, values![lease.job, storable(reason), now]).await?;
        postgres::notify_jobs(&mut tx).await?;
    } else {
        end_as_failed(&mut tx, &found.job, reason, now).await?;
    }
    tx.commit().await
}

async fn end_as_failed(tx: &mut Tx, job: &Job, reason: &str, now: i64) -> Result<(), CatalogError> {
    let sql = "UPDATE jobs SET state = 'failed', reason = $2, lease_token = NULL, lease_until_ms = NULL, \
               eta_s = NULL, updated_at_ms = $3 WHERE id = $1";
    tx.execute(sql, values![job.id, storable(reason), now]).await?;
    fail_pending_video(tx, job).await
}

/// A video that was searchable before stays so.
async fn fail_pending_video(tx: &mut Tx, job: &Job) -> Result<(), CatalogError> {
    if job.kind == JobKind::Ingest {
        let sql = "UPDATE videos SET state = 'failed' WHERE id = $1 AND state = 'pending'";
        tx.execute(sql, values![job.video]).await?;
    }
    Ok(())
}

/// Reasons hold other programs' messages: of any length, with any bytes.
fn storable(reason: &str) -> String {
    reason.chars().filter(|character| *character != '\0').take(MAX_REASON).collect()
}

/// Marks a job as done, keeping its token: so a repeated finish is known as such.
pub(super) async fn succeed(tx: &mut Tx, job: Uuid) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let sql = "UPDATE jobs SET state = 'succeeded', stage = 'done', fraction = 1, eta_s = NULL, reason = NULL, \
               lease_until_ms = NULL, updated_at_ms = $2 WHERE id = $1";
    tx.execute(sql, values![job, now]).await?;
    Ok(())
}

pub(super) async fn cancel(database: &Database, id: Uuid) -> Result<Option<Job>, CatalogError> {
    let mut tx = database.begin().await?;
    let Some(found) = lock(&mut tx, id).await? else { return Ok(None) };
    if !matches!(found.job.state, JobState::Queued | JobState::Running) {
        let text = format!("the job has ended: {}", state_name(found.job.state));
        return Err(CatalogError::Conflict(text));
    }
    let now = tx.now_ms().await?;
    // The token stays: its holder's next heartbeat learns why it must stop.
    let sql = "UPDATE jobs SET state = 'cancelled', reason = 'cancelled by a user', lease_until_ms = NULL, \
               eta_s = NULL, updated_at_ms = $2 WHERE id = $1";
    tx.execute(sql, values![id, now]).await?;
    fail_pending_video(&mut tx, &found.job).await?;
    let job = read(&mut tx, id).await?;
    tx.commit().await?;
    Ok(job)
}

pub(super) async fn retry(database: &Database, id: Uuid) -> Result<Option<Job>, CatalogError> {
    let mut tx = database.begin().await?;
    let Some(found) = lock(&mut tx, id).await? else { return Ok(None) };
    if !matches!(found.job.state, JobState::Failed | JobState::Cancelled) {
        let text = format!(
            "only failed and cancelled jobs can be retried, this one is {}",
            state_name(found.job.state)
        );
        return Err(CatalogError::Conflict(text));
    }
    let now = tx.now_ms().await?;
    let sql = "UPDATE jobs SET state = 'queued', attempts = 0, reason = NULL, lease_token = NULL, \
               lease_until_ms = NULL, stage = '', fraction = 0, frames_done = 0, frames_total = NULL, \
               eta_s = NULL, updated_at_ms = $2 WHERE id = $1";
    tx.execute(sql, values![id, now]).await?;
    if found.job.kind == JobKind::Ingest {
        let sql = "UPDATE videos SET state = 'pending' WHERE id = $1 AND state = 'failed'";
        tx.execute(sql, values![found.job.video]).await?;
    }
    let job = read(&mut tx, id).await?;
    postgres::notify_jobs(&mut tx).await?;
    tx.commit().await?;
    Ok(job)
}

/// Whether a lease might succeed now.
pub(super) async fn is_one_waiting(database: &Database) -> Result<bool, CatalogError> {
    let sql = "SELECT j.id FROM jobs j JOIN videos v ON v.id = j.video WHERE j.state IN ('queued', 'running') \
               AND (j.state = 'queued' OR j.lease_until_ms <= $1) \
               AND (j.kind = 'ingest' OR v.state <> 'pending') LIMIT 1";
    let now = database.now_ms().await?;
    Ok(database.row(sql, values![now]).await?.is_some())
}
