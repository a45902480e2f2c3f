//! What every request passes: API key, origin, time limit, measuring.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::error::ApiError;
use super::extract::has_type;
use crate::app::App;

/// The cookie in which the page sends the key, for pictures and video can't send headers.
const COOKIE: &str = "reprise_key";

/// Refuses requests without the configured key. Health and the page itself need none: they show nothing.
pub(super) async fn api_key(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Some(key) = &app.config.api_key else { return next.run(request).await };
    if is_open(request.uri().path()) || sent_keys(request.headers()).any(|sent| same(&sent, key)) {
        return next.run(request).await;
    }
    ApiError::unauthorized().into_response()
}

fn is_open(path: &str) -> bool {
    matches!(path, "/" | "/livez" | "/readyz" | "/openapi.json")
        || ["/v/", "/static/", "/docs"].iter().any(|it| path.starts_with(it))
}

fn sent_keys(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let text = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|it| it.strip_prefix("Bearer ")).map(str::to_owned);
    let cookies = text(header::COOKIE).unwrap_or_default().split(';');
    let cookie = cookies
        .filter_map(|it| it.trim().split_once('='))
        .find(|it| it.0 == COOKIE)
        .map(|it| percent_decoded(it.1));
    bearer.into_iter().chain(cookie)
}

/// The page sends the key through encodeURIComponent.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = (bytes[index] == b'%').then(|| text.get(index + 1..index + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                index += 3;
            }
            None => {
                decoded.push(bytes[index]);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Compares hashes, so that the time taken tells nothing about the key.
fn same(sent: &str, key: &str) -> bool {
    Sha256::digest(sent) == Sha256::digest(key)
}

/// Refuses changes that another site's page asks for: a browser sends forms to any address, loopback too.
pub(super) async fn origin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && !is_same_origin(&app, request.headers()) {
        let detail = "this origin may not use the API; start the server with --cors-origin";
        return ApiError::forbidden(detail).into_response();
    }
    next.run(request).await
}

fn is_same_origin(app: &App, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return true };
    let authority = origin.parse::<Uri>().ok().and_then(|uri| uri.authority().map(ToString::to_string));
    authority.as_deref() == text(header::HOST) || app.config.cors_origins.iter().any(|it| it == origin)
}

/// Answers 504 after the configured time. Uploads, media and events take as long as they take.
pub(super) async fn time_limit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let long = has_type(request.headers(), "multipart/form-data")
        || (path == "/v1/videos" && request.method() == Method::POST)
        || ["/media", "/preview", "/thumbnail", "/events"].iter().any(|end| path.ends_with(end));
    if long {
        return next.run(request).await;
    }
    let limit = Duration::from_secs_f64(app.config.timeout_seconds);
    tokio::time::timeout(limit, next.run(request))
        .await
        .unwrap_or_else(|_| ApiError::timeout().into_response())
}

/// Counts and times answers by route, never by path: paths are without bound.
pub(super) async fn measure(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let started = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16().to_string();
    let method = if method.as_str().len() <= 7 { method.as_str().to_owned() } else { "other".to_owned() };
    metrics::counter!("reprise_requests_total", "route" => route.clone(), "method" => method, "status" => status).increment(1);
    metrics::histogram!("reprise_request_seconds", "route" => route).record(started.elapsed().as_secs_f64());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &'static str, value: &str, expected: &[&str]) {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        assert_eq!(sent_keys(&headers).collect::<Vec<_>>(), expected, "{name}: {value}");
    }

    #[test]
    fn keys_come_as_bearer_or_cookie() {
        check("authorization", "Bearer abc", &["abc"]);
        check("authorization", "Basic abc", &[]);
        check("cookie", "a=b; reprise_key=k%20%C3%A9%", &["k é%"]);
        check("cookie", "reprise_keys=x", &[]);
    }
}
