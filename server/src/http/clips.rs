//! `/v1/videos/{id}/clips` and `/v1/clips/{id}`: clips from the segmentation, and clips from users.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::conditional;
use super::error::ApiError;
use super::extract::{self, Id, Json, Params};
use super::jobs::JobOut;
use super::names::LevelName;
use super::search::seconds;
use super::segmentation::GivenBody;
use super::videos::{checked_metadata, found as found_video};
use crate::app::{App, Authorized};
use crate::catalog::Span;
use crate::library::Library;
use crate::terms::Level;

/// Routes of `/v1/videos/{id}/clips` and `/v1/clips/{id}`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list, add)).routes(routes!(get, patch, delete))
}

/// A time range of a video. Times are in seconds, end exclusive.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Clip)]
pub(super) struct ClipOut {
    /// The clip's id, a uuid v7.
    id: Uuid,
    /// Id of its video.
    video_id: Uuid,
    /// Level of the span.
    #[schema(value_type = LevelName)]
    level: Level,
    /// Whether a user added the clip. Otherwise the segmentation made it.
    given: bool,
    /// Start, in seconds of the video.
    #[schema(minimum = 0)]
    start: f64,
    /// End, in seconds of the video, exclusive; after the start.
    #[schema(minimum = 0)]
    end: f64,
    /// The clip's own metadata. In a hit, its fields replace the video's fields of the same name.
    #[schema(value_type = HashMap<String, Value>)]
    metadata: Value,
    /// Path of a JPEG of the frame in the middle.
    thumbnail_url: String,
    /// Path of an MP4 of the first 10 seconds.
    preview_url: String,
}

impl From<Span> for ClipOut {
    fn from(span: Span) -> ClipOut {
        ClipOut {
            thumbnail_url: format!("/v1/clips/{}/thumbnail", span.id),
            preview_url: format!("/v1/clips/{}/preview", span.id),
            id: span.id,
            video_id: span.video,
            level: span.level,
            given: span.given,
            start: seconds(span.start_ms),
            end: seconds(span.end_ms),
            metadata: span.metadata,
        }
    }
}

/// One page of clips.
#[derive(Debug, Serialize, ToSchema)]
struct ClipPage {
    /// The clips, at most `limit`.
    items: Vec<ClipOut>,
    /// Cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ClipParams {
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false, pattern = r"^-?[0-9]{1,18}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    cursor: Option<String>,
}

/// Lists a video's clips in order of start.
#[utoipa::path(get, path = "/v1/videos/{id}/clips", operation_id = "listClips", tag = "library",
    params(("id" = Uuid, Path, description = "The video's id"), ClipParams),
    responses((status = 200, body = ClipPage)))]
async fn list(
    app: Authorized,
    Id(id): Id,
    Params(params): Params<ClipParams>,
) -> Result<axum::Json<ClipPage>, ApiError> {
    found_video(app.view().video(id).await?, id)?;
    let limit = extract::page_size(params.limit)?;
    let after = params.cursor.as_deref().map(extract::time_cursor).transpose()?;
    let clips = app.view().clips(id, after, limit).await?;
    let next_cursor = super::next_cursor(&clips, limit, |clip| format!("{}.{}", clip.start_ms, clip.id));
    Ok(axum::Json(ClipPage { items: clips.into_iter().map(ClipOut::from).collect(), next_cursor }))
}

/// A user's clip and the job that makes it searchable.
#[derive(Debug, Serialize, ToSchema)]
struct AddedClip {
    /// The new clip.
    clip: ClipOut,
    /// The job that encodes the clip.
    job: JobOut,
}

/// Adds your own clip to a video. The clip is searchable when the job has succeeded.
#[utoipa::path(post, path = "/v1/videos/{id}/clips", operation_id = "addClip", tag = "library",
    params(("id" = Uuid, Path, description = "The video's id")), request_body = GivenBody,
    responses((status = 202, body = AddedClip)))]
async fn add(
    app: Authorized,
    Id(id): Id,
    Json(body): Json<GivenBody>,
) -> Result<(StatusCode, axum::Json<AddedClip>), ApiError> {
    let clip = body.checked("")?;
    let video = found_video(app.view().video(id).await?, id)?;
    if let Some(facts) = video.facts.filter(|facts| facts.duration_ms <= clip.start_ms) {
        let detail = format!("the video ends at {} s", seconds(facts.duration_ms));
        return Err(ApiError::invalid("/start", detail));
    }
    let added = app.view().add_given_clip(id, clip).await?;
    let (clip, job) = added.ok_or_else(|| ApiError::no_such("video", id))?;
    Ok((StatusCode::ACCEPTED, axum::Json(AddedClip { clip: clip.into(), job: job.into() })))
}

/// Returns one clip.
#[utoipa::path(get, path = "/v1/clips/{id}", operation_id = "getClip", tag = "library",
    params(("id" = Uuid, Path, description = "The clip's id")), responses((status = 200, body = ClipOut), (status = 304)))]
async fn get(app: Authorized, Id(id): Id, headers: HeaderMap) -> Result<Response, ApiError> {
    conditional::answer(&headers, &ClipOut::from(found(app.view().span(id).await?, id)?))
}

/// Changes to a user's clip.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ClipChanges)]
struct ClipPatch {
    /// The new object, at most 65536 bytes of JSON. It replaces the old one; null empties it.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(value_type = Option<HashMap<String, Value>>, required)]
    metadata: Option<Value>,
}

/// Changes the metadata of a user's clip.
#[utoipa::path(patch, path = "/v1/clips/{id}", operation_id = "updateClip", tag = "library",
    params(("id" = Uuid, Path, description = "The clip's id"), conditional::IfMatch), request_body = ClipPatch,
    responses((status = 200, body = ClipOut), (status = 409), (status = 412)))]
async fn patch(
    app: Authorized,
    Id(id): Id,
    headers: HeaderMap,
    Json(body): Json<ClipPatch>,
) -> Result<Response, ApiError> {
    let metadata = body.metadata.unwrap_or_else(|| json!({}));
    checked_metadata(Some(&metadata), "/metadata")?;
    let mut expected = None;
    if conditional::has_condition(&headers) {
        let clip = found(app.view().span(id).await?, id)?;
        conditional::check(&headers, &ClipOut::from(clip.clone()))?;
        expected = Some(clip);
    }
    let changed = found(app.view().update_clip(id, metadata, expected.as_ref()).await?, id)?;
    conditional::answer(&HeaderMap::new(), &ClipOut::from(changed))
}

/// Deletes a user's clip. Later answers do not contain it.
#[utoipa::path(delete, path = "/v1/clips/{id}", operation_id = "deleteClip", tag = "library",
    params(("id" = Uuid, Path, description = "The clip's id")), responses((status = 204), (status = 409)))]
async fn delete(app: Authorized, Id(id): Id) -> Result<StatusCode, ApiError> {
    Library::of(&app).delete_clip(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The span, or 404.
pub(super) fn found(span: Option<Span>, id: Uuid) -> Result<Span, ApiError> {
    span.ok_or_else(|| ApiError::no_such("clip", id))
}
