//! Sending deliveries: one process at a time leases one, and stores how the attempt ended.

use std::time::Duration;

use uuid::Uuid;

use super::database::{Row, Sql, Tx, values};
use super::error::CatalogError;
use super::events::KEY_IS_VALID;
use super::store::Catalog;
use super::types::*;
use super::wake::News;
use super::webhooks;

/// For how long a delivery that has ended is listed.
const LISTED_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longest stored reason, in characters.
const LONGEST_REASON: usize = 500;

/// Deliveries that may be sent: `$1` now, `$2` a day before. Of each webhook the first, and none while another one is under
/// way, so that a slow receiver does not hold up the others.
///
/// A row changed over five minutes after now was changed before the clock was set back. The conditions on `d` are there for
/// Postgres, which tests them again on a row that another server has just leased.
macro_rules! due {
    ($tail:literal) => {
        concat!(
            "SELECT d.id FROM webhooks w JOIN webhook_deliveries d ON d.id = \
             (SELECT x.id FROM webhook_deliveries x WHERE x.webhook = w.id AND x.state = 'waiting' \
             AND x.created_at_ms > $2 ORDER BY x.not_before_ms, x.id LIMIT 1) \
             WHERE d.state = 'waiting' AND (d.not_before_ms <= $1 OR d.updated_at_ms > $1 + 300000) \
             AND (d.lease_until_ms IS NULL OR d.lease_until_ms <= $1 OR d.updated_at_ms > $1 + 300000) \
             AND NOT EXISTS (SELECT 1 FROM webhook_deliveries o WHERE o.webhook = w.id \
             AND o.lease_until_ms > $1 AND o.updated_at_ms <= $1 + 300000) \
             ORDER BY d.not_before_ms, d.id LIMIT 1",
            $tail
        )
    };
}

macro_rules! lease_next {
    ($tail:literal) => {
        concat!(
            "UPDATE webhook_deliveries SET attempts = attempts + 1, lease_token = $3, lease_until_ms = $4, \
             updated_at_ms = $1 WHERE id = (",
            due!($tail),
            ") RETURNING id, webhook, payload, attempts"
        )
    };
}

const LEASE_NEXT: Sql =
    Sql::Each { sqlite: lease_next!(""), postgres: lease_next!(" FOR UPDATE OF d SKIP LOCKED") };
const IS_DUE: &str = due!("");

impl Catalog {
    /// Takes the delivery that is due first, for one attempt; counts it. A delivery whose webhook is disabled, or whose
    /// webhook's key has ended, fails instead, and the next one is tried.
    pub async fn lease_delivery(&self, lease: Duration) -> Result<Option<LeasedDelivery>, CatalogError> {
        loop {
            let mut tx = self.database.begin().await?;
            let now = tx.now_ms().await?;
            let token = Uuid::now_v7();
            let values = values![now, now - milliseconds(TRIED_FOR), token, now + milliseconds(lease)];
            let Some(row) = tx.row(LEASE_NEXT, values).await? else { return Ok(None) };
            let lease = DeliveryLease { delivery: row.get("id")?, token };
            let Some(of_webhook) = address(&mut tx, row.get("webhook")?, now).await? else {
                let why = "the webhook is disabled, or its key was revoked or has expired";
                end(
                    &mut tx,
                    lease.delivery,
                    &Ended { state: DeliveryState::Failed, status: None, reason: Some(why) },
                )
                .await?;
                tx.commit().await?;
                continue;
            };
            let leased = LeasedDelivery {
                lease,
                url: of_webhook.get("url")?,
                secrets: secrets(&of_webhook, now)?,
                payload: row.get("payload")?,
                attempt: row.get("attempts")?,
            };
            tx.commit().await?;
            return Ok(Some(leased));
        }
    }

    /// Stores how an attempt ended. Does nothing if the lease was lost: another process tries the delivery again.
    pub async fn finish_delivery(
        &self,
        lease: &DeliveryLease,
        ended: &Attempted,
    ) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let Some(held) = lock(&mut tx, lease).await? else { return Ok(()) };
        let now = tx.now_ms().await?;
        match ended {
            Attempted::Delivered(status) => {
                let status = Some(i64::from(*status));
                let ended = Ended { state: DeliveryState::Delivered, status, reason: None };
                end(&mut tx, lease.delivery, &ended).await?;
            }
            Attempted::Gone => disable(&mut tx, lease.delivery, &held).await?,
            Attempted::Failed { status, reason, wait } => {
                let next = now.saturating_add(milliseconds(*wait));
                let status = status.map(i64::from);
                if next >= held.created_at_ms.saturating_add(milliseconds(TRIED_FOR)) {
                    let reason = format!("given up after {} attempts in a day: {reason}", held.attempts);
                    let ended = Ended { state: DeliveryState::Failed, status, reason: Some(&reason) };
                    end(&mut tx, lease.delivery, &ended).await?;
                } else {
                    let sql = "UPDATE webhook_deliveries SET not_before_ms = $2, status = $3, reason = $4, \
                               lease_token = NULL, lease_until_ms = NULL, updated_at_ms = $5 WHERE id = $1";
                    let values = values![lease.delivery, next, status, storable(reason), now];
                    tx.execute(sql, values).await?;
                }
            }
        }
        forget_ended(&mut tx, held.webhook).await?;
        // The webhook's next delivery may be due now.
        tx.announce(News::Deliveries).await?;
        tx.commit().await
    }

    /// Gives a delivery back whose attempt was not made; the attempt does not count.
    pub async fn release_delivery(&self, lease: &DeliveryLease) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "UPDATE webhook_deliveries SET attempts = attempts - 1, lease_token = NULL, lease_until_ms = NULL, \
                   updated_at_ms = $3 WHERE id = $1 AND lease_token = $2";
        tx.execute(sql, values![lease.delivery, lease.token, now]).await?;
        tx.announce(News::Deliveries).await?;
        tx.commit().await
    }

    /// Whether a delivery is due now.
    pub(super) async fn is_delivery_due(&self) -> Result<bool, CatalogError> {
        let now = self.database.now_ms().await?;
        Ok(self.database.row(IS_DUE, values![now, now - milliseconds(TRIED_FOR)]).await?.is_some())
    }

    /// Gives up deliveries that waited for [`TRIED_FOR`], and forgets those that have ended a week ago.
    pub async fn sweep_deliveries(&self) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        let now = tx.now_ms().await?;
        let sql = "UPDATE webhook_deliveries SET state = 'failed', reason = COALESCE(reason, 'its turn did not come'), \
                   lease_token = NULL, lease_until_ms = NULL, updated_at_ms = $1 \
                   WHERE state = 'waiting' AND created_at_ms <= $2 AND (lease_until_ms IS NULL OR lease_until_ms <= $1)";
        tx.execute(sql, values![now, now - milliseconds(TRIED_FOR)]).await?;
        let sql = "DELETE FROM webhook_deliveries WHERE state <> 'waiting' AND updated_at_ms <= $1";
        tx.execute(sql, values![now - milliseconds(LISTED_FOR)]).await?;
        tx.commit().await
    }
}

/// The row of a webhook that takes deliveries.
async fn address(tx: &mut Tx, webhook: Uuid, now: i64) -> Result<Option<Row>, CatalogError> {
    let sql = format!(
        "SELECT w.url, w.secret, w.old_secret, w.old_until_ms FROM webhooks w \
         LEFT JOIN api_keys k ON k.id = w.owner WHERE w.id = $2 AND w.disabled_at_ms IS NULL AND {KEY_IS_VALID}"
    );
    tx.row(Sql::Built(sql), values![now, webhook]).await
}

fn secrets(row: &Row, now: i64) -> Result<Vec<WebhookSecret>, CatalogError> {
    let secret = |bytes: Vec<u8>| {
        let bytes: Result<[u8; 32], _> = bytes.try_into();
        let damaged = |_| CatalogError::Damaged("a webhook's secret does not have 32 bytes".into());
        bytes.map(WebhookSecret::from).map_err(damaged)
    };
    let mut secrets = vec![secret(row.get("secret")?)?];
    let is_valid = row.get::<Option<i64>>("old_until_ms")?.is_some_and(|until| now < until);
    if let Some(old) = row.get::<Option<Vec<u8>>>("old_secret")?.filter(|_| is_valid) {
        secrets.push(secret(old)?);
    }
    Ok(secrets)
}

/// A delivery whose lease is held.
struct Held {
    webhook: Uuid,
    attempts: i64,
    created_at_ms: i64,
}

/// Locks the webhook, then the delivery; `None` if the lease was lost.
async fn lock(tx: &mut Tx, lease: &DeliveryLease) -> Result<Option<Held>, CatalogError> {
    let sql = "SELECT webhook FROM webhook_deliveries WHERE id = $1";
    let Some(row) = tx.row(sql, values![lease.delivery]).await? else { return Ok(None) };
    let webhook = row.get("webhook")?;
    if !webhooks::lock(tx, webhook, Owner::Anybody).await? {
        return Ok(None);
    }
    let sql = Sql::Each {
        sqlite: "SELECT attempts, created_at_ms FROM webhook_deliveries WHERE id = $1 AND lease_token = $2",
        postgres: "SELECT attempts, created_at_ms FROM webhook_deliveries WHERE id = $1 AND lease_token = $2 FOR UPDATE",
    };
    let Some(row) = tx.row(sql, values![lease.delivery, lease.token]).await? else { return Ok(None) };
    Ok(Some(Held { webhook, attempts: row.get("attempts")?, created_at_ms: row.get("created_at_ms")? }))
}

/// The end of a delivery.
struct Ended<'a> {
    state: DeliveryState,
    status: Option<i64>,
    reason: Option<&'a str>,
}

async fn end(tx: &mut Tx, delivery: Uuid, ended: &Ended<'_>) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let sql = "UPDATE webhook_deliveries SET state = $2, status = $3, reason = $4, lease_token = NULL, \
               lease_until_ms = NULL, updated_at_ms = $5 WHERE id = $1";
    let reason = ended.reason.map(storable);
    tx.execute(sql, values![delivery, ended.state.name(), ended.status, reason, now]).await?;
    Ok(())
}

/// Disables the webhook of a delivery that was answered 410, and gives up all that waits for it.
async fn disable(tx: &mut Tx, delivery: Uuid, held: &Held) -> Result<(), CatalogError> {
    let (now, why) = (tx.now_ms().await?, "the receiver answered 410");
    let sql = "UPDATE webhooks SET disabled_at_ms = $2, disabled_why = $3 WHERE id = $1";
    tx.execute(sql, values![held.webhook, now, why]).await?;
    end(tx, delivery, &Ended { state: DeliveryState::Failed, status: Some(410), reason: Some(why) }).await?;
    let sql = "UPDATE webhook_deliveries SET state = 'failed', reason = 'the webhook is disabled', lease_token = NULL, \
               lease_until_ms = NULL, updated_at_ms = $2 WHERE webhook = $1 AND state = 'waiting'";
    tx.execute(sql, values![held.webhook, now]).await?;
    Ok(())
}

/// Keeps the newest [`MOST_ENDED`] deliveries of a webhook that have ended.
async fn forget_ended(tx: &mut Tx, webhook: Uuid) -> Result<(), CatalogError> {
    let sql = "DELETE FROM webhook_deliveries WHERE webhook = $1 AND state <> 'waiting' AND id <= \
               (SELECT d.id FROM webhook_deliveries d WHERE d.webhook = $1 AND d.state <> 'waiting' \
               ORDER BY d.id DESC LIMIT 1 OFFSET $2)";
    tx.execute(sql, values![webhook, MOST_ENDED]).await?;
    Ok(())
}

/// Shortens a reason and removes NUL: reasons contain messages of other programs.
fn storable(reason: &str) -> String {
    reason.chars().filter(|character| *character != '\0').take(LONGEST_REASON).collect()
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
