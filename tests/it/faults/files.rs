//! Stored files that are missing, damaged or truncated.

use std::fs;
use std::path::PathBuf;

use reprise_tests::server::Server;
use serde_json::Value;

use super::bed::{Bed, assert_consistent, assert_covered, assert_whole, text, upload};

/// Uploads to a server without runners, stops it, and damages the stored file with `harm`. Returns the ended job.
async fn harmed(bed: &Bed, harm: impl FnOnce(PathBuf)) -> (Server, String, Value) {
    let server = bed.start(&["--runners", "0"]);
    let (video, job) = upload(&server, &bed.film(0, 3)).await;
    assert!(server.stop(), "it did not stop well");
    let stored = fs::read_dir(bed.data().join("videos")).expect("the server made it");
    harm(stored.flatten().next().expect("one file is stored").path());
    let server = bed.start(&[]);
    let ended = server.job_end(&job).await;
    (server, video, ended)
}

#[track_caller]
fn assert_failed(ended: &Value, expected_reason: &str) {
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(text(ended, "/reason").contains(expected_reason), "{ended}");
    assert_eq!(ended["attempts"], 1, "it would fail again: {ended}");
}

#[tokio::test]
async fn a_job_whose_file_is_gone_fails_and_says_so() {
    let bed = Bed::sqlite();
    let (server, video, ended) = harmed(&bed, |file| fs::remove_file(file).unwrap()).await;
    assert_failed(&ended, "the stored file is gone");
    assert_eq!(server.get(&format!("/v1/videos/{video}")).await.1["state"], "failed");
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_stored_file_that_is_no_video_fails_and_says_so() {
    let bed = Bed::sqlite();
    let (server, _, ended) = harmed(&bed, |file| fs::write(file, "no film at all").unwrap()).await;
    assert_failed(&ended, "not a video that can be decoded");
    // Other jobs continue.
    let other = server.ingest(&bed.film(1, 2)).await;
    assert_whole(&server, text(&other, "/id")).await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_stored_file_whose_pictures_are_all_damaged_fails_and_says_so() {
    let bed = Bed::sqlite();
    let zero_pictures = |file: PathBuf| {
        let mut bytes = fs::read(&file).unwrap();
        let start = bytes.windows(4).position(|it| it == b"mdat").expect("an MP4 has pictures") + 4;
        bytes[start..].fill(0);
        fs::write(file, bytes).unwrap();
    };
    let (server, _, ended) = harmed(&bed, zero_pictures).await;
    assert_failed(&ended, "not a video that can be decoded");
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_truncated_file_comes_in_with_a_warning() {
    let bed = Bed::sqlite();
    let server = bed.start(&[]);
    let film = bed.film(0, 6);
    let bytes = fs::read(&film).unwrap();
    fs::write(&film, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let video = server.ingest(&film).await;
    let warnings = video["warnings"].as_array().expect("warnings are a list");
    assert!(warnings.iter().any(|it| it.as_str().is_some_and(|it| it.contains("cut off"))), "{video}");
    let duration = video["duration"].as_f64().expect("it was decoded");
    assert!((2.0..12.0).contains(&duration), "{duration} s of 12");
    assert_covered(&server, text(&video, "/id")).await;
    assert_whole(&server, text(&video, "/id")).await;
    assert_consistent(&server).await;
}
