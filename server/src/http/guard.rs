//! Middleware for every request: request id, caller, origin, time limit, metrics.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;

use super::error::{ApiError, REQUEST_ID};
use super::extract::has_type;
use super::{audit, links, page};
use crate::access::Caller;
use crate::app::{App, Authorized};
use crate::catalog::Scope;
use crate::config::Config;
use crate::telemetry::names;

/// Cookie with the API key. The page needs it, because images and video can't send headers.
const COOKIE: &str = "reprise_key";

/// Finds the caller by the key or the signed link, and refuses requests beyond its rights. Health and the page itself are
/// open, because they show no data.
pub(super) async fn caller(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let says_nothing_is_here =
        route(&request).is_none() && page::is_visit(request.method(), path, request.headers());
    if is_open(path) || says_nothing_is_here {
        return next.run(request).await;
    }
    let caller = match admitted(&app, &mut request).await {
        Ok(caller) => caller,
        Err(error) => return error.into_response(),
    };
    let _place = match route(&request) {
        Some(route) if searches(request.method(), route) => match app.gate.search_place(&caller) {
            Ok(place) => place,
            Err(refusal) => return ApiError::from(refusal).into_response(),
        },
        _ => None,
    };
    let record = audit::Record::of(&request, &caller).map(|record| record.watched(&app));
    request.extensions_mut().insert(caller);
    let response = next.run(request).await;
    if let Some(record) = record.and_then(|record| record.answered(&response)) {
        record.store(&app).await;
    }
    response
}

/// The caller, who may use the request's route.
async fn admitted(app: &App, request: &mut Request) -> Result<Caller, ApiError> {
    let caller = match links::take(app, request).await? {
        Some(caller) => caller,
        None => {
            let sent: Vec<String> = sent_keys(request.headers()).collect();
            app.gate.caller(&app.catalog, app.config.api_key.as_deref(), &sent).await?
        }
    };
    let scope = route(request).map(|route| scope_of(request.method(), route));
    match scope {
        Some(scope) if !caller.may(scope) => {
            Err(ApiError::forbidden(format!("this needs a key with the scope `{scope}`")))
        }
        _ => Ok(caller),
    }
}

fn route(request: &Request) -> Option<&str> {
    request.extensions().get::<MatchedPath>().map(MatchedPath::as_str)
}

/// The scope that a route needs.
pub(super) fn scope_of(method: &Method, route: &str) -> Scope {
    let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    match route {
        "/v1/keys" | "/v1/keys/{id}" | "/v1/audit" => Scope::Admin,
        // Who uploads must learn how much has arrived.
        "/v1/uploads/{id}" => Scope::Write,
        _ if is_read => Scope::Read,
        "/v1/search"
        | "/v1/search/batch"
        | "/v1/embeddings"
        | "/v1/media-links"
        | "/v1/searches/{id}/feedback" => Scope::Read,
        "/v1/spaces" | "/v1/spaces/{id}/activate" | "/v1/spaces/{id}/pause" | "/v1/spaces/{id}/resume" => {
            Scope::Admin
        }
        _ => Scope::Write,
    }
}

/// Whether the route counts as a search.
fn searches(method: &Method, route: &str) -> bool {
    let is_post =
        method == Method::POST && ["/v1/search", "/v1/search/batch", "/v1/embeddings"].contains(&route);
    is_post || route == "/v1/videos/{id}/timeline"
}

pub(super) fn is_open(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/openapi.json") || path.starts_with("/docs") || page::is_page(path)
}

impl FromRequestParts<Arc<App>> for Authorized {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Authorized, Response> {
        let missing = || ApiError::internal("a handler ran without a caller").into_response();
        let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(missing)?;
        Ok(Authorized::new(Arc::clone(app), caller))
    }
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

/// Decodes the cookie, which the page encodes with encodeURIComponent.
fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Refuses changes from other sites' pages, because a browser sends their forms to any address, loopback too. A site
/// may also point its own name to loopback. So a loopback server without a key answers only to loopback names and
/// the configured origins.
pub(super) async fn origin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    // A catalog that fails must not open the server.
    let has_keys = app.gate.has_keys(&app.catalog).await.unwrap_or(false);
    if !has_keys && !is_own_name(&app.config, request.headers()) {
        let detail =
            "without an API key this server answers to localhost only; start it with --cors-origin or a key";
        return ApiError::forbidden(detail).into_response();
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && !is_same_origin(&app, request.headers()) {
        let detail = "this origin may not use the API; start the server with --cors-origin";
        return ApiError::forbidden(detail).into_response();
    }
    next.run(request).await
}

fn is_own_name(config: &Config, headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let is_guarded = config.api_key.is_some() || config.insecure || !config.listen.ip().is_loopback();
    let is_listed = |origin: &String| origin.split_once("://").is_some_and(|(_, name)| name == host);
    is_guarded || names_loopback(host) || config.cors_origins.iter().any(is_listed)
}

fn names_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name == "localhost" || name.ends_with(".localhost")
}

fn is_same_origin(app: &App, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return true };
    let authority = origin.parse::<Uri>().ok().and_then(|uri| uri.authority().map(ToString::to_string));
    authority.as_deref() == text(header::HOST) || app.config.cors_origins.iter().any(|it| it == origin)
}

/// Answers 504 after the configured time. Uploads, model downloads, media and events have no limit here: their bodies
/// must keep a least rate, and [`in_time`] limits the work on an uploaded query.
pub(super) async fn time_limit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let is_upload = has_type(request.headers(), "multipart/form-data");
    if has_no_limit(request.method(), request.uri().path(), !is_upload) {
        return next.run(request).await;
    }
    let limited = in_time(&app, async { Ok(next.run(request).await) });
    limited.await.unwrap_or_else(IntoResponse::into_response)
}

/// Whether [`time_limit`] leaves such a request alone.
pub(super) fn has_no_limit(method: &Method, path: &str, is_json: bool) -> bool {
    let is_upload = !is_json && ["/v1/search", "/v1/embeddings"].contains(&path);
    let is_part = path.starts_with("/v1/uploads") && [Method::POST, Method::PATCH].contains(method);
    is_part
        || *method == Method::POST
            && (is_upload || ["/v1/videos", "/v1/spaces", "/v1/search/batch"].contains(&path))
        || ["/media", "/preview", "/thumbnail", "/events", "/download", "/sprites"]
            .iter()
            .any(|end| path.ends_with(end))
        || path.contains("/sprites/")
}

/// Runs `work` with the configured time limit.
///
/// # Errors
/// 504 at the limit, or the error of `work`.
pub(super) async fn in_time<T>(
    app: &App,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let limit = Duration::from_secs_f64(app.config.timeout_seconds);
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(ApiError::timeout()))
}

/// Drops a client's request id that is too long or unprintable. The request then gets a new id.
pub(super) async fn plain_request_id(mut request: Request, next: Next) -> Response {
    let plain = |id: &header::HeaderValue| {
        (1..=128).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
    };
    if !request.headers().get(REQUEST_ID).is_some_and(plain) {
        request.headers_mut().remove(REQUEST_ID);
    }
    next.run(request).await
}

/// Counts and times answers by route. Paths would make too many metrics.
pub(super) async fn measure(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let method = method_name(request.method());
    let started = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16().to_string();
    metrics::counter!(names::REQUESTS.name, "route" => route.clone(), "method" => method, "status" => status)
        .increment(1);
    metrics::histogram!(names::REQUEST_SECONDS.name, "route" => route)
        .record(started.elapsed().as_secs_f64());
    response
}

/// The method's name. Unknown methods share one name, because a client may invent any number.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
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
    fn only_loopback_names_name_loopback() {
        for name in ["127.0.0.1:8080", "127.9.9.9", "localhost:1", "LocalHost", "[::1]:8080", "a.localhost"] {
            assert!(names_loopback(name), "{name}");
        }
        for name in ["evil.example:8080", "10.0.0.1", "localhost.evil.example", "0.0.0.0", "", "[::2]", "a b"]
        {
            assert!(!names_loopback(name), "{name}");
        }
    }

    #[test]
    fn routes_that_change_need_more_than_read() {
        for (method, route, expected) in [
            (Method::GET, "/v1/videos", Scope::Read),
            (Method::POST, "/v1/search", Scope::Read),
            (Method::POST, "/v1/search/batch", Scope::Read),
            (Method::POST, "/v1/searches/{id}/feedback", Scope::Read),
            (Method::POST, "/v1/videos", Scope::Write),
            (Method::DELETE, "/v1/clips/{id}", Scope::Write),
            (Method::HEAD, "/v1/uploads/{id}", Scope::Write),
            (Method::GET, "/v1/spaces", Scope::Read),
            (Method::POST, "/v1/spaces", Scope::Admin),
            (Method::GET, "/v1/keys", Scope::Admin),
            (Method::DELETE, "/v1/keys/{id}", Scope::Admin),
            (Method::GET, "/v1/audit", Scope::Admin),
        ] {
            assert_eq!(scope_of(&method, route), expected, "{method} {route}");
        }
    }

    #[test]
    fn keys_come_as_bearer_or_cookie() {
        check("authorization", "Bearer abc", &["abc"]);
        check("authorization", "Basic abc", &[]);
        check("cookie", "a=b; reprise_key=k%20%C3%A9%", &["k é%"]);
        check("cookie", "reprise_keys=x", &[]);
    }
}
