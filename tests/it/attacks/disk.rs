//! A full disk, and a database that goes away.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reprise_tests::film::{Store, film};
use reprise_tests::postgres::Mortal;
use reprise_tests::server::Server;
use reprise_tests::skip_optional;
use reqwest::StatusCode;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::faults::bed::until;

/// A small disk in memory; `None`, after printing the reason, where this user may not mount one.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=40m", "tmpfs"])
            .arg(folder.path())
            .output();
        match mount {
            Ok(done) if done.status.success() => Some(SmallDisk { folder }),
            refused => {
                skip_optional(&format!("no disk of 40 MB can be mounted: {refused:?}"));
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes until no byte fits.
    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.path().join("filler")).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

async fn put_subtitles(server: &Server, video: &Value, lines: usize) -> (StatusCode, Value) {
    let cue = |at: usize| {
        format!("{at}\n00:00:{:02},000 --> 00:00:{:02},500\n{}\n\n", at % 60, at % 60, "word ".repeat(60))
    };
    let text: String = (0..lines).map(cue).collect();
    let path = format!("/v1/videos/{}/subtitles/en", video["id"].as_str().unwrap());
    server.send(server.request("PUT", &path).header("content-type", "application/x-subrip").body(text)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_until_it_has_room_again() {
    let Some(disk) = SmallDisk::mount() else { return };
    let films = tempfile::tempdir().unwrap();
    let server = Server::start(disk.path(), &["--runners", "1"]);
    let first = film(films.path(), "first", &["testsrc2"], Store::Web);
    let video = server.ingest(&first).await;
    let hit = server.search_hits(json!({"query": {"text": "a"}})).await.remove(0);
    let preview = format!("/v1/clips/{}/preview", hit["clip_id"].as_str().unwrap());
    disk.fill();
    let (status, problem) = put_subtitles(&server, &video, 2000).await;
    assert_eq!(status, 507, "{problem}");
    let second = film(films.path(), "second", &["color=c=red", "testsrc2"], Store::Web);
    assert_eq!(server.upload(&second, &[]).await.0, 507);
    let refused = server.refused(server.request("GET", &preview), 507).await;
    assert_eq!(refused["title"], "no space left", "{refused}");
    // Rows of a few bytes may still fit into the log of writes.
    let ready = server.request("GET", "/readyz").send().await.unwrap();
    let (status, state) = (ready.status(), ready.text().await.unwrap());
    assert!(status == 503 || state.contains("disk: full"), "{status}: {state}");
    // What needs no room goes on.
    assert_eq!(server.search_hits(json!({"query": {"text": "a"}})).await.len(), 1);
    disk.free();
    let (status, track) = put_subtitles(&server, &video, 20).await;
    assert_eq!(status, 200, "{track}");
    assert_eq!(server.get("/readyz").await.0, 200);
    server.ingest(&second).await;
}

/// The end of the requests to a server whose Postgres stops and starts again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_goes_away_heals_by_itself() {
    let Some(mut postgres) = Mortal::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--database-url", &postgres.url()]);
    let video = server.ingest(&film(folder.path(), "film", &["testsrc2"], Store::Web)).await;
    postgres.kill();
    let request =
        server.request("PUT", &format!("/v1/videos/{}/subtitles/en", video["id"].as_str().unwrap()));
    let response = request.body("1\n00:00:01,000 --> 00:00:02,000\na word\n").send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    let refused = server.refused(server.request("GET", "/readyz"), 503).await;
    assert_eq!(refused["detail"], "the database takes no writes; the server's log says why");
    postgres.start_again().await;
    until("the server heals", async || (server.get("/readyz").await.0 == 200).then_some(())).await;
    assert_eq!(put_subtitles(&server, &video, 3).await.0, 200);
    server.ingest(&film(folder.path(), "other", &["color=c=red"], Store::Web)).await;
}

/// What clients saw that never stop asking.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    searches: AtomicU64,
    /// The newest acknowledged value of the video's metadata.
    turn: AtomicU64,
    refused: AtomicU64,
    uploaded: Mutex<Vec<String>>,
}

impl Load {
    /// Whether the answer is good; a refusal is counted. Anything else fails the test.
    fn is_good(&self, (status, answer): &(StatusCode, Value)) -> bool {
        match status.as_u16() {
            503 => _ = self.refused.fetch_add(1, Ordering::Relaxed),
            _ => assert!(status.is_success(), "{status} {answer}"),
        }
        status.is_success()
    }

    async fn search(self: Arc<Self>, server: Arc<Server>) {
        while !self.is_over.load(Ordering::Relaxed) {
            let found = server.post("/v1/search", &json!({"query": {"text": "a word"}})).await;
            self.searches.fetch_add(self.is_good(&found).into(), Ordering::Relaxed);
        }
    }

    async fn change(self: Arc<Self>, server: Arc<Server>, video: String) {
        for turn in 1.. {
            let patch = server.request("PATCH", &format!("/v1/videos/{video}"));
            if self.is_good(&server.send(patch.json(&json!({"metadata": {"turn": turn}}))).await) {
                self.turn.store(turn, Ordering::Relaxed);
            }
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    async fn upload(self: Arc<Self>, server: Arc<Server>, film: PathBuf) {
        let bytes = std::fs::read(film).unwrap();
        for number in 0_u32.. {
            // Bytes after the end of the last box make it another file.
            let part = Part::bytes([&bytes[..], &number.to_be_bytes()].concat()).file_name("film.mp4");
            let form = Form::new().part("file", part);
            let answer = server.send(server.request("POST", "/v1/videos").multipart(form)).await;
            if self.is_good(&answer) {
                self.uploaded.lock().unwrap().push(answer.1["video"]["id"].as_str().unwrap().to_owned());
            }
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            // More uploads would only make more to decode.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until each kind of client has had a good answer again.
    async fn goes_on(&self) {
        let seen = || {
            let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
            [count(&self.searches), count(&self.turn), self.uploaded.lock().unwrap().len() as u64]
        };
        let before = seen();
        until("all clients are answered well", async || {
            before.iter().zip(seen()).all(|(before, now)| now > *before).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_goes_away_under_load_loses_nothing() {
    let Some(mut postgres) = Mortal::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Arc::new(Server::start(folder.path(), &["--database-url", &postgres.url()]));
    let film = film(folder.path(), "film", &["testsrc2"], Store::Web);
    let video = server.ingest(&film).await["id"].as_str().unwrap().to_owned();
    let load = Arc::new(Load::default());
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        clients.spawn(Arc::clone(&load).search(Arc::clone(&server)));
    }
    clients.spawn(Arc::clone(&load).change(Arc::clone(&server), video.clone()));
    clients.spawn(Arc::clone(&load).upload(Arc::clone(&server), film));
    for _ in 0..2 {
        load.goes_on().await;
        let refused = load.refused.load(Ordering::Relaxed);
        postgres.kill();
        let are_refused = async || (load.refused.load(Ordering::Relaxed) > refused).then_some(());
        until("clients are refused", are_refused).await;
        postgres.start_again().await;
    }
    load.goes_on().await;
    load.is_over.store(true, Ordering::Relaxed);
    clients.join_all().await;
    let (_, stored) = server.get(&format!("/v1/videos/{video}")).await;
    let turn = stored["metadata"]["turn"].as_u64().unwrap();
    assert!(turn >= load.turn.load(Ordering::Relaxed), "{stored}");
    let uploaded = load.uploaded.lock().unwrap().clone();
    for id in uploaded {
        assert_eq!(server.get(&format!("/v1/videos/{id}")).await.0, 200, "{id} is lost");
    }
}

#[test]
fn a_database_that_is_not_there_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = ["--database-url", "postgres://reprise@127.0.0.1:1/reprise"];
    let said = Server::try_start(folder.path(), &nobody).err().expect("there is no such database");
    assert!(said.contains("Connection refused"), "{said}");
}
