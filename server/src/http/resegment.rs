//! `POST /v1/videos/{id}/resegment`: segments a stored video again.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{Id, Json};
use super::jobs::JobOut;
use super::segmentation::SegmentationBody;
use super::videos::found;
use crate::app::{App, Authorized};
use crate::catalog::Segmentation;
use crate::library::Library;

/// Routes of `/v1/videos/{id}/resegment`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(resegment))
}

/// The job that segments the video.
#[derive(Debug, Serialize, ToSchema)]
struct Resegmenting {
    /// The job that segments the video.
    job: JobOut,
}

/// Segments a stored video again. The server does not decode the video if it stores features of its frames.
///
/// The new clips have new ids. Your own clips stay. Searches find the old clips until the job has succeeded.
#[utoipa::path(post, path = "/v1/videos/{id}/resegment", operation_id = "resegmentVideo", tag = "library",
    params(("id" = Uuid, Path, description = "The video's id")), request_body = SegmentationBody,
    responses((status = 202, body = Resegmenting), (status = 409)))]
async fn resegment(
    app: Authorized,
    Id(id): Id,
    Json(body): Json<SegmentationBody>,
) -> Result<(StatusCode, axum::Json<Resegmenting>), ApiError> {
    let segmentation = asked(&app, &body, id).await?;
    let job = Library::of(&app).recut(id, segmentation).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(Resegmenting { job: job.into() })))
}

/// The requested segmentation.
async fn asked(app: &Authorized, body: &SegmentationBody, id: Uuid) -> Result<Segmentation, ApiError> {
    if body.has_clips() {
        let detail = "clips of your own are added with POST /v1/videos/{id}/clips";
        return Err(ApiError::invalid("/clips", detail));
    }
    found(app.view().video(id).await?, id)?;
    if body.is_given_only() {
        return Ok(Segmentation::Given {});
    }
    body.segmentation(app.config.max_clip_seconds).map_err(|error| error.moved("/segmentation", ""))
}
