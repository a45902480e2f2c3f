//! Everything at once for a long time: uploads, searches, subtitles, other segmentations, exports, deletions. Then
//! `reprise verify`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reprise_tests::film::{Store, film};
use reprise_tests::server::{Server, binary};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::overload::{distinct, resident_mib};
use super::report::Report;
use super::search::{Random, words};

/// Videos that the library keeps; older ones are deleted.
const KEPT: usize = 40;
const EDITORS: u64 = 3;
const SEARCHERS: u64 = 4;

/// What the clients did and saw.
#[derive(Default)]
struct Done {
    /// Answers below 400, by what was asked.
    well: BTreeMap<&'static str, usize>,
    /// Answers of 5xx, jobs that failed, and what else should not be.
    wrong: Vec<String>,
}

struct Client {
    server: Arc<Server>,
    done: Arc<Mutex<Done>>,
    until: Instant,
    random: Random,
}

pub(crate) async fn measure(folder: &Path, minutes: f64, report: &mut Report) {
    let data = folder.join("soak");
    std::fs::create_dir_all(&data).unwrap();
    let server = Arc::new(Server::start(&data, &[]));
    let film = film(folder, "film", &["testsrc2", "smptebars", "color=c=red"], Store::Web);
    let length = Duration::from_secs_f64(minutes * 60.0);
    let done = Arc::new(Mutex::new(Done::default()));
    let client = |seed| Client {
        server: Arc::clone(&server),
        done: Arc::clone(&done),
        until: Instant::now() + length,
        random: Random(seed),
    };
    let mut tasks = JoinSet::new();
    for seed in 0..EDITORS {
        tasks.spawn(client(seed).edit(film.clone()));
    }
    for seed in 0..SEARCHERS {
        tasks.spawn(client(100 + seed).search());
    }
    tokio::time::sleep(length / 4).await;
    let early = resident_mib(&server);
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let late = resident_mib(&server);
    let server = Arc::into_inner(server).expect("every client has ended");
    assert!(server.stop(), "the server did not stop well");
    let verified = Command::new(binary()).arg("verify").arg("--data-dir").arg(&data).output().unwrap();
    let done = std::mem::take(&mut *done.lock().await);
    for (what, count) in &done.well {
        report.soak(what, &count.to_string());
    }
    report.soak("answers and jobs that went wrong", &done.wrong.len().to_string());
    report.soak("memory after a quarter, at the end, MiB", &format!("{early:.0}, {late:.0}"));
    let says = String::from_utf8_lossy(&verified.stdout);
    report.soak("`reprise verify`", says.trim().lines().last().unwrap_or("said nothing"));
    assert!(done.wrong.is_empty(), "{:?}", done.wrong);
    assert!(verified.status.success(), "{says}{}", String::from_utf8_lossy(&verified.stderr));
}

impl Client {
    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    async fn note(&self, what: &'static str, status: StatusCode, answer: &Value) {
        let mut done = self.done.lock().await;
        match status.as_u16() {
            ..400 => *done.well.entry(what).or_default() += 1,
            // A job of the same video runs, another client has deleted it, or the server is busy.
            404 | 409 | 429 => {}
            _ => done.wrong.push(format!("{what}: {status} {answer}")),
        }
    }

    async fn search(mut self) {
        while self.goes_on() {
            let body = json!({"query": {"text": words(&mut self.random)}, "limit": 20});
            let (status, answer) = self.server.post("/v1/search", &body).await;
            self.note("searches", status, &answer).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn edit(mut self, film: PathBuf) {
        while self.goes_on() {
            let copy = distinct(&film);
            let (status, answer) = self.server.upload(&copy, &[]).await;
            std::fs::remove_file(copy).unwrap();
            self.note("uploads", status, &answer).await;
            let Some(id) = answer["video"]["id"].as_str() else { continue };
            self.finish(&answer).await;
            self.change(id).await;
            self.thin_out().await;
        }
    }

    /// Waits for the job of an answer.
    async fn finish(&self, answer: &Value) {
        let Some(id) = answer["job"]["id"].as_str() else { return };
        let job = self.server.job_end(id).await;
        if job["state"] == "failed" {
            self.done.lock().await.wrong.push(format!("a job failed: {job}"));
        }
    }

    /// One of the changes that a user makes.
    async fn change(&mut self, id: &str) {
        let path = format!("/v1/videos/{id}");
        match self.random.next() % 4 {
            0 => {
                let text = format!("WEBVTT\n\n00:00.000 --> 00:02.000\n{}\n", words(&mut self.random));
                let put = self.server.request("PUT", &format!("{path}/subtitles/en"));
                let (status, answer) =
                    self.server.send(put.header("content-type", "text/vtt").body(text)).await;
                self.note("subtitles", status, &answer).await;
            }
            1 => {
                let cut = json!({"policy": "fixed", "params": {"every_seconds": 1}});
                let (status, answer) = self.server.post(&format!("{path}/resegment"), &cut).await;
                self.note("segmentations", status, &answer).await;
                self.finish(&answer).await;
            }
            2 => self.export(id).await,
            _ => {
                let patch = self.server.request("PATCH", &path);
                let (status, answer) =
                    self.server.send(patch.json(&json!({"metadata": {"turn": self.random.next()}}))).await;
                self.note("changes of metadata", status, &answer).await;
            }
        }
    }

    /// Exports a second of a video as a film, and deletes the film.
    async fn export(&self, video: &str) {
        let range = json!({"video_id": video, "start": 0.5, "end": 1.5});
        let export = json!({"format": "mp4", "ranges": [range]});
        let (status, answer) = self.server.post("/v1/exports", &export).await;
        self.note("exports", status, &answer).await;
        if let Some(id) = answer["id"].as_str() {
            // An export has the id of its job.
            self.finish(&json!({"job": {"id": id}})).await;
            let (status, answer) = self.server.delete(&format!("/v1/exports/{id}")).await;
            self.note("deletions of exports", status, &answer).await;
        }
    }

    /// Deletes the oldest videos until [`KEPT`] are left.
    async fn thin_out(&self) {
        let (_, videos) = self.server.get("/v1/videos?limit=1000").await;
        let ids = videos["items"].as_array().into_iter().flatten().filter_map(|video| video["id"].as_str());
        let mut ids: Vec<&str> = ids.collect();
        ids.sort_unstable();
        for id in ids.iter().take(ids.len().saturating_sub(KEPT)) {
            let (status, answer) = self.server.delete(&format!("/v1/videos/{id}")).await;
            self.note("deletions", status, &answer).await;
        }
    }
}
