//! Resumable uploads: what a key may begin, and what the audit log has of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::{Guarded, Holder, ROOT};

fn begin(holder: Holder<'_>, length: usize, metadata: &Value) -> RequestBuilder {
    let said = format!("metadata {}", STANDARD.encode(metadata.to_string()));
    let request = holder.request("POST", "/v1/uploads").header("tus-resumable", "1.0.0");
    request.header("upload-length", length).header("upload-metadata", said)
}

/// Checks the status of a request.
async fn check(request: RequestBuilder, expected: u16) -> reqwest::Response {
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), expected, "{answer:?}");
    answer
}

fn part(holder: Holder<'_>, path: &str, offset: usize, bytes: &[u8]) -> RequestBuilder {
    let request = holder.request("PATCH", path).header("tus-resumable", "1.0.0");
    let request = request.header("content-type", "application/offset+octet-stream");
    request.header("upload-offset", offset).body(bytes.to_vec())
}

#[tokio::test]
async fn an_upload_out_of_reach_is_refused_before_its_bytes() {
    let guarded = Guarded::start(&[]);
    let key = guarded.team_key("a").await;
    let holder = guarded.as_holder(&key);
    for metadata in [json!({}), json!({"team": "b"}), json!({"team": null, "other": "a"})] {
        check(begin(holder, 9, &metadata), 403).await;
    }
    let bare = holder.request("POST", "/v1/uploads").header("tus-resumable", "1.0.0");
    check(bare.header("upload-length", 9), 403).await;
    for metadata in [json!({"team": "a"}), json!({"team": ["b", "a"]})] {
        check(begin(holder, 9, &metadata), 201).await;
    }
    assert_eq!(guarded.as_holder(ROOT).good("GET", "/v1/videos", None).await["items"], json!([]));
}

#[tokio::test]
async fn the_audit_log_has_an_upload_once() {
    let guarded = Guarded::start(&[]);
    let root = guarded.as_holder(ROOT);
    let film = std::fs::read(guarded.film("one", &["testsrc2"])).unwrap();
    let begun = check(begin(root, film.len(), &json!({})), 201).await;
    let path = begun.headers()["location"].to_str().unwrap();
    for (from, until) in [(0, 10), (10, 20), (20, film.len())] {
        check(part(root, path, from, &film[from..until]), 204).await;
    }
    check(root.request("HEAD", path).header("tus-resumable", "1.0.0"), 200).await;
    let delete = root.request("POST", path).header("x-http-method-override", "DELETE");
    check(delete.header("tus-resumable", "1.0.0"), 204).await;
    let log = root.good("GET", "/v1/audit", None).await;
    let read: Vec<_> =
        log["items"].as_array().unwrap().iter().map(|it| json!([it["method"], it["path"]])).collect();
    assert_eq!(
        read,
        [json!(["POST", path]), json!(["PATCH", path]), json!(["POST", "/v1/uploads"])],
        "its end, the part that made the video, its beginning"
    );
}
