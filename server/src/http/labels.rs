//! Tags and folders of videos: `GET /v1/tags`, `GET /v1/folders`, and changes of many videos at once.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Json, Params};
use crate::app::{App, Authorized};
use crate::catalog::{Folder, FolderCount, LabelChange, Labelled, MOST_TAGS, Tag, TagCount, Tags, Video};

/// Most videos of one change.
const MOST_VIDEOS: usize = 500;

/// Routes of `/v1/tags`, `/v1/folders` and `PATCH /v1/videos`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(tags)).routes(routes!(folders)).routes(routes!(label))
}

/// Reads the tags of a request.
///
/// # Errors
/// 422 at `pointer` or below it.
pub(super) fn checked_tags(tags: &[String], pointer: &str) -> Result<Tags, ApiError> {
    Tags::parse(tags).map_err(|(place, why)| match place {
        Some(place) => ApiError::invalid(format!("{pointer}/{place}"), why),
        None => ApiError::invalid(pointer, why),
    })
}

/// Reads the folder of a request; none is the empty one.
///
/// # Errors
/// 422 at `pointer`.
pub(super) fn checked_folder(path: Option<&str>, pointer: &str) -> Result<Folder, ApiError> {
    Folder::parse(path.unwrap_or_default()).map_err(|why| ApiError::invalid(pointer, why))
}

/// A tag with the number of its videos.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TagCount)]
struct TagOut {
    /// The tag, in one of its spellings.
    tag: String,
    /// Number of videos that have it.
    #[schema(minimum = 1)]
    videos: i64,
}

/// One page of tags.
#[derive(Debug, Serialize, ToSchema)]
struct TagPage {
    /// The tags in alphabetical order, at most `limit`.
    items: Vec<TagOut>,
    /// Cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TagParams {
    /// Tags that begin so only, 1 to 60 characters; case does not matter.
    #[param(
        nullable = false,
        min_length = 1,
        max_length = 60,
        pattern = r"^[^,\x00-\x1f\x7f-\x9f]*[^,\s\x00-\x1f\x7f-\x9f][^,\x00-\x1f\x7f-\x9f]*$"
    )]
    prefix: Option<String>,
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
}

/// Lists the tags of all videos with the number of videos that have each. Videos in the trash do not count.
#[utoipa::path(get, path = "/v1/tags", operation_id = "listTags", tag = "library", params(TagParams),
    responses((status = 200, body = TagPage)))]
async fn tags(app: Authorized, Params(params): Params<TagParams>) -> Result<axum::Json<TagPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let prefix = params.prefix.as_deref().map(Tag::parse).transpose();
    let prefix = prefix.map_err(|why| ApiError::invalid("prefix", why))?;
    let after = read_cursor(params.cursor.as_deref())?;
    let tags = app.view().tag_counts(prefix.as_ref(), after.as_deref(), limit).await?;
    let next_cursor = super::next_cursor(&tags, limit, |tag| cursor(&tag.key));
    let items = tags.into_iter().map(|TagCount { tag, videos, .. }| TagOut { tag, videos }).collect();
    Ok(axum::Json(TagPage { items, next_cursor }))
}

/// A folder with the number of its videos.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FolderCount)]
struct FolderOut {
    /// The path, in one of its spellings.
    folder: String,
    /// The last name of the path.
    name: String,
    /// Number of videos in the folder itself.
    #[schema(minimum = 0)]
    videos: i64,
    /// Number of videos in the folder and in all folders below it.
    #[schema(minimum = 1)]
    total: i64,
    /// Whether there are folders below it.
    has_folders: bool,
}

impl From<FolderCount> for FolderOut {
    fn from(count: FolderCount) -> FolderOut {
        let FolderCount { folder, videos, total, has_folders } = count;
        let name = folder.path().rsplit('/').next().unwrap_or_default().to_owned();
        FolderOut { folder: folder.path().to_owned(), name, videos, total, has_folders }
    }
}

/// One page of the folders in a folder.
#[derive(Debug, Serialize, ToSchema)]
struct FolderPage {
    /// Number of videos in the folder itself; at the top, of videos without a folder.
    #[schema(minimum = 0)]
    videos: i64,
    /// The folders in it, in alphabetical order, at most `limit`.
    items: Vec<FolderOut>,
    /// Cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FolderParams {
    /// The folders in this one: a path of at most 300 characters. Default: those at the top.
    #[param(nullable = false, max_length = 300)]
    parent: Option<String>,
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
}

/// Lists the folders in a folder with the number of videos in each and below it.
///
/// A folder exists as long as a video is in it or below it. Videos in the trash do not count.
#[utoipa::path(get, path = "/v1/folders", operation_id = "listFolders", tag = "library", params(FolderParams),
    responses((status = 200, body = FolderPage)))]
async fn folders(
    app: Authorized,
    Params(params): Params<FolderParams>,
) -> Result<axum::Json<FolderPage>, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let parent = checked_folder(params.parent.as_deref(), "parent")?;
    let after = read_cursor(params.cursor.as_deref())?;
    let found = app.view().folder_counts(&parent, after.as_deref(), limit).await?;
    let next_cursor = super::next_cursor(&found, limit, |it| cursor(it.folder.key()));
    let videos = app.view().videos_in_folder(&parent).await?;
    let items = found.into_iter().map(FolderOut::from).collect();
    Ok(axum::Json(FolderPage { videos, items, next_cursor }))
}

fn cursor(key: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

fn read_cursor(text: Option<&str>) -> Result<Option<Vec<u8>>, ApiError> {
    let wrong = |_| ApiError::invalid("cursor", "this is not a cursor of this service");
    text.map(|text| URL_SAFE_NO_PAD.decode(text)).transpose().map_err(wrong)
}

/// A change of many videos. Missing fields change nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ManyVideoChanges)]
struct LabelBody {
    /// Ids of 1 to 500 videos.
    #[schema(min_items = 1, max_items = 500)]
    ids: Vec<Uuid>,
    /// Tags that each of the videos gets, at most 50. A tag has 1 to 60 characters without commas and control characters.
    #[serde(default)]
    #[schema(max_items = 50)]
    add_tags: Vec<String>,
    /// Tags to remove, at most 50; they are removed before others are added.
    #[serde(default)]
    #[schema(max_items = 50)]
    remove_tags: Vec<String>,
    /// The folder to move the videos to: a path of at most 300 characters. Null takes them out of their folders.
    #[serde(default, deserialize_with = "extract::present")]
    #[schema(value_type = Option<String>, max_length = 300)]
    folder: Option<Option<String>>,
}

impl LabelBody {
    fn checked(&self) -> Result<LabelChange, ApiError> {
        if !(1..=MOST_VIDEOS).contains(&self.ids.len()) {
            return Err(ApiError::invalid("/ids", format!("name 1 to {MOST_VIDEOS} videos")));
        }
        let folder = self.folder.as_ref().map(|it| checked_folder(it.as_deref(), "/folder"));
        Ok(LabelChange {
            videos: self.ids.clone(),
            add: checked_tags(&self.add_tags, "/add_tags")?,
            remove: checked_tags(&self.remove_tags, "/remove_tags")?,
            folder: folder.transpose()?,
        })
    }

    /// The pointer to a video.
    fn pointer(&self, id: Uuid) -> String {
        let place = self.ids.iter().position(|it| *it == id).unwrap_or_default();
        format!("/ids/{place}")
    }
}

/// Tags and folder of a video after a change.
#[derive(Debug, Serialize, ToSchema)]
struct VideoLabels {
    /// The video's id.
    id: Uuid,
    /// Its tags in alphabetical order, at most 50.
    tags: Vec<String>,
    /// The path of its folder. Null without one.
    folder: Option<String>,
}

impl From<Video> for VideoLabels {
    fn from(video: Video) -> VideoLabels {
        VideoLabels { id: video.id, tags: video.tags, folder: video.folder }
    }
}

/// The changed videos.
#[derive(Debug, Serialize, ToSchema)]
struct ChangedVideos {
    /// Each video once, in order of its making.
    items: Vec<VideoLabels>,
}

/// Changes tags and folders of many videos, all of them or none.
///
/// 404 if one of them does not exist, 403 if your key would not reach one of them any more, 422 if one would have more than
/// 50 tags; nothing changes then. Repeated requests change nothing.
#[utoipa::path(patch, path = "/v1/videos", operation_id = "updateVideos", tag = "library", request_body = LabelBody,
    responses((status = 200, body = ChangedVideos), (status = 404)))]
async fn label(app: Authorized, Json(body): Json<LabelBody>) -> Result<axum::Json<ChangedVideos>, ApiError> {
    match app.view().label_videos(&body.checked()?).await? {
        Labelled::Done(videos) => {
            Ok(axum::Json(ChangedVideos { items: videos.into_iter().map(VideoLabels::from).collect() }))
        }
        Labelled::Missing(id) => {
            Err(ApiError::not_found(format!("there is no video {id}")).at(body.pointer(id)))
        }
        Labelled::TooManyTags(id) => Err(ApiError::invalid(
            body.pointer(id),
            format!("video {id} would have more than {MOST_TAGS} tags"),
        )),
    }
}
