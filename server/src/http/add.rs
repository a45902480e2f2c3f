//! `POST /v1/videos`: adds a video by upload, path or URL, once per content and once per Idempotency-Key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::openapi::schema::{Array, ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Form, Json, Part};
use super::jobs::JobOut;
use super::labels::{checked_folder, checked_tags};
use super::segmentation::SegmentationBody;
use super::subtitles::MAX_BYTES;
use super::videos::{VideoOut, checked_instant, checked_metadata, checked_title};
use crate::app::{App, Authorized};
use crate::catalog::{IdempotencyKey, MOST_TAGS, RefusedFile, Subtitles};
use crate::library::{self, AddedVideo, Library, NewUpload, SourceFile, VideoDetails};
use crate::storage;
use crate::subtitles::language;

/// Largest number of subtitle files with one video.
const MAX_TRACKS: usize = 64;

/// Routes of `POST /v1/videos`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(add))
}

/// A video from this server's disk or from the web.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewVideo)]
pub(super) struct AddBody {
    /// Path of a file under a configured media root. The server reads the file in place and makes no copy.
    #[schema(value_type = Option<String>)]
    path: Option<PathBuf>,
    /// An https address. Give this or `path`. Refused unless the server was started with --allow-url.
    url: Option<String>,
    /// Title, 1 to 500 characters, not only white space. Default: the file's name without its extension.
    #[schema(min_length = 1, max_length = 500, pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    title: Option<String>,
    /// Your metadata, a JSON object of at most 65536 bytes.
    #[schema(value_type = Option<HashMap<String, Value>>)]
    metadata: Option<Value>,
    /// Tags, at most 50, each of 1 to 60 characters without commas and control characters.
    #[serde(default)]
    #[schema(max_items = 50)]
    tags: Vec<String>,
    /// The folder: a path such as `season 2026/finals`, at most 10 names and 300 characters. Default: none.
    #[schema(max_length = 300)]
    folder: Option<String>,
    /// Time of recording: an RFC 3339 date or instant.
    recorded_at: Option<String>,
    /// How the video is cut into clips. Default: the policy `hybrid`.
    segmentation: Option<SegmentationBody>,
}

/// A multipart body: the part `file`, and optional parts. `metadata` and `segmentation` are JSON. `tags` and `subtitles` may
/// repeat.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the multipart body in the OpenAPI file")]
#[serde(deny_unknown_fields)]
#[schema(as = VideoUpload)]
pub(super) struct AddForm {
    /// The video, at most as large as the server allows.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// Title, 1 to 500 characters, not only white space. Default: the file's name without its extension.
    #[schema(nullable = false, min_length = 1, max_length = 500, pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    title: Option<String>,
    /// Your metadata, a JSON object of at most 65536 bytes.
    #[schema(value_type = Option<HashMap<String, Value>>, nullable = false)]
    metadata: Option<Value>,
    /// Tags: a part for each, at most 50, of 1 to 60 characters without commas and control characters.
    #[schema(nullable = false, max_items = 50)]
    tags: Option<Vec<String>>,
    /// The folder: a path such as `season 2026/finals`, at most 10 names and 300 characters. Default: none.
    #[schema(nullable = false, max_length = 300)]
    folder: Option<String>,
    /// Time of recording: an RFC 3339 date or instant.
    #[schema(nullable = false)]
    recorded_at: Option<String>,
    /// How the video is cut into clips, as JSON. Default: the policy `hybrid`.
    #[schema(nullable = false)]
    segmentation: Option<SegmentationBody>,
    /// SubRip or WebVTT files of at most 8 MiB, at most 64. The file's name gives the language, e.g.
    /// `lecture.pt-BR.srt`.
    #[schema(schema_with = subtitle_files)]
    subtitles: Option<Vec<Vec<u8>>>,
}

/// A header for requests that may be repeated.
#[derive(IntoParams)]
#[expect(dead_code, reason = "describes the header in the OpenAPI file")]
#[into_params(parameter_in = Header)]
pub(super) struct RepeatKey {
    /// Names this request for 24 hours: 1 to 255 printable ASCII characters. The same request with the same key gets the
    /// first answer; another request with it gets 409.
    #[param(
        rename = "Idempotency-Key",
        nullable = false,
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]+$"
    )]
    idempotency_key: Option<String>,
}

fn subtitle_files() -> Array {
    let file = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
    let text = "SubRip or WebVTT files of at most 8 MiB. The file's name gives the language, e.g. `lecture.pt-BR.srt`";
    ArrayBuilder::new().items(file).max_items(Some(MAX_TRACKS)).description(Some(text)).build()
}

/// The added video and its job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AddedVideo)]
struct AddAnswer {
    /// The video.
    video: VideoOut,
    /// The job that makes the video searchable. Null if the server stored these bytes already and has no job for them.
    job: Option<JobOut>,
    /// Whether the server already stored these bytes. `video` is then the stored video.
    duplicate: bool,
}

/// Adds a video. Send multipart with the part `file`, or JSON with `path` or `url`.
///
/// The server checks that the file is a video before it answers. The video is searchable when the job has succeeded.
/// A file that is refused is listed as a failed job for some days; the problem then has its `job_id`.
/// A repeated request with the same `Idempotency-Key` gets the first answer, for 24 hours.
#[utoipa::path(
    post, path = "/v1/videos", operation_id = "addVideo", tag = "library",
    request_body(content((AddBody = "application/json"), (AddForm = "multipart/form-data"))),
    params(RepeatKey), responses((status = 202, body = AddAnswer), (status = 409))
)]
async fn add(app: Authorized, request: Request) -> Result<(StatusCode, axum::Json<AddAnswer>), ApiError> {
    let key = idempotency_key(request.headers())?;
    let _receiving = extract::receiving(&app.uploads)?;
    let asked = if extract::has_type(request.headers(), "multipart/form-data") {
        Asked::from_form(&app, Form::from_request(request, &()).await?).await?
    } else {
        Asked::from_json(&app, Json::from_request(request, &()).await?.0).await?
    };
    let key = key.map(|key| IdempotencyKey { key: owned(&app, key), request_hash: asked.hash() });
    let named_by = asked.named_by;
    let added = Library::of(&app).add(asked.upload(&app)?, key).await;
    let added = added.map_err(|error| ApiError::from(error).moved("file", named_by))?;
    Ok((StatusCode::ACCEPTED, axum::Json(added.into())))
}

impl From<AddedVideo> for AddAnswer {
    fn from(added: AddedVideo) -> AddAnswer {
        let AddedVideo { video, job, duplicate } = added;
        AddAnswer { video: video.into(), job: job.map(JobOut::from), duplicate }
    }
}

/// The key as it is stored. Two API keys may use the same text.
pub(super) fn owned(app: &Authorized, key: String) -> String {
    app.caller().key_id().map_or(key.clone(), |id| format!("{id}/{key}"))
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=255).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(ApiError::invalid("Idempotency-Key", "must have 1 to 255 printable ASCII characters")),
    }
}

/// A checked request to add a video.
pub(super) struct Asked {
    pub(super) file: SourceFile,
    /// The part that is the file, or the JSON pointer to what names it.
    pub(super) named_by: &'static str,
    pub(super) file_name: String,
    pub(super) details: Details,
    /// The resumable upload whose file it is.
    pub(super) upload: Option<Uuid>,
}

/// Details of the video besides its file.
#[derive(Default)]
pub(super) struct Details {
    title: Option<String>,
    metadata: Option<Value>,
    tags: Vec<String>,
    folder: Option<String>,
    recorded_at: Option<String>,
    segmentation: Option<SegmentationBody>,
    subtitles: Vec<Subtitles>,
}

impl Details {
    pub(super) fn check(&self, app: &App) -> Result<(), ApiError> {
        checked_title(self.title.as_deref(), "/title")?;
        checked_metadata(self.metadata.as_ref(), "/metadata")?;
        checked_instant(self.recorded_at.as_deref(), "/recorded_at")?;
        checked_tags(&self.tags, "/tags")?;
        checked_folder(self.folder.as_deref(), "/folder")?;
        let Some(segmentation) = &self.segmentation else { return Ok(()) };
        segmentation.segmentation(app.config.max_clip_seconds)?;
        segmentation.given().map(|_| ())
    }

    /// Checks that the caller would see the video, if its bytes are new.
    ///
    /// # Errors
    /// 403.
    pub(super) async fn check_reach(&self, app: &Authorized) -> Result<(), ApiError> {
        let metadata = self.metadata.clone().unwrap_or_else(|| json!({}));
        let tags = checked_tags(&self.tags, "/tags")?;
        let folder = checked_folder(self.folder.as_deref(), "/folder")?;
        Ok(app.view().check_reach(&metadata, &tags, &folder).await?)
    }

    /// Reads a named text or JSON part of a form.
    pub(super) fn part(&mut self, name: &str, bytes: &[u8]) -> Result<(), ApiError> {
        match name {
            "title" => self.title = Some(utf8(bytes, name)?),
            "recorded_at" => self.recorded_at = Some(utf8(bytes, name)?),
            "folder" => self.folder = Some(utf8(bytes, name)?),
            "tags" if self.tags.len() >= MOST_TAGS => {
                return Err(ApiError::invalid("tags", format!("a video may have {MOST_TAGS} tags")));
            }
            "tags" => self.tags.push(utf8(bytes, name)?),
            "metadata" => self.metadata = Some(extract::parse(bytes, "/metadata")?),
            "segmentation" => self.segmentation = Some(extract::parse(bytes, "/segmentation")?),
            other => {
                return Err(ApiError::invalid(
                    other,
                    "there is no such part; use file, title, metadata, tags, folder, recorded_at, segmentation, subtitles",
                ));
            }
        }
        Ok(())
    }

    /// Reads a subtitle file. A second file in the same language is refused.
    async fn subtitles(&mut self, mut part: Part<'_>) -> Result<(), ApiError> {
        let name = shown_name(part.file_name());
        let (_, language) = language::of_file_name(&name);
        let too_large =
            || ApiError::too_large(format!("a subtitle file may have {MAX_BYTES} bytes")).at("subtitles");
        let bytes = part.bytes(MAX_BYTES).await?.ok_or_else(too_large)?;
        let read = library::read_subtitles(bytes, language, &name).await?;
        if self.subtitles.iter().any(|it| it.track.language == read.track.language) {
            let text = format!(
                "there are two subtitle files in `{}`; name them NAME.LANGUAGE.srt",
                read.track.language
            );
            return Err(ApiError::invalid("subtitles", text));
        }
        if self.subtitles.len() >= MAX_TRACKS {
            return Err(ApiError::invalid(
                "subtitles",
                format!("a video may come with {MAX_TRACKS} subtitle files"),
            ));
        }
        self.subtitles.push(read);
        Ok(())
    }
}

/// Subtitles as JSON for the request's hash. Other lines make another request.
fn shown_subtitles(it: &Subtitles) -> Value {
    let lines: Vec<Value> = it.lines.iter().map(|it| json!([it.start_ms, it.end_ms, it.text])).collect();
    json!([it.track.language, it.track.provenance, lines])
}

pub(super) fn utf8(bytes: &[u8], name: &str) -> Result<String, ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ApiError::invalid(name, "must be UTF-8"))?;
    Ok(text.to_owned())
}

impl Asked {
    async fn from_form(app: &Authorized, mut form: Form) -> Result<Asked, ApiError> {
        let mut details = Details::default();
        let mut file = None;
        while let Some(part) = form.next_part(app).await? {
            match part.name() {
                "file" if file.is_some() => return Err(ApiError::invalid("file", "send one file a request")),
                "file" => {
                    let name = shown_name(part.file_name());
                    let received = part.file().await;
                    file = Some((name.clone(), or_refused(app, name, received).await?));
                }
                "subtitles" => details.subtitles(part).await?,
                name => {
                    let name = name.to_owned();
                    details.part(&name, &part.text().await?)?;
                }
            }
        }
        details.check(app)?;
        let (file_name, received) =
            file.ok_or_else(|| ApiError::invalid("file", "the part `file` is missing"))?;
        Ok(Asked { file: SourceFile::Received(received), named_by: "file", file_name, details, upload: None })
    }

    async fn from_json(app: &Authorized, body: AddBody) -> Result<Asked, ApiError> {
        let details = Details {
            title: body.title,
            metadata: body.metadata,
            tags: body.tags,
            folder: body.folder,
            recorded_at: body.recorded_at,
            segmentation: body.segmentation,
            subtitles: Vec::new(),
        };
        details.check(app)?;
        match (body.path, body.url) {
            (Some(path), None) => Asked::in_place(app, &path, details).await,
            (None, Some(url)) => {
                let source = super::sources::fetch(app, &url).await;
                let (file_name, received) = or_refused(app, name_in(&url), source).await?;
                let (file, file_name) = (SourceFile::Received(received), shown_name(&file_name));
                Ok(Asked { file, named_by: "/url", file_name, details, upload: None })
            }
            _ => {
                Err(ApiError::invalid("", "give exactly one of path and url, or send the file as multipart"))
            }
        }
    }

    async fn in_place(app: &Authorized, path: &Path, details: Details) -> Result<Asked, ApiError> {
        if app.caller().visibility().is_limited() {
            let detail =
                "your key reaches some videos only, so it can't read the server's folders; upload the file";
            return Err(ApiError::forbidden(detail).at("/path"));
        }
        let path = super::sources::under_media_root(app, path)?;
        let file_name = shown_name(&path.file_name().unwrap_or_default().to_string_lossy());
        let read = path.clone();
        let fingerprint = tokio::task::spawn_blocking(move || storage::fingerprint(&read)).await;
        let fingerprint = fingerprint.map_err(ApiError::internal)??;
        let file = SourceFile::InPlace { path, fingerprint };
        Ok(Asked { file, named_by: "/path", file_name, details, upload: None })
    }

    /// Hash of the whole request.
    pub(super) fn hash(&self) -> String {
        let mut said = json!({
            "content": self.file.content_hash(),
            "file_name": self.file_name,
            "title": self.details.title,
            "metadata": self.details.metadata,
            "recorded_at": self.details.recorded_at,
            "segmentation": self.details.segmentation,
            "subtitles": self.details.subtitles.iter().map(shown_subtitles).collect::<Vec<_>>(),
        });
        // A request without them keeps the hash that an older version gave it.
        if !self.details.tags.is_empty() || self.details.folder.is_some() {
            said["labels"] = json!([self.details.tags, self.details.folder]);
        }
        storage::hash_bytes(said.to_string().as_bytes())
    }

    pub(super) fn upload(self, app: &App) -> Result<NewUpload, ApiError> {
        let Details { title, metadata, tags, folder, recorded_at, segmentation, subtitles } = self.details;
        let tags = checked_tags(&tags, "/tags")?;
        let folder = checked_folder(folder.as_deref(), "/folder")?;
        let body = segmentation.unwrap_or_default();
        Ok(NewUpload {
            file: self.file,
            file_name: self.file_name,
            details: VideoDetails { title, metadata, tags, folder, recorded_at },
            segmentation: body.segmentation(app.config.max_clip_seconds)?,
            clips: body.given()?,
            subtitles,
            upload: self.upload,
        })
    }
}

/// What was received. A file that is too large is listed as refused; the rest of it was not read.
async fn or_refused<T>(
    app: &Authorized,
    file_name: String,
    received: Result<T, ApiError>,
) -> Result<T, ApiError> {
    let Some(reason) = received.as_ref().err().and_then(ApiError::why_too_large).map(str::to_owned) else {
        return received;
    };
    let job = Library::of(app).refuse(RefusedFile { file_name, bytes: None }, reason, None).await;
    received.map_err(|error| error.of_job(job))
}

/// The name at the end of an address, whose query may hold secrets.
fn name_in(url: &str) -> String {
    shown_name(url.split(['?', '#']).next().unwrap_or_default())
}

/// The last component of a client's path, without control characters.
pub(super) fn shown_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|it| !it.is_control()).take(255).collect();
    if plain.trim().is_empty() { "video".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        assert_eq!(shown_name(name), expected, "{name:?}");
    }

    #[test]
    fn a_file_name_is_shown_without_its_folders() {
        check("dive.mp4", "dive.mp4");
        check("../../etc/passwd", "passwd");
        check("C:\\clips\\dive.mp4", "dive.mp4");
        check("a\u{0}b\n.mp4", "ab.mp4");
        check("", "video");
        check("folder/", "video");
        assert_eq!(name_in("https://example.com/a/dive.mp4?token=secret#x"), "dive.mp4");
    }
}
