//! The API's error type: RFC 9457 problem+json. The cause is logged once and never sent.

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use reprise_encoders::video::VideoError;
use reprise_encoders::{EncodeError, LoadError, with_causes};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::Refusal;
use crate::catalog::{CatalogError, RangeFault, WebhookFault};
use crate::library::LibraryError;
use crate::models::SpacesError;
use crate::search::SearchError;
use crate::vectors::EngineError;

/// Header with the request's id.
pub(super) const REQUEST_ID: &str = "x-request-id";

/// An error answer, before it is rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiError {
    status: StatusCode,
    title: &'static str,
    detail: String,
    errors: Vec<FieldError>,
    retry_after_s: Option<u64>,
    job: Option<Uuid>,
    /// The ETag of the present version.
    etag: Option<Box<str>>,
}

/// One fault of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct FieldError {
    /// JSON pointer into the request's JSON, or the name of a parameter, header or part.
    pub(super) pointer: String,
    /// Description of the fault.
    pub(super) detail: String,
}

/// An error answer: an RFC 9457 problem.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Kind of problem, as a URN.
    r#type: String,
    /// Short name of the kind of problem.
    title: String,
    /// HTTP status.
    status: u16,
    /// Description of the error, and advice.
    detail: String,
    /// Path of the request.
    instance: String,
    /// Id of this request in the server's log.
    request_id: String,
    /// Faults of the request, each with its location. Empty if none is known.
    errors: Vec<FieldError>,
    /// Id of the failed job that lists the refused file. Absent unless a file was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    job_id: Option<Uuid>,
}

impl ApiError {
    fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> ApiError {
        let detail = detail.into();
        ApiError { status, title, detail, errors: Vec::new(), retry_after_s: None, job: None, etag: None }
    }

    pub(super) fn unreadable(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "unreadable request", detail)
    }

    pub(super) fn unauthorized(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, "no valid API key", detail)
    }

    fn over_quota(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "over quota", detail)
    }

    /// What is wrong, for people.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// The same error at this member of the request's JSON, parameter or part.
    pub(super) fn at(mut self, pointer: impl Into<String>) -> ApiError {
        let pointer = pointer.into();
        match &mut self.errors[..] {
            [] => self.errors.push(FieldError { pointer, detail: self.detail.clone() }),
            fields => fields.iter_mut().for_each(|field| field.pointer.clone_from(&pointer)),
        }
        self
    }

    /// The same error, with the failed job that lists the refused file.
    pub(super) fn of_job(self, job: Option<Uuid>) -> ApiError {
        ApiError { job, ..self }
    }

    /// The same error with the ETag of the present version.
    pub(super) fn now(self, etag: String) -> ApiError {
        ApiError { etag: Some(etag.into()), ..self }
    }

    /// The detail, if a file was too large.
    pub(super) fn why_too_large(&self) -> Option<&str> {
        (self.status == StatusCode::PAYLOAD_TOO_LARGE).then_some(self.detail.as_str())
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not found", detail)
    }

    /// The path's parameter `id` names nothing.
    pub(super) fn no_such(what: &str, id: Uuid) -> ApiError {
        ApiError::not_found(format!("there is no {what} {id}")).at("id")
    }

    /// The path's parameter of this name is no id.
    pub(super) fn no_id(parameter: &str) -> ApiError {
        ApiError::not_found(format!("the {parameter} in the path is not a uuid")).at(parameter)
    }

    pub(super) fn conflict(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, "conflict", detail)
    }

    pub(super) fn changed() -> ApiError {
        let detail = "it was changed since the version that If-Match names; read it again";
        ApiError::new(StatusCode::PRECONDITION_FAILED, "changed in the meantime", detail).at("If-Match")
    }

    pub(super) fn other_protocol(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::PRECONDITION_FAILED, "other protocol", detail).at("Tus-Resumable")
    }

    pub(super) fn locked(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::LOCKED, "locked", detail)
    }

    /// The status of the tus protocol for it.
    pub(super) fn wrong_checksum() -> ApiError {
        let status = StatusCode::from_u16(460).unwrap_or(StatusCode::BAD_REQUEST);
        let detail = "the bytes do not have this checksum; send them again";
        ApiError::new(status, "checksum mismatch", detail).at("Upload-Checksum")
    }

    /// Whether the same file would be refused again.
    pub(super) fn is_of_file(&self) -> bool {
        matches!(self.status.as_u16(), 403 | 413 | 415 | 422)
    }

    pub(super) fn unconditional(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::PRECONDITION_REQUIRED, "condition required", detail).at("If-Match")
    }

    pub(super) fn too_large(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too large", detail)
    }

    pub(super) fn not_video(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not decodable as video", detail)
    }

    pub(super) fn wrong_type(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "wrong content type", detail).at("Content-Type")
    }

    pub(super) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> ApiError {
        let (pointer, detail) = (pointer.into(), detail.into());
        let mut error = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid request", detail.clone());
        error.errors.push(FieldError { pointer, detail });
        error
    }

    /// Puts `place` before the errors' pointers, for a part of a request.
    pub(super) fn within(mut self, place: &str) -> ApiError {
        for field in &mut self.errors {
            field.pointer.insert_str(0, place);
        }
        self
    }

    /// Puts `to` for the prefix `from` of the errors' pointers, for a request that has this part elsewhere.
    pub(super) fn moved(mut self, from: &str, to: &str) -> ApiError {
        for field in &mut self.errors {
            if let Some(rest) = field.pointer.strip_prefix(from) {
                field.pointer = format!("{to}{rest}");
            }
        }
        self
    }

    pub(super) fn busy(detail: impl Into<String>) -> ApiError {
        let full = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too many requests", detail);
        ApiError { retry_after_s: Some(1), ..full }
    }

    pub(super) fn stalled() -> ApiError {
        let detail = "the body stopped coming, or came too slowly; send it again";
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "request timeout", detail)
    }

    pub(super) fn timeout() -> ApiError {
        ApiError::new(
            StatusCode::GATEWAY_TIMEOUT,
            "timeout",
            "the answer took too long; try a smaller request",
        )
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> ApiError {
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not available", detail);
        ApiError { retry_after_s: Some(1), ..error }
    }

    fn encoder_failed(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FAILED_DEPENDENCY, "the encoder failed", detail)
    }

    pub(super) fn disk_full() -> ApiError {
        let detail =
            "the server's disk is full; nothing was stored. Try again when its operator has freed space";
        ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "no space left", detail)
    }

    /// The error of decoding a file that this member of the request's JSON, parameter or part names.
    pub(super) fn of_file(error: &VideoError, pointer: &str) -> ApiError {
        match error {
            VideoError::NotVideo(_) | VideoError::NotAudio(_) | VideoError::NotImage(_) => {
                ApiError::not_video(error.to_string()).at(pointer)
            }
            VideoError::EmptySpan { .. } | VideoError::OverLimit(_) => {
                ApiError::invalid(pointer, error.to_string())
            }
            VideoError::Ffmpeg(_) => ApiError::internal(error),
        }
    }

    /// Logs the cause. The client gets a general message.
    pub(super) fn internal(cause: impl std::fmt::Display) -> ApiError {
        tracing::error!(%cause, "a request failed");
        let detail = "something went wrong; the server's log has the cause under this request id";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "something went wrong", detail)
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        match &error {
            CatalogError::Conflict(detail) => ApiError::conflict(detail.as_str()),
            CatalogError::ConflictOf { field, reason } => {
                ApiError::conflict(reason.as_str()).at(format!("/{field}"))
            }
            CatalogError::Invalid(detail) => ApiError::invalid("", detail.to_string()),
            CatalogError::Stale => ApiError::changed(),
            CatalogError::Outside => ApiError::forbidden(error.to_string()),
            CatalogError::Range { place, fault: RangeFault::NoVideo(video) } => {
                let detail = format!("there is no video {video}");
                ApiError::not_found(detail).at(format!("/ranges/{place}/video_id"))
            }
            CatalogError::Range { place, fault } => {
                ApiError::invalid(format!("/ranges/{place}/start"), fault.to_string())
            }
            CatalogError::Webhook { place, fault } => {
                let pointer = format!("/webhooks/{place}");
                match fault {
                    WebhookFault::Missing(_) => ApiError::not_found(fault.to_string()).at(pointer),
                    WebhookFault::OtherEvents => ApiError::invalid(pointer, fault.to_string()),
                }
            }
            CatalogError::OverQuota(detail) => ApiError::over_quota(detail.as_str()),
            CatalogError::Away(_) => {
                tracing::error!(error = with_causes(&error), "a request needs the database");
                ApiError::unavailable("the database does not answer; try again later")
            }
            CatalogError::Full(_) => {
                tracing::error!(error = with_causes(&error), "the database's disk is full");
                ApiError::disk_full()
            }
            other => ApiError::internal(with_causes(other)),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoKey => {
                ApiError::unauthorized("this server needs an API key: send `Authorization: Bearer KEY`")
            }
            Refusal::TooManyRequests(wait) => {
                let seconds = wait.as_secs() + 1;
                let busy =
                    ApiError::busy(format!("your key's requests are used up; try again in {seconds} s"));
                ApiError { retry_after_s: Some(seconds), ..busy }
            }
            Refusal::TooManySearches => ApiError::busy("your key's searches at once are used up; try again"),
            Refusal::Catalog(error) => error.into(),
        }
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Catalog(error) => error.into(),
            EngineError::Away(_) => {
                tracing::warn!(error = with_causes(&error), "a request needs the vector engine");
                ApiError::unavailable("the vector engine does not answer; try again later")
            }
            other => ApiError::internal(other),
        }
    }
}

impl From<LibraryError> for ApiError {
    fn from(error: LibraryError) -> Self {
        match error {
            LibraryError::NoVideo(_) | LibraryError::NoClip(_) => {
                ApiError::not_found(error.to_string()).at("id")
            }
            LibraryError::NoTrack(_) => ApiError::not_found(error.to_string()).at("lang"),
            LibraryError::NoLine(_) => ApiError::not_found(error.to_string()).at("line"),
            LibraryError::KeyReused | LibraryError::KeyOutlived => {
                ApiError::conflict(error.to_string()).at("Idempotency-Key")
            }
            LibraryError::NoGivenClips => ApiError::invalid("/policy", error.to_string()),
            LibraryError::Subtitles(error) => ApiError::invalid("subtitles", error.to_string()),
            LibraryError::Video(error) => ApiError::of_file(&error, "file"),
            LibraryError::Catalog(error) => error.into(),
            LibraryError::Vectors(error) => error.into(),
            LibraryError::Storage(error) => error.into(),
            LibraryError::Refused { job, error } => ApiError::from(*error).of_job(Some(job)),
            LibraryError::Panicked(panic) => ApiError::internal(panic),
        }
    }
}

impl From<EncodeError> for ApiError {
    fn from(error: EncodeError) -> Self {
        match &error {
            EncodeError::Overloaded { .. } => ApiError::busy(error.to_string()),
            EncodeError::Closed => ApiError::unavailable("the service is stopping"),
            EncodeError::Unsupported { .. } => ApiError::conflict(error.to_string()).at("/query"),
            EncodeError::BadInput(_) => ApiError::invalid("/query", error.to_string()),
            EncodeError::Stuck { .. } => ApiError::encoder_failed(format!("{error}; try again")),
            EncodeError::Failed(_) => {
                tracing::error!(%error, "an encoder failed");
                ApiError::encoder_failed("the model could not encode the query")
            }
        }
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Invalid { pointer, detail } => ApiError::invalid(pointer, detail),
            SearchError::NoSuchSpace(_) => ApiError::invalid("/space", error.to_string()),
            SearchError::SpaceCannot { pointer, detail } => ApiError::conflict(detail).at(pointer),
            SearchError::NotFound { ref pointer, .. } => ApiError::not_found(error.to_string()).at(pointer),
            SearchError::CursorGone | SearchError::CursorOutdated => {
                ApiError::new(StatusCode::GONE, "cursor gone", error.to_string()).at("/cursor")
            }
            SearchError::Video { pointer, error } => ApiError::of_file(&error, &pointer),
            SearchError::Encode(error) => error.into(),
            SearchError::Catalog(error) => error.into(),
            SearchError::Index(error) => error.into(),
            SearchError::Features(_)
            | SearchError::Task(_)
            | SearchError::Cursor(_)
            | SearchError::Internal(_) => ApiError::internal(error),
        }
    }
}

impl From<SpacesError> for ApiError {
    fn from(error: SpacesError) -> Self {
        let detail = error.to_string();
        match error {
            SpacesError::Load { error: LoadError::NoSpace { .. }, .. } => {
                tracing::error!(detail, "the disk is full");
                ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "no space left", detail)
            }
            // Not the client's fault: the same request may succeed later.
            SpacesError::Load {
                error:
                    LoadError::Network { .. }
                    | LoadError::Corrupt { .. }
                    | LoadError::Device(_)
                    | LoadError::Memory { .. },
                ..
            } => {
                tracing::error!(detail, "a model can't be had");
                ApiError::new(StatusCode::FAILED_DEPENDENCY, "the model can't be had", detail)
            }
            SpacesError::Load { .. } | SpacesError::Changed { .. } => ApiError::invalid("/model", detail),
            SpacesError::Cannot { .. } | SpacesError::Twice(_) => ApiError::conflict(detail).at("/for"),
            SpacesError::Closing => ApiError::unavailable(detail),
            SpacesError::Panicked { .. } => ApiError::internal(detail),
            SpacesError::Catalog(error) => error.into(),
            SpacesError::Vectors(error) => error.into(),
        }
    }
}

impl From<std::io::Error> for ApiError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::StorageFull {
            tracing::error!("the disk is full");
            return ApiError::disk_full();
        }
        ApiError::internal(error)
    }
}

impl IntoResponse for ApiError {
    /// [`render`] writes the body, because only it has the path and request id.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Headers that a rendered error keeps. They describe the path or the connection, not the replaced body.
const KEPT: [&str; 7] = [
    REQUEST_ID,
    "allow",
    "content-range",
    "vary",
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-expose-headers",
];

/// Marks an error whose body is for people already: [`render`] leaves it as it is.
#[derive(Clone)]
pub(super) struct Readable;

/// The layer that turns every error, ours or a library's, into problem+json.
pub(super) async fn render(request: Request, next: Next) -> Response {
    let instance = request.uri().path().to_owned();
    let response = next.run(request).await;
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || response.extensions().get::<Readable>().is_some() {
        return response;
    }
    let request_id = response.headers().get(REQUEST_ID).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let error = response.extensions().get::<ApiError>().cloned().unwrap_or_else(|| of_status(status));
    let mut rendered = problem(error, instance, request_id);
    for name in KEPT {
        if let Some(value) = response.headers().get(name) {
            rendered.headers_mut().insert(name, value.clone());
        }
    }
    rendered
}

impl Problem {
    /// The problem as an answer shows it. `instance`: the path of the request.
    pub(super) fn of(error: ApiError, instance: String, request_id: &str) -> Problem {
        Problem {
            r#type: format!("urn:reprise:problem:{}", error.title.replace(' ', "-")),
            title: error.title.to_owned(),
            status: error.status.as_u16(),
            detail: error.detail,
            instance,
            request_id: request_id.to_owned(),
            errors: error.errors,
            job_id: error.job,
        }
    }

    /// The HTTP status.
    pub(super) fn status(&self) -> u16 {
        self.status
    }
}

fn problem(error: ApiError, instance: String, request_id: &str) -> Response {
    let (status, retry_after_s) = (error.status, error.retry_after_s);
    let etag = error.etag.as_deref().and_then(|etag| HeaderValue::from_str(etag).ok());
    let json = serde_json::to_vec(&Problem::of(error, instance, request_id)).unwrap_or_default();
    let mut response = (status, json).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if let Some(seconds) = retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(etag) = etag {
        headers.insert(header::ETAG, etag);
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The error for a refusal by a library.
fn of_status(status: StatusCode) -> ApiError {
    match status {
        StatusCode::NOT_FOUND => ApiError::not_found("there is nothing at this path"),
        StatusCode::METHOD_NOT_ALLOWED => ApiError::new(
            status,
            "method not allowed",
            "this path has no such method; the header Allow names those it has",
        ),
        StatusCode::PRECONDITION_FAILED => ApiError::changed(),
        StatusCode::RANGE_NOT_SATISFIABLE => {
            ApiError::new(status, "range not satisfiable", "the file has no such bytes")
        }
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::too_large("the body is too large"),
        other if other.is_server_error() => ApiError::internal(other),
        other => {
            ApiError::new(other, "bad request", other.canonical_reason().unwrap_or("the request is wrong"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: EncodeError, status: u16, detail: &str) {
        let got = ApiError::from(error);
        assert_eq!((got.status.as_u16(), got.detail.as_str()), (status, detail));
    }

    #[test]
    fn a_model_that_fails_or_is_stuck_is_not_the_callers_fault() {
        check(EncodeError::Failed("device lost".into()), 424, "the model could not encode the query");
        let stuck = "the model did not finish a batch within 121 s; another worker took its place; try again";
        check(EncodeError::Stuck { seconds: 121 }, 424, stuck);
    }
}
