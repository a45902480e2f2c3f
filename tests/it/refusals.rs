//! Files that are refused at the upload: the answer says why, and a failed job lists them.

use std::path::{Path, PathBuf};

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Refusing {
    folder: TempDir,
    server: Server,
}

impl Refusing {
    fn start(more: &[&str]) -> Refusing {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let server = Server::start(&data, more);
        Refusing { folder, server }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Uploads a file that must be refused. Returns the problem.
    async fn refused(&self, file: &Path, status: u16) -> Value {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let part = Part::bytes(std::fs::read(file).unwrap()).file_name(name);
        let request = self.server.request("POST", "/v1/videos").multipart(Form::new().part("file", part));
        self.server.refused(request, status).await
    }

    async fn failed(&self) -> Vec<Value> {
        let (_, page) = self.server.get("/v1/jobs?state=failed").await;
        page["items"].as_array().cloned().unwrap()
    }

    /// Uploads a file that must be refused, and checks its job.
    async fn check(&self, file: &Path, status: u16, bytes: &Value) {
        let problem = self.refused(file, status).await;
        let id = problem["job_id"].as_str().unwrap_or_else(|| panic!("no job: {problem}"));
        let (_, job) = self.server.get(&format!("/v1/jobs/{id}")).await;
        let name = file.file_name().unwrap().to_str().unwrap();
        assert_eq!(job["refused_file"], json!({"file_name": name, "bytes": bytes}), "{job}");
        assert_eq!((&job["state"], &job["video_id"]), (&json!("failed"), &Value::Null), "{job}");
        assert_eq!(job["reason"], problem["detail"], "{job}");
        assert_eq!(self.failed().await[0], job, "the newest is the first");
        assert_eq!(self.server.job_end(id).await, job);
        for change in ["retry", "cancel"] {
            let request = self.server.request("POST", &format!("/v1/jobs/{id}/{change}"));
            self.server.refused(request, 409).await;
        }
        assert_eq!(self.server.get("/v1/videos").await.1["items"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_file_is_a_failed_job_with_its_reason() {
    let it = Refusing::start(&["--max-video-hours", "0.001", "--max-upload-bytes", "2000000"]);
    let text = it.file("notes.mp4", b"this is no video");
    it.check(&text, 415, &json!(16)).await;
    it.check(&it.file("empty.mp4", b""), 415, &json!(0)).await;
    let long = film(it.folder.path(), "long", &["testsrc2", "color=c=red"].repeat(2), Store::Web);
    let bytes = std::fs::metadata(&long).unwrap().len();
    it.check(&long, 422, &json!(bytes)).await;
    it.check(&it.file("large.mp4", &vec![7; 3_000_000]), 413, &Value::Null).await;
    assert_eq!(it.failed().await.len(), 4);
    let (_, stats) = it.server.get("/v1/stats").await;
    assert_eq!((&stats["jobs_failed"], &stats["media_bytes"]), (&json!(4), &json!(0)), "{stats}");
    for folder in ["incoming", "videos"] {
        let left = std::fs::read_dir(it.folder.path().join("data").join(folder)).unwrap().count();
        assert_eq!(left, 0, "{folder}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_is_refused_with_the_same_job() {
    let it = Refusing::start(&[]);
    let send = async |key: &str, bytes: &'static [u8]| {
        let form = Form::new().part("file", Part::bytes(bytes).file_name("notes.mp4"));
        let request = it.server.request("POST", "/v1/videos").header("idempotency-key", key.to_owned());
        it.server.refused(request.multipart(form), 415).await["job_id"].clone()
    };
    let first = send("k", b"no video").await;
    assert_eq!(send("k", b"no video").await, first);
    // A refused request made nothing, so its key is free.
    assert_ne!(send("k", b"another text").await, first);
    assert_ne!(send("l", b"no video").await, first);
    assert_eq!(it.failed().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_the_server_is_refused_alike_and_none_is_listed_without_days() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.mp4");
    std::fs::write(&path, "no video").unwrap();
    let root = folder.path().to_str().unwrap();
    for (days, is_listed) in [("7", true), ("0", false)] {
        let it = Refusing::start(&["--media-root", root, "--refusal-days", days]);
        let request = it.server.request("POST", "/v1/videos").json(&json!({"path": path}));
        let problem = it.server.refused(request, 415).await;
        assert_eq!(problem["job_id"].is_string(), is_listed, "{problem}");
        assert_eq!(it.failed().await.len(), usize::from(is_listed));
        assert!(path.exists(), "a user's own file stays");
    }
}
