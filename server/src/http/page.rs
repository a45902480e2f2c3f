//! The web page, embedded in the binary.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use include_dir::{Dir, include_dir};

use super::conditional;
use super::error::{ApiError, Readable};
use crate::app::{App, Example};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../static");

/// Content security policy: the page may load only its own files, and media that it creates itself.
const POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Addresses of the page's screens. One file answers all of them; its script reads the address.
const SCREENS: [&str; 9] = [
    "/",
    "/v/{id}",
    "/library",
    "/reels",
    "/reels/{id}",
    "/shared/{id}",
    "/activity",
    "/insights",
    "/models",
];

/// Routes of the page's screens, its files under `/static/`, and its example queries.
pub(super) fn routes() -> Router<Arc<App>> {
    let files = Router::new().route("/examples.json", get(examples)).route(
        "/static/{*path}",
        get(async |Path(path): Path<String>, headers: HeaderMap| file(&path, &headers)),
    );
    SCREENS.into_iter().fold(files, |router, screen| {
        router.route(screen, get(async |headers: HeaderMap| file("index.html", &headers)))
    })
}

/// Whether a path is one of the page's screens or files, which need no API key.
pub(super) fn is_page(path: &str) -> bool {
    let of_video_or_reel = ["/v/", "/reels/", "/shared/", "/static/"].iter().any(|it| path.starts_with(it));
    of_video_or_reel || SCREENS.contains(&path)
}

/// Whether a person's browser asks for an address, not a program for a resource.
pub(super) fn is_visit(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    *method == Method::GET && !path.starts_with("/v1/") && accepted.contains("text/html")
}

/// Answers addresses where nothing is: for browsers the page, which says so, else a problem.
pub(super) async fn missing(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if !is_visit(&method, uri.path(), &headers) {
        return ApiError::not_found("there is nothing at this path").into_response();
    }
    let page = file("index.html", &HeaderMap::new());
    (StatusCode::NOT_FOUND, Extension(Readable), page).into_response()
}

/// Example queries. Empty unless this is a demo.
async fn examples(State(app): State<Arc<App>>) -> Json<Vec<Example>> {
    Json(app.examples.get().cloned().unwrap_or_default())
}

fn file(path: &str, request: &HeaderMap) -> Result<Response, ApiError> {
    let contents = contents(path).ok_or_else(|| ApiError::not_found("the page has no such file"))?;
    let kind = mime_guess::from_path(path).first_or_octet_stream();
    let kind = HeaderValue::from_str(kind.as_ref()).map_err(ApiError::internal)?;
    let mut response = conditional::of_bytes(request, contents, kind);
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("content-security-policy"), HeaderValue::from_static(POLICY));
    Ok(response)
}

/// The bytes of a file of the page. A debug build reads them from the folder `REPRISE_PAGE`, if it is set: a change of
/// the page then needs no build.
fn contents(path: &str) -> Option<Cow<'static, [u8]>> {
    #[cfg(debug_assertions)]
    if let Some(folder) = std::env::var_os("REPRISE_PAGE") {
        let is_below =
            std::path::Path::new(path).components().all(|it| matches!(it, std::path::Component::Normal(_)));
        return is_below
            .then(|| std::fs::read(std::path::Path::new(&folder).join(path)).ok())
            .flatten()
            .map(Cow::Owned);
    }
    FILES.get_file(path).map(|file| Cow::Borrowed(file.contents()))
}
