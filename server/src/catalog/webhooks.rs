//! Webhooks: making, listing, rotating, deleting; and the list of their deliveries.

use uuid::Uuid;

use super::database::{Row, Sql, Tx, values};
use super::error::CatalogError;
use super::events;
use super::store::Catalog;
use super::tables::stored::named;
use super::types::*;
use super::wake::News;

const COLUMNS: &str = "w.id, w.owner, w.url, w.description, w.events, w.disabled_at_ms, w.disabled_why, w.dropped, \
                       w.created_at_ms";

const DELIVERY_COLUMNS: &str = "d.id, d.event, d.state, d.attempts, d.not_before_ms, d.status, d.reason, \
                                d.created_at_ms, d.updated_at_ms";

/// The condition on `webhooks w` under which an owner sees it. `$2`: the owner's key, null for everybody's.
const IS_OWNED: &str = "($2 IS NULL OR w.owner = $2)";

impl Catalog {
    /// Stores a webhook.
    ///
    /// # Errors
    /// [`CatalogError::Conflict`] beyond [`MOST_WEBHOOKS`].
    pub async fn add_webhook(&self, new: &NewWebhook) -> Result<Webhook, CatalogError> {
        let mut tx = self.database.begin().await?;
        let row = tx.row("SELECT count(*) AS webhooks FROM webhooks", values![]).await?;
        let webhooks: i64 = row.map_or(Ok(0), |row| row.get("webhooks"))?;
        if webhooks >= MOST_WEBHOOKS {
            let text = format!("the library has {webhooks} webhooks, which is the most; delete some first");
            return Err(CatalogError::Conflict(text));
        }
        let (id, now) = (Uuid::now_v7(), tx.now_ms().await?);
        let names: Vec<&str> = new.events.iter().map(|event| event.name()).collect();
        let sql = "INSERT INTO webhooks (id, owner, url, description, events, secret, created_at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let (url, description) = (new.url.as_str(), new.description.as_str());
        let secret = new.secret.bytes().to_vec();
        tx.execute(sql, values![id, new.owner, url, description, names.join(" "), secret, now]).await?;
        let stored = read(&mut tx, id, Owner::Anybody).await?;
        tx.commit().await?;
        stored
            .ok_or_else(|| CatalogError::Damaged(format!("webhook {id} was stored and is not there").into()))
    }

    /// An owner's webhooks in order of id, newest first, before `before`.
    pub async fn webhooks(
        &self,
        owner: Owner,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Webhook>, CatalogError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM webhooks w WHERE w.id < $1 AND {IS_OWNED} ORDER BY w.id DESC LIMIT $3"
        );
        let values = values![before.unwrap_or(Uuid::max()), owner.key(), limit];
        let rows = self.database.rows(Sql::Built(sql), values).await?;
        rows.iter().map(from_row).collect()
    }

    /// One webhook; `None` if the owner has no such webhook.
    pub async fn webhook(&self, owner: Owner, id: Uuid) -> Result<Option<Webhook>, CatalogError> {
        let row = self.database.row(Sql::Built(by_id()), values![id, owner.key()]).await?;
        row.as_ref().map(from_row).transpose()
    }

    /// Deletes a webhook with its deliveries; `None` if the owner has no such webhook. Alerts do not name it any more.
    pub async fn delete_webhook(&self, owner: Owner, id: Uuid) -> Result<Option<()>, CatalogError> {
        let mut tx = self.database.begin().await?;
        if !lock(&mut tx, id, owner).await? {
            return Ok(None);
        }
        tx.execute("DELETE FROM alert_webhooks WHERE webhook = $1", values![id]).await?;
        // Its deliveries go with it (cascade).
        tx.execute("DELETE FROM webhooks WHERE id = $1", values![id]).await?;
        tx.commit().await.map(Some)
    }

    /// Gives a webhook a new secret. The one before signs too, for [`OLD_SECRET_LASTS`]. `None` if the owner has no such
    /// webhook.
    pub async fn rotate_webhook(
        &self,
        owner: Owner,
        id: Uuid,
        new: &WebhookSecret,
    ) -> Result<Option<Webhook>, CatalogError> {
        let mut tx = self.database.begin().await?;
        if !lock(&mut tx, id, owner).await? {
            return Ok(None);
        }
        let lasts = i64::try_from(OLD_SECRET_LASTS.as_millis()).unwrap_or(i64::MAX);
        let until = tx.now_ms().await?.saturating_add(lasts);
        let sql = "UPDATE webhooks SET old_secret = secret, old_until_ms = $3, secret = $2 WHERE id = $1";
        tx.execute(sql, values![id, new.bytes().to_vec(), until]).await?;
        let stored = read(&mut tx, id, owner).await?;
        tx.commit().await?;
        Ok(stored)
    }

    /// Stores a test delivery, which counts as any other; `None` if the owner has no such webhook.
    ///
    /// # Errors
    /// [`CatalogError::Conflict`] if the webhook is disabled, or too many deliveries wait.
    pub async fn test_webhook(&self, owner: Owner, id: Uuid) -> Result<Option<Delivery>, CatalogError> {
        let mut tx = self.database.begin().await?;
        if !lock(&mut tx, id, owner).await? {
            return Ok(None);
        }
        if read(&mut tx, id, owner).await?.is_some_and(|webhook| webhook.disabled.is_some()) {
            return Err(CatalogError::Conflict("the webhook is disabled".to_owned()));
        }
        let sql =
            "SELECT count(*) AS waiting FROM webhook_deliveries WHERE webhook = $1 AND state = 'waiting'";
        let waiting: i64 = tx.row(sql, values![id]).await?.map_or(Ok(0), |row| row.get("waiting"))?;
        if waiting >= MOST_WAITING {
            return Err(CatalogError::Conflict(format!(
                "{waiting} deliveries wait already, which is the most"
            )));
        }
        let delivery = events::test(&mut tx, id).await?;
        let sql = format!("SELECT {DELIVERY_COLUMNS} FROM webhook_deliveries d WHERE d.id = $1");
        let row = tx.row(Sql::Built(sql), values![delivery]).await?;
        tx.announce(News::Deliveries).await?;
        tx.commit().await?;
        row.as_ref().map(delivery_from_row).transpose()
    }

    /// The deliveries of a webhook in order of id, newest first, before `before`; `None` if the owner has no such webhook.
    pub async fn deliveries(
        &self,
        owner: Owner,
        webhook: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Option<Vec<Delivery>>, CatalogError> {
        if self.webhook(owner, webhook).await?.is_none() {
            return Ok(None);
        }
        let sql = format!(
            "SELECT {DELIVERY_COLUMNS} FROM webhook_deliveries d WHERE d.webhook = $1 AND d.id < $2 \
             ORDER BY d.id DESC LIMIT $3"
        );
        let values = values![webhook, before.unwrap_or(Uuid::max()), limit];
        let rows = self.database.rows(Sql::Built(sql), values).await?;
        rows.iter().map(delivery_from_row).collect::<Result<_, _>>().map(Some)
    }
}

/// `$1` the webhook, `$2` the owner's key.
fn by_id() -> String {
    format!("SELECT {COLUMNS} FROM webhooks w WHERE w.id = $1 AND {IS_OWNED}")
}

async fn read(tx: &mut Tx, id: Uuid, owner: Owner) -> Result<Option<Webhook>, CatalogError> {
    let row = tx.row(Sql::Built(by_id()), values![id, owner.key()]).await?;
    row.as_ref().map(from_row).transpose()
}

/// Locks a webhook, before its deliveries; false if the owner has no such webhook.
pub(super) async fn lock(tx: &mut Tx, id: Uuid, owner: Owner) -> Result<bool, CatalogError> {
    let lock = if tx.is_postgres() { " FOR UPDATE" } else { "" };
    let sql = format!("SELECT w.id FROM webhooks w WHERE w.id = $1 AND {IS_OWNED}{lock}");
    Ok(tx.row(Sql::Built(sql), values![id, owner.key()]).await?.is_some())
}

fn from_row(row: &Row) -> Result<Webhook, CatalogError> {
    let names: String = row.get("events")?;
    let known = WebhookEvent::ALL.map(|event| (event, event.name()));
    let events = names.split(' ').map(|name| named(name, &known));
    let disabled_at_ms: Option<i64> = row.get("disabled_at_ms")?;
    let why: Option<String> = row.get("disabled_why")?;
    Ok(Webhook {
        id: row.get("id")?,
        owner: row.get("owner")?,
        url: row.get("url")?,
        description: row.get("description")?,
        events: events.collect::<Result<_, _>>()?,
        disabled: disabled_at_ms.map(|at_ms| Disabled { at_ms, why: why.unwrap_or_default() }),
        dropped: row.get("dropped")?,
        created_at_ms: row.get("created_at_ms")?,
    })
}

fn delivery_from_row(row: &Row) -> Result<Delivery, CatalogError> {
    let states = DeliveryState::ALL.map(|state| (state, state.name()));
    let state = named(&row.get::<String>("state")?, &states)?;
    let not_before_ms: i64 = row.get("not_before_ms")?;
    Ok(Delivery {
        id: row.get("id")?,
        event: row.get("event")?,
        state,
        attempts: row.get("attempts")?,
        next_attempt_ms: (state == DeliveryState::Waiting).then_some(not_before_ms),
        status: row.get("status")?,
        reason: row.get("reason")?,
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}
