//! A running `reprise serve` in a folder of its own, for tests that talk to it as a client would.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, StatusCode, multipart};
use serde_json::Value;

/// How long anything may take here before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A server process; killed when dropped.
pub struct Server {
    child: Child,
    base: String,
    client: Client,
}

/// The binary under test: `REPRISE_BIN`, else the one beside this test's own.
pub fn binary() -> PathBuf {
    if let Some(binary) = std::env::var_os("REPRISE_BIN") {
        return binary.into();
    }
    let test = std::env::current_exe().expect("a test has a path");
    let built =
        test.parent().and_then(Path::parent).expect("a test lies in target/PROFILE/deps").join("reprise");
    assert!(built.exists(), "build the binary first (cargo build) or set REPRISE_BIN");
    built
}

impl Server {
    /// Starts on a free port with `data_dir`, an untrained model and `more` arguments; waits until it is ready.
    pub fn start(data_dir: &Path, more: &[&str]) -> Server {
        Server::try_start(data_dir, more).unwrap_or_else(|said| panic!("the server did not start:\n{said}"))
    }

    /// The same; what the server said if it ends instead.
    pub fn try_start(data_dir: &Path, more: &[&str]) -> Result<Server, String> {
        let log = std::fs::File::create(data_dir.join("server.log")).expect("the data folder can be written");
        let mut child = Command::new(binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir)
            .args(more)
            .env_remove("REPRISE_MODEL")
            .env_remove("REPRISE_API_KEY")
            .env_remove("DATABASE_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let address = lines.find_map(|line| line.ok()?.strip_prefix("listening on ").map(str::to_owned));
        match address {
            Some(base) => {
                Ok(Server { child, base, client: Client::builder().no_proxy().build().expect("a client") })
            }
            None => {
                let _ = child.wait();
                Err(std::fs::read_to_string(data_dir.join("server.log")).unwrap_or_default())
            }
        }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client for requests that need more than the shortcuts below.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// `GET path`: status and JSON (null if the body is none).
    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.send(self.client.get(format!("{}{path}", self.base))).await
    }

    /// `POST path` with JSON.
    pub async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.send(self.client.post(format!("{}{path}", self.base)).json(body)).await
    }

    /// `DELETE path`.
    pub async fn delete(&self, path: &str) -> (StatusCode, Value) {
        self.send(self.client.delete(format!("{}{path}", self.base))).await
    }

    /// Sends any request.
    pub async fn send(&self, request: RequestBuilder) -> (StatusCode, Value) {
        let response = request.timeout(PATIENCE).send().await.expect("the server answers");
        let status = response.status();
        let body = response.bytes().await.expect("the answer comes whole");
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// Uploads a file with further JSON parts: the answer of `POST /v1/videos`.
    pub async fn upload(&self, file: &Path, parts: &[(&str, Value)]) -> (StatusCode, Value) {
        let mut form = multipart::Form::new();
        for (name, value) in parts {
            form = form.text((*name).to_owned(), value.to_string());
        }
        let form = form.file("file", file).await.expect("the file can be read");
        self.send(self.client.post(format!("{}/v1/videos", self.base)).multipart(form)).await
    }

    /// Uploads a file and waits until its job has succeeded: the video.
    pub async fn ingest(&self, file: &Path) -> Value {
        let (status, answer) = self.upload(file, &[]).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        let job = self.job_end(answer["job"]["id"].as_str().expect("a new video has a job")).await;
        assert_eq!(job["state"], "succeeded", "{job}");
        self.get(&format!("/v1/videos/{}", answer["video"]["id"].as_str().expect("a video has an id")))
            .await
            .1
    }

    /// The job once it has ended, by its events.
    pub async fn job_end(&self, id: &str) -> Value {
        let mut events = self
            .client
            .get(format!("{}/v1/jobs/{id}/events", self.base))
            .timeout(PATIENCE)
            .send()
            .await
            .expect("the server answers");
        let mut text = String::new();
        while let Ok(Some(piece)) = events.chunk().await {
            text.push_str(&String::from_utf8_lossy(&piece));
        }
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).expect("a job has events");
        serde_json::from_str(last).expect("an event is JSON")
    }

    /// Searches with `file` as the query clip.
    pub async fn search_upload(&self, query: &Value, file: &Path) -> (StatusCode, Value) {
        let form = multipart::Form::new().text("query", query.to_string());
        let form = form.file("file", file).await.expect("the file can be read");
        self.send(self.client.post(format!("{}/v1/search", self.base)).multipart(form)).await
    }

    /// Asks it to stop, and waits: whether it ended well.
    pub fn stop(mut self) -> bool {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.success(),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                _ => return false,
            }
        }
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
