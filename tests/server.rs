//! A running `reprise serve` with its own data folder, for tests of its HTTP interface.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, Response, StatusCode, multipart};
use serde_json::Value;

/// The timeout of every wait in tests.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A server process; killed when dropped.
pub struct Server {
    child: Child,
    base: String,
    client: Client,
}

/// Path of the binary under test: `REPRISE_BIN`, otherwise the one beside the test's own.
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
    /// Starts a server on a free port with `data_dir`, `builtin:tiny` and `more` arguments, and waits until it is
    /// ready.
    pub fn start(data_dir: &Path, more: &[&str]) -> Server {
        Server::try_start(data_dir, more).unwrap_or_else(|said| panic!("the server did not start:\n{said}"))
    }

    /// Like [`Server::start`], but returns the server's output if it fails to start.
    pub fn try_start(data_dir: &Path, more: &[&str]) -> Result<Server, String> {
        Server::try_start_with(data_dir, more, &[])
    }

    /// Like [`Server::try_start`], with environment variables.
    pub fn try_start_with(
        data_dir: &Path,
        more: &[&str],
        environment: &[(&str, &Path)],
    ) -> Result<Server, String> {
        Server::try_start_at("127.0.0.1:0", data_dir, more, environment)
    }

    /// Like [`Server::try_start_with`], on an address such as that of a server that was stopped.
    pub fn try_start_at(
        address: &str,
        data_dir: &Path,
        more: &[&str],
        environment: &[(&str, &Path)],
    ) -> Result<Server, String> {
        let log = std::fs::File::create(data_dir.join("server.log")).expect("the data folder can be written");
        let mut child = Command::new(binary())
            .args(["serve", "--listen", address, "--data-dir"])
            .arg(data_dir)
            .args(more)
            .envs(environment.iter().copied())
            .env("REPRISE_MODEL", "builtin:tiny")
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
            Some(base) => Ok(Server {
                child,
                base,
                client: reprise_server::https::client().no_proxy().build().expect("a client"),
            }),
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

    /// Waits until the process has died by itself.
    ///
    /// # Panics
    /// If it lives on, or ends in another way.
    pub fn wait_for_death(mut self) {
        let deadline = Instant::now() + PATIENCE;
        let ended = loop {
            match self.child.try_wait().expect("it is a child") {
                Some(ended) => break ended,
                None => assert!(Instant::now() < deadline, "the server does not die"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(ended.code().is_none(), "it ended with {ended}");
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The HTTP client, for requests that need more than the methods below.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// `GET path`. Returns status and JSON, null if the body is not JSON.
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

    /// The value of the first metric whose line begins with `name`, labels included; `None` if there is none.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let answer = self.request("GET", "/metrics").send().await.expect("the server answers");
        let text = answer.text().await.expect("the answer comes whole");
        text.lines().find(|line| line.starts_with(name))?.rsplit(' ').next()?.parse().ok()
    }

    /// Sends any request.
    pub async fn send(&self, request: RequestBuilder) -> (StatusCode, Value) {
        let response = request.timeout(PATIENCE).send().await.expect("the server answers");
        let status = response.status();
        let body = response.bytes().await.expect("the answer comes whole");
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// A request to `path`, for adding a body or headers.
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = method.parse().expect("a method");
        self.client.request(method, format!("{}{path}", self.base))
    }

    /// Sends a request that must be refused with `status`. Returns the complete problem.
    pub async fn refused(&self, request: RequestBuilder, status: u16) -> Value {
        let response = request.timeout(PATIENCE).send().await.expect("the server answers");
        problem_of(response, status).await
    }

    /// Searches; the status must be 200.
    pub async fn search(&self, body: &Value) -> Value {
        let (status, answer) = self.post("/v1/search", body).await;
        assert_eq!(status, StatusCode::OK, "{body}: {answer}");
        answer
    }

    /// The results of a search.
    pub async fn search_hits(&self, body: Value) -> Vec<Value> {
        self.search(&body).await["results"].as_array().cloned().expect("an answer has results")
    }

    /// Uploads a file with further JSON parts and waits until its job succeeds. Returns the video.
    pub async fn ingest_with(&self, file: &Path, parts: &[(&str, Value)]) -> Value {
        let (status, answer) = self.upload(file, parts).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        let job = self.job_end(answer["job"]["id"].as_str().expect("a new video has a job")).await;
        assert_eq!(job["state"], "succeeded", "{job}");
        self.get(&format!("/v1/videos/{}", answer["video"]["id"].as_str().expect("a video has an id")))
            .await
            .1
    }

    /// Uploads a file with further JSON parts. Returns the answer of `POST /v1/videos`.
    pub async fn upload(&self, file: &Path, parts: &[(&str, Value)]) -> (StatusCode, Value) {
        let mut form = multipart::Form::new();
        for (name, value) in parts {
            form = form.text((*name).to_owned(), value.to_string());
        }
        let form = form.file("file", file).await.expect("the file can be read");
        self.send(self.client.post(format!("{}/v1/videos", self.base)).multipart(form)).await
    }

    /// Uploads a file and waits until its job succeeds. Returns the video.
    pub async fn ingest(&self, file: &Path) -> Value {
        self.ingest_with(file, &[]).await
    }

    /// Waits for the end of a job through its events. Returns the job.
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

    /// Waits until the jobs that succeeded here are counted: until then, thumbnails may still be written after a job's end.
    pub async fn after_jobs(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (_, page) = self.get("/v1/jobs?state=succeeded&limit=100").await;
            let ended = page["items"].as_array().expect("jobs are listed").len();
            let counted = self.metric("reprise_jobs_total{outcome=\"succeeded\"}").await;
            if counted.unwrap_or(0.0) == ended as f64 {
                return;
            }
            assert!(Instant::now() < deadline, "{counted:?} of {ended} jobs are counted");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Searches with `file` as the query clip.
    pub async fn search_upload(&self, query: &Value, file: &Path) -> (StatusCode, Value) {
        let form = multipart::Form::new().text("query", query.to_string());
        let form = form.file("file", file).await.expect("the file can be read");
        self.send(self.client.post(format!("{}/v1/search", self.base)).multipart(form)).await
    }

    /// Requests a stop. Returns once the server accepts no more connections.
    pub fn stop_accepting(&self) {
        self.terminate();
        let address = self.base.strip_prefix("http://").expect("a base is http");
        let deadline = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(address).is_ok() {
            assert!(Instant::now() < deadline, "the server goes on accepting");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }

    /// Requests a stop and waits. Returns whether the exit code is 0.
    pub fn stop(mut self) -> bool {
        self.terminate();
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.success(),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                _ => return false,
            }
        }
    }

    /// Kills the server with `kill -9`.
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

/// Checks that an answer is a complete problem+json (RFC 9457) with `status`. Returns the problem.
pub async fn problem_of(response: Response, status: u16) -> Value {
    let header =
        |name: &str| response.headers().get(name).map(|it| it.to_str().unwrap_or_default().to_owned());
    let (got, content_type, id) =
        (response.status().as_u16(), header("content-type"), header("x-request-id"));
    let path = response.url().path().to_owned();
    let body = response.bytes().await.expect("the answer comes whole");
    let text = String::from_utf8_lossy(&body);
    assert_eq!(got, status, "{path}: {text}");
    assert_eq!(content_type.as_deref(), Some("application/problem+json"), "{path}: {text}");
    let problem: Value = serde_json::from_slice(&body).expect("a problem is JSON");
    for name in ["type", "title", "detail", "instance", "request_id"] {
        assert!(problem[name].as_str().is_some_and(|it| !it.is_empty()), "{path}: {name} in {text}");
    }
    assert_eq!(problem["status"], status, "{path}: {text}");
    assert_eq!(problem["instance"], path.as_str(), "{text}");
    assert_eq!(problem["request_id"].as_str(), id.as_deref(), "{path}: {text}");
    for error in problem["errors"].as_array().expect("errors are a list") {
        assert!(error["pointer"].is_string() && error["detail"].is_string(), "{path}: {text}");
    }
    problem
}
