//! The web page, embedded in the binary.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use include_dir::{Dir, include_dir};

use super::conditional;
use super::error::ApiError;
use crate::app::{App, Example};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../static");

/// Content security policy: the page may load only its own files, and media that it creates itself.
const POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Routes of the page (`/` and `/v/{id}`), its files under `/static/`, and its example queries.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(|headers: HeaderMap| async move { file("index.html", &headers) }))
        .route("/v/{id}", get(|headers: HeaderMap| async move { file("index.html", &headers) }))
        .route("/examples.json", get(examples))
        .route(
            "/static/{*path}",
            get(async |Path(path): Path<String>, headers: HeaderMap| file(&path, &headers)),
        )
}

/// Example queries. Empty unless this is a demo.
async fn examples(State(app): State<Arc<App>>) -> Json<Vec<Example>> {
    Json(app.examples.get().cloned().unwrap_or_default())
}

fn file(path: &str, request: &HeaderMap) -> Result<Response, ApiError> {
    let file = FILES.get_file(path).ok_or_else(|| ApiError::not_found("the page has no such file"))?;
    let kind = mime_guess::from_path(path).first_or_octet_stream();
    let kind = HeaderValue::from_str(kind.as_ref()).map_err(ApiError::internal)?;
    let mut response = conditional::of_bytes(request, file.contents(), kind);
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("content-security-policy"), HeaderValue::from_static(POLICY));
    Ok(response)
}
