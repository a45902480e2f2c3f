//! Where deliveries go, and which events a limited key gets.

use reprise_tests::film::{Store, film};
use reprise_tests::receiver::Receiver;
use reprise_tests::server::Server;
use serde_json::{Value, json};

use super::{PRIVATE, path_of};
use crate::faults::bed::{text, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_leads_to_a_private_address_is_not_asked() {
    let Some(receiver) = Receiver::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    // The name is fine; the address that it has when it is used is not.
    let url = receiver.url("/ok").replace("http://127.0.0.1", "https://localhost");
    let (status, hook) = server.post("/v1/webhooks", &json!({"url": url, "events": ["video.ready"]})).await;
    assert_eq!(status, 201, "{hook}");
    server.post(&path_of(&hook, "/test"), &json!({})).await;
    let tried = async || {
        let listed = server.get(&path_of(&hook, "/deliveries")).await.1;
        Some(listed["items"][0].clone()).filter(|it| it["reason"].is_string())
    };
    let failed = until("it was tried", tried).await;
    assert_eq!(failed["reason"], "not sent: it leads to an address that is not public");
    assert_eq!((&failed["state"], &failed["status"]), (&json!("waiting"), &Value::Null));
    assert_eq!(receiver.received("/ok").await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limited_key_gets_events_of_its_videos_only() {
    let Some(receiver) = Receiver::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, &["--api-key", "root", PRIVATE]);
    let send = async |key: &str, method: &str, path: &str, body: Value| {
        let request = server.request(method, path).bearer_auth(key).json(&body);
        let (status, answer) = server.send(request).await;
        assert!(status.is_success(), "{method} {path}: {status} {answer}");
        answer
    };
    let mut keys = Vec::new();
    for team in ["a", "b"] {
        let only = json!({"field": "metadata.team", "eq": team});
        let body = json!({"name": team, "scopes": ["read", "write"], "only": only});
        let key = send("root", "POST", "/v1/keys", body).await;
        keys.push(text(&key, "/key").to_owned());
    }
    let mut hooks = Vec::new();
    for (key, path) in [(keys[0].as_str(), "/a"), (keys[1].as_str(), "/b"), ("root", "/root")] {
        let body = json!({"url": receiver.url(path), "events": ["video.ready"]});
        let hook = send(key, "POST", "/v1/webhooks", body).await;
        receiver.trust(path, text(&hook, "/secret")).await;
        hooks.push(hook);
    }
    let mut videos = Vec::new();
    for (key, team) in keys.iter().zip(["a", "b"]) {
        let file = film(folder.path(), team, &["testsrc2"], Store::Web);
        let part = reqwest::multipart::Part::bytes(std::fs::read(file).unwrap()).file_name("film.mp4");
        let form = reqwest::multipart::Form::new().text("metadata", json!({"team": team}).to_string());
        let request =
            server.request("POST", "/v1/videos").bearer_auth(key).multipart(form.part("file", part));
        let (status, added) = server.send(request).await;
        assert_eq!(status, 202, "{added}");
        videos.push(text(&added, "/video/id").to_owned());
    }
    let videos_of = async |path: &str, count: usize| {
        let all = async || Some(receiver.received(path).await).filter(|all| all.len() == count);
        let all = until("the events arrive", all).await;
        let mut named: Vec<String> =
            all.iter().map(|it| text(it, "/event/data/video_id").to_owned()).collect();
        named.sort();
        named
    };
    let mut sorted = videos.clone();
    sorted.sort();
    assert_eq!(videos_of("/root", 2).await, sorted);
    assert_eq!(videos_of("/a", 1).await, [videos[0].clone()]);
    assert_eq!(videos_of("/b", 1).await, [videos[1].clone()]);
    // The webhooks are their keys'; the scope admin sees all.
    for (key, count) in [(keys[0].as_str(), 1), (keys[1].as_str(), 1), ("root", 3)] {
        let listed = send(key, "GET", "/v1/webhooks", json!({})).await;
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(count), "{listed}");
    }
    for (method, below) in
        [("GET", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/rotate"), ("GET", "/deliveries")]
    {
        let request = server.request(method, &path_of(&hooks[0], below)).bearer_auth(&keys[1]);
        server.refused(request, 404).await;
    }
    // The webhook of a revoked key gets nothing.
    let listed = send("root", "GET", "/v1/keys", json!({})).await;
    let id = text(&listed["items"][0], "/id").to_owned();
    send("root", "DELETE", &format!("/v1/keys/{id}"), json!({})).await;
    send("root", "POST", &path_of(&hooks[0], "/test"), json!({})).await;
    let failed = async || {
        let request = server.request("GET", &path_of(&hooks[0], "/deliveries")).bearer_auth("root");
        let newest = server.send(request).await.1["items"][0].clone();
        Some(newest).filter(|it| it["state"] == "failed")
    };
    assert!(text(&until("the test is given up", failed).await, "/reason").contains("revoked"));
    assert_eq!(receiver.received("/a").await.len(), 1);
}
