//! `/v1/videos/{id}/transcript`: the cues or passages of a video as JSON, and corrections of a line.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::conditional;
use super::error::ApiError;
use super::extract::{self, Id, Json, Params};
use super::names::{BoxOut, TrackKindName};
use super::search::seconds;
use super::videos::found;
use crate::app::{App, Authorized};
use crate::catalog::{Cue, CueKind, LineChange, Track, TranscriptPart};
use crate::library::{Library, LibraryError};
use crate::subtitles::language;

/// Most characters of a line.
const LONGEST_LINE: usize = 20_000;

/// Routes of `/v1/videos/{id}/transcript`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(transcript)).routes(routes!(correct))
}

/// The unit of a transcript. `cue`: a line as its track has it. `passage`: about half a minute of cues of one track, cut
/// where sentences end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TranscriptUnit)]
enum Unit {
    /// A line as its track has it.
    #[default]
    Cue,
    /// About half a minute of cues.
    Passage,
}

/// A line of a transcript.
#[derive(Debug, Serialize, ToSchema)]
struct TranscriptLine {
    /// Its id, a uuid v7. It stays when the line is corrected, and changes when the track is replaced.
    id: Uuid,
    /// Start in the video, in seconds. 0 for a line that starts before the first frame.
    #[schema(minimum = 0)]
    start: f64,
    /// End in the video, in seconds, exclusive. May lie after the video's end.
    #[schema(minimum = 0)]
    end: f64,
    /// The text, without markup. Line breaks are kept.
    text: String,
    /// Kind of its track.
    #[schema(value_type = TrackKindName)]
    kind: CueKind,
    /// Language of its track: a BCP 47 tag, `und` if unknown. Kind and language name a track of a video.
    language: String,
    /// Source of its track, as in `listSubtitles`.
    provenance: String,
    /// Whether a program wrote its track.
    machine: bool,
    /// Where a line of kind `ocr` stands on screen.
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    region: Option<BoxOut>,
    /// Its ETag, which names its text, for a correction. A passage has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
}

/// What a correction changes of a line, and no other correction: one of another line changes the track.
#[derive(Serialize)]
struct State<'a> {
    id: Uuid,
    text: &'a str,
}

fn etag(cue: &Cue) -> Result<String, ApiError> {
    conditional::tag(&State { id: cue.id, text: &cue.line.text })
}

impl TranscriptLine {
    /// A line whose times are `offset_ms` ahead of the video's.
    fn new(cue: Cue, offset_ms: i64) -> TranscriptLine {
        let Track { kind, language, provenance, is_machine: machine } = cue.track;
        let at = |ms: i64| seconds((ms - offset_ms).max(0));
        let (start, end) = (at(cue.line.start_ms), at(cue.line.end_ms));
        let (text, region) = (cue.line.text, cue.region.map(BoxOut::from));
        TranscriptLine {
            id: cue.id,
            start,
            end,
            text,
            kind,
            language,
            provenance,
            machine,
            region,
            etag: None,
        }
    }

    /// A line that can be corrected.
    fn of_track(cue: Cue, offset_ms: i64) -> Result<TranscriptLine, ApiError> {
        let etag = Some(etag(&cue)?);
        Ok(TranscriptLine { etag, ..TranscriptLine::new(cue, offset_ms) })
    }
}

/// One page of a transcript.
#[derive(Debug, Serialize, ToSchema)]
struct TranscriptPage {
    /// The lines in order of start, at most `limit`.
    items: Vec<TranscriptLine>,
    /// Cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

/// Which lines to return, and the start and size of a page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TranscriptParams {
    /// The unit; default `cue`.
    #[param(value_type = Option<Unit>, inline, nullable = false)]
    unit: Option<Unit>,
    /// Lines of tracks of this kind only; default all.
    #[param(value_type = Option<TrackKindName>, nullable = false)]
    kind: Option<CueKind>,
    /// Lines of tracks in this language only: a BCP 47 tag, e.g. `en`. Default all.
    #[param(nullable = false, pattern = "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8}){0,3}$", max_length = 35)]
    language: Option<String>,
    /// Lines that end after this time of the video only, in seconds, 0 to 10000000.
    #[param(nullable = false, minimum = 0, maximum = 10_000_000)]
    start: Option<f64>,
    /// Lines that start before this time of the video only, in seconds, 0 to 10000000.
    #[param(nullable = false, minimum = 0, maximum = 10_000_000)]
    end: Option<f64>,
    /// Items per page, 1 to 1000; default 50.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[param(nullable = false, pattern = r"^-?[0-9]{1,18}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
    cursor: Option<String>,
}

impl TranscriptParams {
    /// The part that is asked for, of lines whose times are `offset_ms` ahead of the video's.
    fn part(&self, offset_ms: i64) -> Result<TranscriptPart, ApiError> {
        let wrong = || {
            ApiError::invalid("language", "this is no language tag; use one like `en` or `pt-BR`, or `und`")
        };
        let tag = |it: &String| language::tag(it).ok_or_else(wrong);
        let time = |it: Option<f64>, name| it.map(|it| extract::milliseconds(it, name)).transpose();
        let (from_ms, until_ms) = (time(self.start, "start")?, time(self.end, "end")?);
        if from_ms.zip(until_ms).is_some_and(|(from, until)| until <= from) {
            return Err(ApiError::invalid("end", "the end must be after the start"));
        }
        Ok(TranscriptPart {
            kind: self.kind,
            language: self.language.as_ref().map(tag).transpose()?,
            // A line before the first frame counts as being at 0.
            from_ms: from_ms.filter(|it| *it > 0).map(|it| it + offset_ms),
            until_ms: until_ms.map(|it| it + offset_ms),
            after: self.cursor.as_deref().map(extract::time_cursor).transpose()?,
        })
    }
}

/// Returns what is said, shown and described in a video, with its times.
///
/// Lines of all tracks come in order of start. Times are the video's, like those of clips; before the ingest has
/// succeeded they are the media file's, and there are no passages. A video without tracks has no lines.
#[utoipa::path(get, path = "/v1/videos/{id}/transcript", operation_id = "getTranscript", tag = "subtitles",
    params(("id" = Uuid, Path, description = "The video's id"), TranscriptParams),
    responses((status = 200, body = TranscriptPage), (status = 304)))]
async fn transcript(
    app: Authorized,
    Id(id): Id,
    Params(params): Params<TranscriptParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let limit = extract::page_size(params.limit)?;
    let video = found(app.view().video(id).await?, id)?;
    let of_file = video.facts.map_or(0, |facts| facts.media_offset_ms);
    let by_passage = params.unit == Some(Unit::Passage);
    let offset_ms = if by_passage { 0 } else { of_file };
    let part = params.part(offset_ms)?;
    let view = app.view();
    let lines = match by_passage {
        true => view.passages(id, &part, limit).await?,
        false => view.transcript(id, &part, limit).await?,
    };
    let next_cursor = super::next_cursor(&lines, limit, |cue| format!("{}.{}", cue.line.start_ms, cue.id));
    let line = |cue| match by_passage {
        true => Ok(TranscriptLine::new(cue, offset_ms)),
        false => TranscriptLine::of_track(cue, offset_ms),
    };
    let items = lines.into_iter().map(line).collect::<Result<_, ApiError>>()?;
    conditional::answer(&headers, &TranscriptPage { items, next_cursor })
}

/// The video and the line in the path.
struct LinePath {
    video: Uuid,
    line: Uuid,
}

impl<S: Send + Sync> FromRequestParts<S> for LinePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = axum::extract::Path::<(String, String)>::from_request_parts(parts, state).await;
        let axum::extract::Path((video, line)) = path.map_err(|_| ApiError::no_id("id"))?;
        let id = |text: &str, parameter| text.parse().map_err(|_| ApiError::no_id(parameter));
        Ok(LinePath { video: id(&video, "id")?, line: id(&line, "line")? })
    }
}

/// A line as it should be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LineCorrection)]
struct Correction {
    /// The text, without markup.
    #[schema(min_length = 1, max_length = 20_000, pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    text: String,
}

impl Correction {
    /// The text as it is stored.
    fn checked(self) -> Result<String, ApiError> {
        // A blank row would end the cue in a subtitle file.
        let rows = self.text.split(['\r', '\n']).map(str::trim).filter(|row| !row.is_empty());
        let text = rows.collect::<Vec<_>>().join("\n");
        if text.is_empty() || text.chars().count() > LONGEST_LINE || text.contains('\0') {
            let detail = format!("a line has 1 to {LONGEST_LINE} characters, and no NUL");
            return Err(ApiError::invalid("/text", detail));
        }
        Ok(text)
    }
}

/// Corrects a line: replaces its text. Its new words are searchable at once.
///
/// Times and id stay. The track counts as a person's from then on, also one that a program wrote: `machine` is false,
/// `provenance` ends in `, corrected`, and no transcription replaces it. `line` is the id of a cue, not of a passage. With
/// `If-Match` the correction holds for a text that the line still has; `etag` of a line names it.
#[utoipa::path(patch, path = "/v1/videos/{id}/transcript/{line}", operation_id = "correctLine", tag = "subtitles",
    params(("id" = Uuid, Path, description = "The video's id"), ("line" = Uuid, Path, description = "The line's id"), conditional::IfMatch),
    request_body = Correction,
    responses((status = 200, body = TranscriptLine, headers(("etag" = String, description = "Its text, for If-Match"))),
        (status = 412)))]
async fn correct(
    app: Authorized,
    path: LinePath,
    headers: HeaderMap,
    Json(body): Json<Correction>,
) -> Result<Corrected, ApiError> {
    let text = body.checked()?;
    let video = found(app.view().video(path.video).await?, path.video)?;
    let of_file = video.facts.map_or(0, |facts| facts.media_offset_ms);
    let change = LineChange { text, expected: expected(&app, &path, &headers).await? };
    let cue = Library::of(&app).correct_line(path.video, path.line, &change).await?;
    let tag = [(header::ETAG, etag(&cue)?)];
    Ok((tag, axum::Json(TranscriptLine::of_track(cue, of_file)?)))
}

/// A corrected line with its ETag.
type Corrected = ([(header::HeaderName, String); 1], axum::Json<TranscriptLine>);

/// The text that a correction is for; `None`: any.
///
/// # Errors
/// 412 if `If-Match` names another one, 404 if there is no such line.
async fn expected(
    app: &Authorized,
    path: &LinePath,
    headers: &HeaderMap,
) -> Result<Option<String>, ApiError> {
    if !conditional::has_condition(headers) {
        return Ok(None);
    }
    let cue = app.view().line(path.video, path.line).await?.ok_or(LibraryError::NoLine(path.line))?;
    conditional::check(headers, &State { id: cue.id, text: &cue.line.text })?;
    Ok(Some(cue.line.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let checked = Correction { text: text.to_owned() }.checked().ok();
        assert_eq!(checked.as_deref(), expected, "{text:?}");
    }

    #[test]
    fn a_line_has_no_blank_row() {
        check(" a line ", Some("a line"));
        check("one\ntwo", Some("one\ntwo"));
        check("one\r\n \n\r two\r", Some("one\ntwo"));
        check(" \r\n ", None);
        check("a\0b", None);
        check(&"x".repeat(LONGEST_LINE), Some(&"x".repeat(LONGEST_LINE)));
        check(&"x".repeat(LONGEST_LINE + 1), None);
    }
}
