//! `/v1/webhooks`: addresses that get events, and the deliveries to them.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Id, Json, Params};
use super::instant;
use crate::activity::{signature, webhooks};
use crate::app::{App, Authorized};
use crate::catalog::{
    Delivery, DeliveryState, LONGEST_DESCRIPTION, LONGEST_URL, NewWebhook, Webhook, WebhookEvent,
    WebhookSecret,
};

/// Routes of `/v1/webhooks`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get, delete))
        .routes(routes!(rotate))
        .routes(routes!(test))
        .routes(routes!(deliveries))
}

/// An event. `video.ready`: a video became searchable. `video.failed`: its ingest failed or was
/// cancelled. `export.ready`: the file of an export was made. `alert.matched`: an alert found something in a new video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = WebhookEvent)]
enum EventName {
    #[serde(rename = "video.ready")]
    VideoReady,
    #[serde(rename = "video.failed")]
    VideoFailed,
    #[serde(rename = "export.ready")]
    ExportReady,
    #[serde(rename = "alert.matched")]
    AlertMatched,
}

/// State of a delivery. `waiting`: for its first attempt or the next one. `delivered`: the receiver answered 2xx. `failed`:
/// it was given up.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DeliveryState)]
enum StateName {
    Waiting,
    Delivered,
    Failed,
}

/// A webhook to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhook)]
struct WebhookBody {
    /// Where events are sent by POST: an https URL of at most 2000 bytes that leads to a public address, without user,
    /// password and fragment.
    #[schema(max_length = 2000)]
    url: String,
    /// The events that it gets; at least one.
    #[schema(min_items = 1)]
    events: Vec<EventName>,
    /// A note for people, at most 500 characters; default none.
    #[serde(default)]
    #[schema(max_length = 500, pattern = r"^[^\x00]*$")]
    description: String,
}

impl WebhookBody {
    fn checked(self, app: &Authorized) -> Result<NewWebhook, ApiError> {
        if self.url.len() > LONGEST_URL {
            return Err(ApiError::invalid("/url", format!("must have at most {LONGEST_URL} bytes")));
        }
        let url = webhooks::checked_url(&self.url, app.config.webhooks_reach());
        let url = url.map_err(|wrong| ApiError::invalid("/url", wrong.to_string()))?;
        if self.events.is_empty() {
            return Err(ApiError::invalid("/events", "name at least one event"));
        }
        let is_too_long = self.description.chars().count() > LONGEST_DESCRIPTION;
        if is_too_long || self.description.contains('\0') {
            let detail = format!("must have at most {LONGEST_DESCRIPTION} characters, and no NUL");
            return Err(ApiError::invalid("/description", detail));
        }
        let named = |event: &WebhookEvent| self.events.contains(&EventName::from(*event));
        Ok(NewWebhook {
            owner: app.caller().key_id(),
            url: url.into(),
            events: WebhookEvent::ALL.into_iter().filter(named).collect(),
            description: self.description,
            secret: signature::new_secret(),
        })
    }
}

/// A webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
struct WebhookOut {
    /// Its id, a uuid v7.
    id: Uuid,
    /// Where events are sent.
    url: String,
    /// The events that it gets.
    events: Vec<EventName>,
    /// A note for people.
    description: String,
    /// Id of the API key that made it. Null without a key.
    key_id: Option<Uuid>,
    /// Since when it gets nothing (RFC 3339). Null: it works.
    disabled_at: Option<String>,
    /// Why it gets nothing. Null: it works.
    disabled_reason: Option<String>,
    /// Number of events that were dropped because 10000 deliveries waited.
    #[schema(minimum = 0)]
    dropped: i64,
    /// Time of its making (RFC 3339).
    created_at: String,
}

impl From<Webhook> for WebhookOut {
    fn from(webhook: Webhook) -> WebhookOut {
        let (disabled_at, why) = webhook.disabled.map(|it| (instant(it.at_ms), it.why)).unzip();
        WebhookOut {
            id: webhook.id,
            url: webhook.url,
            events: webhook.events.into_iter().map(EventName::from).collect(),
            description: webhook.description,
            key_id: webhook.owner,
            disabled_at,
            disabled_reason: why,
            dropped: webhook.dropped,
            created_at: instant(webhook.created_at_ms),
        }
    }
}

/// A webhook with its secret, which is shown only here.
#[derive(Debug, Serialize, ToSchema)]
struct WebhookWithSecret {
    /// The secret that signs its deliveries: `whsec_` and base64.
    secret: String,
    #[serde(flatten)]
    about: WebhookOut,
}

impl WebhookWithSecret {
    fn new(webhook: Webhook, secret: &WebhookSecret) -> WebhookWithSecret {
        WebhookWithSecret { secret: signature::text(secret), about: webhook.into() }
    }
}

/// One page of webhooks.
#[derive(Debug, Serialize, ToSchema)]
struct WebhookPage {
    /// The webhooks of this page.
    items: Vec<WebhookOut>,
    /// Cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

/// A delivery of an event to a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
struct DeliveryOut {
    /// Its id, a uuid v7. The receiver gets it as `webhook-id`, the same in each attempt.
    id: Uuid,
    /// Type of its payload: an event, or `webhook.test`.
    r#type: String,
    /// Its state.
    state: StateName,
    /// Number of attempts so far.
    #[schema(minimum = 0)]
    attempts: i64,
    /// Time of the next attempt (RFC 3339). Null unless it waits.
    next_attempt_at: Option<String>,
    /// HTTP status of the last answer, 200 to 599. Null: there was none.
    #[schema(minimum = 200, maximum = 599)]
    status: Option<i64>,
    /// Why the last attempt failed. Null: it did not, or there was none.
    reason: Option<String>,
    /// Time of the event (RFC 3339).
    created_at: String,
    /// Time of the last change (RFC 3339).
    updated_at: String,
}

impl From<Delivery> for DeliveryOut {
    fn from(delivery: Delivery) -> DeliveryOut {
        DeliveryOut {
            id: delivery.id,
            r#type: delivery.event,
            state: delivery.state.into(),
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_ms.map(instant),
            status: delivery.status,
            reason: delivery.reason,
            created_at: instant(delivery.created_at_ms),
            updated_at: instant(delivery.updated_at_ms),
        }
    }
}

/// One page of deliveries.
#[derive(Debug, Serialize, ToSchema)]
struct DeliveryPage {
    /// The deliveries of this page.
    items: Vec<DeliveryOut>,
    /// Cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct WebhookPageParams {
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false)]
    cursor: Option<Uuid>,
}

/// Makes a webhook. The answer has its secret, which is shown only once.
///
/// It belongs to the key that makes it, and gets events of the videos that this key reaches, for as long as the key is valid.
/// A library has at most 100 webhooks.
#[utoipa::path(post, path = "/v1/webhooks", operation_id = "createWebhook", tag = "activity", request_body = WebhookBody,
    responses((status = 201, body = WebhookWithSecret), (status = 409)))]
async fn create(
    app: Authorized,
    Json(body): Json<WebhookBody>,
) -> Result<(StatusCode, axum::Json<WebhookWithSecret>), ApiError> {
    let new = body.checked(&app)?;
    let webhook = app.catalog.add_webhook(&new).await?;
    Ok((StatusCode::CREATED, axum::Json(WebhookWithSecret::new(webhook, &new.secret))))
}

/// Lists webhooks, newest first: those of the caller's key, or all for the scope `admin`.
#[utoipa::path(get, path = "/v1/webhooks", operation_id = "listWebhooks", tag = "activity", params(WebhookPageParams),
    responses((status = 200, body = WebhookPage)))]
async fn list(
    app: Authorized,
    Params(params): Params<WebhookPageParams>,
) -> Result<axum::Json<WebhookPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let webhooks = app.catalog.webhooks(app.caller().owner(), params.cursor, limit).await?;
    let next_cursor = super::next_cursor(&webhooks, limit, |webhook| webhook.id);
    Ok(axum::Json(WebhookPage { items: webhooks.into_iter().map(WebhookOut::from).collect(), next_cursor }))
}

/// Returns one webhook.
#[utoipa::path(get, path = "/v1/webhooks/{id}", operation_id = "getWebhook", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the webhook")), responses((status = 200, body = WebhookOut)))]
async fn get(app: Authorized, Id(id): Id) -> Result<axum::Json<WebhookOut>, ApiError> {
    let webhook = app.catalog.webhook(app.caller().owner(), id).await?;
    Ok(axum::Json(found(webhook, id)?.into()))
}

/// Deletes a webhook with its deliveries, also those that wait.
#[utoipa::path(delete, path = "/v1/webhooks/{id}", operation_id = "deleteWebhook", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the webhook")), responses((status = 204)))]
async fn delete(app: Authorized, Id(id): Id) -> Result<StatusCode, ApiError> {
    found(app.catalog.delete_webhook(app.caller().owner(), id).await?, id)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a webhook a new secret, which the answer shows. For a day, deliveries are signed with the old one too.
#[utoipa::path(post, path = "/v1/webhooks/{id}/rotate", operation_id = "rotateWebhookSecret", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the webhook")),
    responses((status = 200, body = WebhookWithSecret)))]
async fn rotate(app: Authorized, Id(id): Id) -> Result<axum::Json<WebhookWithSecret>, ApiError> {
    let secret = signature::new_secret();
    let webhook = app.catalog.rotate_webhook(app.caller().owner(), id, &secret).await?;
    Ok(axum::Json(WebhookWithSecret::new(found(webhook, id)?, &secret)))
}

/// Sends an event of the type `webhook.test` to a webhook. The answer is the delivery, which waits for its first attempt.
#[utoipa::path(post, path = "/v1/webhooks/{id}/test", operation_id = "testWebhook", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the webhook")),
    responses((status = 202, body = DeliveryOut), (status = 409)))]
async fn test(app: Authorized, Id(id): Id) -> Result<(StatusCode, axum::Json<DeliveryOut>), ApiError> {
    let delivery = app.catalog.test_webhook(app.caller().owner(), id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(found(delivery, id)?.into())))
}

/// Lists the deliveries of a webhook, newest first: those that wait, and up to 1000 that ended within a week.
#[utoipa::path(get, path = "/v1/webhooks/{id}/deliveries", operation_id = "listWebhookDeliveries", tag = "activity",
    params(("id" = Uuid, Path, description = "Id of the webhook"), WebhookPageParams),
    responses((status = 200, body = DeliveryPage)))]
async fn deliveries(
    app: Authorized,
    Id(id): Id,
    Params(params): Params<WebhookPageParams>,
) -> Result<axum::Json<DeliveryPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let listed = app.catalog.deliveries(app.caller().owner(), id, params.cursor, limit).await?;
    let listed = found(listed, id)?;
    let next_cursor = super::next_cursor(&listed, limit, |delivery| delivery.id);
    Ok(axum::Json(DeliveryPage { items: listed.into_iter().map(DeliveryOut::from).collect(), next_cursor }))
}

/// The webhook, or 404.
fn found<T>(webhook: Option<T>, id: Uuid) -> Result<T, ApiError> {
    webhook.ok_or_else(|| ApiError::no_such("webhook", id))
}

impl From<WebhookEvent> for EventName {
    fn from(event: WebhookEvent) -> EventName {
        match event {
            WebhookEvent::VideoReady => EventName::VideoReady,
            WebhookEvent::VideoFailed => EventName::VideoFailed,
            WebhookEvent::ExportReady => EventName::ExportReady,
            WebhookEvent::AlertMatched => EventName::AlertMatched,
        }
    }
}

impl From<DeliveryState> for StateName {
    fn from(state: DeliveryState) -> StateName {
        match state {
            DeliveryState::Waiting => StateName::Waiting,
            DeliveryState::Delivered => StateName::Delivered,
            DeliveryState::Failed => StateName::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_contract_names_events_and_states_as_the_catalog_does() {
        for event in WebhookEvent::ALL {
            assert_eq!(json!(EventName::from(event)), json!(event.name()));
        }
        for state in DeliveryState::ALL {
            assert_eq!(json!(StateName::from(state)), json!(state.name()));
        }
    }
}
