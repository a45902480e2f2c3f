//! Checks the committed OpenAPI file, so that review shows every change of the contract.

use std::path::Path;
use std::process::Command;

use reprise_tests::server::binary;
use serde_json::Value;

#[test]
fn the_contract_is_the_committed_one() {
    let output = Command::new(binary()).arg("openapi").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/openapi.json");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&committed, &output.stdout).unwrap();
    }
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let expected = read(&std::fs::read(&committed).unwrap_or_else(|_| b"null".to_vec()));
    assert!(
        read(&output.stdout) == expected,
        "the contract changed; if that is meant, run the test with UPDATE_SNAPSHOTS=1 and commit {}",
        committed.display()
    );
}

#[test]
fn the_contract_names_every_operation_once_and_nothing_that_is_not_there() {
    let output = Command::new(binary()).arg("openapi").output().unwrap();
    let contract: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(contract["openapi"], "3.1.0");
    let mut operations = Vec::new();
    for (path, item) in contract["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path} has no summary");
            operations.push(format!("{method} {path}"));
        }
    }
    operations.sort();
    assert_eq!(
        operations,
        [
            "delete /v1/alerts/{id}",
            "delete /v1/clips/{id}",
            "delete /v1/evaluations/{id}",
            "delete /v1/exports/{id}",
            "delete /v1/keys/{id}",
            "delete /v1/reels/{id}",
            "delete /v1/reels/{id}/links",
            "delete /v1/uploads/{id}",
            "delete /v1/videos/{id}",
            "delete /v1/videos/{id}/subtitles/{lang}",
            "delete /v1/webhooks/{id}",
            "get /livez",
            "get /metrics",
            "get /readyz",
            "get /v1/alerts",
            "get /v1/alerts/{id}",
            "get /v1/alerts/{id}/matches",
            "get /v1/audit",
            "get /v1/clips/{id}",
            "get /v1/clips/{id}/preview",
            "get /v1/clips/{id}/thumbnail",
            "get /v1/evaluations",
            "get /v1/evaluations/{id}",
            "get /v1/exports",
            "get /v1/exports/{id}",
            "get /v1/exports/{id}/download",
            "get /v1/folders",
            "get /v1/insights",
            "get /v1/jobs",
            "get /v1/jobs/{id}",
            "get /v1/jobs/{id}/events",
            "get /v1/keys",
            "get /v1/map",
            "get /v1/models",
            "get /v1/reels",
            "get /v1/reels/{id}",
            "get /v1/searches",
            "get /v1/searches/{id}",
            "get /v1/spaces",
            "get /v1/stats",
            "get /v1/tags",
            "get /v1/videos",
            "get /v1/videos/{id}",
            "get /v1/videos/{id}/clips",
            "get /v1/videos/{id}/media",
            "get /v1/videos/{id}/sprites",
            "get /v1/videos/{id}/sprites/{sheet}",
            "get /v1/videos/{id}/subtitles",
            "get /v1/videos/{id}/subtitles/{lang}",
            "get /v1/videos/{id}/thumbnail",
            "get /v1/videos/{id}/timeline",
            "get /v1/videos/{id}/transcript",
            "get /v1/webhooks",
            "get /v1/webhooks/{id}",
            "get /v1/webhooks/{id}/deliveries",
            "head /v1/uploads/{id}",
            "patch /v1/alerts/{id}",
            "patch /v1/clips/{id}",
            "patch /v1/uploads/{id}",
            "patch /v1/videos",
            "patch /v1/videos/{id}",
            "patch /v1/videos/{id}/transcript/{line}",
            "post /v1/alerts",
            "post /v1/embeddings",
            "post /v1/evaluations",
            "post /v1/exports",
            "post /v1/jobs/{id}/cancel",
            "post /v1/jobs/{id}/retry",
            "post /v1/keys",
            "post /v1/media-links",
            "post /v1/reels",
            "post /v1/reels/{id}/links",
            "post /v1/search",
            "post /v1/search/batch",
            "post /v1/searches/{id}/feedback",
            "post /v1/spaces",
            "post /v1/spaces/{id}/activate",
            "post /v1/spaces/{id}/pause",
            "post /v1/spaces/{id}/resume",
            "post /v1/uploads",
            "post /v1/videos",
            "post /v1/videos/{id}/clips",
            "post /v1/videos/{id}/read-text",
            "post /v1/videos/{id}/resegment",
            "post /v1/videos/{id}/restore",
            "post /v1/videos/{id}/transcribe",
            "post /v1/webhooks",
            "post /v1/webhooks/{id}/rotate",
            "post /v1/webhooks/{id}/test",
            "put /v1/reels/{id}",
            "put /v1/videos/{id}/subtitles/{lang}",
        ]
    );
}
