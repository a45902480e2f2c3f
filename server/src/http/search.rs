//! `POST /v1/search`: searches and their next pages.

mod answer;
mod batch;
mod body;
mod facets;
mod forms;
mod html;
mod names;
mod query;

use std::sync::Arc;

use axum::extract::{FromRequest, Request as HttpRequest};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::extract::{self, Form, Json};
use super::guard;
use crate::app::{App, Authorized};
use crate::search::{self, CursorSigner};
use answer::SearchAnswer;
use body::SearchForm;
use query::Carrier;

pub(super) use answer::{QueryInfoOut, TimingsOut, seconds};
pub(super) use body::{SearchBody, SearchForms};
pub(super) use forms::{ClipBody, FilterForms, InputForms};
pub(super) use names::{EvidenceSource, OverflowName, QueryKindName, SearchKindName};
pub(super) use query::some_text;

/// Routes of `/v1/search`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(search)).routes(routes!(batch::search_batch))
}

/// Searches by a text, a clip, an image, or several examples. A modification text may change a clip or an image.
///
/// Send JSON, or multipart with the part `query` (this JSON, at most 256 KiB), then the part `file`: a video, or a
/// JPEG, PNG or WebP image. Scores are comparable within one answer only.
#[utoipa::path(
    post, path = "/v1/search", operation_id = "searchVideos", tag = "search",
    request_body(content((SearchForms = "application/json"), (SearchForm = "multipart/form-data"))),
    responses((status = 200, body = SearchAnswer), (status = 404), (status = 409), (status = 410), (status = 424))
)]
async fn search(app: Authorized, request: HttpRequest) -> Result<axum::Json<SearchAnswer>, ApiError> {
    if extract::has_type(request.headers(), "multipart/form-data") {
        return search_multipart(&app, Form::from_request(request, &()).await?).await;
    }
    let Json(body) = Json::<SearchBody>::from_request(request, &()).await?;
    if let Some(cursor) = &body.cursor {
        body.stands_alone()?;
        return Ok(axum::Json(search::next(&app, CursorSigner::of(&app).decode(cursor)?).await?.into()));
    }
    let request = body.checked(Carrier::Json)?;
    let admitted = search::admit(&app, &request)?;
    Ok(axum::Json(search::ask(&app, request, admitted).await?.into()))
}

/// The results of a search's first page, for an export.
pub(super) async fn matches(app: &Authorized, body: SearchBody) -> Result<Vec<search::Match>, ApiError> {
    let request = body.checked(Carrier::Json)?;
    if request.per_group.is_some() {
        return Err(ApiError::invalid("/group_by", "an export takes hits one by one"));
    }
    let _place = app.gate.search_place(app.caller())?;
    let admitted = search::admit(app, &request)?;
    Ok(search::run(app, request, admitted).await?.results)
}

/// Reads a search that was stored, for an alert.
///
/// # Errors
/// What is wrong with it.
pub fn stored_search(body: &Value) -> Result<search::Request, String> {
    read_stored(body).map_err(|error| error.detail().to_owned())
}

/// Reads a search that is to be stored.
///
/// # Errors
/// What is wrong with it, with pointers into the search.
pub(super) fn read_stored(body: &Value) -> Result<search::Request, ApiError> {
    if !body.is_object() {
        return Err(ApiError::invalid("", "must be an object"));
    }
    let bytes = serde_json::to_vec(body).map_err(ApiError::internal)?;
    extract::parse::<SearchBody>(&bytes, "")?.checked(Carrier::Json)
}

/// Encodes a search that is to be stored, so that its space, its clip and its text are checked too.
///
/// # Errors
/// As a search.
pub(super) async fn check_stored(app: &Authorized, request: &search::Request) -> Result<(), ApiError> {
    let _place = app.gate.search_place(app.caller())?;
    let admitted = search::admit(app, request)?;
    search::plan(app, request, admitted).await?;
    Ok(())
}

/// Checks the JSON, and whether the pools have room, before it reads the file. It takes their places only then: a client
/// that sends slowly must not hold them.
async fn search_multipart(app: &Authorized, mut form: Form) -> Result<axum::Json<SearchAnswer>, ApiError> {
    let _receiving = extract::receiving(&app.query_uploads)?;
    let body: SearchBody = form.query(app).await?;
    let mut request = body.checked(Carrier::Multipart)?;
    drop(search::admit(app, &request)?);
    let file = form.file(app).await?;
    let admitted = search::admit(app, &request)?;
    request.query.point_at(file.path(), file.content_hash());
    let outcome = guard::in_time(app, async { Ok(search::ask(app, request, admitted).await?) });
    Ok(axum::Json(outcome.await?.into()))
}
