//! Running jobs that are cancelled or handed back, or whose video is deleted.

use std::path::Path;
use std::time::Instant;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::bed::{
    Bed, assert_consistent, assert_whole, decoding, job, on_both, see_through, text, until, upload,
};

on_both!(
    a_video_can_be_deleted_while_it_is_ingested,
    a_cancelled_job_stops_and_can_be_retried,
    a_stopped_server_hands_its_job_back,
    a_failing_job_tells_when_it_is_tried_again_and_blocks_no_other,
    a_job_that_kills_its_process_each_time_ends,
);

async fn a_job_that_kills_its_process_each_time_ends(bed: &Bed) {
    let quick = ["--lease-seconds", "1"];
    // Before any progress is kept, which would make up for a death.
    let deadly = [("REPRISE_FAULT", Path::new("kill-at:features: write"))];
    let server = bed.start(&quick);
    let kept = server.ingest(&bed.film(1, 2)).await;
    assert!(server.stop(), "it did not stop well");
    let start = || bed.try_start(&quick, &deadly).expect("it starts before it takes a job");
    let server = start();
    let (video, id) = upload(&server, &bed.film(0, 2)).await;
    server.wait_for_death();
    // Each start takes the job once more, when the lease of the dead process is over.
    for _ in 1..3 {
        start().wait_for_death();
    }
    let server = start();
    let ended = async || {
        let job = job(&server, &id).await;
        (job["state"] == "failed").then_some(job)
    };
    let job = until("the job ends", ended).await;
    assert!(text(&job, "/reason").contains("died 3 times in a row"), "{job}");
    assert_eq!(server.get(&format!("/v1/videos/{video}")).await.1["state"], "failed");
    assert_whole(&server, text(&kept, "/id")).await;
    assert!(server.stop(), "it did not stop well");
    // Without the fault the user's retry succeeds.
    let server = bed.start(&quick);
    let (status, answer) = server.post(&format!("/v1/jobs/{id}/retry"), &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    see_through(&server, &id).await;
    assert_whole(&server, &video).await;
}

async fn a_video_can_be_deleted_while_it_is_ingested(bed: &Bed) {
    let film = bed.film(0, 8);
    bed.slow(true);
    let server = bed.start(&[]);
    let (video, id) = upload(&server, &film).await;
    decoding(&server, &id).await;
    let path = format!("/v1/videos/{video}?purge=true");
    assert_eq!(server.delete(&path).await.0, StatusCode::NO_CONTENT);
    assert_eq!(server.get(&format!("/v1/videos/{video}")).await.0, StatusCode::NOT_FOUND);
    assert_eq!(server.get(&format!("/v1/jobs/{id}")).await.0, StatusCode::NOT_FOUND);
    bed.slow(false);
    let again = server.ingest(&film).await;
    assert_ne!(text(&again, "/id"), video);
    assert_whole(&server, text(&again, "/id")).await;
    let stats = assert_consistent(&server).await;
    assert_eq!(stats["videos"], 1, "{stats}");
    let files = std::fs::read_dir(bed.data().join("videos")).expect("the server made it").count();
    assert_eq!(files, 1, "the deleted video's file is still there");
}

async fn a_cancelled_job_stops_and_can_be_retried(bed: &Bed) {
    let film = bed.film(0, 30);
    bed.slow(true);
    let server = bed.start(&["--runners", "1"]);
    let (video, id) = upload(&server, &film).await;
    decoding(&server, &id).await;
    let started = Instant::now();
    let (status, answer) = server.post(&format!("/v1/jobs/{id}/cancel"), &json!({})).await;
    assert_eq!((status, &answer["state"]), (StatusCode::OK, &json!("cancelled")), "{answer}");
    bed.slow(false);
    // The only runner is free long before the cancelled job's film of 60 s would end.
    let other = server.ingest(&bed.film(1, 2)).await;
    assert!(started.elapsed().as_secs() < 50, "the cancelled job went on");
    assert_eq!(server.get(&format!("/v1/videos/{video}")).await.1["state"], "failed");
    assert_eq!(server.get(&format!("/v1/videos/{video}/clips")).await.1["items"], json!([]));

    let (status, answer) = server.post(&format!("/v1/jobs/{id}/retry"), &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    see_through(&server, &id).await;
    assert_whole(&server, &video).await;
    assert_whole(&server, text(&other, "/id")).await;
    assert_consistent(&server).await;
}

async fn a_stopped_server_hands_its_job_back(bed: &Bed) {
    let film = bed.film(0, 8);
    bed.slow(true);
    let server = bed.start(&["--lease-seconds", "10000"]);
    let (video, id) = upload(&server, &film).await;
    decoding(&server, &id).await;
    assert!(server.stop(), "it did not stop well");
    bed.slow(false);
    // Without being handed back, the leased job would not return within this test.
    let server = bed.start(&["--lease-seconds", "10000"]);
    see_through(&server, &id).await;
    assert_eq!(job(&server, &id).await["attempts"], 1, "the interrupted attempt doesn't count");
    assert_whole(&server, &video).await;
    assert_consistent(&server).await;
}

async fn a_failing_job_tells_when_it_is_tried_again_and_blocks_no_other(bed: &Bed) {
    let server = bed.start(&["--retry-waits", "1h", "--runners", "1"]);
    // A file in place of the features folder makes writing features fail.
    let features = bed.data().join("features");
    let _ = std::fs::remove_dir_all(&features);
    std::fs::write(&features, "").expect("the folder can be written");
    let (video, id) = upload(&server, &bed.film(0, 2)).await;
    let has_failed = async || {
        let job = job(&server, &id).await;
        job["retry_at"].is_string().then_some(job)
    };
    let waiting = until("the job has failed once", has_failed).await;
    assert_eq!((&waiting["state"], &waiting["attempts"]), (&json!("queued"), &json!(1)), "{waiting}");
    assert!(!text(&waiting, "/reason").is_empty(), "{waiting}");
    // Both times are RFC 3339, so their texts compare like times.
    assert!(text(&waiting, "/retry_at") > text(&waiting, "/updated_at"), "{waiting}");
    std::fs::remove_file(&features).expect("it was there");
    let other = server.ingest(&bed.film(1, 2)).await;
    assert_eq!(job(&server, &id).await, waiting, "the hour is not over");
    let (status, answer) = server.post(&format!("/v1/jobs/{id}/retry"), &json!({})).await;
    assert_eq!((status, &answer["retry_at"]), (StatusCode::OK, &Value::Null), "{answer}");
    assert_eq!(server.job_end(&id).await["state"], "succeeded");
    for video in [&*video, text(&other, "/id")] {
        assert_whole(&server, video).await;
    }
}

/// On Postgres alone: an embedded database has one server at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_the_work() {
    let Some(bed) = &Bed::postgres().await else { return };
    let servers = [bed.start(&["--runners", "1"]), bed.start(&["--runners", "1"])];
    let mut videos = Vec::new();
    for number in 0..6 {
        videos.push(upload(&servers[number % 2], &bed.film(number, 2)).await);
    }
    for (_, id) in &videos {
        see_through(&servers[0], id).await;
    }
    for server in &servers {
        for (video, _) in &videos {
            assert_whole(server, video).await;
        }
        assert_consistent(server).await;
    }
    // A video deleted on one server is gone on the other.
    let (gone, _) = &videos[0];
    assert_eq!(servers[0].delete(&format!("/v1/videos/{gone}")).await.0, StatusCode::NO_CONTENT);
    let query = json!({"query": {"text": "a dive"}, "exact": true, "limit": 1000});
    let hits: Vec<Value> = servers[1].search_hits(query).await;
    assert_eq!(hits.len(), 10, "five videos of two clips: {hits:?}");
    assert!(hits.iter().all(|hit| hit["video_id"] != gone.as_str()), "{hits:?}");
    let all = async || {
        let (_, page) = servers[1].get("/v1/jobs?state=running").await;
        (page["items"] == json!([])).then_some(())
    };
    until("nothing runs", all).await;
}
