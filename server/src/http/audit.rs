//! `GET /v1/audit`, and the entries that requests leave in the audit log.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::{ApiError, REQUEST_ID};
use super::extract::{self, Params};
use super::instant;
use crate::access::Caller;
use crate::app::{App, Authorized};
use crate::catalog::{AuditEntry, NewAuditEntry};

/// Status of a request whose client hung up before the answer; no client sees it.
const HUNG_UP: u16 = 499;

/// Entries of clients that hung up which wait for the database at once, in this process. Such clients wait for nothing, so
/// nothing else bounds their number.
const HUNG_UP_WAITING: usize = 64;
static PLACES: Semaphore = Semaphore::const_new(HUNG_UP_WAITING);

/// Routes of `/v1/audit`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A request that will be logged if it succeeds.
pub(super) struct Record {
    entry: NewAuditEntry,
    /// Whether it sends bytes of a resumable upload, of which the last ones count: they make the video.
    is_part: bool,
    is_download: bool,
}

impl Record {
    /// The entry of a change, or of a download of media; `None` for other requests.
    pub(super) fn of(request: &Request, caller: &Caller) -> Option<Record> {
        let route = request.extensions().get::<MatchedPath>()?.as_str();
        let is_download = is_download(request.method(), route);
        if !is_change(request.method(), route) && !is_download {
            return None;
        }
        let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let is_part = is_part(request, route);
        let entry = NewAuditEntry {
            key: caller.key_id(),
            key_name: caller.key().map(|key| key.name.clone()),
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            status: 0,
            request_id: id.to_owned(),
        };
        Some(Record { entry, is_part, is_download })
    }

    /// Watches over the request until it is answered: if its client hangs up, nobody knows how far it came.
    pub(super) fn watched(self, app: &Arc<App>) -> Watched {
        Watched { record: Some(self), app: Arc::clone(app) }
    }

    fn answered(self, response: &Response) -> Option<Record> {
        let status = response.status();
        // A change whose time was up may have been made.
        let is_unknown = status == StatusCode::GATEWAY_TIMEOUT && !self.is_download;
        let failed = (status.is_client_error() || status.is_server_error()) && !is_unknown;
        let changes_nothing = self.is_part && !response.headers().contains_key("reprise-video-id");
        let entry = NewAuditEntry { status: status.as_u16(), ..self.entry };
        (!failed && !changes_nothing).then_some(Record { entry, ..self })
    }

    /// Stores the entry. What the request changed stays even if the log can't be written.
    pub(super) async fn store(self, app: &App) {
        if app.config.audit_days == 0 {
            return;
        }
        let entry = self.entry;
        // A player asks for many ranges of one file.
        if self.is_download && !app.downloads.is_new(entry.key, &entry.path, Instant::now()) {
            return;
        }
        if let Err(error) = app.catalog.log_request(entry).await {
            tracing::error!(%error, "the audit log lacks an entry");
        }
    }
}

/// A request that runs. Dropped before its answer, it is logged as a change whose client hung up.
pub(super) struct Watched {
    /// `None` after the answer.
    record: Option<Record>,
    app: Arc<App>,
}

impl Watched {
    /// The record with the answer; `None` if the request surely failed or changed nothing.
    pub(super) fn answered(mut self, response: &Response) -> Option<Record> {
        self.record.take().and_then(|record| record.answered(response))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Nothing of a download was sent yet.
        let Some(record) = self.record.take().filter(|record| !record.is_download) else { return };
        let entry = NewAuditEntry { status: HUNG_UP, ..record.entry };
        let (record, app) = (Record { entry, ..record }, Arc::clone(&self.app));
        // At the end of the server there may be no runtime.
        let Ok(runtime) = Handle::try_current() else { return };
        match PLACES.try_acquire() {
            Ok(place) => {
                runtime.spawn(async move {
                    record.store(&app).await;
                    drop(place);
                });
            }
            Err(_) => tracing::error!("the audit log lacks a change whose client hung up: too many do"),
        }
    }
}

/// Whether such a request changes anything. Searches and links change nothing; feedback is in the query log itself.
pub(super) fn is_change(method: &Method, route: &str) -> bool {
    let reads =
        ["/v1/search", "/v1/search/batch", "/v1/embeddings", "/v1/media-links", "/v1/searches/{id}/feedback"];
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) && !reads.contains(&route)
}

/// Whether it sends bytes of a resumable upload. A `POST` may stand for a `PATCH`.
fn is_part(request: &Request, route: &str) -> bool {
    let deletes = request.headers().get("x-http-method-override").is_some_and(|method| method == "DELETE");
    let may_send = *request.method() == Method::PATCH || *request.method() == Method::POST && !deletes;
    route == "/v1/uploads/{id}" && may_send
}

/// Whether it asks for a file, or a range of it.
fn is_download(method: &Method, route: &str) -> bool {
    (route.ends_with("/media") || route.ends_with("/download")) && *method == Method::GET
}

/// A change, or a download of media.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
struct AuditOut {
    /// Time of the answer (RFC 3339).
    at: String,
    /// Id of the caller's API key. Null for the server's own key, and on a server without keys.
    key_id: Option<Uuid>,
    /// The key's name at that time. Null without a key.
    key_name: Option<String>,
    /// HTTP method of the request.
    method: String,
    /// Path of the request, without its query string.
    path: String,
    /// HTTP status of the answer, 200 to 399. A change may have been made, too, if its time was up (504), or if its client
    /// hung up before the answer (499).
    #[schema(minimum = 200, maximum = 504)]
    status: u16,
    /// The request's id, as in the server's log; or the command that made the change on the server's machine, such as
    /// `reprise keys add`.
    request_id: String,
}

impl From<AuditEntry> for AuditOut {
    fn from(entry: AuditEntry) -> AuditOut {
        let NewAuditEntry { key, key_name, method, path, status, request_id } = entry.request;
        AuditOut { at: instant(entry.at_ms), key_id: key, key_name, method, path, status, request_id }
    }
}

/// One page of the audit log.
#[derive(Debug, Serialize, ToSchema)]
struct AuditPage {
    /// The entries, at most `limit`.
    items: Vec<AuditOut>,
    /// Cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditParams {
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page: the number of its last entry.
    #[param(nullable = false, minimum = 1)]
    cursor: Option<i64>,
}

/// Lists changes and downloads of media, newest first.
#[utoipa::path(get, path = "/v1/audit", operation_id = "listAuditEntries", tag = "access", params(AuditParams),
    responses((status = 200, body = AuditPage)))]
async fn list(
    app: Authorized,
    Params(params): Params<AuditParams>,
) -> Result<axum::Json<AuditPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    if params.cursor.is_some_and(|cursor| cursor < 1) {
        return Err(ApiError::invalid("cursor", "must be the next_cursor of a page"));
    }
    let entries = app.catalog.audit_log(params.cursor, limit).await?;
    let next_cursor = super::next_cursor(&entries, limit, |entry| entry.seq);
    Ok(axum::Json(AuditPage { items: entries.into_iter().map(AuditOut::from).collect(), next_cursor }))
}
