//! `/v1/exports`: files of ranges.

mod answer;
mod body;
mod forms;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Id, Json, Params};
use super::media;
use super::names::FileBytes;
use crate::app::{App, Authorized};
use crate::catalog::NewExport;
use crate::storage::StoredFile;
use answer::{ExportOut, ExportPage};
use body::ExportBody;
use forms::ExportForms;

/// Routes of `/v1/exports`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(get, delete)).routes(routes!(download))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ExportParams {
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    cursor: Option<Uuid>,
}

/// Starts an export: a film, an edit list, a table or chapters of a reel, of a search or of ranges.
///
/// The export is a job of the same id, which `/v1/jobs/{id}` shows, cancels and retries.
#[utoipa::path(post, path = "/v1/exports", operation_id = "createExport", tag = "exports", request_body = ExportForms,
    responses((status = 202, body = ExportOut), (status = 404), (status = 409),
        (status = 422), (status = 424), (status = 429)))]
async fn create(
    app: Authorized,
    Json(body): Json<ExportBody>,
) -> Result<(StatusCode, axum::Json<ExportOut>), ApiError> {
    let (source, request) = body.checked(&app).await?;
    let stored = serde_json::to_value(&request).map_err(ApiError::internal)?;
    let new = NewExport { request: stored, ranges: request.ranges, added_by: app.caller().key_id() };
    let export = app.view().add_export(&new).await.map_err(|error| source.error(error))?;
    Ok((StatusCode::ACCEPTED, axum::Json(ExportOut::of(&app, export)?)))
}

/// Lists exports that have not expired, newest first. A key that reaches some videos only sees the exports whose videos it
/// reaches, all of them.
#[utoipa::path(get, path = "/v1/exports", operation_id = "listExports", tag = "exports", params(ExportParams),
    responses((status = 200, body = ExportPage)))]
async fn list(
    app: Authorized,
    Params(params): Params<ExportParams>,
) -> Result<axum::Json<ExportPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let exports = app.view().exports(params.cursor, limit).await?;
    let next_cursor = super::next_cursor(&exports, limit, |export| export.job.id);
    let items = exports.into_iter().map(|export| ExportOut::of(&app, export)).collect::<Result<_, _>>()?;
    Ok(axum::Json(ExportPage { items, next_cursor }))
}

/// Returns one export: its progress, then its file with a signed address.
#[utoipa::path(get, path = "/v1/exports/{id}", operation_id = "getExport", tag = "exports", params(("id" = Uuid, Path, description = "Id of the export and its job")),
    responses((status = 200, body = ExportOut), (status = 404)))]
async fn get(app: Authorized, Id(id): Id) -> Result<axum::Json<ExportOut>, ApiError> {
    let export = found(app.view().export(id).await?, id)?;
    Ok(axum::Json(ExportOut::of(&app, export)?))
}

/// Deletes an export with its file. A running one stops.
#[utoipa::path(delete, path = "/v1/exports/{id}", operation_id = "deleteExport", tag = "exports",
    params(("id" = Uuid, Path, description = "Id of the export and its job")), responses((status = 204), (status = 404)))]
async fn delete(app: Authorized, Id(id): Id) -> Result<StatusCode, ApiError> {
    found(app.view().end_export(id).await?, id)?;
    app.deleted.notify_one();
    Ok(StatusCode::NO_CONTENT)
}

/// Serves the file of an export. Supports byte ranges.
#[utoipa::path(get, path = "/v1/exports/{id}/download", operation_id = "downloadExport", tag = "exports",
    params(("id" = Uuid, Path, description = "Id of the export and its job")),
    responses((status = 200, description = "The file", content((inline(FileBytes) = "video/mp4"),
        (inline(FileBytes) = "application/zip"), (String = "text/plain"), (String = "text/csv"), (String = "text/vtt"),
        (String = "application/xml"), (serde_json::Value = "application/json"))), (status = 404), (status = 409)))]
async fn download(app: Authorized, Id(id): Id, request: Request) -> Result<Response, ApiError> {
    let export = found(app.view().export(id).await?, id)?;
    let made =
        export.made.ok_or_else(|| ApiError::conflict("the export is not made yet; look at its state"))?;
    let gone = |_| ApiError::not_found("the export's file is gone; make it again").at("id");
    let file = app.storage.local(&StoredFile::of(&made.file)).await.map_err(gone)?;
    let mut response = media::serve(file.path(), &made.media_type, request).await?;
    response.headers_mut().insert(header::CONTENT_DISPOSITION, attachment(&made.file_name)?);
    Ok(response)
}

/// The export, or 404.
pub(super) fn found<T>(export: Option<T>, id: Uuid) -> Result<T, ApiError> {
    export.ok_or_else(|| ApiError::not_found(format!("there is no export {id}, or it has expired")).at("id"))
}

/// Makes browsers save a file under its name (RFC 6266).
fn attachment(file_name: &str) -> Result<HeaderValue, ApiError> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || " -_.()".contains(it);
    let plain: String = file_name.chars().map(|it| if is_plain(it) { it } else { '_' }).collect();
    let exact = utf8_percent_encode(file_name, NON_ALPHANUMERIC);
    HeaderValue::from_str(&format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"))
        .map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_saved_as_they_are() {
        let header = attachment("été 1.mp4").unwrap();
        let expected = "attachment; filename=\"_t_ 1.mp4\"; filename*=UTF-8''%C3%A9t%C3%A9%201%2Emp4";
        assert_eq!(header.to_str().unwrap(), expected);
    }
}
