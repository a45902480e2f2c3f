//! A stored range as a query is decoded at most once: kept features and cached vectors replace the decode.

use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::{Value, json};

const SHOTS: [&str; 3] = ["testsrc2", "color=c=red", "smptebars"];

/// The embedding of a stored range.
async fn embed(server: &Server, video: &str, start: f64, end: f64) -> (Vec<f64>, u64) {
    let input = json!({"clip": {"video_id": video, "start": start, "end": end}});
    let (status, answer) = server.post("/v1/embeddings", &json!({"input": input})).await;
    assert_eq!(status, 200, "{answer}");
    let vector = answer["vector"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
    (vector, answer["query_info"]["frames"].as_u64().unwrap())
}

fn cosine(one: &[f64], other: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// Removes the kept features of frames.
fn forget_features(data: &Path) {
    for entry in std::fs::read_dir(data.join("features")).unwrap() {
        std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
}

/// Hides the video's file, so that nothing can decode it.
fn hide(file: &Path) {
    std::fs::rename(file, file.with_extension("hidden")).unwrap();
}

/// A server with one film that is used in place, and the film's id.
async fn library(folder: &Path, model: &str) -> (Server, std::path::PathBuf, String) {
    let data = folder.join("data");
    std::fs::create_dir(&data).unwrap();
    let file = film(folder, "film", &SHOTS, Store::Lossless);
    let server = Server::start(&data, &["--model", model, "--media-root", folder.to_str().unwrap()]);
    let (status, added) = server.post("/v1/videos", &json!({"path": file})).await;
    assert_eq!(status, 202, "{added}");
    server.job_end(added["job"]["id"].as_str().unwrap()).await;
    (server, file, added["video"]["id"].as_str().unwrap().to_owned())
}

/// Ranges whose samples on the video's clock are those on their own, and others.
async fn check(model: &str, same_frames: &[(f64, f64)], others: &[(f64, f64)]) {
    let folder = tempfile::tempdir().unwrap();
    let (server, file, video) = library(folder.path(), model).await;
    let data = folder.path().join("data");
    hide(&file);
    let ranges: Vec<(f64, f64)> = same_frames.iter().chain(others).copied().collect();
    let mut pooled = Vec::new();
    for (start, end) in &ranges {
        let (vector, frames) = embed(&server, &video, *start, *end).await;
        assert!(frames > 0, "{model}: pooled from {start} to {end}");
        pooled.push(vector);
    }
    // The cache survives a restart, and needs neither file nor features.
    assert!(server.stop());
    forget_features(&data);
    let server = Server::start(&data, &["--model", model, "--media-root", folder.path().to_str().unwrap()]);
    for ((start, end), pooled) in ranges.iter().zip(&pooled) {
        let (vector, frames) = embed(&server, &video, *start, *end).await;
        assert_eq!((frames, cosine(&vector, pooled) > 1.0 - 1e-6), (0, true), "{model}: {start} to {end}");
    }
    // A twin in another library has no cache: its vectors are decoded.
    assert!(server.stop());
    std::fs::rename(file.with_extension("hidden"), &file).unwrap();
    let other = tempfile::tempdir().unwrap();
    let (server, _, video) = library(other.path(), model).await;
    forget_features(&other.path().join("data"));
    for (place, ((start, end), pooled)) in ranges.iter().zip(&pooled).enumerate() {
        let (decoded, frames) = embed(&server, &video, *start, *end).await;
        assert!(frames > 0);
        let least = if place < same_frames.len() { 1.0 - 1e-5 } else { 0.95 };
        assert!(
            cosine(&decoded, pooled) > least,
            "{model}: {} from {start} to {end}",
            cosine(&decoded, pooled)
        );
    }
}

#[tokio::test]
async fn kept_features_at_a_rate_are_pooled() {
    check("builtin:tiny", &[(0.5, 1.5), (2.5, 3.5)], &[(0.3, 1.7), (1.2, 3.9)]).await;
}

#[tokio::test]
async fn kept_features_of_every_frame_are_pooled() {
    check("builtin:sports", &[(0.3, 1.7), (1.21, 3.9), (2.513, 2.514)], &[]).await;
}

#[tokio::test]
async fn an_alert_decodes_its_range_once() {
    let folder = tempfile::tempdir().unwrap();
    let (server, file, video) = library(folder.path(), "builtin:tiny").await;
    forget_features(&folder.path().join("data"));
    let query = json!({"clip": {"video_id": video, "start": 2.3, "end": 3.7}});
    let (status, alert) =
        server.post("/v1/alerts", &json!({"name": "Red", "search": {"query": query}})).await;
    assert_eq!(status, 201, "{alert}");
    // From now on nothing can decode it.
    hide(&file);
    let late = server.ingest(&film(folder.path(), "late", &SHOTS[1..], Store::Lossless)).await;
    let path = format!("/v1/alerts/{}", alert["id"].as_str().unwrap());
    let is_asked = async || Some(server.get(&path).await.1).filter(|it| it["waiting"] == 0);
    let asked = crate::faults::bed::until("the video was asked", is_asked).await;
    assert_eq!((&asked["matches"], &asked["trouble"]), (&json!(1), &Value::Null), "{asked}");
    assert_eq!(server.get(&format!("{path}/matches")).await.1["items"][0]["video_id"], late["id"]);
    let changed = json!({"query": {"clip": query["clip"], "modification": "in blue"}});
    assert_eq!(server.search(&changed).await["query_info"]["frames"], 0, "a composed query takes it, too");
    let listed = json!({"query": {"like": [query, {"text": "red"}]}});
    assert_eq!(server.search(&listed).await["query_info"]["frames"], 0);
}
