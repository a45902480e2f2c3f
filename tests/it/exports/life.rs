//! The life of an export: cancelled, killed, without its sources, over its limits, expired.

use std::path::PathBuf;

use reprise_tests::numbered::{Numbered, numbered, numbers};
use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Exported, ended, export, range};
use crate::faults::bed::{Bed, job, on_both, see_through, text, until};

on_both!(
    a_cancelled_export_leaves_nothing_and_can_be_retried,
    a_killed_server_leaves_no_half_export,
    a_source_without_its_file_is_named_and_the_rest_is_made,
    a_deleted_video_takes_its_exports_along,
    exports_expire_and_are_swept,
    an_export_over_the_limit_fails_and_leaves_nothing,
    a_search_is_exported,
);

/// Ingests a numbered film of this many frames. Returns the video's id.
async fn film(bed: &Bed, server: &Server, name: &str, frames: usize) -> String {
    let film = Numbered { frames, ..Numbered::default() };
    let file = numbered(bed.folder(), name, film);
    text(&server.ingest(&file).await, "/id").to_owned()
}

/// Files of a folder of the data folder.
fn files(bed: &Bed, folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(bed.data().join(folder)).expect("the folder is there");
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

/// Waits until no temporary file and `made` exports are left.
async fn left(bed: &Bed, made: usize) {
    let is_so = async || {
        let is_clean = files(bed, "incoming").is_empty() && files(bed, "exports").len() == made;
        is_clean.then_some(())
    };
    until("no half export is left", is_so).await;
}

/// Starts a slow export of a whole video, and waits until ffmpeg has written something.
async fn slow_export(bed: &Bed, server: &Server, video: &str) -> String {
    bed.slow(true);
    let request = json!({"format": "mp4", "ranges": [range(video, 0.0, 1.0), range(video, 0.0, 60.0)]});
    let (status, answer) = server.post("/v1/exports", &request).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let id = text(&answer, "/id").to_owned();
    let begun = async || (job(server, &id).await["progress"].as_f64()? > 0.0).then_some(());
    until("the export has begun", begun).await;
    id
}

async fn a_cancelled_export_leaves_nothing_and_can_be_retried(bed: &Bed) {
    let server = bed.start(&["--runners", "1"]);
    let video = film(bed, &server, "long.mp4", 1500).await;
    let id = slow_export(bed, &server, &video).await;
    let (status, answer) = server.post(&format!("/v1/jobs/{id}/cancel"), &json!({})).await;
    assert_eq!((status, &answer["state"]), (StatusCode::OK, &json!("cancelled")), "{answer}");
    bed.slow(false);
    left(bed, 0).await;
    let path = format!("/v1/exports/{id}");
    assert_eq!(server.get(&path).await.1["state"], "cancelled");
    let download = format!("{path}/download");
    server.refused(server.request("GET", &download), 409).await;
    server.post(&format!("/v1/jobs/{id}/retry"), &json!({})).await;
    see_through(&server, &id).await;
    left(bed, 1).await;
    assert_eq!(server.request("GET", &download).send().await.unwrap().status(), 200);
    assert_eq!(server.delete(&path).await.0, StatusCode::NO_CONTENT);
    assert_eq!(server.get(&path).await.0, StatusCode::NOT_FOUND);
    left(bed, 0).await;
}

async fn a_killed_server_leaves_no_half_export(bed: &Bed) {
    let server = bed.start(&[]);
    let video = film(bed, &server, "long.mp4", 1500).await;
    let id = slow_export(bed, &server, &video).await;
    server.kill();
    assert_eq!(files(bed, "exports").len(), 0);
    bed.slow(false);
    let server = bed.start(&["--lease-seconds", "2"]);
    see_through(&server, &id).await;
    assert_eq!(files(bed, "exports").len(), 1);
    let answer = server.get(&format!("/v1/exports/{id}")).await.1;
    let fetched = server.request("GET", text(&answer, "/file/url")).send().await.unwrap();
    let file = bed.folder().join("fetched.mp4");
    std::fs::write(&file, fetched.bytes().await.unwrap()).unwrap();
    assert_eq!(numbers(&file), (0..25).chain(0..1500).collect::<Vec<usize>>());
}

async fn a_source_without_its_file_is_named_and_the_rest_is_made(bed: &Bed) {
    let server = bed.start(&[]);
    let (kept, lost) = (film(bed, &server, "kept.mp4", 50).await, film(bed, &server, "lost.mp4", 60).await);
    for file in files(bed, "videos") {
        if file.to_string_lossy().contains(&lost) {
            std::fs::remove_file(file).unwrap();
        }
    }
    let ranges = [range(&lost, 0.0, 1.0), range(&kept, 0.4, 0.8), range(&lost, 0.0, 1.0)];
    for format in ["mp4", "edl", "otio"] {
        let made = export(&server, bed.folder(), &json!({"format": format, "ranges": ranges})).await;
        let Exported { answer, file } = made;
        assert_eq!(answer["ranges"], json!([{"range": 1, "video_id": kept, "start": 0.4, "end": 0.8}]));
        let named =
            |range: usize| json!({"range": range, "video_id": lost, "reason": "its video's file is gone"});
        assert_eq!(answer["left_out"], json!([named(0), named(2)]));
        if format == "mp4" {
            assert_eq!(numbers(&file), (10..20).collect::<Vec<usize>>());
        }
    }
    let nothing = ended(&server, &json!({"format": "mp4", "ranges": [ranges[0]]})).await;
    assert_eq!(nothing["state"], "failed");
    assert!(text(&nothing, "/reason").contains("file is gone"), "{nothing}");
    left(bed, 3).await;
}

async fn a_deleted_video_takes_its_exports_along(bed: &Bed) {
    let server = bed.start(&[]);
    let (kept, gone) = (film(bed, &server, "kept.mp4", 50).await, film(bed, &server, "gone.mp4", 60).await);
    let of = |videos: &[&str]| {
        let ranges: Vec<Value> = videos.iter().map(|video| range(video, 0.0, 1.0)).collect();
        json!({"format": "csv", "ranges": ranges})
    };
    let mixed = export(&server, bed.folder(), &of(&[&kept, &gone])).await.answer;
    let other = export(&server, bed.folder(), &of(&[&kept])).await.answer;
    assert_eq!(server.delete(&format!("/v1/videos/{gone}")).await.0, StatusCode::NO_CONTENT);
    let url = text(&mixed, "/file/url");
    for path in [url, &format!("/v1/exports/{}", text(&mixed, "/id"))] {
        server.refused(server.request("GET", path), 404).await;
    }
    assert_eq!(server.request("GET", text(&other, "/file/url")).send().await.unwrap().status(), 200);
    left(bed, 1).await;
}

async fn exports_expire_and_are_swept(bed: &Bed) {
    let server = bed.start(&["--export-hours", "0.001"]);
    let video = film(bed, &server, "film.mp4", 50).await;
    let request = json!({"format": "csv", "ranges": [range(&video, 0.0, 1.0)]});
    let made = export(&server, bed.folder(), &request).await.answer;
    assert!(made["expires_at"].as_str() > made["created_at"].as_str(), "{made}");
    let path = format!("/v1/exports/{}", text(&made, "/id"));
    let has_expired = async || (server.get(&path).await.0 == StatusCode::NOT_FOUND).then_some(());
    until("the export has expired", has_expired).await;
    let link = server.request("GET", text(&made, "/file/url")).send().await.unwrap().status();
    assert!(link == 401 || link == 404, "{link}");
    assert!(server.stop());
    let _server = bed.start(&[]);
    left(bed, 0).await;
}

async fn an_export_over_the_limit_fails_and_leaves_nothing(bed: &Bed) {
    let server = bed.start(&["--max-export-bytes", "5000"]);
    let video = film(bed, &server, "film.mp4", 500).await;
    for files in ["one", "each"] {
        let ranges = [range(&video, 0.0, 10.0), range(&video, 0.0, 20.0)];
        let failed = ended(&server, &json!({"format": "mp4", "files": files, "ranges": ranges})).await;
        assert_eq!(failed["state"], "failed", "{failed}");
        assert!(text(&failed, "/reason").contains("--max-export-bytes"), "{failed}");
    }
    left(bed, 0).await;
}

async fn a_search_is_exported(bed: &Bed) {
    let server = bed.start(&[]);
    let video = film(bed, &server, "film.mp4", 50).await;
    let search = json!({"query": {"text": "bars"}, "limit": 1});
    let hit = server.search_hits(search.clone()).await.remove(0);
    let made = export(&server, bed.folder(), &json!({"format": "json", "search": search})).await;
    let told = &made.answer["ranges"][0];
    assert_eq!(
        (&told["video_id"], &told["start"], &told["end"]),
        (&json!(video), &hit["start"], &hit["end"])
    );
    assert_eq!(made.answer["ranges"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_is_logged_and_its_link_ends_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--api-key", "root"]);
    let as_root = |method: &str, path: &str| server.request(method, path).bearer_auth("root");
    let body = json!({"name": "editor", "scopes": ["read", "write"]});
    let key = server.send(as_root("POST", "/v1/keys").json(&body)).await.1;
    let file = numbered(folder.path(), "film.mp4", Numbered::default());
    let part = reqwest::multipart::Part::bytes(std::fs::read(file).unwrap()).file_name("film.mp4");
    let form = reqwest::multipart::Form::new().part("file", part);
    let holder = |method: &str, path: &str| server.request(method, path).bearer_auth(text(&key, "/key"));
    let added = server.send(holder("POST", "/v1/videos").multipart(form)).await.1;
    let finish = async |id: &str| {
        let events = holder("GET", &format!("/v1/jobs/{id}/events")).send().await.unwrap();
        assert!(events.text().await.unwrap().contains("\"succeeded\""));
    };
    finish(text(&added, "/job/id")).await;
    let body = json!({"format": "csv", "ranges": [range(text(&added, "/video/id"), 0.0, 1.0)]});
    let id = text(&server.send(holder("POST", "/v1/exports").json(&body)).await.1, "/id").to_owned();
    finish(&id).await;
    let made = server.send(holder("GET", &format!("/v1/exports/{id}"))).await.1;
    let url = text(&made, "/file/url");
    let fetched = server.request("GET", url).send().await.unwrap();
    assert_eq!(fetched.status(), 200);
    assert!(fetched.headers()["content-disposition"].to_str().unwrap().starts_with("attachment; "));
    let other = url.replace(&id, "01890000-0000-7000-8000-000000000000");
    server.refused(server.request("GET", &other), 401).await;
    server.refused(server.request("DELETE", url), 401).await;
    let log = server.send(as_root("GET", "/v1/audit")).await.1;
    let entry = |method: &str, path: &str| {
        let items = log["items"].as_array().unwrap();
        items.iter().find(|it| it["method"] == method && it["path"] == path).cloned().unwrap_or_default()
    };
    assert_eq!(entry("GET", &format!("/v1/exports/{id}/download"))["key_id"], key["id"], "{log}");
    assert_eq!(entry("POST", "/v1/exports")["status"], 202, "{log}");
    let revoked = server.send(as_root("DELETE", &format!("/v1/keys/{}", text(&key, "/id")))).await;
    assert_eq!(revoked.0, StatusCode::OK);
    server.refused(server.request("GET", url), 401).await;
}
