//! Reels and exports over HTTP: films that are decoded again, lists that other programs read, ends and refusals.

mod films;
mod life;
mod lists;
mod reels;

use std::path::{Path, PathBuf};

use reprise_tests::numbered::{Numbered, numbered};
use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A film of a variable rate: frames 0 to 49 of 25 a second, then every fifth one.
const VARIABLE: Numbered = Numbered {
    rate: "25",
    frames: 80,
    size: "192x108",
    sound: false,
    more: &["-vf", "select='lt(n,50)+not(mod(n,5))'", "-vsync", "vfr"],
};

/// A server with a folder for films.
struct Studio {
    folder: TempDir,
    server: Server,
}

impl Studio {
    fn open() -> Studio {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        Studio { server: Server::start(&data, &[]), folder }
    }

    /// Renders and ingests a film. Returns the video's id.
    async fn film(&self, name: &str, film: Numbered<'_>) -> String {
        let file = numbered(self.folder.path(), name, film);
        self.server.ingest(&file).await["id"].as_str().unwrap().to_owned()
    }

    /// Makes an export that must succeed, and fetches its file.
    async fn export(&self, request: &Value) -> Exported {
        export(&self.server, self.folder.path(), request).await
    }
}

/// A made export.
struct Exported {
    answer: Value,
    file: PathBuf,
}

/// Makes an export that must succeed, and fetches its file by its signed address.
async fn export(server: &Server, folder: &Path, request: &Value) -> Exported {
    let answer = ended(server, request).await;
    assert_eq!(answer["state"], "succeeded", "{request}: {answer}");
    let fetched = server.request("GET", answer["file"]["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(fetched.status(), 200);
    assert_eq!(fetched.headers()["content-type"], answer["file"]["media_type"].as_str().unwrap());
    let bytes = fetched.bytes().await.unwrap();
    assert_eq!(bytes.len(), answer["file"]["bytes"]);
    let file = folder.join(answer["file"]["name"].as_str().unwrap());
    std::fs::write(&file, &bytes).unwrap();
    Exported { answer, file }
}

/// Starts an export and waits for its end. Returns it.
async fn ended(server: &Server, request: &Value) -> Value {
    let (status, answer) = server.post("/v1/exports", request).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{request}: {answer}");
    let id = answer["id"].as_str().unwrap();
    server.job_end(id).await;
    server.get(&format!("/v1/exports/{id}")).await.1
}

/// A range in seconds.
fn range(video: &str, start: f64, end: f64) -> Value {
    json!({"video_id": video, "start": start, "end": end})
}

/// Where a frame begins, in seconds, rounded down to a millisecond as reprise shows it.
fn at(frame: i64, rate: (i64, i64)) -> f64 {
    (frame * 1000 * rate.1 / rate.0) as f64 / 1000.0
}

/// A rate as ffmpeg reads it.
fn named(rate: (i64, i64)) -> String {
    format!("{}/{}", rate.0, rate.1)
}
