//! `/v1/videos` and `/v1/videos/{id}`: lists, changes, deletes and restores videos.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::conditional;
use super::error::ApiError;
use super::extract::{self, Id, Json, Params};
use super::labels;
use super::names::VideoStateName;
use super::search::seconds;
use crate::app::{App, Authorized};
use crate::catalog::{
    ListedWord, MOST_LISTED_WORDS, PlaceKey, Segmentation, Video, VideoList, VideoOrder, VideoPatch,
    VideoPlace, VideoState,
};
use crate::library::Library;

/// Routes of `/v1/videos` and `/v1/videos/{id}`, but for adding one.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, patch, delete)).routes(routes!(restore))
}

/// A stored video.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Video)]
pub(super) struct VideoOut {
    /// The video's id, a uuid v7.
    id: Uuid,
    /// Title, 1 to 500 characters. Default: the file's name without its extension.
    title: String,
    /// Name of the file as the client sent it, without folders, 1 to 255 characters.
    file_name: String,
    /// SHA-256 of the file, 64 hex digits.
    content_hash: String,
    /// Size of the file, in bytes.
    #[schema(minimum = 0)]
    bytes: i64,
    /// State of the video.
    #[schema(value_type = VideoStateName)]
    state: VideoState,
    /// Length of the video stream in seconds. Null until it has been decoded.
    #[schema(minimum = 0)]
    duration: Option<f64>,
    /// Average frames per second, over 0. Null until the video has been decoded.
    #[schema(minimum = 0)]
    frame_rate: Option<f64>,
    /// Number of frames. Null until the video has been decoded.
    frames: Option<u64>,
    /// Width of the picture in pixels. Null until the video has been decoded.
    width: Option<u32>,
    /// Height of the picture in pixels. Null until the video has been decoded.
    height: Option<u32>,
    /// Name of the video codec, such as `h264`. Null until the video has been decoded.
    codec: Option<String>,
    /// Whether the time between frames varies. Null until the video has been decoded.
    variable_frame_rate: Option<bool>,
    /// Time of the first frame on the container's clock, in seconds. Add it to a time to seek in the original. Null until
    /// the video has been decoded.
    media_offset: Option<f64>,
    /// Whether common browsers play the original. Null until the video has been decoded.
    plays_in_browsers: Option<bool>,
    /// Faults of the file that did not stop the ingest.
    warnings: Vec<String>,
    /// Your metadata, a JSON object of at most 65536 bytes.
    #[schema(value_type = HashMap<String, Value>)]
    metadata: Value,
    /// Its tags in alphabetical order, at most 50. They are compared without case.
    #[schema(max_items = 50)]
    tags: Vec<String>,
    /// The path of its folder, such as `season 2026/finals`. Null without one.
    folder: Option<String>,
    /// Time of recording, an RFC 3339 date or instant. Null if unknown.
    recorded_at: Option<String>,
    /// Time of adding the video (RFC 3339).
    created_at: String,
    /// How the video is cut into clips: `policy`, and `params` with all parameters of the policy.
    #[schema(value_type = HashMap<String, Value>)]
    segmentation: Segmentation,
    /// Number of clips, the user's own included.
    #[schema(minimum = 0)]
    clips: i64,
    /// Id of the video's newest job. Null if it has none.
    job_id: Option<Uuid>,
    /// Path of the original file.
    media_url: String,
    /// Path of a version for browsers. The first request makes it. Null if browsers play the original.
    rendition_url: Option<String>,
    /// Path of a JPEG of the frame in the middle.
    thumbnail_url: String,
    /// Time of its deletion (RFC 3339), if it is in the trash; its paths then answer 404 until it is restored. Else null.
    deleted_at: Option<String>,
    /// Time from which it can't be restored (RFC 3339), if it is in the trash. Else null.
    purge_at: Option<String>,
    /// Time when it last left the trash (RFC 3339). Null if it was never restored.
    restored_at: Option<String>,
}

impl From<Video> for VideoOut {
    fn from(video: Video) -> VideoOut {
        let facts = video.facts.as_ref();
        let media_url = format!("/v1/videos/{}/media", video.id);
        VideoOut {
            duration: facts.map(|it| seconds(it.duration_ms)),
            frame_rate: facts.map(|it| it.frame_rate),
            frames: facts.map(|it| it.frames),
            width: facts.map(|it| it.width),
            height: facts.map(|it| it.height),
            codec: facts.map(|it| it.codec.clone()),
            variable_frame_rate: facts.map(|it| it.variable_frame_rate),
            media_offset: facts.map(|it| seconds(it.media_offset_ms)),
            plays_in_browsers: facts.map(|it| it.plays_in_browsers),
            rendition_url: facts
                .filter(|it| !it.plays_in_browsers)
                .map(|_| format!("{media_url}?rendition=web")),
            thumbnail_url: format!("/v1/videos/{}/thumbnail", video.id),
            media_url,
            id: video.id,
            title: video.title,
            file_name: video.file_name,
            content_hash: video.content_hash,
            bytes: video.bytes,
            state: video.state,
            warnings: video.warnings,
            metadata: video.metadata,
            tags: video.tags,
            folder: video.folder,
            recorded_at: video.recorded_at,
            created_at: super::instant(video.created_at_ms),
            segmentation: video.segmentation,
            clips: video.clips,
            job_id: video.job_id,
            deleted_at: video.deleted_at_ms.map(super::instant),
            purge_at: None,
            restored_at: video.restored_at_ms.map(super::instant),
        }
    }
}

impl VideoOut {
    /// A video in the trash, which stays there for `lasts`.
    fn trashed(video: Video, lasts: Duration) -> VideoOut {
        let lasts = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
        let purge_at = video.deleted_at_ms.map(|deleted| super::instant(deleted.saturating_add(lasts)));
        VideoOut { purge_at, ..VideoOut::from(video) }
    }
}

/// One page of videos.
#[derive(Debug, Serialize, ToSchema)]
struct VideoPage {
    /// The videos, at most `limit`.
    items: Vec<VideoOut>,
    /// Cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
    /// Number of videos on all pages of the list. Null unless the request asks for it with `count`.
    total: Option<u64>,
}

/// Longest text that a list looks up, in characters.
const LONGEST_TEXT: usize = 500;
/// Longest cursor of a list, in characters: an id and the key of a title.
const LONGEST_CURSOR: usize = 2000;

/// Which videos to list, and the start and size of a page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VideoParams {
    /// Lists the videos in the trash instead of the others; default false.
    #[param(nullable = false)]
    trashed: Option<bool>,
    /// Videos that have this tag only; several tags with commas between them: those that have all of them, at most 50.
    #[param(nullable = false, min_length = 1, max_length = 3000)]
    tag: Option<String>,
    /// Videos in this folder and below it only: a path such as `season 2026/finals`.
    #[param(nullable = false, max_length = 300)]
    folder: Option<String>,
    /// Whether videos below the folder are listed too; default true. False without a folder: those that are in none.
    #[param(nullable = false)]
    subfolders: Option<bool>,
    /// Videos whose title, file name, folder or tags hold all of these words, or parts of words; at most 20, compared without
    /// case and accents.
    #[param(nullable = false, max_length = 500)]
    text: Option<String>,
    /// Videos in this state only.
    #[param(inline, value_type = Option<VideoStateName>, nullable = false)]
    state: Option<VideoState>,
    /// True: videos whose file or subtitles have warnings. False: the others.
    #[param(nullable = false)]
    warnings: Option<bool>,
    /// Videos that were added at this time or later: an RFC 3339 date or instant.
    #[param(nullable = false, max_length = 40)]
    added_since: Option<String>,
    /// The order; default `oldest`.
    #[param(inline, nullable = false)]
    order: Option<VideoOrderName>,
    /// Whether the answer says how many videos all pages hold together; default false. Counting reads the whole list.
    #[param(nullable = false)]
    count: Option<bool>,
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page of the same list in the same order.
    #[param(nullable = false, max_length = 2000)]
    cursor: Option<String>,
}

/// Order of a list of videos. `oldest`, `newest`: by the time of adding. `title`: by title, without case and accents, numbers
/// by their value. `longest`: by length, videos that are not decoded yet last. `largest`: by the size of the file.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = VideoOrder)]
enum VideoOrderName {
    Oldest,
    Newest,
    Title,
    Longest,
    Largest,
}

impl From<VideoOrderName> for VideoOrder {
    fn from(name: VideoOrderName) -> VideoOrder {
        match name {
            VideoOrderName::Oldest => VideoOrder::Oldest,
            VideoOrderName::Newest => VideoOrder::Newest,
            VideoOrderName::Title => VideoOrder::Title,
            VideoOrderName::Longest => VideoOrder::Longest,
            VideoOrderName::Largest => VideoOrder::Largest,
        }
    }
}

impl VideoParams {
    /// The list that is asked for.
    fn list(&self) -> Result<VideoList, ApiError> {
        let wrong = || {
            let why = format!("a text has at most {MOST_LISTED_WORDS} words and {LONGEST_TEXT} characters");
            ApiError::invalid("text", why)
        };
        let text = self.text.as_deref().unwrap_or_default();
        if text.chars().count() > LONGEST_TEXT {
            return Err(wrong());
        }
        checked_instant(self.added_since.as_deref(), "added_since")?;
        let since = self.added_since.as_deref().and_then(crate::catalog::instant::parse);
        let tags: Vec<String> = self.tag.iter().flat_map(|it| it.split(',')).map(str::to_owned).collect();
        let only_itself = self.subfolders == Some(false);
        let folder = labels::checked_folder(self.folder.as_deref(), "folder")?;
        Ok(VideoList {
            trashed: self.trashed == Some(true),
            tags: labels::checked_tags(&tags, "tag").map_err(|error| error.at("tag"))?,
            folder: (self.folder.is_some() || only_itself).then_some(folder),
            only_itself,
            words: ListedWord::all(text).ok_or_else(wrong)?,
            state: self.state,
            warned: self.warnings,
            added_since_ms: since,
            order: self.order.map(VideoOrder::from).unwrap_or_default(),
        })
    }
}

/// The cursor behind a place: the id, with what the order compares before it.
fn cursor(place: &VideoPlace) -> String {
    match &place.key {
        PlaceKey::Nothing => place.id.to_string(),
        PlaceKey::Title(key) => format!("{}.{}", place.id, URL_SAFE_NO_PAD.encode(key)),
        PlaceKey::Number(number) => format!("{}.{number}", place.id),
    }
}

/// Reads a cursor of a list in this order.
fn read_cursor(text: &str, order: VideoOrder) -> Result<VideoPlace, ApiError> {
    let place = || {
        if text.len() > LONGEST_CURSOR {
            return None;
        }
        let (id, key) = text.split_once('.').map_or((text, None), |(id, key)| (id, Some(key)));
        let key = match (order, key) {
            (VideoOrder::Oldest | VideoOrder::Newest, None) => PlaceKey::Nothing,
            (VideoOrder::Title, Some(key)) => PlaceKey::Title(URL_SAFE_NO_PAD.decode(key).ok()?),
            (VideoOrder::Longest | VideoOrder::Largest, Some(key)) => PlaceKey::Number(key.parse().ok()?),
            _ => return None,
        };
        Some(VideoPlace { key, id: id.parse().ok()? })
    };
    place().ok_or_else(|| ApiError::invalid("cursor", "this is not a cursor of a list in this order"))
}

/// Lists videos, oldest first unless another order is asked for.
#[utoipa::path(get, path = "/v1/videos", operation_id = "listVideos", tag = "library", params(VideoParams),
    responses((status = 200, body = VideoPage)))]
async fn list(
    app: Authorized,
    Params(params): Params<VideoParams>,
) -> Result<axum::Json<VideoPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let list = params.list()?;
    let after = params.cursor.as_deref().map(|text| read_cursor(text, list.order)).transpose()?;
    let videos = app.view().videos_of(&list, after.as_ref(), limit).await?;
    let total = match params.count {
        Some(true) => Some(app.view().number_of_videos(&list).await?),
        _ => None,
    };
    let lasts = if list.trashed { app.config.trash_lasts() } else { Duration::ZERO };
    let next_cursor = super::next_cursor(&videos, limit, |video| cursor(&list.order.place(video)));
    let items = videos.into_iter().map(|video| VideoOut::trashed(video, lasts)).collect();
    Ok(axum::Json(VideoPage { items, next_cursor, total }))
}

/// Checks the length of a title. U+0000 is refused, because Postgres can't store it.
pub(super) fn checked_title(title: Option<&str>, pointer: &str) -> Result<(), ApiError> {
    let fits = |it: &str| !it.trim().is_empty() && it.chars().count() <= 500 && !it.contains('\0');
    if title.is_none_or(fits) {
        return Ok(());
    }
    Err(ApiError::invalid(pointer, "a title has 1 to 500 characters, none of them U+0000"))
}

/// Checks that metadata is a small object without U+0000, which Postgres can't store.
pub(super) fn checked_metadata(metadata: Option<&Value>, pointer: &str) -> Result<(), ApiError> {
    let Some(metadata) = metadata else { return Ok(()) };
    if !metadata.is_object() {
        return Err(ApiError::invalid(pointer, "metadata is a JSON object"));
    }
    if metadata.to_string().len() > 64 << 10 {
        return Err(ApiError::invalid(pointer, "metadata may have 65536 bytes"));
    }
    if has_nul(metadata) {
        return Err(ApiError::invalid(pointer, "metadata can't hold the character U+0000"));
    }
    Ok(())
}

/// Whether any name or text in the value holds U+0000.
fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Checks that an instant can be parsed and compared.
pub(super) fn checked_instant(instant: Option<&str>, pointer: &str) -> Result<(), ApiError> {
    let reads = instant.is_none_or(|text| crate::catalog::instant::parse(text).is_some());
    if reads {
        Ok(())
    } else {
        Err(ApiError::invalid(pointer, "an instant is RFC 3339: 2024-07-01 or 2024-07-01T12:30:00Z"))
    }
}

/// Returns one video.
#[utoipa::path(get, path = "/v1/videos/{id}", operation_id = "getVideo", tag = "library",
    params(("id" = Uuid, Path, description = "The video's id")), responses((status = 200, body = VideoOut), (status = 304)))]
async fn get(app: Authorized, Id(id): Id, headers: HeaderMap) -> Result<Response, ApiError> {
    conditional::answer(&headers, &VideoOut::from(found(app.view().video(id).await?, id)?))
}

/// Changes to a video. A missing field changes nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = VideoChanges)]
struct PatchBody {
    /// The new title, 1 to 500 characters, not only white space.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(value_type = Option<String>, nullable = false, min_length = 1, max_length = 500, pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    title: Option<Option<String>>,
    /// The new object, at most 65536 bytes of JSON. It replaces the old one; null empties it.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(value_type = Option<HashMap<String, Value>>)]
    metadata: Option<Option<Value>>,
    /// The new tags, at most 50, each of 1 to 60 characters without commas and control characters. They replace the old
    /// ones; null removes them.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(value_type = Option<Vec<String>>, max_items = 50)]
    tags: Option<Option<Vec<String>>>,
    /// The new folder: a path such as `season 2026/finals`, at most 10 names and 300 characters. Null takes the video out of
    /// its folder.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(value_type = Option<String>, max_length = 300)]
    folder: Option<Option<String>>,
    /// The new time of recording: an RFC 3339 date or instant. Null removes it.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(value_type = Option<String>)]
    recorded_at: Option<Option<String>>,
}

impl PatchBody {
    fn checked(self) -> Result<VideoPatch, ApiError> {
        if self.title == Some(None) {
            return Err(ApiError::invalid("/title", "a video needs a title"));
        }
        let title = self.title.flatten();
        let metadata = self.metadata.map(|it| it.unwrap_or_else(|| json!({})));
        checked_title(title.as_deref(), "/title")?;
        checked_metadata(metadata.as_ref(), "/metadata")?;
        checked_instant(self.recorded_at.as_ref().and_then(Option::as_deref), "/recorded_at")?;
        let tags = self.tags.map(|it| labels::checked_tags(&it.unwrap_or_default(), "/tags")).transpose()?;
        let folder = self.folder.map(|it| labels::checked_folder(it.as_deref(), "/folder")).transpose()?;
        Ok(VideoPatch { title, metadata, tags, folder, recorded_at: self.recorded_at, expected: None })
    }
}

/// Changes a video's title, metadata, tags, folder or time of recording.
#[utoipa::path(patch, path = "/v1/videos/{id}", operation_id = "updateVideo", tag = "library",
    params(("id" = Uuid, Path, description = "The video's id"), conditional::IfMatch), request_body = PatchBody,
    responses((status = 200, body = VideoOut), (status = 412)))]
async fn patch(
    app: Authorized,
    Id(id): Id,
    headers: HeaderMap,
    Json(body): Json<PatchBody>,
) -> Result<Response, ApiError> {
    let mut patch = body.checked()?;
    if conditional::has_condition(&headers) {
        let video = found(app.view().video(id).await?, id)?;
        conditional::check(&headers, &VideoOut::from(video.clone()))?;
        patch.expected = Some(Box::new(video));
    }
    let changed = found(app.view().update_video(id, patch).await?, id)?;
    conditional::answer(&HeaderMap::new(), &VideoOut::from(changed))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DeleteParams {
    /// Deletes the video for good, also if it is in the trash already; default false.
    #[param(nullable = false)]
    purge: Option<bool>,
}

/// Deletes a video with its clips, vectors and files. Later answers contain none of them.
///
/// The video stays in the trash for the configured days, from which `restoreVideo` brings it back. Until then it uses its
/// key's quota. With `purge`, and on a server without a trash, its files are removed at once, in the background.
#[utoipa::path(delete, path = "/v1/videos/{id}", operation_id = "deleteVideo", tag = "library",
    params(("id" = Uuid, Path, description = "The video's id"), DeleteParams), responses((status = 204)))]
async fn delete(
    app: Authorized,
    Id(id): Id,
    Params(params): Params<DeleteParams>,
) -> Result<StatusCode, ApiError> {
    Library::of(&app).delete(id, params.purge == Some(true)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a video out of the trash, with its clips, subtitles and vectors.
///
/// Searches find it again, and jobs that its deletion stopped start again. Repeated requests change nothing. 404 once the
/// video is purged.
#[utoipa::path(post, path = "/v1/videos/{id}/restore", operation_id = "restoreVideo", tag = "library",
    params(("id" = Uuid, Path, description = "The video's id")), responses((status = 200, body = VideoOut)))]
async fn restore(app: Authorized, Id(id): Id) -> Result<Response, ApiError> {
    conditional::answer(&HeaderMap::new(), &VideoOut::from(Library::of(&app).restore(id).await?))
}

/// The video, or 404.
pub(super) fn found(video: Option<Video>, id: Uuid) -> Result<Video, ApiError> {
    video.ok_or_else(|| ApiError::no_such("video", id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(metadata: Value, expected: bool) {
        assert_eq!(checked_metadata(Some(&metadata), "/metadata").is_ok(), expected, "{metadata}");
    }

    #[test]
    fn metadata_is_an_object_that_both_databases_hold() {
        check(json!({"event": "vault", "deep": [{"a": null}]}), true);
        check(json!({"escaped": "\\u0000"}), true);
        check(json!({"deep": [{"a": "\0"}]}), false);
        check(json!({"\0": 1}), false);
        check(json!([1]), false);
        check(json!(null), false);
        check(json!({"long": "x".repeat(1 << 16)}), false);
    }
}
