//! The OpenAPI file: what the routes say of themselves, completed with what holds for all of them. The layers around the
//! handlers decide the statuses, so they are asked for them here (`statuses`), and no handler lists them.

mod examples;
mod statuses;

use axum::http::Method;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as OpenApiFile;

use super::error::Problem;
use super::{guard, links};
use crate::catalog::Scope;
use statuses::Route;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "reprise",
        description = "Finds moments in video. Times are seconds, end exclusive; ids are uuid v7; errors are RFC 9457 problem+json. Scores are comparable within one answer only. Every path that answers GET also answers HEAD, with the same status and headers and without a body; HEAD is listed only where there is no GET. Answers are compressed with gzip if the request allows it.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "The server that serves this file")),
    components(schemas(Problem)),
    tags(
        (name = "search", description = "Find clips and full videos"),
        (name = "library", description = "Videos and clips"),
        (name = "subtitles", description = "Subtitles of a video"),
        (name = "media", description = "Video files, previews and thumbnails"),
        (name = "exports", description = "Reels, and files of their ranges"),
        (name = "jobs", description = "Background jobs"),
        (name = "activity", description = "Saved searches, and webhooks that get events"),
        (name = "models", description = "Embedding spaces and vectors"),
        (name = "access", description = "API keys, signed links and the audit log"),
        (name = "operation", description = "Health, metrics, counts"),
    )
)]
pub(super) struct Contract;

/// The complete file.
pub(super) fn complete(routes: OpenApiFile) -> Value {
    let mut file = serde_json::to_value(routes).unwrap_or_default();
    drop_signed_formats(&mut file);
    let schemas = file["components"]["schemas"].clone();
    for (path, item) in file["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let method = method.to_uppercase().parse().unwrap_or(Method::GET);
            complete_operation(&method, path, operation, &schemas);
        }
    }
    file["components"]["responses"] = statuses::problems();
    file["components"]["headers"] = headers();
    file["components"]["parameters"] = json!({"RequestId": request_id()});
    file["components"]["securitySchemes"] = security_schemes();
    file
}

/// Removes `int32`, which utoipa writes for numbers up to 4294967295 too.
fn drop_signed_formats(value: &mut Value) {
    if value.get("format").is_some_and(|it| it == "int32")
        && let Some(schema) = value.as_object_mut()
    {
        schema.remove("format");
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(drop_signed_formats),
        Value::Array(items) => items.iter_mut().for_each(drop_signed_formats),
        _ => {}
    }
}

fn complete_operation(method: &Method, path: &str, operation: &mut Value, schemas: &Value) {
    let parameters = operation["parameters"].as_array();
    let route = Route {
        method,
        path,
        takes_body: !operation["requestBody"].is_null(),
        takes_files: !operation["requestBody"]["content"]["multipart/form-data"].is_null(),
        takes_query: parameters.into_iter().flatten().any(|it| it["in"] == "query"),
    };
    let responses = operation["responses"].as_object().cloned().unwrap_or_default();
    operation["responses"] = Value::Object(statuses::complete(&route, responses, schemas));
    if guard::is_open(path) {
        operation["security"] = json!([]);
    } else {
        let scope = guard::scope_of(method, path);
        operation["security"] = security(method, path, scope);
        let said = operation["description"].as_str().map(|it| format!("{it}\n\n")).unwrap_or_default();
        operation["description"] = format!("{said}Needs a key with the scope `{scope}`.").into();
    }
    if route.takes_body {
        operation["requestBody"]["required"] = true.into();
    }
    examples::add(operation);
    let parameters = operation.as_object_mut().map(|it| it.entry("parameters").or_insert_with(|| json!([])));
    if let Some(Value::Array(parameters)) = parameters {
        parameters.push(json!({"$ref": "#/components/parameters/RequestId"}));
    }
}

fn security(method: &Method, path: &str, scope: Scope) -> Value {
    let key = json!({"apiKey": [scope.name()]});
    let is_shared = *method == Method::GET && path == "/v1/reels/{id}";
    if is_shared || links::is_signable(path) { json!([key, {"signedLink": []}]) } else { json!([key]) }
}

fn security_schemes() -> Value {
    json!({
        "apiKey": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key of `POST /v1/keys`, or the server's own. A server on loopback without keys needs \
                none. Browsers may send it as the cookie `reprise_key`, percent-encoded, for media and events.",
        },
        "signedLink": {
            "type": "apiKey",
            "in": "query",
            "name": "signature",
            "description": "A link of `POST /v1/media-links` or `POST /v1/reels/{id}/links`: its query string has \
                `signature`, `expires` and perhaps `key` and `reel`. It needs no other key until it expires.",
        },
    })
}

/// The header that every request may have.
fn request_id() -> Value {
    json!({
        "name": "X-Request-Id",
        "in": "header",
        "required": false,
        "description": "Names the request in the server's log: 1 to 128 printable ASCII characters. The server replaces \
            another value by a new uuid.",
        "schema": {"type": "string"},
    })
}

/// The headers that answers share.
fn headers() -> Value {
    let header = |description: &str, schema: Value| json!({"description": description, "schema": schema});
    let seconds = json!({"type": "integer", "minimum": 1});
    let text = json!({"type": "string"});
    json!({
        "RequestId": header("Id of the request in the server's log: the client's `X-Request-Id`, or a new one", text.clone()),
        "RetryAfter": header("Seconds after which the request may succeed", seconds),
        "Authenticate": header("How to send a key: `Bearer`", text.clone()),
        "ETag": header("The version of this answer, for `If-None-Match` and `If-Match`", text.clone()),
        "CacheControl": header("How long a client may use the answer without asking again", text),
    })
}

/// References to these headers, by the names that answers give them.
fn header_references(names: &[(&str, &str)]) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
    let all = names.iter().map(|(header, name)| ((*header).to_owned(), reference(name)));
    Value::Object(all.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// utoipa keeps one of two schemas with the same name, so a file would silently describe the wrong one.
    #[test]
    fn no_two_rooms_give_different_schemas_the_same_name() {
        let mut seen: HashMap<String, Value> = HashMap::new();
        for mut router in super::super::rooms() {
            let file = serde_json::to_value(router.to_openapi()).unwrap();
            for (name, schema) in file["components"]["schemas"].as_object().into_iter().flatten() {
                let first = seen.entry(name.clone()).or_insert_with(|| schema.clone());
                assert_eq!(first, schema, "two schemas are called {name}");
            }
        }
        assert!(seen.len() > 50, "{}", seen.len());
    }
}
