//! Checks: the videos that alerts have not asked yet.
//!
//! A check is stored in the transaction that makes its video ready, and deleted in the one that stores what was found. So a
//! crash in between neither loses nor doubles a match. One process at a time leases a check.

use std::time::Duration;

use uuid::Uuid;

use super::database::{Sql, Tx, values};
use super::error::CatalogError;
use super::events;
use super::store::Catalog;
use super::tables::stored::{parse_json, to_json};
use super::tables::videos;
use super::types::*;
use super::wake::News;

/// Longest stored trouble, in characters.
const LONGEST_TROUBLE: usize = 500;

/// Checks that may run: `$1` now. Those of a deleted video go with it. As with jobs, a row changed over five minutes after now was changed before the clock was
/// set back.
macro_rules! due {
    () => {
        "(c.not_before_ms <= $1 OR c.updated_at_ms > $1 + 300000) \
         AND (c.lease_until_ms IS NULL OR c.lease_until_ms <= $1 OR c.updated_at_ms > $1 + 300000) \
         AND EXISTS (SELECT 1 FROM alerts a WHERE a.id = c.alert) \
         AND EXISTS (SELECT 1 FROM videos v WHERE v.id = c.video AND v.deleted_at_ms IS NULL)"
    };
}

macro_rules! next {
    ($tail:literal) => {
        concat!(
            "SELECT c.alert, c.video FROM alert_checks c WHERE ",
            due!(),
            " ORDER BY c.not_before_ms, c.video, c.alert LIMIT 1",
            $tail
        )
    };
}

const NEXT: Sql = Sql::Each { sqlite: next!(""), postgres: next!(" FOR UPDATE OF c SKIP LOCKED") };
const IS_DUE: &str = next!("");

/// Stores a check of a newly ready video for each alert.
pub(super) async fn enqueue(tx: &mut Tx, video: Uuid) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let sql = "INSERT INTO alert_checks (alert, video, not_before_ms, created_at_ms, updated_at_ms) \
               SELECT a.id, v.id, $2, $2, $2 FROM alerts a JOIN videos v ON v.id = $1 \
               WHERE TRUE ON CONFLICT (alert, video) DO NOTHING";
    let checks = tx.execute(sql, values![video, now]).await?;
    if checks > 0 { tx.announce(News::Checks).await } else { Ok(()) }
}

/// Lets the checks of an alert run that wait for another try.
pub(super) async fn ask_again(tx: &mut Tx, alert: Uuid) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let sql = "UPDATE alert_checks SET not_before_ms = $2, updated_at_ms = $2 \
               WHERE alert = $1 AND lease_token IS NULL";
    let checks = tx.execute(sql, values![alert, now]).await?;
    if checks > 0 { tx.announce(News::Checks).await } else { Ok(()) }
}

impl Catalog {
    /// Takes the check that is due first; counts the try.
    pub async fn lease_check(&self, lease: Duration) -> Result<Option<LeasedCheck>, CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let Some(row) = tx.row(NEXT, values![now]).await? else { return Ok(None) };
        let lease_until = now.saturating_add(milliseconds(lease));
        let lease = CheckLease { alert: row.get("alert")?, video: row.get("video")?, token: Uuid::now_v7() };
        let sql = "UPDATE alert_checks SET attempts = attempts + 1, lease_token = $3, lease_until_ms = $4, \
                   updated_at_ms = $5 WHERE alert = $1 AND video = $2 RETURNING attempts";
        let taken = tx.row(sql, values![lease.alert, lease.video, lease.token, lease_until, now]).await?;
        let sql = "SELECT owner, search, min_score FROM alerts WHERE id = $1";
        let alert = tx.row(sql, values![lease.alert]).await?;
        tx.commit().await?;
        let (Some(taken), Some(alert)) = (taken, alert) else { return Ok(None) };
        Ok(Some(LeasedCheck {
            lease,
            owner: alert.get("owner")?,
            search: parse_json(&alert.get::<String>("search")?)?,
            min_score: alert.get("min_score")?,
            attempt: taken.get("attempts")?,
        }))
    }

    /// Stores what an alert found in a video with deliveries to its webhooks, and ends the check. Does nothing if the lease was lost.
    pub async fn finish_check(&self, lease: &CheckLease, found: &Found) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        if !lock(&mut tx, lease).await? {
            return Ok(());
        }
        let now = tx.now_ms().await?;
        if !found.hits.is_empty() {
            let new = AlertMatch { id: Uuid::now_v7(), video: lease.video, found: found.clone(), at_ms: now };
            let sql = "INSERT INTO alert_matches (id, alert, video, space, hits, at_ms) \
                       VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (alert, video) DO NOTHING";
            let hits = to_json(&found.hits)?;
            let values = values![new.id, lease.alert, lease.video, found.space.as_str(), hits, now];
            if tx.execute(sql, values).await? > 0 {
                events::alert_matched(&mut tx, lease.alert, &new).await?;
                forget_old_matches(&mut tx, lease.alert).await?;
            }
        }
        let sql = "UPDATE alerts SET trouble = NULL WHERE id = $1 AND trouble IS NOT NULL";
        tx.execute(sql, values![lease.alert]).await?;
        delete(&mut tx, lease).await?;
        tx.commit().await
    }

    /// Tries a check again after `wait`; after [`ASKED_FOR`] it is given up, and its alert counts it. `trouble`: what the
    /// alert says; `None`: nothing is wrong. Does nothing if the lease was lost.
    pub async fn postpone_check(
        &self,
        lease: &CheckLease,
        wait: Duration,
        trouble: Option<&str>,
    ) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        if !lock(&mut tx, lease).await? {
            return Ok(());
        }
        let now = tx.now_ms().await?;
        let next = now.saturating_add(milliseconds(wait));
        if let Some(trouble) = trouble {
            let sql = "UPDATE alerts SET trouble = $2 WHERE id = $1";
            tx.execute(sql, values![lease.alert, storable(trouble)]).await?;
        }
        let sql = "UPDATE alert_checks SET not_before_ms = $3, lease_token = NULL, lease_until_ms = NULL, \
                   updated_at_ms = $4 WHERE alert = $1 AND video = $2 AND created_at_ms > $5";
        let oldest = next.saturating_sub(milliseconds(ASKED_FOR));
        if tx.execute(sql, values![lease.alert, lease.video, next, now, oldest]).await? == 0 {
            tx.execute("UPDATE alerts SET missed = missed + 1 WHERE id = $1", values![lease.alert]).await?;
            delete(&mut tx, lease).await?;
        }
        tx.commit().await
    }

    /// Whether a check is due now.
    pub(super) async fn is_check_due(&self) -> Result<bool, CatalogError> {
        let now = self.database.now_ms().await?;
        Ok(self.database.row(IS_DUE, values![now]).await?.is_some())
    }
}

/// Locks the video, then the check; false if the video was deleted or the lease was lost.
async fn lock(tx: &mut Tx, lease: &CheckLease) -> Result<bool, CatalogError> {
    if !videos::lock(tx, lease.video).await? {
        return Ok(false);
    }
    let sql = Sql::Each {
        sqlite: "SELECT alert FROM alert_checks WHERE alert = $1 AND video = $2 AND lease_token = $3",
        postgres: "SELECT alert FROM alert_checks WHERE alert = $1 AND video = $2 AND lease_token = $3 FOR UPDATE",
    };
    Ok(tx.row(sql, values![lease.alert, lease.video, lease.token]).await?.is_some())
}

async fn delete(tx: &mut Tx, lease: &CheckLease) -> Result<(), CatalogError> {
    let sql = "DELETE FROM alert_checks WHERE alert = $1 AND video = $2";
    tx.execute(sql, values![lease.alert, lease.video]).await?;
    Ok(())
}

/// Keeps the newest [`MOST_MATCHES`] matches of an alert.
async fn forget_old_matches(tx: &mut Tx, alert: Uuid) -> Result<(), CatalogError> {
    let sql = "DELETE FROM alert_matches WHERE alert = $1 AND id <= \
               (SELECT m.id FROM alert_matches m WHERE m.alert = $1 ORDER BY m.id DESC LIMIT 1 OFFSET $2)";
    tx.execute(sql, values![alert, MOST_MATCHES]).await?;
    Ok(())
}

/// Shortens a text and removes NUL: it contains messages of other programs.
fn storable(text: &str) -> String {
    text.chars().filter(|character| *character != '\0').take(LONGEST_TROUBLE).collect()
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
