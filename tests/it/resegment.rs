//! A new segmentation of a stored video, and clips added later, both from its stored features.

use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::{Value, json};

/// Start and end of a video's clips.
async fn clips(server: &Server, video: &str) -> Vec<(f64, f64)> {
    let (_, clips) = server.get(&format!("/v1/videos/{video}/clips?limit=1000")).await;
    let time = |clip: &Value, name: &str| clip[name].as_f64().expect("a time");
    let clips = clips["items"].as_array().expect("clips are a list").clone();
    clips.iter().map(|clip| (time(clip, "start"), time(clip, "end"))).collect()
}

/// Posts a request that starts a job, waits for the job, and returns it.
async fn done(server: &Server, path: &str, body: Value) -> Value {
    let (status, answer) = server.post(path, &body).await;
    assert_eq!(status, 202, "{answer}");
    server.job_end(answer["job"]["id"].as_str().expect("a job has an id")).await
}

async fn stored(server: &Server, folder: &Path, segmentation: Value) -> String {
    let file = film(folder, "shots", &["testsrc2", "smptebars", "mandelbrot"], Store::Lossless);
    let video = server.ingest_with(&file, &[("segmentation", segmentation)]).await;
    video["id"].as_str().expect("a video has an id").to_owned()
}

async fn nearest(server: &Server, clip: Value) -> Value {
    let body = json!({"query": {"clip": clip}, "exclude": {"self": false}, "limit": 1});
    server.search_hits(body).await[0].clone()
}

#[tokio::test]
async fn a_video_is_cut_anew_without_being_decoded_and_its_clips_are_searched() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = stored(&server, folder.path(), json!({"policy": "content"})).await;
    assert_eq!(clips(&server, &video).await.len(), 3);
    let path = format!("/v1/videos/{video}/resegment");
    let job = done(&server, &path, json!({"policy": "fixed", "params": {"every_seconds": 1.5}})).await;
    assert_eq!((&job["state"], &job["frames_done"]), (&json!("succeeded"), &json!(0)), "{job}");
    let expected = [(0.0, 1.5), (1.5, 3.0), (3.0, 4.5), (4.5, 6.0)];
    assert_eq!(clips(&server, &video).await, expected);
    let (_, shown) = server.get(&format!("/v1/videos/{video}")).await;
    assert_eq!(shown["segmentation"]["policy"], "fixed", "{shown}");
    // A range equal to a new clip uses stored features; a slightly shorter one is decoded. Both vectors must be close.
    let stored = nearest(&server, json!({"video_id": video, "start": 1.5, "end": 3.0})).await;
    let decoded = nearest(&server, json!({"video_id": video, "start": 1.5, "end": 2.99})).await;
    for hit in [&stored, &decoded] {
        assert_eq!((&hit["start"], &hit["end"]), (&json!(1.5), &json!(3.0)), "{hit}");
        assert!(hit["score"].as_f64().unwrap() > 0.999, "{hit}");
    }
}

#[tokio::test]
async fn what_cannot_be_cut_anew_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = stored(&server, folder.path(), json!({"policy": "content"})).await;
    let before = clips(&server, &video).await;
    let path = format!("/v1/videos/{video}/resegment");
    for (body, pointer) in [
        (json!({"policy": "fixed", "params": {"every_seconds": -1}}), "/params/every_seconds"),
        (json!({"policy": "given"}), "/policy"),
        (json!({"clips": [{"start": 0, "end": 1}]}), "/clips"),
    ] {
        let (status, problem) = server.post(&path, &body).await;
        assert_eq!((status.as_u16(), &problem["errors"][0]["pointer"]), (422, &json!(pointer)), "{problem}");
    }
    let (status, _) =
        server.post("/v1/videos/018f0000-0000-7000-8000-000000000000/resegment", &json!({})).await;
    assert_eq!(status, 404);
    assert_eq!(clips(&server, &video).await, before);
}

#[tokio::test]
async fn a_clip_given_later_needs_no_decoder() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = stored(&server, folder.path(), json!({"policy": "content"})).await;
    let job = done(&server, &format!("/v1/videos/{video}/clips"), json!({"start": 0.5, "end": 3.5})).await;
    assert_eq!((&job["state"], &job["frames_done"]), (&json!("succeeded"), &json!(0)), "{job}");
    let hit = nearest(&server, json!({"video_id": video, "start": 0.5, "end": 3.49})).await;
    assert_eq!((&hit["start"], &hit["end"]), (&json!(0.5), &json!(3.5)), "{hit}");
}

#[tokio::test]
async fn features_that_were_damaged_on_disk_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = stored(&server, folder.path(), json!({"policy": "content"})).await;
    let kept = folder.path().join("features").join(&video);
    for file in std::fs::read_dir(&kept).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let (status, line) = server.get(&format!("/v1/videos/{video}/timeline?text=red")).await;
    assert_eq!((status.as_u16(), &line["of"]), (200, &json!("spans")), "{line}");
    let path = format!("/v1/videos/{video}/resegment");
    let body = json!({"policy": "fixed", "params": {"every_seconds": 2}});
    let job = done(&server, &path, body.clone()).await;
    assert_eq!(job["state"], "succeeded", "{job}");
    assert!(job["frames_done"].as_i64().unwrap() > 0, "it was decoded again: {job}");
    assert_eq!(clips(&server, &video).await, [(0.0, 2.0), (2.0, 4.0), (4.0, 6.0)]);
    let again = done(&server, &path, body).await;
    assert_eq!(again["frames_done"], 0, "what was made again serves: {again}");
}
