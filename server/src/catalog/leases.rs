//! Leases: a job belongs to one worker until a deadline. After a worker's death the job becomes due again.

use std::time::Duration;

use uuid::Uuid;

use super::database::{Sql, Tx, Value, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::tables::jobs::{self, Locked};
use super::tables::{spans, videos};
use super::types::*;
use super::wake::News;

/// Longest stored reason, in characters.
const MAX_REASON: usize = 4000;

/// Jobs that a worker may take: $1 now, $2 the kinds that it runs. Jobs of deleted videos wait for a restore.
///
/// A row changed over five minutes after now was changed before the clock was set back: its deadline is as far off. A
/// worker that lives changes the row at its next heartbeat.
macro_rules! due {
    ($kinds:literal) => {
        concat!(
            "((j.state = 'queued' AND (j.not_before_ms IS NULL OR j.not_before_ms <= $1 OR j.updated_at_ms > $1 + 300000)) \
             OR (j.state = 'running' AND (j.lease_until_ms <= $1 OR j.updated_at_ms > $1 + 300000))) AND j.kind ",
            $kinds,
            " AND NOT (j.needs_ready AND EXISTS \
             (SELECT 1 FROM videos v WHERE v.id = j.video AND v.state = 'pending')) AND NOT EXISTS \
             (SELECT 1 FROM videos d WHERE d.id = j.video AND d.deleted_at_ms IS NOT NULL)"
        )
    };
}

/// Jobs to give up: their last lease has run out. $1 now, $2 most deaths.
///
/// The death of a process after new progress costs neither an attempt nor a death.
const HOPELESS: &str = "SELECT j.id FROM jobs j WHERE j.state = 'running' AND j.lease_until_ms <= $1 \
                        AND NOT j.progressed AND (j.deaths + 1 >= $2 OR j.attempts >= j.attempts_most) \
                        ORDER BY j.id";

/// Leases the oldest job that is due: $3 token, $4 deadline, $5 worker.
macro_rules! lease_next {
    ($kinds:literal, $skip_locked:literal) => {
        concat!(
            "UPDATE jobs SET state = 'running', \
             attempts = CASE WHEN state = 'running' AND progressed THEN 1 ELSE attempts + 1 END, \
             deaths = CASE WHEN state <> 'running' THEN deaths WHEN progressed THEN 0 ELSE deaths + 1 END, \
             progressed = FALSE, not_before_ms = NULL, lease_token = $3, lease_until_ms = $4, worker = $5, \
             updated_at_ms = $1, stage = '', fraction = 0, frames_done = 0, frames_total = NULL, eta_s = NULL \
             WHERE id = (SELECT j.id FROM jobs j WHERE ",
            due!($kinds),
            " ORDER BY j.id LIMIT 1",
            $skip_locked,
            ") RETURNING id"
        )
    };
}

macro_rules! is_due {
    ($kinds:literal) => {
        concat!("SELECT j.id FROM jobs j WHERE ", due!($kinds), " LIMIT 1")
    };
}

const LEASE_NEXT: Sql = Sql::Each {
    sqlite: lease_next!("IN (SELECT value FROM json_each($2))", ""),
    postgres: lease_next!("= ANY($2)", " FOR UPDATE OF j SKIP LOCKED"),
};
const IS_DUE: Sql =
    Sql::Each { sqlite: is_due!("IN (SELECT value FROM json_each($2))"), postgres: is_due!("= ANY($2)") };

impl Catalog {
    /// Takes the oldest due job of these kinds, including one whose lease has run out; counts an attempt.
    ///
    /// A lease that has run out means that the process died. A job with too many deaths is failed for that reason, and
    /// the next job is tried.
    pub async fn lease_job(
        &self,
        worker: Uuid,
        kinds: &[JobName],
        lease: Duration,
    ) -> Result<Option<Leased>, CatalogError> {
        self.give_up().await?;
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let token = Uuid::now_v7();
        let values = values![now, names(kinds), token, deadline(now, lease), worker];
        let Some(row) = tx.row(LEASE_NEXT, values).await? else { return Ok(None) };
        let id: Uuid = row.get("id")?;
        let gone = || CatalogError::Damaged(format!("job {id} is not there").into());
        let job = jobs::read(&mut tx, id).await?.ok_or_else(gone)?;
        let (mut video, mut given) = (None, Vec::new());
        if let Some(of_job) = job.video {
            given = spans::given(&mut tx, of_job).await?;
            // It may have been deleted since the job was chosen: the job then stays in the queue.
            let Some(mut stored) = videos::read(&mut tx, of_job).await? else { return Ok(None) };
            if let Some(segmentation) = jobs::new_segmentation(&job)? {
                stored.segmentation = segmentation;
            }
            video = Some(stored);
        }
        tx.commit().await?;
        Ok(Some(Leased { lease: Lease { job: id, token }, job, video, given }))
    }

    /// Renews the lease and stores the progress.
    pub async fn heartbeat(
        &self,
        lease: &Lease,
        extend: Duration,
        beat: &Heartbeat,
    ) -> Result<LeaseStatus, CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "UPDATE jobs SET lease_until_ms = $3, stage = $4, fraction = $5, frames_done = $6, \
                   frames_total = $7, eta_s = $8, updated_at_ms = $9, progressed = $10 \
                   WHERE id = $1 AND lease_token = $2 AND state = 'running'";
        let progress = &beat.progress;
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
            beat.has_kept,
        ];
        if tx.execute(sql, values).await? > 0 {
            tx.commit().await?;
            return Ok(LeaseStatus::Held);
        }
        let sql = "SELECT id FROM jobs WHERE id = $1 AND lease_token = $2 AND state = 'cancelled'";
        let cancelled = tx.row(sql, values![lease.job, lease.token]).await?.is_some();
        Ok(if cancelled { LeaseStatus::Cancelled } else { LeaseStatus::Lost })
    }

    /// Returns a job to the queue; counts neither an attempt nor a death.
    pub async fn release_job(&self, lease: &Lease) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "UPDATE jobs SET state = 'queued', attempts = attempts - 1, \
                   deaths = CASE WHEN progressed THEN 0 ELSE deaths END, lease_token = NULL, \
                   lease_until_ms = NULL, updated_at_ms = $3 \
                   WHERE id = $1 AND lease_token = $2 AND state = 'running'";
        if tx.execute(sql, values![lease.job, lease.token, now]).await? == 0 {
            return Err(CatalogError::LeaseLost);
        }
        tx.announce(News::Jobs).await?;
        tx.commit().await
    }

    /// Queues a job again after a wait if attempts are left. Otherwise the job fails, and the pending video of an
    /// `ingest` fails with it.
    pub async fn fail_job(&self, lease: &Lease, reason: &str, next: NextAttempt) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let found = jobs::lock(&mut tx, lease.job).await?.filter(|found| found.is_held_by(lease));
        let Some(found) = found else { return Err(CatalogError::LeaseLost) };
        match next {
            NextAttempt::After(wait) if found.job.attempts < found.job.attempts_most => {
                let now = tx.now_ms().await?;
                let sql = "UPDATE jobs SET state = 'queued', reason = $2, not_before_ms = $3, deaths = 0, \
                           lease_token = NULL, lease_until_ms = NULL, eta_s = NULL, updated_at_ms = $4 \
                           WHERE id = $1";
                tx.execute(sql, values![lease.job, storable(reason), deadline(now, wait), now]).await?;
                tx.announce(News::Jobs).await?;
            }
            _ => end_as_failed(&mut tx, &found.job, reason).await?,
        }
        tx.commit().await
    }

    /// Whether a job of these kinds is due now.
    pub(super) async fn is_job_due(&self, kinds: &[JobName]) -> Result<bool, CatalogError> {
        let now = self.database.now_ms().await?;
        Ok(self.database.row(IS_DUE, values![now, names(kinds)]).await?.is_some())
    }

    /// Fails the jobs of [`HOPELESS`].
    async fn give_up(&self) -> Result<(), CatalogError> {
        let now = self.database.now_ms().await?;
        for row in self.database.rows(HOPELESS, values![now, MAX_DEATHS]).await? {
            let mut tx = self.database.begin().await?;
            let Some(found) = jobs::lock(&mut tx, row.get("id")?).await? else { continue };
            let now = tx.now_ms().await?;
            if let Some(reason) = why_hopeless(&found).filter(|_| found.has_died(now)) {
                end_as_failed(&mut tx, &found.job, &reason).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }
}

/// The reason not to restart a job after its process died. `None`: restart it.
fn why_hopeless(found: &Locked) -> Option<String> {
    let deaths = found.deaths + 1;
    let job = &found.job;
    let last = job.reason.as_deref().map_or(String::new(), |reason| format!("; before: {reason}"));
    if found.progressed {
        None
    } else if deaths >= MAX_DEATHS {
        Some(format!("given up: its process died {deaths} times in a row without new progress{last}"))
    } else if job.attempts >= job.attempts_most {
        Some(format!("given up after {} attempts: its process died{last}", job.attempts))
    } else {
        None
    }
}

fn names(kinds: &[JobName]) -> Value {
    Value::Texts(kinds.iter().map(|kind| kind.name().to_owned()).collect())
}

fn deadline(now: i64, wait: Duration) -> i64 {
    now.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

async fn end_as_failed(tx: &mut Tx, job: &Job, reason: &str) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let sql = "UPDATE jobs SET state = 'failed', reason = $2, lease_token = NULL, lease_until_ms = NULL, \
               eta_s = NULL, updated_at_ms = $3 WHERE id = $1";
    tx.execute(sql, values![job.id, storable(reason), now]).await?;
    jobs::fail_pending_video(tx, job).await
}

/// Shortens a reason and removes NUL: reasons contain messages of other programs.
pub(super) fn storable(reason: &str) -> String {
    reason.chars().filter(|character| *character != '\0').take(MAX_REASON).collect()
}
