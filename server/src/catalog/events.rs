//! Events for webhooks, stored as deliveries by the transaction that causes them.
//!
//! A webhook whose key reaches some videos only gets events of those. Payloads hold ids and paths, so they are small.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::database::{Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::filter::VideoFilter;
use super::instant;
use super::tables::exports;
use super::tables::stored::{parse_json, to_json};
use super::types::*;
use super::visibility::Visibility;
use super::wake::News;

/// Longest reason in a payload, in characters.
const LONGEST_REASON: usize = 500;

/// The subject of an event. It decides which keys may get the event.
#[derive(Debug, Clone, Copy)]
enum About {
    Video(Uuid),
    Export(Uuid),
}

/// Stores the event that a video became searchable.
pub(super) async fn video_ready(tx: &mut Tx, video: Uuid) -> Result<(), CatalogError> {
    let data = json!({"video_id": video, "url": video_url(video)});
    publish(tx, WebhookEvent::VideoReady, About::Video(video), &data).await
}

/// Stores the event that the ingest of a video failed or was cancelled.
pub(super) async fn video_failed(tx: &mut Tx, job: &Job, reason: &str) -> Result<(), CatalogError> {
    let Some(video) = job.video else { return Ok(()) };
    let reason: String = reason.chars().take(LONGEST_REASON).collect();
    let data = json!({
        "video_id": video,
        "url": video_url(video),
        "job_id": job.id,
        "job_url": format!("/v1/jobs/{}", job.id),
        "reason": reason,
    });
    publish(tx, WebhookEvent::VideoFailed, About::Video(video), &data).await
}

/// Stores the event that the file of an export was made.
pub(super) async fn export_ready(tx: &mut Tx, export: Uuid, expires_at_ms: i64) -> Result<(), CatalogError> {
    let data = json!({
        "export_id": export,
        "url": format!("/v1/exports/{export}"),
        "download_url": format!("/v1/exports/{export}/download"),
        "expires_at": instant::format(expires_at_ms),
    });
    publish(tx, WebhookEvent::ExportReady, About::Export(export), &data).await
}

/// Stores the event that an alert found something, for the webhooks that the alert names.
pub(super) async fn alert_matched(tx: &mut Tx, alert: Uuid, found: &AlertMatch) -> Result<(), CatalogError> {
    let row = tx.row("SELECT name FROM alerts WHERE id = $1", values![alert]).await?;
    let Some(row) = row else { return Ok(()) };
    let hit = |hit: &AlertHit| {
        json!({
            "clip_id": hit.clip,
            "level": hit.level,
            "start": hit.start_ms as f64 / 1000.0,
            "end": hit.end_ms as f64 / 1000.0,
            "score": hit.score,
            "z": hit.z,
            "url": format!("/v1/clips/{}", hit.clip),
        })
    };
    let data = json!({
        "alert_id": alert,
        "alert_name": row.get::<String>("name")?,
        "alert_url": format!("/v1/alerts/{alert}"),
        "match_id": found.id,
        "video_id": found.video,
        "url": video_url(found.video),
        "space": found.found.space,
        "hits": found.found.hits.iter().map(hit).collect::<Vec<_>>(),
    });
    let listeners = listening(tx, WebhookEvent::AlertMatched, Some(alert)).await?;
    send(tx, listeners, WebhookEvent::AlertMatched, About::Video(found.video), &data).await
}

/// Stores a test delivery. Returns its id.
pub(super) async fn test(tx: &mut Tx, webhook: Uuid) -> Result<Uuid, CatalogError> {
    let data = json!({"webhook_id": webhook, "url": format!("/v1/webhooks/{webhook}")});
    let now = tx.now_ms().await?;
    let payload = payload(TEST_EVENT, now, &data)?;
    store(tx, NewDelivery { webhook, event: TEST_EVENT, payload: &payload, now }).await
}

fn video_url(video: Uuid) -> String {
    format!("/v1/videos/{video}")
}

/// A webhook that listens, and the videos that its key reaches.
struct Listener {
    webhook: Uuid,
    visibility: Visibility,
    waiting: i64,
}

async fn publish(tx: &mut Tx, event: WebhookEvent, about: About, data: &Json) -> Result<(), CatalogError> {
    let listeners = listening(tx, event, None).await?;
    send(tx, listeners, event, about, data).await
}

/// Returns the webhooks that listen to an event and have a valid key. An alert's match goes only to the webhooks that the
/// alert names. The rows are locked, so nobody deletes them before the transaction ends.
async fn listening(
    tx: &mut Tx,
    event: WebhookEvent,
    alert: Option<Uuid>,
) -> Result<Vec<Listener>, CatalogError> {
    let mut values = values![tx.now_ms().await?];
    values.extend(alert.map(Value::from));
    let condition = match alert {
        Some(_) => "AND EXISTS (SELECT 1 FROM alert_webhooks a WHERE a.webhook = w.id AND a.alert = $2)",
        None => "",
    };
    let lock = if tx.is_postgres() { " FOR KEY SHARE OF w" } else { "" };
    let sql = format!(
        "SELECT w.id, w.events, k.reach, (SELECT count(*) FROM webhook_deliveries d \
         WHERE d.webhook = w.id AND d.state = 'waiting') AS waiting \
         FROM webhooks w LEFT JOIN api_keys k ON k.id = w.owner \
         WHERE w.disabled_at_ms IS NULL AND {KEY_IS_VALID} {condition} ORDER BY w.id{lock}"
    );
    let rows = tx.rows(Sql::Built(sql), values).await?;
    let mut listeners = Vec::new();
    for row in rows {
        if !row.get::<String>("events")?.split(' ').any(|name| name == event.name()) {
            continue;
        }
        let (webhook, waiting): (Uuid, i64) = (row.get("id")?, row.get("waiting")?);
        match visibility(&row) {
            Ok(visibility) => listeners.push(Listener { webhook, visibility, waiting }),
            // It must neither get every event nor fail the transaction.
            Err(error) => tracing::error!(%error, %webhook, "a webhook gets nothing: its key can't be read"),
        }
    }
    Ok(listeners)
}

/// The condition on `webhooks w LEFT JOIN api_keys k` under which the owner's key is valid. `$1`: now.
pub(super) const KEY_IS_VALID: &str = "(w.owner IS NULL OR (k.id IS NOT NULL AND k.revoked_at_ms IS NULL \
                                       AND (k.expires_at_ms IS NULL OR k.expires_at_ms > $1)))";

/// The videos that the key of a webhook reaches.
fn visibility(row: &Row) -> Result<Visibility, CatalogError> {
    let Some(reach) = row.get::<Option<String>>("reach")? else { return Ok(Visibility::All) };
    let filter = VideoFilter::parse(&parse_json(&reach)?);
    let filter = filter.map_err(|error| CatalogError::Damaged(error.into()))?;
    Ok(Visibility::Matching(Arc::new(filter)))
}

async fn send(
    tx: &mut Tx,
    to: Vec<Listener>,
    event: WebhookEvent,
    about: About,
    data: &Json,
) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let payload = payload(event.name(), now, data)?;
    let mut is_stored = false;
    for Listener { webhook, visibility, waiting } in to {
        if !may_get(tx, &visibility, about).await? {
            continue;
        }
        if waiting >= MOST_WAITING {
            let sql = "UPDATE webhooks SET dropped = dropped + 1 WHERE id = $1";
            tx.execute(sql, values![webhook]).await?;
            continue;
        }
        store(tx, NewDelivery { webhook, event: event.name(), payload: &payload, now }).await?;
        is_stored = true;
    }
    if is_stored { tx.announce(News::Deliveries).await } else { Ok(()) }
}

async fn may_get(tx: &mut Tx, visibility: &Visibility, about: About) -> Result<bool, CatalogError> {
    if !visibility.is_limited() {
        return Ok(true);
    }
    let (sql, id) = match about {
        About::Video(id) => (Sql::Same("SELECT v.id FROM visible_videos v WHERE v.id = $1"), id),
        About::Export(id) => {
            let seen = exports::is_seen(visibility);
            (Sql::Built(format!("SELECT e.id FROM exports e WHERE e.id = $1 AND {seen}")), id)
        }
    };
    Ok(tx.row_seen_by(visibility, sql, values![id]).await?.is_some())
}

fn payload(kind: &str, now: i64, data: &Json) -> Result<String, CatalogError> {
    to_json(&json!({"type": kind, "timestamp": instant::format(now), "data": data}))
}

/// A delivery to store.
struct NewDelivery<'a> {
    webhook: Uuid,
    event: &'static str,
    payload: &'a str,
    now: i64,
}

async fn store(tx: &mut Tx, new: NewDelivery<'_>) -> Result<Uuid, CatalogError> {
    let id = Uuid::now_v7();
    let sql = "INSERT INTO webhook_deliveries (id, webhook, event, payload, state, not_before_ms, created_at_ms, \
               updated_at_ms) VALUES ($1, $2, $3, $4, 'waiting', $5, $5, $5)";
    tx.execute(sql, values![id, new.webhook, new.event, new.payload, new.now]).await?;
    Ok(id)
}
