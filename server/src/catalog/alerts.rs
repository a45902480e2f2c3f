//! Alerts: making, listing, changing, deleting; and the list of their matches.

use std::collections::HashMap;

use uuid::Uuid;

use super::checks;
use super::database::{Row, Sql, Tx, Value, values};
use super::error::{CatalogError, WebhookFault};
use super::store::Catalog;
use super::tables::stored::{parse_json, to_json};
use super::types::*;
use super::view::View;

const COLUMNS: &str = "a.id, a.owner, a.name, a.search, a.min_score, a.trouble, a.missed, a.created_at_ms, \
                       (SELECT count(*) FROM alert_matches m JOIN visible_videos v ON v.id = m.video \
                       WHERE m.alert = a.id) AS matches, \
                       (SELECT count(*) FROM alert_checks c JOIN visible_videos v ON v.id = c.video \
                       WHERE c.alert = a.id) AS waiting";

/// The condition on `alerts a` under which an owner sees it. `$2`: the owner's key, null for everybody's.
const IS_OWNED: &str = "($2 IS NULL OR a.owner = $2)";

impl View<'_> {
    /// Stores an alert. The library may have `most` of them.
    ///
    /// # Errors
    /// [`CatalogError::Webhook`] for a webhook that the owner can't name; [`CatalogError::Conflict`] beyond `most`.
    pub async fn add_alert(&self, owner: Owner, new: &NewAlert, most: u32) -> Result<Alert, CatalogError> {
        let mut tx = self.begin().await?;
        let row = tx.row("SELECT count(*) AS alerts FROM alerts", values![]).await?;
        let alerts: i64 = row.map_or(Ok(0), |row| row.get("alerts"))?;
        if alerts >= i64::from(most) {
            let text = format!("the library has {alerts} alerts, and may have {most}; delete some first");
            return Err(CatalogError::Conflict(text));
        }
        check_webhooks(&mut tx, owner, &new.webhooks).await?;
        let (id, now) = (Uuid::now_v7(), tx.now_ms().await?);
        let sql = "INSERT INTO alerts (id, owner, name, search, min_score, created_at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let values = values![id, new.owner, new.name.as_str(), to_json(&new.search)?, new.min_score, now];
        tx.execute(sql, values).await?;
        let webhooks = distinct(&new.webhooks);
        insert_webhooks(&mut tx, id, &webhooks).await?;
        tx.commit().await?;
        Ok(Alert {
            id,
            owner: new.owner,
            name: new.name.clone(),
            search: new.search.clone(),
            min_score: new.min_score,
            webhooks,
            matches: 0,
            waiting: 0,
            missed: 0,
            trouble: None,
            created_at_ms: now,
        })
    }

    /// An owner's alerts in order of id, newest first, before `before`.
    pub async fn alerts(
        &self,
        owner: Owner,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Alert>, CatalogError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM alerts a WHERE a.id < $1 AND {IS_OWNED} ORDER BY a.id DESC LIMIT $3"
        );
        let values = values![before.unwrap_or(Uuid::max()), owner.key(), limit];
        let rows = self.rows(Sql::Built(sql), values).await?;
        let sql = "SELECT alert, webhook FROM alert_webhooks ORDER BY alert, webhook";
        let mut named: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
        for row in self.database().rows(sql, values![]).await? {
            named.entry(row.get("alert")?).or_default().push(row.get("webhook")?);
        }
        rows.iter().map(|row| from_row(row, named.remove(&row.get("id")?).unwrap_or_default())).collect()
    }

    /// One alert; `None` if the owner has no such alert.
    pub async fn alert(&self, owner: Owner, id: Uuid) -> Result<Option<Alert>, CatalogError> {
        let sql = format!("SELECT {COLUMNS} FROM alerts a WHERE a.id = $1 AND {IS_OWNED}");
        let Some(row) = self.row(Sql::Built(sql), values![id, owner.key()]).await? else { return Ok(None) };
        let webhooks = self.database().rows(WEBHOOKS, values![id]).await?;
        let webhooks = webhooks.iter().map(|row| row.get("webhook")).collect::<Result<_, _>>()?;
        from_row(&row, webhooks).map(Some)
    }

    /// Replaces name, search, least score and webhooks of an alert, if it has those of `expected`; `None` if the owner has no
    /// such alert. Its maker stays. A new search is also asked the videos that wait.
    ///
    /// # Errors
    /// [`CatalogError::Stale`] if it was changed; [`CatalogError::Webhook`] for a new webhook that the owner can't name.
    pub async fn update_alert(
        &self,
        owner: Owner,
        expected: &Alert,
        new: &NewAlert,
    ) -> Result<Option<Alert>, CatalogError> {
        let (id, webhooks) = (expected.id, distinct(&new.webhooks));
        let mut tx = self.begin().await?;
        if new.search != expected.search {
            // Checks first: a server that stores a match holds its check's row.
            checks::ask_again(&mut tx, id).await?;
        }
        if webhooks != expected.webhooks {
            check_webhooks(&mut tx, owner, &new.webhooks).await?;
        }
        match lock(&mut tx, owner, id).await? {
            None => return Ok(None),
            Some(found) if !found.is_state_of(expected) => return Err(CatalogError::Stale),
            Some(_) => {}
        }
        let sql = "UPDATE alerts SET name = $2, search = $3, min_score = $4 WHERE id = $1";
        tx.execute(sql, values![id, new.name.as_str(), to_json(&new.search)?, new.min_score]).await?;
        if new.search != expected.search {
            tx.execute("UPDATE alerts SET trouble = NULL WHERE id = $1", values![id]).await?;
        }
        if webhooks != expected.webhooks {
            tx.execute("DELETE FROM alert_webhooks WHERE alert = $1", values![id]).await?;
            insert_webhooks(&mut tx, id, &webhooks).await?;
        }
        tx.commit().await?;
        self.alert(owner, id).await
    }

    /// Deletes an alert with its matches; `None` if the owner has no such alert.
    pub async fn delete_alert(&self, owner: Owner, id: Uuid) -> Result<Option<()>, CatalogError> {
        let mut tx = self.begin().await?;
        let sql = format!("SELECT a.id FROM alerts a WHERE a.id = $1 AND {IS_OWNED}");
        if tx.row(Sql::Built(sql), values![id, owner.key()]).await?.is_none() {
            return Ok(None);
        }
        // Checks first: a server that stores a match holds its check's row.
        for sql in [
            "DELETE FROM alert_checks WHERE alert = $1",
            "DELETE FROM alert_matches WHERE alert = $1",
            "DELETE FROM alert_webhooks WHERE alert = $1",
            "DELETE FROM alerts WHERE id = $1",
        ] {
            tx.execute(sql, values![id]).await?;
        }
        tx.commit().await.map(Some)
    }

    /// The matches of an alert in visible videos, in order of id, newest first, before `before`; `None` if the owner has no
    /// such alert.
    pub async fn alert_matches(
        &self,
        owner: Owner,
        alert: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Option<Vec<AlertMatch>>, CatalogError> {
        if self.alert(owner, alert).await?.is_none() {
            return Ok(None);
        }
        let sql = "SELECT m.id, m.video, m.space, m.hits, m.at_ms FROM alert_matches m \
                   JOIN visible_videos v ON v.id = m.video WHERE m.alert = $1 AND m.id < $2 ORDER BY m.id DESC LIMIT $3";
        let rows = self.rows(sql, values![alert, before.unwrap_or(Uuid::max()), limit]).await?;
        rows.iter().map(match_from_row).collect::<Result<_, _>>().map(Some)
    }
}

impl Catalog {
    /// Forgets what refers to an alert that is gone: a video may have become ready while it was deleted.
    pub async fn sweep_alerts(&self) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        for sql in [
            "DELETE FROM alert_checks WHERE NOT EXISTS (SELECT 1 FROM alerts a WHERE a.id = alert_checks.alert)",
            "DELETE FROM alert_matches WHERE NOT EXISTS (SELECT 1 FROM alerts a WHERE a.id = alert_matches.alert)",
        ] {
            tx.execute(sql, values![]).await?;
        }
        tx.commit().await
    }
}

/// What a caller can change of an alert.
struct State {
    name: String,
    search: serde_json::Value,
    min_score: Option<f64>,
    webhooks: Vec<Uuid>,
}

impl State {
    fn is_state_of(&self, alert: &Alert) -> bool {
        self.name == alert.name
            && self.search == alert.search
            && self.min_score == alert.min_score
            && self.webhooks == alert.webhooks
    }
}

/// Locks an alert of an owner.
async fn lock(tx: &mut Tx, owner: Owner, id: Uuid) -> Result<Option<State>, CatalogError> {
    let lock = if tx.is_postgres() { " FOR UPDATE" } else { "" };
    let sql =
        format!("SELECT a.name, a.search, a.min_score FROM alerts a WHERE a.id = $1 AND {IS_OWNED}{lock}");
    let Some(row) = tx.row(Sql::Built(sql), values![id, owner.key()]).await? else { return Ok(None) };
    let webhooks = tx.rows(WEBHOOKS, values![id]).await?;
    Ok(Some(State {
        name: row.get("name")?,
        search: parse_json(&row.get::<String>("search")?)?,
        min_score: row.get("min_score")?,
        webhooks: webhooks.iter().map(|row| row.get("webhook")).collect::<Result<_, _>>()?,
    }))
}

/// The webhooks of the alert $1.
const WEBHOOKS: &str = "SELECT webhook FROM alert_webhooks WHERE alert = $1 ORDER BY webhook";

/// Webhooks as they are stored: each once, in order of id.
fn distinct(webhooks: &[Uuid]) -> Vec<Uuid> {
    let mut webhooks = webhooks.to_vec();
    webhooks.sort_unstable();
    webhooks.dedup();
    webhooks
}

async fn insert_webhooks(tx: &mut Tx, alert: Uuid, webhooks: &[Uuid]) -> Result<(), CatalogError> {
    let rows: Vec<Vec<Value>> = webhooks.iter().map(|webhook| values![alert, *webhook]).collect();
    tx.insert("INSERT INTO alert_webhooks (alert, webhook)", rows, "").await?;
    Ok(())
}

/// Refuses webhooks that the owner does not have, and those without the event of matches.
async fn check_webhooks(tx: &mut Tx, owner: Owner, webhooks: &[Uuid]) -> Result<(), CatalogError> {
    for (place, webhook) in webhooks.iter().enumerate() {
        let lock = if tx.is_postgres() { " FOR KEY SHARE" } else { "" };
        let sql =
            format!("SELECT w.events FROM webhooks w WHERE w.id = $1 AND ($2 IS NULL OR w.owner = $2){lock}");
        let row = tx.row(Sql::Built(sql), values![*webhook, owner.key()]).await?;
        let events: Option<String> = row.map(|row| row.get("events")).transpose()?;
        let has_event = |events: &String| events.split(' ').any(|it| it == WebhookEvent::AlertMatched.name());
        let fault = match &events {
            None => WebhookFault::Missing(*webhook),
            Some(events) if !has_event(events) => WebhookFault::OtherEvents,
            Some(_) => continue,
        };
        return Err(CatalogError::Webhook { place, fault });
    }
    Ok(())
}

fn from_row(row: &Row, webhooks: Vec<Uuid>) -> Result<Alert, CatalogError> {
    Ok(Alert {
        id: row.get("id")?,
        owner: row.get("owner")?,
        name: row.get("name")?,
        search: parse_json(&row.get::<String>("search")?)?,
        min_score: row.get("min_score")?,
        webhooks,
        matches: row.get("matches")?,
        waiting: row.get("waiting")?,
        missed: row.get("missed")?,
        trouble: row.get("trouble")?,
        created_at_ms: row.get("created_at_ms")?,
    })
}

fn match_from_row(row: &Row) -> Result<AlertMatch, CatalogError> {
    let hits: String = row.get("hits")?;
    Ok(AlertMatch {
        id: row.get("id")?,
        video: row.get("video")?,
        found: Found { space: row.get("space")?, hits: parse_json(&hits)? },
        at_ms: row.get("at_ms")?,
    })
}
