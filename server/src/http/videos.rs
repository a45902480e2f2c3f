//! `/v1/videos`: adding, listing, changing and deleting videos.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::{ApiError, Problem};
use super::extract::{self, Form, Id, Json, Params};
use super::jobs::JobOut;
use super::search::seconds;
use super::segmentation::{self, SegmentationBody};
use crate::app::App;
use crate::catalog::{
    Added, IdempotencyKey, IdempotencyRecord, Job, NewVideo, Video, VideoPatch, VideoState,
};
use crate::media::{Received, hash_bytes, hash_file};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list, add)).routes(routes!(get, patch, delete))
}

/// A stored video.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct VideoOut {
    id: Uuid,
    title: String,
    file_name: String,
    /// SHA-256 of the file.
    content_hash: String,
    bytes: i64,
    #[schema(value_type = String)]
    state: VideoState,
    /// Length of the video stream in seconds; null until it was decoded.
    duration: Option<f64>,
    frame_rate: Option<f64>,
    frames: Option<u64>,
    width: Option<u32>,
    height: Option<u32>,
    codec: Option<String>,
    variable_frame_rate: Option<bool>,
    /// The first frame's time on the container's clock, in seconds: add it to a time to seek in the original.
    media_offset: Option<f64>,
    /// Whether common browsers play the original.
    plays_in_browsers: Option<bool>,
    /// What was wrong with the file but could be lived with.
    warnings: Vec<String>,
    #[schema(value_type = Object)]
    metadata: Value,
    recorded_at: Option<String>,
    /// RFC 3339.
    created_at: String,
    /// How it is cut.
    #[schema(value_type = Object)]
    segmentation: Value,
    /// Clips found and given.
    clips: i64,
    /// Its newest job.
    job_id: Option<Uuid>,
    media_url: String,
    /// A version that browsers play, made when first asked for; null if the original plays.
    rendition_url: Option<String>,
    thumbnail_url: String,
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
            recorded_at: video.recorded_at,
            created_at: super::instant(video.created_at_ms),
            segmentation: json!({"policy": video.segmentation.policy, "params": video.segmentation.params}),
            clips: video.clips,
            job_id: video.job_id,
        }
    }
}

/// One page of videos.
#[derive(Debug, Serialize, ToSchema)]
struct VideoPage {
    items: Vec<VideoOut>,
    next_cursor: Option<String>,
}

/// Where a page starts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Paging {
    /// Items per page, 1 to 1000; default 50.
    pub(super) limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub(super) cursor: Option<Uuid>,
}

/// Lists videos, oldest first.
#[utoipa::path(get, path = "/v1/videos", tag = "library", params(Paging), responses((status = 200, body = VideoPage)))]
async fn list(
    State(app): State<Arc<App>>,
    Params(paging): Params<Paging>,
) -> Result<axum::Json<VideoPage>, ApiError> {
    let limit = extract::page_size(paging.limit)?;
    let videos = app.catalog.videos(paging.cursor, limit).await?;
    let next_cursor = super::next_cursor(&videos, limit, |video| video.id);
    Ok(axum::Json(VideoPage { items: videos.into_iter().map(VideoOut::from).collect(), next_cursor }))
}

/// A video that is on this server's disk or on the web.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddBody {
    /// A file under a configured media root; it stays where it is.
    #[schema(value_type = Option<String>)]
    path: Option<PathBuf>,
    /// An https address; off unless the server was started with --allow-url.
    url: Option<String>,
    title: Option<String>,
    /// A JSON object.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// RFC 3339 date or instant.
    recorded_at: Option<String>,
    segmentation: Option<SegmentationBody>,
}

/// A multipart body: `file`, and as JSON `metadata` and `segmentation`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the multipart body in the OpenAPI file")]
pub(super) struct AddForm {
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    title: Option<String>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    recorded_at: Option<String>,
    segmentation: Option<SegmentationBody>,
}

/// What adding a video did.
#[derive(Debug, Serialize, ToSchema)]
struct AddAnswer {
    video: VideoOut,
    /// The job that makes it searchable.
    job: Option<JobOut>,
    /// Whether the same bytes were stored already: then `video` is that video.
    duplicate: bool,
}

/// Adds a video: multipart with the part `file`, or JSON with `path` or `url`.
///
/// The file is checked to be video before the answer; it is searchable when the job has succeeded. The header
/// `Idempotency-Key` makes a repeated request answer as the first one did, for 24 hours.
#[utoipa::path(
    post, path = "/v1/videos", tag = "library",
    request_body(content((AddBody = "application/json"), (AddForm = "multipart/form-data"))),
    params(("Idempotency-Key" = Option<String>, Header, description = "names this request for 24 hours")),
    responses(
        (status = 202, body = AddAnswer), (status = 409, body = Problem), (status = 413, body = Problem),
        (status = 415, body = Problem), (status = 422, body = Problem),
    )
)]
async fn add(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<(StatusCode, axum::Json<AddAnswer>), ApiError> {
    let key = idempotency_key(request.headers())?;
    let asked = if extract::has_type(request.headers(), "multipart/form-data") {
        Asked::from_form(&app, Form::from_request(request, &()).await?).await?
    } else {
        Asked::from_json(&app, Json::from_request(request, &()).await?.0).await?
    };
    let key = key.map(|key| IdempotencyKey { key, request_hash: asked.hash() });
    if let Some(answer) = earlier_answer(&app, key.as_ref()).await? {
        return Ok((StatusCode::ACCEPTED, axum::Json(answer)));
    }
    let answer = asked.store(&app, key).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(answer)))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=255).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(ApiError::invalid("Idempotency-Key", "must have 1 to 255 printable ASCII characters")),
    }
}

async fn earlier_answer(app: &App, key: Option<&IdempotencyKey>) -> Result<Option<AddAnswer>, ApiError> {
    let Some(key) = key else { return Ok(None) };
    let Some(record) = app.catalog.idempotent(&key.key).await? else { return Ok(None) };
    if record.request_hash != key.request_hash {
        return Err(ApiError::conflict("this Idempotency-Key was used for another request"));
    }
    answer_again(app, &record).await.map(Some)
}

async fn answer_again(app: &App, record: &IdempotencyRecord) -> Result<AddAnswer, ApiError> {
    let gone = || ApiError::conflict("the video that this Idempotency-Key made was deleted; use a new key");
    let video = app.catalog.video(record.video).await?.ok_or_else(gone)?;
    let job = match record.job {
        Some(id) => app.catalog.job(id).await?,
        None => None,
    };
    Ok(AddAnswer { video: video.into(), job: job.map(JobOut::from), duplicate: record.duplicate })
}

/// Where the bytes are.
enum Bytes {
    Received(Received),
    InPlace { path: PathBuf, content_hash: String, bytes: u64 },
}

impl Bytes {
    fn path(&self) -> &Path {
        match self {
            Bytes::Received(received) => received.path(),
            Bytes::InPlace { path, .. } => path,
        }
    }

    fn content_hash(&self) -> &str {
        match self {
            Bytes::Received(received) => &received.content_hash,
            Bytes::InPlace { content_hash, .. } => content_hash,
        }
    }

    fn len(&self) -> u64 {
        match self {
            Bytes::Received(received) => received.bytes,
            Bytes::InPlace { bytes, .. } => *bytes,
        }
    }
}

/// A checked request to add a video.
struct Asked {
    bytes: Bytes,
    file_name: String,
    details: Details,
}

/// What is said beside the file.
#[derive(Default)]
struct Details {
    title: Option<String>,
    metadata: Option<Value>,
    recorded_at: Option<String>,
    segmentation: Option<SegmentationBody>,
}

impl Details {
    fn check(&self, app: &App) -> Result<(), ApiError> {
        checked_title(self.title.as_deref(), "/title")?;
        checked_metadata(self.metadata.as_ref(), "/metadata")?;
        checked_instant(self.recorded_at.as_deref(), "/recorded_at")?;
        self.segmentation.as_ref().map_or(Ok(()), |it| it.check(app.config.max_clip_seconds))
    }

    /// Takes one part of a form, by name.
    fn part(&mut self, name: &str, bytes: &[u8]) -> Result<(), ApiError> {
        match name {
            "title" => self.title = Some(utf8(bytes, name)?),
            "recorded_at" => self.recorded_at = Some(utf8(bytes, name)?),
            "metadata" => self.metadata = Some(extract::parse(bytes, "/metadata")?),
            "segmentation" => self.segmentation = Some(extract::parse(bytes, "/segmentation")?),
            "subtitles" => return Err(ApiError::invalid("subtitles", "subtitles can't be attached yet")),
            other => {
                return Err(ApiError::invalid(
                    other,
                    "there is no such part; use file, title, metadata, recorded_at, segmentation",
                ));
            }
        }
        Ok(())
    }
}

fn utf8(bytes: &[u8], name: &str) -> Result<String, ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ApiError::invalid(name, "must be UTF-8"))?;
    Ok(text.to_owned())
}

impl Asked {
    async fn from_form(app: &App, mut form: Form) -> Result<Asked, ApiError> {
        let mut details = Details::default();
        let mut file = None;
        while let Some(part) = extract::next_part(&mut form.0).await? {
            let name = part.name().unwrap_or_default().to_owned();
            if name == "file" {
                if file.is_some() {
                    return Err(ApiError::invalid("file", "send one file a request"));
                }
                let file_name = shown_name(part.file_name().unwrap_or_default());
                file = Some((
                    file_name,
                    extract::file_part(part, &app.media, app.config.max_upload_bytes).await?,
                ));
            } else {
                details.part(&name, &extract::text_part(part).await?)?;
            }
        }
        details.check(app)?;
        let (file_name, received) =
            file.ok_or_else(|| ApiError::invalid("file", "the part `file` is missing"))?;
        Ok(Asked { bytes: Bytes::Received(received), file_name, details })
    }

    async fn from_json(app: &App, body: AddBody) -> Result<Asked, ApiError> {
        let details = Details {
            title: body.title,
            metadata: body.metadata,
            recorded_at: body.recorded_at,
            segmentation: body.segmentation,
        };
        details.check(app)?;
        match (body.path, body.url) {
            (Some(path), None) => {
                let path = super::sources::under_media_root(app, &path)?;
                let file_name = shown_name(&path.file_name().unwrap_or_default().to_string_lossy());
                let hashed = {
                    let path = path.clone();
                    tokio::task::spawn_blocking(move || hash_file(&path)).await.map_err(ApiError::internal)?
                };
                let (content_hash, bytes) = hashed?;
                Ok(Asked { bytes: Bytes::InPlace { path, content_hash, bytes }, file_name, details })
            }
            (None, Some(url)) => {
                let (file_name, received) = super::sources::fetch(app, &url).await?;
                Ok(Asked { bytes: Bytes::Received(received), file_name: shown_name(&file_name), details })
            }
            _ => {
                Err(ApiError::invalid("", "give exactly one of path and url, or send the file as multipart"))
            }
        }
    }

    /// Over all that the request says.
    fn hash(&self) -> String {
        let said = json!({
            "content": self.bytes.content_hash(),
            "file_name": self.file_name,
            "title": self.details.title,
            "metadata": self.details.metadata,
            "recorded_at": self.details.recorded_at,
            "segmentation": self.details.segmentation,
        });
        hash_bytes(said.to_string().as_bytes())
    }

    async fn store(self, app: &App, key: Option<IdempotencyKey>) -> Result<AddAnswer, ApiError> {
        if app.catalog.video_by_hash(self.bytes.content_hash()).await?.is_none() {
            self.probe(app).await?;
        }
        let id = Uuid::now_v7();
        let (segmentation, given) =
            segmentation::resolved(self.details.segmentation.as_ref(), app.config.max_clip_seconds);
        let (content_hash, bytes) = (self.bytes.content_hash().to_owned(), self.bytes.len());
        let file = match self.bytes {
            Bytes::Received(received) => app.media.keep(received, id, &self.file_name).await?,
            Bytes::InPlace { path, .. } => path.to_string_lossy().into_owned(),
        };
        let title = self.details.title.unwrap_or_else(|| title_of(&self.file_name));
        let new = NewVideo {
            id,
            content_hash,
            file: file.clone(),
            file_name: self.file_name,
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            title,
            metadata: self.details.metadata.unwrap_or_else(|| Value::Object(Map::new())),
            recorded_at: self.details.recorded_at,
            segmentation,
            given,
        };
        let added = app.catalog.add_video(new, key).await;
        if !matches!(added, Ok(Added::New(..))) {
            app.media.remove_video(id, &file).await;
        }
        Ok(added_answer(added?))
    }

    async fn probe(&self, app: &App) -> Result<(), ApiError> {
        let (path, limits) = (self.bytes.path().to_owned(), app.config.decode_limits());
        let probed =
            tokio::task::spawn_blocking(move || reprise_encoders::video::probe(&path, &limits)).await;
        probed.map_err(ApiError::internal)??;
        Ok(())
    }
}

fn added_answer(added: Added) -> AddAnswer {
    let (video, job, duplicate): (Video, Option<Job>, bool) = match added {
        Added::New(video, job) => (*video, Some(*job), false),
        Added::Duplicate(video, job) => (*video, job.map(|job| *job), true),
    };
    AddAnswer { video: video.into(), job: job.map(JobOut::from), duplicate }
}

/// The last part of a client's path, without control characters.
fn shown_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|it| !it.is_control()).take(255).collect();
    if plain.trim().is_empty() { "video".to_owned() } else { plain }
}

fn title_of(file_name: &str) -> String {
    let stem = Path::new(file_name).file_stem().and_then(|it| it.to_str()).unwrap_or(file_name);
    stem.to_owned()
}

fn checked_title(title: Option<&str>, pointer: &str) -> Result<(), ApiError> {
    let fits = title.is_none_or(|it| !it.trim().is_empty() && it.chars().count() <= 500);
    if fits { Ok(()) } else { Err(ApiError::invalid(pointer, "a title has 1 to 500 characters")) }
}

/// Metadata is an object that JSON of both databases can hold.
pub(super) fn checked_metadata(metadata: Option<&Value>, pointer: &str) -> Result<(), ApiError> {
    let Some(metadata) = metadata else { return Ok(()) };
    let text = metadata.to_string();
    if !metadata.is_object() {
        return Err(ApiError::invalid(pointer, "metadata is a JSON object"));
    }
    if text.len() > 64 << 10 {
        return Err(ApiError::invalid(pointer, "metadata may have 65536 bytes"));
    }
    if text.contains("\\u0000") {
        return Err(ApiError::invalid(pointer, "metadata can't hold the character U+0000"));
    }
    Ok(())
}

fn checked_instant(instant: Option<&str>, pointer: &str) -> Result<(), ApiError> {
    let reads = instant.is_none_or(|text| crate::catalog::instant::parse(text).is_some());
    if reads {
        Ok(())
    } else {
        Err(ApiError::invalid(pointer, "an instant is RFC 3339: 2024-07-01 or 2024-07-01T12:30:00Z"))
    }
}

/// One video.
#[utoipa::path(get, path = "/v1/videos/{id}", tag = "library", params(("id" = Uuid, Path)),
    responses((status = 200, body = VideoOut), (status = 404, body = Problem)))]
async fn get(State(app): State<Arc<App>>, Id(id): Id) -> Result<axum::Json<VideoOut>, ApiError> {
    Ok(axum::Json(found(app.catalog.video(id).await?, id)?.into()))
}

/// What may be changed; a field not sent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PatchBody {
    title: Option<String>,
    /// Replaces the old object.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// null removes it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    recorded_at: Option<Option<String>>,
}

/// Tells `null` from a missing field.
fn present<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(reader).map(Some)
}

/// Changes title, metadata or recording time.
#[utoipa::path(patch, path = "/v1/videos/{id}", tag = "library", params(("id" = Uuid, Path)), request_body = PatchBody,
    responses((status = 200, body = VideoOut), (status = 404, body = Problem), (status = 422, body = Problem)))]
async fn patch(
    State(app): State<Arc<App>>,
    Id(id): Id,
    Json(body): Json<PatchBody>,
) -> Result<axum::Json<VideoOut>, ApiError> {
    checked_title(body.title.as_deref(), "/title")?;
    checked_metadata(body.metadata.as_ref(), "/metadata")?;
    checked_instant(body.recorded_at.as_ref().and_then(Option::as_deref), "/recorded_at")?;
    let patch = VideoPatch { title: body.title, metadata: body.metadata, recorded_at: body.recorded_at };
    Ok(axum::Json(found(app.catalog.update_video(id, patch).await?, id)?.into()))
}

/// Deletes a video with its clips, vectors and files; none of it is in any answer from then on.
#[utoipa::path(delete, path = "/v1/videos/{id}", tag = "library", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
async fn delete(State(app): State<Arc<App>>, Id(id): Id) -> Result<StatusCode, ApiError> {
    let clips = app.catalog.clips(id, None, 1_000_000).await?;
    let video = found(app.catalog.delete_video(id).await?, id)?;
    app.gallery.catch_up().await?;
    app.media.remove_video(id, &video.file).await;
    for clip in clips {
        app.media.remove_span(clip.id).await;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The video, or 404.
pub(super) fn found(video: Option<Video>, id: Uuid) -> Result<Video, ApiError> {
    video.ok_or_else(|| ApiError::not_found(format!("there is no video {id}")))
}
