//! Sprite sheets: made by the ingest, served, made anew when they are lost, and removed with their video.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reprise_tests::film::{SHOT_SECONDS, Store, ffprobe, film};
use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

const SHOTS: [&str; 2] = ["color=c=red", "color=c=blue"];

/// A server, a video of a red and a blue shot, and the path of its sprite sheets in the data folder.
async fn ingested(folder: &Path) -> (Server, String, PathBuf) {
    let server = Server::start(folder, &[]);
    let video = server.ingest(&film(folder, "film", &SHOTS, Store::Web)).await;
    let id = video["id"].as_str().unwrap();
    (server, format!("/v1/videos/{id}"), folder.join(format!("sprites/{id}.sheets")))
}

/// A decoded sheet: its width in pixels, and its RGB.
struct Sheet {
    width: usize,
    rgb: Vec<u8>,
}

impl Sheet {
    fn of(folder: &Path, jpeg: &[u8]) -> Sheet {
        let file = folder.join("sheet.jpg");
        std::fs::write(&file, jpeg).unwrap();
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-v", "error", "-nostdin", "-i"]).arg(&file).stdin(Stdio::null());
        let output = ffmpeg.args(["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]).output().unwrap();
        let width = ffprobe(&file)["streams"][0]["width"].as_u64().unwrap() as usize;
        Sheet { width, rgb: output.stdout }
    }

    /// Whether the middle of a picture is mostly red (0), green (1) or blue (2).
    fn strongest(&self, facts: &Value, tile: usize) -> usize {
        let at = |name: &str| facts[name].as_u64().unwrap() as usize;
        let (columns, width, height) = (at("columns"), at("tile_width"), at("tile_height"));
        let x = tile % columns * width + width / 2;
        let y = tile / columns * height + height / 2;
        let pixel = &self.rgb[3 * (y * self.width + x)..][..3];
        (0..3).max_by_key(|channel| pixel[*channel]).unwrap()
    }
}

#[tokio::test]
async fn the_ingest_makes_pictures_at_even_distances() {
    let folder = tempfile::tempdir().unwrap();
    let (server, video, file) = ingested(folder.path()).await;
    assert!(file.exists(), "the ingest made them");
    let (status, facts) = server.get(&format!("{video}/sprites")).await;
    assert_eq!(status, 200, "{facts}");
    let tiles = (SHOTS.len() as f64 * SHOT_SECONDS / 0.5) as usize;
    let expected = json!({"tile_width": 160, "tile_height": 120, "columns": tiles, "rows": 1, "interval": 0.5,
                          "tiles": tiles, "sheets": [format!("{video}/sprites/0")]});
    assert_eq!(facts, expected);
    let sheet = server.request("GET", facts["sheets"][0].as_str().unwrap()).send().await.unwrap();
    assert_eq!(sheet.headers()["content-type"], "image/jpeg");
    let sheet = Sheet::of(folder.path(), &sheet.bytes().await.unwrap());
    let colours: Vec<usize> = (0..tiles).map(|tile| sheet.strongest(&facts, tile)).collect();
    assert_eq!(colours, [0, 0, 0, 0, 2, 2, 2, 2]);
    for (path, status) in [
        (format!("{video}/sprites/1"), 404),
        (format!("{video}/sprites/x"), 404),
        (format!("{video}/sprites/-1"), 404),
        ("/v1/videos/0190163d-8694-739b-aea5-966c26f8ad91/sprites".to_owned(), 404),
    ] {
        server.refused(server.request("GET", &path), status).await;
    }
}

#[tokio::test]
async fn lost_and_damaged_sheets_are_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (server, video, file) = ingested(folder.path()).await;
    let (_, facts) = server.get(&format!("{video}/sprites")).await;
    let whole = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(server.get(&format!("{video}/sprites")).await, (StatusCode::OK, facts.clone()));
    assert_eq!(std::fs::read(&file).unwrap(), whole, "a pass of its own makes the same");
    std::fs::write(&file, "damaged").unwrap();
    server.refused(server.request("GET", &format!("{video}/sprites/0")), 503).await;
    assert_eq!(server.get(&format!("{video}/sprites")).await, (StatusCode::OK, facts));
}

#[tokio::test]
async fn sheets_go_with_their_video() {
    let folder = tempfile::tempdir().unwrap();
    let (server, video, file) = ingested(folder.path()).await;
    assert_eq!(server.delete(&format!("{video}?purge=true")).await.0, 204);
    server.refused(server.request("GET", &format!("{video}/sprites")), 404).await;
    crate::faults::bed::until("the sheets are purged", async || (!file.exists()).then_some(())).await;
}
