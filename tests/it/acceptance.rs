//! Acceptance tests of the service on real files (`REPRISE_TEST_DATA`).

use std::path::Path;
use std::process::Command;

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::{Server, binary};
use reprise_tests::test_data;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn real_videos_are_ingested_and_found_again() {
    let (Some(clips), Some(multi)) = (test_data("video/clips"), test_data("video/derived/multi12.mp4"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, &[]);
    let videos = ingest(&server, &[&clips, &multi]);
    let named = |name: &str| {
        videos.iter().find(|it| it["file_name"] == name).unwrap_or_else(|| panic!("{name} was not ingested"))
    };
    a_stretch_finds_its_source(&server, named("multi12.mp4"), named("sam2_04_coffee.mp4")).await;
    an_upload_finds_another_encoding(&server, &clips, named("mdn_frog.mp4"), named("mdn_frog.webm")).await;
    for (name, start, end) in
        [("multi12.mp4", 11.0, 17.0), ("sam2_01_dog.mp4", 2.0, 5.5), ("mdn_frog.mp4", 1.0, 4.0)]
    {
        let file = if name == "multi12.mp4" { multi.clone() } else { clips.join(name) };
        let cut = folder.path().join("cut.mkv");
        a_stretch_and_its_lossless_cut_are_alike(&server, named(name), &file, (start, end), &cut).await;
    }
}

/// Checks that every video of the folder becomes searchable, with its subtitles.
fn ingest(server: &Server, paths: &[&Path]) -> Vec<Value> {
    let output = Command::new(binary())
        .args(["ingest", "--json", "--server", server.base()])
        .args(paths)
        .env_remove("REPRISE_API_KEY")
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{report}");
    let mut videos = Vec::new();
    for item in report["items"].as_array().unwrap() {
        let name = item["file"].as_str().unwrap();
        if name.ends_with(".srt") {
            assert_eq!(item["state"], "attached", "{item}");
        } else {
            assert_eq!(item["state"], "succeeded", "{item}");
            videos.push(item["video"].clone());
        }
    }
    assert!(videos.len() >= 20, "{} videos", videos.len());
    videos
}

async fn a_stretch_finds_its_source(server: &Server, multi: &Value, coffee: &Value) {
    let clip = json!({"video_id": multi["id"], "start": 11.0, "end": 17.0});
    let hits = server.search_hits(json!({"query": {"clip": clip}})).await;
    for hit in hits.iter().filter(|hit| hit["video_id"] == multi["id"]) {
        let (start, end) = (hit["start"].as_f64().unwrap(), hit["end"].as_f64().unwrap());
        let shared = end.min(17.0) - start.max(11.0);
        assert!(shared <= 0.5 * (end - start).min(6.0) + 1e-6, "{hit} is the query itself");
    }
    let first: Vec<&Value> = hits.iter().take(3).map(|hit| &hit["title"]).collect();
    assert!(hits.iter().take(3).any(|hit| hit["video_id"] == coffee["id"]), "{first:?}");
}

async fn an_upload_finds_another_encoding(server: &Server, clips: &Path, mp4: &Value, webm: &Value) {
    for level in ["clip", "video"] {
        let body = json!({"query": {"upload": true}, "level": level});
        let (status, answer) = server.search_upload(&body, &clips.join("mdn_frog.mp4")).await;
        assert_eq!(status, 200, "{answer}");
        let others = answer["results"].as_array().unwrap().iter().find(|hit| hit["video_id"] != mp4["id"]);
        assert_eq!(others.unwrap()["video_id"], webm["id"], "level {level}");
    }
}

async fn a_stretch_and_its_lossless_cut_are_alike(
    server: &Server,
    video: &Value,
    file: &Path,
    (start, end): (f64, f64),
    cut: &Path,
) {
    // The trim filter decodes all frames in order and reads each frame's own time.
    let trim = format!("trim=start={start}:end={end},setpts=PTS-STARTPTS");
    run(ffmpeg()
        .arg("-i")
        .arg(file)
        .args(["-an", "-vf", &trim, "-fps_mode", "passthrough", "-c:v", "ffv1"])
        .arg(cut));
    let clip = json!({"video_id": video["id"], "start": start, "end": end});
    let (_, stored) = server.post("/v1/embeddings", &json!({"input": {"clip": clip}})).await;
    let form = reqwest::multipart::Form::new().text("query", json!({"input": {"upload": true}}).to_string());
    let form = form.file("file", cut).await.unwrap();
    let (_, uploaded) = server.send(server.request("POST", "/v1/embeddings").multipart(form)).await;
    let values = |it: &Value| -> Vec<f32> { serde_json::from_value(it["vector"].clone()).unwrap() };
    let cosine: f32 = values(&stored).iter().zip(values(&uploaded)).map(|(a, b)| a * b).sum();
    assert!(cosine > 0.999, "{}: {cosine}", file.display());
}
