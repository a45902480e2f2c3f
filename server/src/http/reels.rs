//! `/v1/reels`: ordered lists of ranges.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::conditional;
use super::error::ApiError;
use super::extract::{self, Id, Json, Params};
use super::ranges::{self, RangeBody};
use super::search::seconds;
use crate::app::{App, Authorized};
use crate::catalog::{NewReel, Reel, ReelVersion, ReelVideo};

/// Routes of `/v1/reels`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(get, update, delete))
}

/// A reel to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewReel)]
struct ReelBody {
    /// Its name: 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// 1 to 1000 ranges, in order.
    #[schema(min_items = 1, max_items = 1000)]
    ranges: Vec<RangeBody>,
}

impl ReelBody {
    fn checked(self) -> Result<NewReel, ApiError> {
        let name = ranges::checked_name(self.name, "/name")?;
        Ok(NewReel { name, ranges: ranges::checked(self.ranges)? })
    }
}

/// An ordered list of ranges.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reel)]
struct ReelOut {
    /// Its id, a uuid v7.
    id: Uuid,
    /// Its name.
    name: String,
    /// Number of the last change, from 1.
    #[schema(minimum = 1)]
    version: i64,
    /// Sum of the ranges' lengths, in seconds.
    #[schema(minimum = 0)]
    duration: f64,
    /// The ranges in order, without those of deleted videos.
    ranges: Vec<RangeBody>,
    /// The videos of the ranges, each once: what a player must know to play them.
    videos: Vec<ReelVideoOut>,
    /// Time of its making (RFC 3339).
    created_at: String,
    /// Time of its last change (RFC 3339).
    updated_at: String,
}

/// A video of a reel.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReelVideo)]
struct ReelVideoOut {
    /// Its id, a uuid v7.
    id: Uuid,
    /// Time of the first frame on the container's clock, in seconds. Add it to a time to seek in the original. Null until
    /// the video has been decoded.
    media_offset: Option<f64>,
    /// Whether common browsers play the original; `?rendition=web` makes a version that they play. Null until the video has
    /// been decoded.
    plays_in_browsers: Option<bool>,
}

impl From<ReelVideo> for ReelVideoOut {
    fn from(video: ReelVideo) -> ReelVideoOut {
        let ReelVideo { id, media_offset_ms, plays_in_browsers } = video;
        ReelVideoOut { id, media_offset: media_offset_ms.map(seconds), plays_in_browsers }
    }
}

impl From<Reel> for ReelOut {
    fn from(reel: Reel) -> ReelOut {
        ReelOut {
            id: reel.id,
            name: reel.name,
            version: reel.version.version,
            duration: seconds(reel.duration_ms),
            ranges: reel.ranges.into_iter().map(RangeBody::from).collect(),
            videos: reel.videos.into_iter().map(ReelVideoOut::from).collect(),
            created_at: super::instant(reel.created_at_ms),
            updated_at: super::instant(reel.updated_at_ms),
        }
    }
}

/// A reel without its ranges.
#[derive(Debug, Serialize, ToSchema)]
struct ReelSummary {
    /// Its id, a uuid v7.
    id: Uuid,
    /// Its name.
    name: String,
    /// Number of the last change, from 1.
    #[schema(minimum = 1)]
    version: i64,
    /// Sum of the ranges' lengths, in seconds.
    #[schema(minimum = 0)]
    duration: f64,
    /// Number of ranges.
    #[schema(minimum = 0)]
    ranges: i64,
    /// Its ETag, for a change.
    etag: String,
    /// Time of its making (RFC 3339).
    created_at: String,
    /// Time of its last change (RFC 3339).
    updated_at: String,
}

impl From<Reel> for ReelSummary {
    fn from(reel: Reel) -> ReelSummary {
        ReelSummary {
            id: reel.id,
            name: reel.name,
            version: reel.version.version,
            duration: seconds(reel.duration_ms),
            ranges: reel.version.ranges,
            etag: etag(reel.version),
            created_at: super::instant(reel.created_at_ms),
            updated_at: super::instant(reel.updated_at_ms),
        }
    }
}

/// One page of reels.
#[derive(Debug, Serialize, ToSchema)]
struct ReelPage {
    /// The reels of this page.
    items: Vec<ReelSummary>,
    /// Cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ReelParams {
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    cursor: Option<Uuid>,
}

/// A reel with its ETag.
type Answer = ([(header::HeaderName, String); 1], axum::Json<ReelOut>);

/// Stores a reel: an ordered list of ranges of videos.
#[utoipa::path(post, path = "/v1/reels", operation_id = "createReel", tag = "exports", request_body = ReelBody,
    responses((status = 201, body = ReelOut, headers(("etag" = String, description = "Its state, for If-Match"))),
        (status = 404), (status = 409), (status = 422)))]
async fn create(app: Authorized, Json(body): Json<ReelBody>) -> Result<(StatusCode, Answer), ApiError> {
    let reel = app.view().add_reel(&body.checked()?).await?;
    Ok((StatusCode::CREATED, answer(reel)))
}

/// Lists reels, newest first, without their ranges. A key that reaches some videos only sees the reels whose videos it
/// reaches, all of them.
#[utoipa::path(get, path = "/v1/reels", operation_id = "listReels", tag = "exports", params(ReelParams),
    responses((status = 200, body = ReelPage)))]
async fn list(app: Authorized, Params(params): Params<ReelParams>) -> Result<axum::Json<ReelPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let reels = app.view().reels(params.cursor, limit).await?;
    let next_cursor = super::next_cursor(&reels, limit, |reel| reel.id);
    Ok(axum::Json(ReelPage { items: reels.into_iter().map(ReelSummary::from).collect(), next_cursor }))
}

/// Returns one reel. Its ETag names its state: a change or the deletion of one of its videos makes a new one.
#[utoipa::path(get, path = "/v1/reels/{id}", operation_id = "getReel", tag = "exports", params(("id" = Uuid, Path, description = "Id of the reel")),
    responses((status = 200, body = ReelOut, headers(("etag" = String, description = "Its state, for If-Match"))),
        (status = 404)))]
async fn get(app: Authorized, Id(id): Id) -> Result<Answer, ApiError> {
    Ok(answer(found(app.view().reel(id).await?, id)?))
}

/// Replaces name and ranges of a reel in the state that If-Match names.
#[utoipa::path(put, path = "/v1/reels/{id}", operation_id = "updateReel", tag = "exports", request_body = ReelBody,
    params(("id" = Uuid, Path, description = "Id of the reel"), ("if-match" = String, Header, description = "ETags of the reel, or `*`")),
    responses((status = 200, body = ReelOut, headers(("etag" = String, description = "Its state, for If-Match"))),
        (status = 404), (status = 412), (status = 422),
        (status = 428)))]
async fn update(
    app: Authorized,
    Id(id): Id,
    headers: HeaderMap,
    Json(body): Json<ReelBody>,
) -> Result<Answer, ApiError> {
    let (expected, new) = (if_match(&headers)?, body.checked()?);
    let changed = app.view().update_reel(id, expected.as_deref(), &new).await?;
    Ok(answer(found(changed, id)?))
}

/// Deletes a reel in the state that If-Match names. Its videos and exports stay.
#[utoipa::path(delete, path = "/v1/reels/{id}", operation_id = "deleteReel", tag = "exports",
    params(("id" = Uuid, Path, description = "Id of the reel"), ("if-match" = String, Header, description = "ETags of the reel, or `*`")),
    responses((status = 204), (status = 404), (status = 412),
        (status = 428)))]
async fn delete(app: Authorized, Id(id): Id, headers: HeaderMap) -> Result<StatusCode, ApiError> {
    let deleted = app.view().delete_reel(id, if_match(&headers)?.as_deref()).await?;
    found(deleted, id)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The reel, or 404.
pub(super) fn found<T>(reel: Option<T>, id: Uuid) -> Result<T, ApiError> {
    reel.ok_or_else(|| ApiError::no_such("reel", id))
}

fn answer(reel: Reel) -> Answer {
    ([(header::ETAG, etag(reel.version))], axum::Json(reel.into()))
}

fn etag(version: ReelVersion) -> String {
    format!("\"{}-{}\"", version.version, version.ranges)
}

/// The states that a change is for; `None`: any.
///
/// # Errors
/// 428 without the header.
fn if_match(headers: &HeaderMap) -> Result<Option<Vec<ReelVersion>>, ApiError> {
    if !conditional::has_condition(headers) {
        return Err(ApiError::unconditional("send If-Match with the reel's ETag, or with `*`"));
    }
    let tags: Vec<&str> = conditional::tags(headers, &header::IF_MATCH).collect();
    if tags.contains(&"*") {
        return Ok(None);
    }
    // Another tag matches no state.
    Ok(Some(tags.into_iter().filter_map(version).collect()))
}

fn version(tag: &str) -> Option<ReelVersion> {
    let (version, ranges) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('-')?;
    Some(ReelVersion { version: version.parse().ok()?, ranges: ranges.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sent: &str, expected: Option<&[(i64, i64)]>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_MATCH, sent.parse().unwrap());
        let states = |them: &[(i64, i64)]| {
            them.iter().map(|&(version, ranges)| ReelVersion { version, ranges }).collect::<Vec<_>>()
        };
        assert_eq!(if_match(&headers).unwrap(), expected.map(states), "{sent}");
    }

    #[test]
    fn states_are_read_from_tags() {
        check("\"3-2\"", Some(&[(3, 2)]));
        check("\"3-2\", \"4-2\"", Some(&[(3, 2), (4, 2)]));
        check("*", None);
        check("W/\"3-2\"", Some(&[(3, 2)]));
        check("3-2", Some(&[]));
        check("\"x\"", Some(&[]));
        assert!(if_match(&HeaderMap::new()).is_err());
    }
}
