//! `/v1/uploads`: uploads that survive a broken connection, by the tus protocol.

mod metadata;
mod protocol;
mod receive;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::add::{self, RepeatKey};
use super::error::ApiError;
use super::extract::{self, Id};
use super::names::FileBytes;
use crate::app::{App, Authorized};
use crate::catalog::{NewPartialUpload, PartialUpload, RefusedFile};
use crate::library::Library;
use protocol::{Checksum, PART};
use receive::Receiver;

pub(super) use protocol::{ANSWERED, SENT, speak};

/// Routes of `/v1/uploads`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(head, patch, delete))
        // For clients behind proxies that know only GET and POST.
        .route("/v1/uploads/{id}", post(overridden))
}

/// The protocol's version.
#[derive(IntoParams)]
#[expect(dead_code, reason = "describes the header in the OpenAPI file")]
#[into_params(parameter_in = Header)]
struct Version {
    /// The version of the tus protocol: `1.0.0`.
    #[param(rename = "Tus-Resumable", pattern = r"^1\.0\.0$")]
    tus_resumable: String,
}

/// The headers of a new upload.
#[derive(IntoParams)]
#[expect(dead_code, reason = "describes the headers in the OpenAPI file")]
#[into_params(parameter_in = Header)]
struct NewHeaders {
    /// Size of the whole file, in bytes.
    #[param(rename = "Upload-Length", minimum = 0)]
    upload_length: i64,
    /// What you say of the file: names with values in Base64, such as `filename dmF1bHQubXA0,title VmF1bHQ=`. The names are
    /// `filename`, `title`, `metadata`, `tags` (with commas between them), `folder`, `recorded_at` and `segmentation`, as in
    /// `addVideo`.
    #[param(rename = "Upload-Metadata", nullable = false)]
    upload_metadata: Option<String>,
}

/// The headers of a part.
#[derive(IntoParams)]
#[expect(dead_code, reason = "describes the headers in the OpenAPI file")]
#[into_params(parameter_in = Header)]
struct PartHeaders {
    /// Number of bytes before this part. It must be the upload's offset.
    #[param(rename = "Upload-Offset", minimum = 0)]
    upload_offset: i64,
    /// Checksum of the part: `sha1` or `sha256`, a space, and its Base64.
    #[param(rename = "Upload-Checksum", nullable = false, pattern = "^(sha1|sha256) [A-Za-z0-9+/]+={0,2}$")]
    upload_checksum: Option<String>,
}

/// Begins a resumable upload (tus 1.0.0).
///
/// `Location` is the upload's path. Send the file's bytes there with `PATCH`. A client that begins with bytes sends them as
/// the body, as `application/offset+octet-stream`.
#[utoipa::path(post, path = "/v1/uploads", operation_id = "createUpload", tag = "library",
    params(Version, NewHeaders, RepeatKey),
    responses((status = 201, description = "The upload was begun", headers(
        ("Location" = String, description = "Path of the upload"),
        ("Upload-Offset" = u64, description = "Bytes of the file that have arrived"),
        ("Upload-Expires" = String, description = "Time after which the upload is gone, an HTTP date"))),
        (status = 400), (status = 408), (status = 409), (status = 412), (status = 413), (status = 415), (status = 422),
        (status = 460), (status = 507)))]
async fn create(app: Authorized, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let new = new_upload(&app, &headers).await?;
    let mut upload = app.view().add_upload(&new).await?;
    if extract::has_type(&headers, PART) || upload.length == 0 {
        let sent = Sent { headers, body, is_first: true };
        upload = receive(&app, &upload, sent).await?;
    }
    let location =
        HeaderValue::from_str(&format!("/v1/uploads/{}", upload.id)).map_err(ApiError::internal)?;
    Ok((StatusCode::CREATED, protocol::state(&upload), [(header::LOCATION, location)]).into_response())
}

/// Checks a request for an upload.
async fn new_upload(app: &Authorized, headers: &HeaderMap) -> Result<NewPartialUpload, ApiError> {
    protocol::check(headers)?;
    let length = protocol::number(headers, "Upload-Length")?;
    let metadata = headers.get("upload-metadata").map_or(Ok(""), HeaderValue::to_str);
    let metadata = metadata.map_err(|_| ApiError::invalid("Upload-Metadata", "must be ASCII"))?.to_owned();
    let said = metadata::parse(&metadata)?;
    said.details.check(app)?;
    said.details.check_reach(app).await?;
    let repeat_key = add::idempotency_key(headers)?;
    let most = app.config.max_upload_bytes;
    if u64::try_from(length).is_ok_and(|length| length > most) {
        let reason = format!("a file may have {most} bytes");
        let file = RefusedFile { file_name: said.file_name, bytes: Some(length) };
        let job = Library::of(app).refuse(file, reason.clone(), None).await;
        return Err(ApiError::too_large(reason).at("Upload-Length").of_job(job));
    }
    let free = app.storage.free_bytes()?;
    if u64::try_from(length).is_ok_and(|length| length > free) {
        return Err(ApiError::disk_full());
    }
    Ok(NewPartialUpload { length, metadata, repeat_key, bounds: app.config.upload_bounds() })
}

/// Returns how much of an upload has arrived (tus 1.0.0).
///
/// Once it is complete, the answer names the video and its job, as the answer to the last part does.
#[utoipa::path(head, path = "/v1/uploads/{id}", operation_id = "getUpload", tag = "library",
    params(("id" = Uuid, Path, description = "The upload's id"), Version),
    responses((status = 200, description = "The state of the upload", headers(
        ("Upload-Offset" = u64, description = "Bytes of the file that have arrived"),
        ("Upload-Length" = u64, description = "Size of the whole file, in bytes"),
        ("Upload-Expires" = String, description = "Time after which the upload is gone, an HTTP date"),
        ("Reprise-Video-Id" = Uuid, description = "Id of the video, once the upload is complete"),
        ("Reprise-Job-Id" = Uuid, description = "Id of the job that makes the video searchable"),
        ("Reprise-Duplicate" = bool, description = "Whether the server already stored these bytes"))),
        (status = 412)))]
async fn head(app: Authorized, Id(id): Id, headers: HeaderMap) -> Result<Response, ApiError> {
    protocol::check(&headers)?;
    let upload = found(&app, id).await?;
    let mut answer = protocol::state(&upload);
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer.insert("upload-length", HeaderValue::from(upload.length));
    if !upload.metadata.is_empty() {
        let metadata = HeaderValue::from_str(&upload.metadata).map_err(ApiError::internal)?;
        answer.insert("upload-metadata", metadata);
    }
    Ok((StatusCode::OK, answer).into_response())
}

/// Appends bytes to an upload (tus 1.0.0).
///
/// Bytes are durable before they are acknowledged. After the last one the file is added as `addVideo` adds it: the answer
/// names the video and its job, or is a problem, and the upload of a refused file is gone.
#[utoipa::path(patch, path = "/v1/uploads/{id}", operation_id = "sendUploadPart", tag = "library",
    params(("id" = Uuid, Path, description = "The upload's id"), Version, PartHeaders),
    request_body(content = inline(FileBytes), content_type = "application/offset+octet-stream",
        description = "Bytes of the file"),
    responses((status = 204, description = "The bytes are stored", headers(
        ("Upload-Offset" = u64, description = "Bytes of the file that have arrived"),
        ("Upload-Expires" = String, description = "Time after which the upload is gone, an HTTP date"),
        ("Reprise-Video-Id" = Uuid, description = "Id of the video, once the upload is complete"),
        ("Reprise-Job-Id" = Uuid, description = "Id of the job that makes the video searchable"),
        ("Reprise-Duplicate" = bool, description = "Whether the server already stored these bytes"))),
        (status = 409), (status = 412), (status = 423), (status = 460), (status = 507)))]
async fn patch(app: Authorized, Id(id): Id, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    protocol::check(&headers)?;
    let upload = found(&app, id).await?;
    if !extract::has_type(&headers, PART) {
        return Err(ApiError::wrong_type(format!("the bytes must be sent as {PART}")));
    }
    let offset = protocol::number(&headers, "Upload-Offset")?;
    if offset != upload.received {
        return Err(other_offset(&upload));
    }
    let sent = Sent { headers, body, is_first: false };
    let upload = if upload.made.is_some() { upload } else { receive(&app, &upload, sent).await? };
    Ok((StatusCode::NO_CONTENT, protocol::state(&upload)).into_response())
}

/// Ends an upload (tus 1.0.0). What has arrived is removed; a video that it has become stays.
#[utoipa::path(delete, path = "/v1/uploads/{id}", operation_id = "deleteUpload", tag = "library",
    params(("id" = Uuid, Path, description = "The upload's id"), Version),
    responses((status = 204), (status = 412), (status = 423)))]
async fn delete(app: Authorized, Id(id): Id, headers: HeaderMap) -> Result<StatusCode, ApiError> {
    protocol::check(&headers)?;
    let upload = found(&app, id).await?;
    let _held = receive::lock(&app, upload.id).await?;
    app.catalog.delete_upload(id).await?;
    app.storage.remove_part(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST` in place of another method.
async fn overridden(app: Authorized, id: Id, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    match headers.get("x-http-method-override").map(HeaderValue::as_bytes) {
        Some(b"PATCH") => patch(app, id, headers, body).await,
        Some(b"DELETE") => Ok(delete(app, id, headers).await?.into_response()),
        Some(b"HEAD") => head(app, id, headers).await,
        _ => Ok((StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "HEAD,PATCH,DELETE")]).into_response()),
    }
}

/// A request with bytes.
struct Sent {
    headers: HeaderMap,
    body: Body,
    /// Whether the request began the upload. The client never learns its path if it fails.
    is_first: bool,
}

/// Appends the body to the upload. Goes on if the client goes away, until what has arrived is durable, or is removed.
async fn receive(app: &Authorized, upload: &PartialUpload, sent: Sent) -> Result<PartialUpload, ApiError> {
    let (app, upload) = (app.clone(), upload.clone());
    let receiving = tokio::spawn(async move {
        let received = match admit(&app, &upload, &sent.headers).await {
            Ok(admitted) => admitted.receiver.append(sent.body, admitted.checksum).await,
            Err(error) => Err(error),
        };
        if sent.is_first && received.is_err() {
            app.catalog.delete_upload(upload.id).await?;
            app.storage.remove_part(upload.id).await?;
        }
        received
    });
    receiving.await.map_err(ApiError::internal)?
}

/// A request whose bytes may be received.
struct Admitted {
    receiver: Receiver,
    checksum: Option<Checksum>,
    _place: OwnedSemaphorePermit,
}

/// Checks everything that can be known before the bytes come.
async fn admit(app: &Authorized, upload: &PartialUpload, headers: &HeaderMap) -> Result<Admitted, ApiError> {
    let checksum = Checksum::of(headers)?;
    let place = place(app)?;
    let receiver = Receiver::take(app, upload).await?;
    if receiver.offset() != upload.received {
        return Err(other_offset(upload));
    }
    let sent = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<i64>().ok());
    if sent.is_some_and(|sent| sent > upload.length - upload.received) {
        return Err(receive::too_long(upload));
    }
    Ok(Admitted { receiver, checksum, _place: place })
}

/// A place for an upload. Clients of the protocol try again after 503, and give up after 429.
fn place(app: &App) -> Result<OwnedSemaphorePermit, ApiError> {
    let busy = |_| ApiError::unavailable("too many uploads at once; try again");
    Arc::clone(&app.uploads).try_acquire_owned().map_err(busy)
}

async fn found(app: &Authorized, id: Uuid) -> Result<PartialUpload, ApiError> {
    let upload = app.view().upload(id).await?;
    upload
        .ok_or_else(|| ApiError::not_found(format!("there is no upload {id}; it may have expired")).at("id"))
}

fn other_offset(upload: &PartialUpload) -> ApiError {
    ApiError::conflict(format!("the upload's offset is {}, not that of Upload-Offset", upload.received))
        .at("Upload-Offset")
}
