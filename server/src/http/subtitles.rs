//! `/v1/videos/{id}/subtitles`: the subtitle tracks of a video.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Id, Params};
use super::names::{FileBytes, TrackKindName};
use super::videos;
use crate::app::{App, Authorized};
use crate::catalog::{CueKind, Track, TrackRow};
use crate::library::{self, Library, LibraryError};
use crate::subtitles::{self, language};

/// Largest subtitle file, in bytes.
pub(super) const MAX_BYTES: usize = 8 << 20;
/// Accepted content types. The format is detected from the content.
const TYPES: [&str; 6] = [
    "text/vtt",
    "application/x-subrip",
    "text/plain",
    "application/octet-stream",
    "text/srt",
    "application/srt",
];
/// Provenance of a track without a file name.
const UPLOADED: &str = "upload";

/// Routes of `/v1/videos/{id}/subtitles`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(put, get, delete))
}

/// One track of a video.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Track)]
struct TrackOut {
    /// BCP 47 tag; `und` if the language is unknown.
    language: String,
    /// Kind of the track.
    #[schema(value_type = TrackKindName)]
    kind: CueKind,
    /// Source of the track. `embedded`: the video's file. `upload`: a request without a file name. Otherwise the name
    /// of the subtitle file, or of the model that wrote it.
    provenance: String,
    /// Whether a program wrote it, from speech or from what it read in the picture. Such a track never replaces a
    /// person's.
    machine: bool,
    /// Number of cues.
    #[schema(minimum = 0)]
    cues: i64,
    /// Faults of the subtitle file, with line numbers.
    warnings: Vec<String>,
    /// Address of the cues as WebVTT; with `format=srt` as SubRip.
    url: String,
}

impl TrackOut {
    fn new(video: Uuid, row: TrackRow) -> TrackOut {
        let Track { kind, language, provenance, is_machine: machine } = row.track;
        let query = match kind {
            CueKind::Speech => "",
            CueKind::Caption => "?kind=caption",
            CueKind::Ocr => "?kind=ocr",
        };
        let url = format!("/v1/videos/{video}/subtitles/{language}{query}");
        TrackOut { language, kind, provenance, machine, cues: row.cues, warnings: row.warnings, url }
    }
}

/// All tracks of a video.
#[derive(Debug, Serialize, ToSchema)]
struct TrackList {
    /// The tracks.
    items: Vec<TrackOut>,
    /// Model that `transcribeVideo` has write down speech. Null if this server has none.
    transcriber: Option<String>,
}

/// Lists a video's tracks.
#[utoipa::path(get, path = "/v1/videos/{id}/subtitles", operation_id = "listSubtitles", tag = "subtitles",
    params(("id" = Uuid, Path, description = "The video's id")), responses((status = 200, body = TrackList)))]
async fn list(app: Authorized, Id(id): Id) -> Result<axum::Json<TrackList>, ApiError> {
    videos::found(app.view().video(id).await?, id)?;
    let tracks = app.view().tracks(id).await?;
    let items = tracks.into_iter().map(|row| TrackOut::new(id, row)).collect();
    let transcriber = app.speech.as_ref().map(|speech| speech.description().model.clone());
    Ok(axum::Json(TrackList { items, transcriber }))
}

/// The video and the language in the path.
struct TrackPath {
    video: Uuid,
    language: String,
}

impl<S: Send + Sync> FromRequestParts<S> for TrackPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Self, ApiError> {
        let path = axum::extract::Path::<(String, String)>::from_request_parts(parts, state).await;
        let nothing = || ApiError::no_id("id");
        let axum::extract::Path((video, language)) = path.map_err(|_| nothing())?;
        let video = video.parse().map_err(|_| nothing())?;
        let wrong =
            || ApiError::invalid("lang", "this is no language tag; use one like `en` or `pt-BR`, or `und`");
        Ok(TrackPath { video, language: language::tag(&language).ok_or_else(wrong)? })
    }
}

/// Stores a subtitle file. It replaces the speech of the same language, also a transcript by a model. Its words are
/// searchable at once.
///
/// The track is then a person's: no later transcription replaces it. The server detects SubRip or WebVTT by the content.
/// Times are on the media file's clock. Unreadable cues are left out and listed in `warnings`. Vectors of clips and videos
/// do not change.
#[utoipa::path(put, path = "/v1/videos/{id}/subtitles/{lang}", operation_id = "putSubtitles", tag = "subtitles",
    params(("id" = Uuid, Path, description = "The video's id"), LanguagePath),
    request_body(content((inline(FileBytes) = "text/vtt"), (inline(FileBytes) = "application/x-subrip"), (inline(FileBytes) = "text/plain"),
        (inline(FileBytes) = "application/octet-stream"))),
    responses((status = 200, body = TrackOut)))]
async fn put(app: Authorized, place: TrackPath, request: Request) -> Result<axum::Json<TrackOut>, ApiError> {
    videos::found(app.view().video(place.video).await?, place.video)?;
    let bytes = body(request).await?;
    let stored = library::read_subtitles(bytes.to_vec(), place.language, UPLOADED).await?;
    Library::of(&app).replace_subtitles(place.video, &stored).await?;
    let cues = i64::try_from(stored.lines.len()).unwrap_or(i64::MAX);
    let row = TrackRow { track: stored.track, cues, warnings: stored.warnings };
    Ok(axum::Json(TrackOut::new(place.video, row)))
}

async fn body(request: Request) -> Result<bytes::Bytes, ApiError> {
    let headers = request.headers();
    let is_known = TYPES.iter().any(|it| extract::has_type(headers, it));
    if headers.contains_key(header::CONTENT_TYPE) && !is_known {
        return Err(ApiError::wrong_type("send subtitles as text/vtt, application/x-subrip or text/plain"));
    }
    extract::read_body(request.into_body(), MAX_BYTES, "a subtitle file").await
}

/// The language in the path.
#[derive(IntoParams)]
#[expect(dead_code, reason = "describes the parameter in the OpenAPI file")]
#[into_params(parameter_in = Path)]
struct LanguagePath {
    /// BCP 47 tag of the language, e.g. `en` or `pt-BR`; `und` if not known.
    #[param(pattern = "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8}){0,3}$", max_length = 35)]
    lang: String,
}

/// The form of a subtitle file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SubtitleFormat)]
enum Format {
    /// WebVTT.
    #[default]
    Vtt,
    /// SubRip.
    Srt,
}

/// The kind of the track.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfKind {
    /// Kind of the track; default `speech`.
    #[param(value_type = Option<TrackKindName>, nullable = false)]
    kind: Option<CueKind>,
}

/// The track, the form and the clock of the returned cues.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FileParams {
    /// Kind of the track; default `speech`.
    #[param(value_type = Option<TrackKindName>, nullable = false)]
    kind: Option<CueKind>,
    /// Form of the file; default `vtt`.
    #[param(value_type = Option<Format>, inline, nullable = false)]
    format: Option<Format>,
    /// Time of the first frame on the player's clock, in seconds, 0 to 10000000. Default: its time on the media file's
    /// clock.
    #[param(minimum = 0, maximum = 10_000_000, nullable = false)]
    offset: Option<f64>,
}

/// Returns a track as WebVTT, for a player, or as SubRip.
#[utoipa::path(get, path = "/v1/videos/{id}/subtitles/{lang}", operation_id = "getSubtitles", tag = "subtitles",
    params(("id" = Uuid, Path, description = "The video's id"), LanguagePath, FileParams),
    responses((status = 200, description = "The cues as WebVTT, or as SubRip with `format=srt`",
        content((String = "text/vtt"), (String = "application/x-subrip")))))]
async fn get(
    app: Authorized,
    place: TrackPath,
    Params(asked): Params<FileParams>,
) -> Result<impl IntoResponse, ApiError> {
    let offset_ms = asked.offset.map(|it| extract::milliseconds(it, "offset")).transpose()?;
    let video = videos::found(app.view().video(place.video).await?, place.video)?;
    let kind = asked.kind.unwrap_or(CueKind::Speech);
    let lines = app.view().track_lines(place.video, kind, &place.language).await?;
    if lines.is_empty() {
        return Err(LibraryError::NoTrack(place.language).into());
    }
    let of_file = video.facts.map_or(0, |facts| facts.media_offset_ms);
    let shift_ms = offset_ms.map_or(0, |wanted| wanted - of_file);
    let (content_type, file) = match asked.format.unwrap_or_default() {
        Format::Vtt => ("text/vtt; charset=utf-8", subtitles::write_vtt(&lines, shift_ms)),
        Format::Srt => ("application/x-subrip; charset=utf-8", subtitles::write_srt(&lines, shift_ms)),
    };
    // A track may be replaced at any time.
    Ok(([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-cache")], Body::from(file)))
}

/// Deletes a track. Later answers do not contain it.
#[utoipa::path(delete, path = "/v1/videos/{id}/subtitles/{lang}", operation_id = "deleteSubtitles",
    tag = "subtitles", params(("id" = Uuid, Path, description = "The video's id"), LanguagePath, OfKind),
    responses((status = 204), (status = 422)))]
async fn delete(
    app: Authorized,
    place: TrackPath,
    Params(of): Params<OfKind>,
) -> Result<StatusCode, ApiError> {
    let kind = of.kind.unwrap_or(CueKind::Speech);
    Library::of(&app).delete_track(place.video, kind, &place.language).await?;
    Ok(StatusCode::NO_CONTENT)
}
