//! The statuses of every operation. A handler names its own; the layers and extractors around it add theirs.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::super::{audit, guard, links};
use super::header_references;

/// One operation as the layers see it.
pub(super) struct Route<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) takes_body: bool,
    pub(super) takes_files: bool,
    pub(super) takes_query: bool,
}

/// The status, name and description of each kind of problem.
const PROBLEMS: [(u16, &str, &str); 21] = [
    (400, "Unreadable", "The body is not what its content type says, or broke off"),
    (401, "Unauthorized", "No valid API key, or a signed link that is wrong or has expired"),
    (
        403,
        "Forbidden",
        "The key lacks the scope or does not reach the video, a quota is used up, or the origin, host or folder is not allowed",
    ),
    (404, "NotFound", "There is no such thing, or the key does not reach it"),
    (408, "BodyTimeout", "The body stopped coming, or came too slowly"),
    (409, "Conflict", "The state of what is asked for forbids it; the detail has the reason"),
    (410, "CursorGone", "The cursor belongs to a space or a version that is gone; search again"),
    (
        412,
        "Changed",
        "It is not the version that the request names; read it again. `ETag`, where it is sent, names the present one. Of an upload: `Tus-Resumable` is not 1.0.0",
    ),
    (413, "TooLarge", "The body is larger than the server takes"),
    (415, "WrongType", "The content type is wrong, or the file is no video that can be decoded"),
    (416, "NoSuchRange", "The file has no such bytes"),
    (422, "Invalid", "A value is wrong; `errors` point at each"),
    (423, "Locked", "Another request is sending bytes of this upload; ask for its offset and try again"),
    (424, "ModelFailed", "The model failed or can't be had; not the caller's fault"),
    (428, "Unconditional", "The request must name a version in `If-Match`, or `*`"),
    (429, "Busy", "Too many requests at once, or in a minute; try again after `Retry-After`"),
    (460, "WrongChecksum", "The bytes do not have the checksum of the request; none of them was kept"),
    (500, "Failed", "Something went wrong; the server's log has the cause under the request's id"),
    (
        503,
        "Unavailable",
        "The server starts or stops, or its database or vector engine does not answer; try again later",
    ),
    (504, "Timeout", "The answer took too long; try a smaller request"),
    (507, "DiskFull", "The server's disk is full; nothing was stored"),
];

impl Route<'_> {
    /// The statuses that do not depend on the handler.
    fn around(&self) -> BTreeSet<u16> {
        let mut statuses = BTreeSet::from([403, 500]);
        let mut add = |holds: bool, all: &[u16]| statuses.extend(all.iter().filter(|_| holds));
        // A key is looked up in the database, and has a rate.
        add(!guard::is_open(self.path), &[401, 429, 503]);
        add(!guard::has_no_limit(self.method, self.path, true), &[504]);
        add(self.path.contains("{id}"), &[404]);
        add(self.path.contains("{lang}") || self.takes_query, &[422]);
        add(self.takes_body, &[400, 408, 413, 415, 422]);
        let stores = audit::is_change(self.method, self.path) || self.takes_files;
        add(stores || links::is_signable(self.path), &[507]);
        add(links::is_signable(self.path), &[206, 304, 412, 416]);
        statuses
    }
}

/// All responses of an operation. `named` are those of its handler: an error needs no more than its status there.
pub(super) fn complete(route: &Route, named: Map<String, Value>, schemas: &Value) -> Map<String, Value> {
    let mut responses = Map::new();
    let around = route.around().into_iter().map(|status| status.to_string());
    let statuses: BTreeSet<String> = around.chain(named.keys().cloned()).collect();
    for status in &statuses {
        let named = |status: &str| named.get(status).cloned().unwrap_or_else(|| json!({}));
        let mut response = match (status.as_str(), reference(status)) {
            (_, Some(problem)) => problem,
            ("206", _) => json!({"description": "A part of the file", "content": named("200")["content"]}),
            ("304", _) => json!({"description": "The client has this version already"}),
            _ => described(named(status), schemas),
        };
        if response["$ref"].is_null() {
            let own = response["headers"].as_object().cloned().unwrap_or_default();
            response["headers"] = headers_of(status, statuses.contains("304"));
            if let Some(headers) = response["headers"].as_object_mut() {
                headers.extend(own);
            }
        }
        responses.insert(status.clone(), response);
    }
    responses
}

fn headers_of(status: &str, has_versions: bool) -> Value {
    let all = [("X-Request-Id", "RequestId"), ("ETag", "ETag"), ("Cache-Control", "CacheControl")];
    let kept = if has_versions && status != "204" { 3 } else { 1 };
    header_references(&all[..kept])
}

/// A success; without words of its own it has those of its schema.
fn described(mut response: Value, schemas: &Value) -> Value {
    if response["description"].as_str().is_some_and(|it| !it.is_empty()) {
        return response;
    }
    let content =
        response["content"].as_object().and_then(|all| all.values().next()).cloned().unwrap_or_default();
    let name = content["schema"]["$ref"].as_str().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
    response["description"] = match &schemas[name]["description"] {
        Value::String(text) => text.as_str().into(),
        _ => "Done; there is no body".into(),
    };
    response
}

fn reference(status: &str) -> Option<Value> {
    let status: u16 = status.parse().ok()?;
    let problem = PROBLEMS.iter().find(|problem| problem.0 == status)?;
    Some(json!({"$ref": format!("#/components/responses/{}", problem.1)}))
}

/// The shared responses: one for each kind of problem.
pub(super) fn problems() -> Value {
    let problem = |(status, name, description): &(u16, &str, &str)| {
        let mut headers = vec![("X-Request-Id", "RequestId")];
        match status {
            401 => headers.push(("WWW-Authenticate", "Authenticate")),
            412 => headers.push(("ETag", "ETag")),
            429 | 503 => headers.push(("Retry-After", "RetryAfter")),
            _ => {}
        }
        let schema = json!({"schema": {"$ref": "#/components/schemas/Problem"}});
        let response = json!({
            "description": description,
            "headers": header_references(&headers),
            "content": {"application/problem+json": schema},
        });
        ((*name).to_owned(), response)
    };
    Value::Object(PROBLEMS.iter().map(problem).collect())
}
