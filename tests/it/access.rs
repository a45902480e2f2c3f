//! Who may do what: keys, the videos that a key reaches, quotas, links, the audit log.

mod keys;
mod reel_links;
mod searches;
mod uploads;
mod walk;

use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The server's own key.
const ROOT: &str = "root";

/// A server with keys.
struct Guarded {
    folder: TempDir,
    server: Server,
}

impl Guarded {
    fn start(more: &[&str]) -> Guarded {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let server = Server::start(&data, &[&["--api-key", ROOT], more].concat());
        Guarded { folder, server }
    }

    /// Makes a key. Returns the answer.
    async fn add_key(&self, body: &Value) -> Value {
        let request = self.server.request("POST", "/v1/keys").bearer_auth(ROOT).json(body);
        let (status, answer) = self.server.send(request).await;
        assert_eq!(status, 201, "{answer}");
        answer
    }

    /// The text of a new key that reads and writes the videos of a team.
    async fn team_key(&self, team: &str) -> String {
        let only = json!({"field": "metadata.team", "eq": team});
        let key = self.add_key(&json!({"name": team, "scopes": ["read", "write"], "only": only})).await;
        key["key"].as_str().unwrap().to_owned()
    }

    fn as_holder<'a>(&'a self, key: &'a str) -> Holder<'a> {
        Holder { server: &self.server, key }
    }

    fn film(&self, name: &str, shots: &[&str]) -> std::path::PathBuf {
        film(self.folder.path(), name, shots, Store::Web)
    }
}

/// The holder of a key.
#[derive(Clone, Copy)]
struct Holder<'a> {
    server: &'a Server,
    key: &'a str,
}

impl Holder<'_> {
    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.server.request(method, path).bearer_auth(self.key)
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let request = self.request(method, path);
        self.server.send(body.into_iter().fold(request, RequestBuilder::json)).await
    }

    /// The answer to a request that must succeed.
    async fn good(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) = self.send(method, path, body).await;
        assert!(status.is_success(), "{method} {path}: {status} {answer}");
        answer
    }

    async fn upload(&self, file: &Path, metadata: Value) -> (StatusCode, Value) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let part = reqwest::multipart::Part::bytes(std::fs::read(file).unwrap()).file_name(name);
        let form = reqwest::multipart::Form::new().text("metadata", metadata.to_string()).part("file", part);
        self.server.send(self.request("POST", "/v1/videos").multipart(form)).await
    }

    /// Uploads a video and waits until it is searchable. Returns the answer of the upload.
    async fn ingest(&self, file: &Path, metadata: Value) -> Value {
        let (status, added) = self.upload(file, metadata).await;
        assert_eq!(status, 202, "{added}");
        let events = format!("/v1/jobs/{}/events", added["job"]["id"].as_str().unwrap());
        // The stream ends with the job.
        let ended = self.request("GET", &events).send().await.unwrap().text().await.unwrap();
        assert!(ended.contains("\"succeeded\""), "{ended}");
        added
    }
}
