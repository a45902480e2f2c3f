//! Conditional requests: versions of answers as ETags, reads that skip what the client has, and changes that hold for one
//! version only.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::IntoParams;

use super::error::ApiError;
use crate::storage;

/// The condition of a change.
#[derive(IntoParams)]
#[expect(dead_code, reason = "describes the header in the OpenAPI file")]
#[into_params(parameter_in = Header)]
pub(super) struct IfMatch {
    /// The `ETag` of the answer that the change is based on. If the resource is another one by now, nothing changes and the
    /// answer is 412. Without this header the change always happens.
    #[param(rename = "If-Match", nullable = false)]
    if_match: Option<String>,
}

/// The entity as JSON with its ETag; 304 if the client has this version.
///
/// # Errors
/// 500 if it can't be written as JSON.
pub(super) fn answer<T: Serialize>(request: &HeaderMap, entity: &T) -> Result<Response, ApiError> {
    let json = serde_json::to_vec(entity).map_err(ApiError::internal)?;
    Ok(of_bytes(request, json, HeaderValue::from_static("application/json")))
}

/// These bytes with their ETag; 304 if the client has them. Clients may keep them, and must ask before each use.
pub(super) fn of_bytes(
    request: &HeaderMap,
    bytes: impl AsRef<[u8]> + Into<axum::body::Body>,
    content_type: HeaderValue,
) -> Response {
    kept(request, bytes, content_type, "no-cache")
}

/// As [`of_bytes`], for bytes of which a client may use what it has as `cache_control` says.
pub(super) fn kept(
    request: &HeaderMap,
    bytes: impl AsRef<[u8]> + Into<axum::body::Body>,
    content_type: HeaderValue,
    cache_control: &'static str,
) -> Response {
    let tag = tag_of(bytes.as_ref());
    let headers = [
        (header::CACHE_CONTROL, HeaderValue::from_static(cache_control)),
        (header::ETAG, HeaderValue::from_str(&tag).unwrap_or_else(|_| HeaderValue::from_static("\"\""))),
    ];
    if names(request, &header::IF_NONE_MATCH, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, [(header::CONTENT_TYPE, content_type)], bytes.into()).into_response()
}

/// Whether the request names a version in If-Match.
pub(super) fn has_condition(request: &HeaderMap) -> bool {
    request.contains_key(header::IF_MATCH)
}

/// Checks If-Match.
///
/// # Errors
/// 412 if it names other versions only.
pub(super) fn check<T: Serialize>(request: &HeaderMap, entity: &T) -> Result<(), ApiError> {
    let json = serde_json::to_vec(entity).map_err(ApiError::internal)?;
    let tag = tag_of(&json);
    if !has_condition(request) || names(request, &header::IF_MATCH, &tag) {
        return Ok(());
    }
    Err(ApiError::changed().now(tag))
}

/// The ETag of an entity, with its quotes.
///
/// # Errors
/// 500 if it can't be written as JSON.
pub(super) fn tag<T: Serialize>(entity: &T) -> Result<String, ApiError> {
    Ok(tag_of(&serde_json::to_vec(entity).map_err(ApiError::internal)?))
}

/// The strong ETag of these bytes, with its quotes.
fn tag_of(bytes: &[u8]) -> String {
    let hash = storage::hash_bytes(bytes);
    format!("\"{}\"", hash.get(..32).unwrap_or(&hash))
}

/// Whether the header names this version, or `*`.
fn names(request: &HeaderMap, name: &HeaderName, tag: &str) -> bool {
    tags(request, name).any(|it| it == "*" || it == tag)
}

/// The tags that a conditional header lists, with their quotes, or `*`.
pub(super) fn tags<'a>(request: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lists = request.get_all(name).iter().filter_map(|list| list.to_str().ok());
    // A proxy that compresses answers makes the tags weak.
    lists.flat_map(|list| list.split(',')).map(|it| it.trim().trim_start_matches("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_names(sent: &[&str], expected: bool) {
        let mut request = HeaderMap::new();
        for list in sent {
            request.append(header::IF_MATCH, list.parse().unwrap());
        }
        assert_eq!(names(&request, &header::IF_MATCH, "\"a\""), expected, "{sent:?}");
    }

    #[test]
    fn a_condition_names_versions_or_any() {
        check_names(&[], false);
        check_names(&["\"a\""], true);
        check_names(&["W/\"a\""], true);
        check_names(&["\"b\", \"a\""], true);
        check_names(&["\"b\"", "\"a\""], true);
        check_names(&["\"b\""], false);
        check_names(&["*"], true);
        check_names(&["a"], false);
    }
}
