//! `POST /v1/search/batch`: several searches in one request.

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::{Value, json};

const ROOT: &str = "root";

async fn send(server: &Server, key: &str, path: &str, body: &Value) -> (u16, Value) {
    let (status, answer) = server.send(server.request("POST", path).bearer_auth(key).json(body)).await;
    (status.as_u16(), answer)
}

/// The answer without what differs from request to request.
fn lasting(answer: &Value) -> Value {
    let mut lasting = answer.clone();
    let fields = lasting.as_object_mut().expect("an answer");
    for passing in ["search_id", "timings_ms", "next_cursor"] {
        fields.remove(passing).expect("each answer has it");
    }
    lasting
}

/// A server with a film, and the film's id.
async fn library(folder: &std::path::Path) -> (Server, String) {
    let data = folder.join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, &[]);
    let file = film(folder, "shots", &["testsrc2", "color=c=red", "smptebars"], Store::Web);
    let video = server.ingest(&file).await["id"].as_str().unwrap().to_owned();
    assert!(server.stop());
    (Server::start(&data, &["--api-key", ROOT]), video)
}

#[tokio::test]
async fn each_search_has_the_answer_that_it_has_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (server, video) = library(folder.path()).await;
    let searches = [
        json!({"query": {"text": "a red square"}, "limit": 2}),
        json!({"query": {"clip": {"video_id": video, "start": 0.0, "end": 2.0}}}),
        json!({"query": {"clip_id": "01980f5e-8d10-7c3e-8f27-a1b2c3d4e502"}}),
        json!({"query": {"text": "bars"}, "level": "both", "group_by": "video"}),
    ];
    let (status, batch) = send(&server, ROOT, "/v1/search/batch", &json!({"searches": searches})).await;
    assert_eq!(status, 200, "{batch}");
    let results = batch["results"].as_array().unwrap();
    assert_eq!(results.len(), searches.len());
    for (place, (search, result)) in searches.iter().zip(results).enumerate() {
        let (status, alone) = send(&server, ROOT, "/v1/search", search).await;
        assert_eq!(result["status"], status);
        if status == 200 {
            assert_eq!(lasting(&result["answer"]), lasting(&alone));
            assert!(result["problem"].is_null() && result["answer"]["search_id"].is_string(), "{result}");
        } else {
            let problem = &result["problem"];
            assert_eq!((&problem["title"], &problem["detail"]), (&alone["title"], &alone["detail"]));
            let pointer = alone["errors"][0]["pointer"].as_str().unwrap();
            assert_eq!(pointer, "/query/clip_id");
            assert_eq!(problem["errors"][0]["pointer"], format!("/searches/{place}{pointer}"));
            assert!(result["answer"].is_null());
        }
    }
}

#[tokio::test]
async fn a_fault_in_one_search_refuses_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let good = json!({"query": {"text": "a red square"}});
    let check = async |searches: Value, pointer: &str| {
        let request = server.request("POST", "/v1/search/batch").json(&json!({"searches": searches}));
        let problem = server.refused(request, 422).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    };
    check(json!([]), "/searches").await;
    check(json!(vec![good.clone(); 101]), "/searches").await;
    let large = json!({"query": {"text": "x"}, "limit": 1000});
    check(json!(vec![large; 6]), "/searches").await;
    let grouped = json!({"query": {"text": "x"}, "group_by": "video", "limit": 100, "per_group": 51});
    check(json!([grouped]), "/searches").await;
    check(json!([good, {"query": {"text": "x"}, "limit": 0}]), "/searches/1/limit").await;
    check(json!([good, {"query": {"text": "x"}, "limit": "x"}]), "/searches/1/limit").await;
    check(json!([good, {"query": {}}]), "/searches/1/query").await;
    check(json!([{"query": {"upload": true}}]), "/searches/0/query/upload").await;
    check(json!([{"cursor": "x"}]), "/searches/0/cursor").await;
}

#[tokio::test]
async fn each_search_counts_as_a_request_of_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = library(folder.path()).await;
    let key = json!({"name": "slow", "scopes": ["read"], "limits": {"requests_per_minute": 3}});
    let (status, key) = send(&server, ROOT, "/v1/keys", &key).await;
    assert_eq!(status, 201, "{key}");
    let search = json!({"query": {"text": "a red square"}});
    let body = json!({"searches": vec![search; 5]});
    let (status, batch) = send(&server, key["key"].as_str().unwrap(), "/v1/search/batch", &body).await;
    assert_eq!(status, 200, "{batch}");
    let statuses: Vec<&Value> = batch["results"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
}
