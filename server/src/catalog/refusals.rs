//! Files that were refused at the door, as failed jobs without a video. Their number is bounded, and they expire.
//!
//! A caller who sees all videos sees every refusal, another one those of its own key.

use std::time::Duration;

use uuid::Uuid;

use super::database::{Sql, Tx, Value, values};
use super::error::CatalogError;
use super::leases::storable;
use super::store::Catalog;
use super::tables::jobs::{self, NewJob};
use super::types::*;
use super::view::View;
use super::visibility::Visibility;

/// Deletes the jobs of all refusals but the newest $1.
const DROP_OLD: &str = "DELETE FROM jobs WHERE id IN (SELECT r.id FROM refusals r WHERE r.id <= \
                        (SELECT o.id FROM refusals o ORDER BY o.id DESC LIMIT 1 OFFSET $1))";

/// Deletes the jobs of all refusals of the key $2 but the newest $1.
const DROP_OLD_OF_KEY: &str = "DELETE FROM jobs WHERE id IN (SELECT r.id FROM refusals r WHERE r.added_by = $2 \
                               AND r.id <= (SELECT o.id FROM refusals o WHERE o.added_by = $2 \
                               ORDER BY o.id DESC LIMIT 1 OFFSET $1))";

impl View<'_> {
    /// Stores a refused file as a failed job, in place of the oldest ones beyond [`MOST_REFUSALS`] and
    /// [`MOST_REFUSALS_OF_KEY`]. A repeated request gets the job of the first.
    pub async fn add_refusal(&self, new: &NewRefusal) -> Result<Job, CatalogError> {
        let mut tx = self.begin().await?;
        let now = tx.now_ms().await?;
        if let Some(repeated) = repeated(&mut tx, new, now).await? {
            return Ok(repeated);
        }
        let id = jobs::enqueue(&mut tx, NewJob::refused()).await?.id;
        let sql = "UPDATE jobs SET state = 'failed', reason = $2 WHERE id = $1";
        tx.execute(sql, values![id, storable(&new.reason)]).await?;
        let sql = "INSERT INTO refusals (id, added_by, file_name, bytes, repeat_key, request_hash) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let (key, hash) = new.repeat.as_ref().map(|it| (it.key.clone(), it.request_hash.clone())).unzip();
        let file = &new.file;
        tx.execute(sql, values![id, new.added_by, file.file_name.as_str(), file.bytes, key, hash]).await?;
        if let Some(key) = new.added_by {
            tx.execute(DROP_OLD_OF_KEY, values![MOST_REFUSALS_OF_KEY, key]).await?;
        }
        tx.execute(DROP_OLD, values![MOST_REFUSALS]).await?;
        let job = jobs::read(&mut tx, id).await?;
        tx.commit().await?;
        job.ok_or_else(|| CatalogError::Damaged(format!("job {id} was stored and is not there").into()))
    }

    /// Whether a job is that of a refused file that the caller may see.
    pub(super) async fn is_refusal(&self, id: Uuid) -> Result<bool, CatalogError> {
        let mut values = values![id];
        let seen = self.sees_refusal(&mut values);
        let sql = format!("SELECT r.id FROM refusals r WHERE r.id = $1 AND {seen}");
        Ok(self.database().row(Sql::Built(sql), values).await?.is_some())
    }

    /// The condition on `refusals r` under which the caller sees it. Adds its value to those of the statement.
    pub(super) fn sees_refusal(&self, values: &mut Vec<Value>) -> String {
        match self.visibility() {
            Visibility::All => "TRUE".to_owned(),
            Visibility::Matching(_) => {
                values.push(self.key().into());
                format!("r.added_by = ${}", values.len())
            }
        }
    }
}

impl Catalog {
    /// Deletes the refusals older than this. Returns their number.
    pub async fn forget_refusals(&self, older_than: Duration) -> Result<u64, CatalogError> {
        let mut tx = self.database.begin().await?;
        let age = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
        let oldest = tx.now_ms().await?.saturating_sub(age);
        let sql = "DELETE FROM jobs WHERE created_at_ms <= $1 AND id IN (SELECT r.id FROM refusals r)";
        let gone = tx.execute(sql, values![oldest]).await?;
        tx.commit().await?;
        Ok(gone)
    }
}

/// The job of an earlier refusal of this request.
async fn repeated(tx: &mut Tx, new: &NewRefusal, now: i64) -> Result<Option<Job>, CatalogError> {
    let Some(IdempotencyKey { key, request_hash }) = &new.repeat else { return Ok(None) };
    let oldest = now - i64::try_from(IDEMPOTENCY_WINDOW.as_millis()).unwrap_or(i64::MAX);
    let sql = "SELECT r.id FROM refusals r JOIN jobs j ON j.id = r.id \
               WHERE r.repeat_key = $1 AND r.request_hash = $2 AND j.created_at_ms > $3 ORDER BY r.id LIMIT 1";
    let Some(row) = tx.row(sql, values![key.as_str(), request_hash.as_str(), oldest]).await? else {
        return Ok(None);
    };
    jobs::read(tx, row.get("id")?).await
}
