//! `POST /v1/videos/{id}/read-text`: has the text on screen in a stored video read.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::extract::Id;
use super::jobs::JobOut;
use super::videos::found;
use crate::app::{App, Authorized};
use crate::ingest;
use crate::library::LibraryError;

/// Routes of `/v1/videos/{id}/read-text`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(read_text))
}

/// The job that reads the text on screen.
#[derive(Debug, Serialize, ToSchema)]
struct ReadingText {
    /// The job that reads the text on screen.
    job: JobOut,
}

/// Has the text on screen in a stored video read, such as slides and score boards.
///
/// The job's result is a track of kind `ocr`, searched as the source `screen`. It replaces what was read before. A video
/// without text is no failure: the job succeeds, and its `note` says so. A video that is not searchable yet is read after its
/// ingest. The answer is 409 if the server has no Tesseract with the languages of `--text-languages`, the ingest has failed,
/// or the text is being read.
#[utoipa::path(post, path = "/v1/videos/{id}/read-text", operation_id = "readText", tag = "subtitles",
    params(("id" = Uuid, Path, description = "The video's id")),
    responses((status = 202, body = ReadingText), (status = 409)))]
async fn read_text(app: Authorized, Id(id): Id) -> Result<(StatusCode, axum::Json<ReadingText>), ApiError> {
    found(app.view().video(id).await?, id)?;
    let reader = ingest::text_reader(&app.config.screen_text.text_languages).await;
    reader.map_err(|error| ApiError::conflict(error.to_string()))?;
    let job = app.view().read_text(id).await?.ok_or(LibraryError::NoVideo(id))?;
    Ok((StatusCode::ACCEPTED, axum::Json(ReadingText { job: job.into() })))
}
