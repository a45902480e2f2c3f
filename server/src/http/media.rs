//! Media for people: originals with byte ranges, and renditions, previews and thumbnails made on first request.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use reprise_encoders::video::thumbnails::THUMBNAIL_WIDTH;
use reprise_encoders::video::{self, Limits, Probe, VideoError, rendition};
use serde::Deserialize;
use tower::ServiceExt;
use tower_http::services::ServeFile;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{Id, Params};
use super::names::FileBytes;
use super::{clips, videos};
use crate::app::{App, Authorized};
use crate::catalog::{Span, Video};
use crate::health::FULL_DISK_BYTES;
use crate::sprites;
use crate::storage::{Derived, LocalFile, StoredFile};

/// Width of previews, in pixels.
const PREVIEW_WIDTH: u32 = 480;
/// Longest wait for a place to make a picture.
const LANE_PATIENCE: Duration = Duration::from_secs(60);
/// Longest run of ffmpeg for a thumbnail or a preview.
const PICTURE_WITHIN: Duration = Duration::from_secs(120);
/// Longest preview, in milliseconds. A longer clip's preview shows only its start.
const PREVIEW_MS: i64 = 10_000;

/// Routes of media, previews and thumbnails.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(media))
        .routes(routes!(video_thumbnail))
        .routes(routes!(clip_thumbnail))
        .routes(routes!(preview))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MediaParams {
    /// `web`: an MP4 for browsers. Its clock starts at the first frame. Default: the original.
    #[param(value_type = Option<RenditionName>, inline, nullable = false)]
    rendition: Option<String>,
}

/// A version of a video's file.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the parameter in the OpenAPI file")]
#[schema(as = Rendition, rename_all = "snake_case")]
enum RenditionName {
    Web,
}

/// Serves a video's file. Supports byte ranges.
#[utoipa::path(get, path = "/v1/videos/{id}/media", operation_id = "getMedia", tag = "media",
    params(("id" = Uuid, Path, description = "The video's id"), MediaParams),
    responses((status = 200, content_type = "video/*", body = inline(FileBytes), description = "The file"),
        (status = 415), (status = 422)))]
async fn media(
    app: Authorized,
    Id(id): Id,
    Params(params): Params<MediaParams>,
    request: Request,
) -> Result<Response, ApiError> {
    let video = videos::found(app.view().video(id).await?, id)?;
    match params.rendition.as_deref() {
        None => {
            let file = local(&app, &video).await?;
            serve(file.path(), media_type(&video), request).await
        }
        Some("web") => {
            let footage = Footage::of(&app, &video).await?;
            let footage = footage.within(app.config.render_limit());
            let made = make(&app, Derived::Rendition, video.id, move |out| footage.web(out)).await?;
            serve(made.path(), "video/mp4", request).await
        }
        Some(_) => Err(ApiError::invalid("rendition", "the only rendition is `web`")),
    }
}

/// Serves a JPEG of the frame in the middle of a video. The ingest makes it; a lost one is made at its first request.
#[utoipa::path(get, path = "/v1/videos/{id}/thumbnail", operation_id = "getVideoThumbnail", tag = "media",
    params(("id" = Uuid, Path, description = "The video's id")),
    responses((status = 200, content_type = "image/jpeg", body = inline(FileBytes), description = "The picture, 480 pixels wide"),
        (status = 415), (status = 422)))]
async fn video_thumbnail(app: Authorized, Id(id): Id, request: Request) -> Result<Response, ApiError> {
    let video = videos::found(app.view().video(id).await?, id)?;
    let footage = Footage::of(&app, &video).await?;
    let at_ms = footage.duration_ms() / 2;
    let made = make(&app, Derived::Thumbnail, id, move |out| footage.thumbnail(at_ms, out)).await?;
    serve(made.path(), "image/jpeg", request).await
}

/// Serves a JPEG of the frame in the middle of a clip.
///
/// The ingest makes it, of a frame that is shown half a second from the middle at most, or in a clip of many minutes a
/// little farther. That of a given clip, and of a clip that was cut anew without a decode, is made at its first request.
#[utoipa::path(get, path = "/v1/clips/{id}/thumbnail", operation_id = "getClipThumbnail", tag = "media",
    params(("id" = Uuid, Path, description = "The clip's id")),
    responses((status = 200, content_type = "image/jpeg", body = inline(FileBytes), description = "The picture, 480 pixels wide"),
        (status = 415), (status = 422)))]
async fn clip_thumbnail(app: Authorized, Id(id): Id, request: Request) -> Result<Response, ApiError> {
    let (span, footage) = footage_of_clip(&app, id).await?;
    let at_ms = (span.start_ms + span.end_ms.min(footage.duration_ms())) / 2;
    let made = make(&app, Derived::Thumbnail, id, move |out| footage.thumbnail(at_ms, out)).await?;
    serve(made.path(), "image/jpeg", request).await
}

/// Serves the first 10 seconds of a clip as an MP4 for browsers.
#[utoipa::path(get, path = "/v1/clips/{id}/preview", operation_id = "getClipPreview", tag = "media",
    params(("id" = Uuid, Path, description = "The clip's id")),
    responses((status = 200, content_type = "video/mp4", body = inline(FileBytes), description = "The preview, 480 pixels wide"),
        (status = 415), (status = 422)))]
async fn preview(app: Authorized, Id(id): Id, request: Request) -> Result<Response, ApiError> {
    let (span, footage) = footage_of_clip(&app, id).await?;
    let shown = span.start_ms..span.end_ms.min(span.start_ms + PREVIEW_MS);
    let made = make(&app, Derived::Preview, id, move |out| footage.preview(shown, out)).await?;
    serve(made.path(), "video/mp4", request).await
}

async fn footage_of_clip(app: &Authorized, id: Uuid) -> Result<(Span, Footage), ApiError> {
    let span = clips::found(app.view().span(id).await?, id)?;
    let video = videos::found(app.view().video(span.video).await?, span.video)?;
    Ok((span, Footage::of(app, &video).await?))
}

async fn local(app: &App, video: &Video) -> Result<LocalFile, ApiError> {
    let gone = |_| ApiError::not_found("the video's file no longer exists under its path").at("id");
    app.storage.local(&StoredFile::of(&video.file)).await.map_err(gone)
}

/// A stored file, with the facts needed to decode it.
pub(super) struct Footage {
    file: LocalFile,
    probe: Probe,
    in_order: bool,
    limits: Limits,
}

impl Footage {
    /// The footage of a video. A video that is not ingested yet is probed.
    pub(super) async fn of(app: &App, video: &Video) -> Result<Footage, ApiError> {
        let (file, limits) = (local(app, video).await?, app.config.decode_limits());
        let limits = Limits { wall_clock: limits.wall_clock.min(PICTURE_WITHIN), ..limits };
        let facts = video.facts.as_ref();
        let stored = facts.and_then(|facts| serde_json::from_value::<Probe>(facts.probe.clone()).ok());
        let probe = match (stored, facts) {
            (Some(probe), Some(facts)) => Probe { duration_ms: facts.duration_ms, ..probe },
            _ => {
                let path = file.path().to_owned();
                let probing = tokio::task::spawn_blocking(move || video::probe(&path, &limits)).await;
                probing.map_err(ApiError::internal)?.map_err(|error| ApiError::of_file(&error, "id"))?
            }
        };
        Ok(Footage { file, probe, in_order: facts.is_some_and(|facts| !facts.seek_is_safe), limits })
    }

    /// The same footage with another limit on a run of ffmpeg.
    pub(super) fn within(self, wall_clock: Duration) -> Footage {
        Footage { limits: Limits { wall_clock, ..self.limits }, ..self }
    }

    fn duration_ms(&self) -> i64 {
        self.probe.duration_ms
    }

    fn video(&self) -> video::VideoFile<'_> {
        video::VideoFile {
            path: self.file.path(),
            probe: &self.probe,
            in_order: self.in_order,
            limits: &self.limits,
        }
    }

    fn thumbnail(&self, at_ms: i64, out: &Path) -> Result<(), VideoError> {
        let jpeg = rendition::thumbnail(self.video(), at_ms, THUMBNAIL_WIDTH)?;
        std::fs::write(out, jpeg).map_err(|error| VideoError::Ffmpeg(error.into()))
    }

    fn preview(&self, span: std::ops::Range<i64>, out: &Path) -> Result<(), VideoError> {
        rendition::preview(self.video(), span, PREVIEW_WIDTH, out)
    }

    /// Writes the file of the sprite sheets.
    pub(super) fn sprites(&self, out: &Path) -> Result<(), VideoError> {
        let sheets = sprites::of_video(self.file.path(), &self.probe, &self.limits)?;
        std::fs::write(out, sheets).map_err(|error| VideoError::Ffmpeg(error.into()))
    }

    fn web(&self, out: &Path) -> Result<(), VideoError> {
        rendition::web(self.file.path(), &self.probe, out, &self.limits)
    }
}

/// Makes the derived file of a video or span, or finds it. Continues if the client leaves, because it will ask again.
pub(super) async fn make(
    app: &Authorized,
    kind: Derived,
    id: Uuid,
    work: impl FnOnce(&Path) -> Result<(), VideoError> + Send + 'static,
) -> Result<LocalFile, ApiError> {
    let app = app.clone();
    let making = tokio::spawn(async move {
        let render = async |out: PathBuf| {
            let _place = tokio::time::timeout(LANE_PATIENCE, app.renders.lane(kind).acquire())
                .await
                .map_err(|_| ApiError::unavailable("too many pictures are being made; try again later"))?
                .map_err(ApiError::internal)?;
            let made = tokio::task::spawn_blocking(move || work(&out)).await.map_err(ApiError::internal)?;
            made.map_err(|error| of_full_disk(&app, error))
        };
        let made = app.storage.derived(kind, id, render).await;
        // A purge may have removed the video's file under the decoder, or have run before the new file had its name.
        let is_old = made.as_ref().is_ok_and(|made| !made.is_new);
        if !is_old && app.catalog.known_ids(&[id]).await?.is_empty() {
            app.storage.remove_derived(kind, id).await?;
            return Err(ApiError::not_found("the video was deleted").at("id"));
        }
        Ok(made?.file)
    });
    making.await.map_err(ApiError::internal)?
}

/// The error of a decoder, which does not say itself that it had no room for its output.
fn of_full_disk(app: &App, error: VideoError) -> ApiError {
    let is_full = app.storage.free_bytes().is_ok_and(|free| free < FULL_DISK_BYTES);
    match (&error, is_full) {
        (VideoError::Ffmpeg(_), true) => {
            tracing::error!(%error, "the disk is full");
            ApiError::disk_full()
        }
        _ => ApiError::of_file(&error, "id"),
    }
}

/// Serves a file, or a range of it.
pub(super) async fn serve(path: &Path, media_type: &str, request: Request) -> Result<Response, ApiError> {
    let media_type = HeaderValue::from_str(media_type).map_err(ApiError::internal)?;
    let Ok(served) = ServeFile::new(path).oneshot(request).await;
    let mut response = served.map(Body::new).into_response();
    let headers = response.headers_mut();
    // The uploaded file must not decide how browsers interpret it.
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"));
    Ok(response)
}

/// The content type for the container that ffprobe found. The client's file name is not trusted.
fn media_type(video: &Video) -> &'static str {
    let container =
        video.facts.as_ref().and_then(|facts| facts.probe.get("container")?.as_str()).unwrap_or_default();
    match container.split(',').next().unwrap_or_default() {
        "mov" => "video/mp4",
        "matroska" if video.file.ends_with(".webm") => "video/webm",
        "matroska" => "video/x-matroska",
        "webm" => "video/webm",
        "avi" => "video/x-msvideo",
        "mpegts" => "video/mp2t",
        "ogg" => "video/ogg",
        "gif" => "image/gif",
        _ => "application/octet-stream",
    }
}
