//! Files that would cost far more than their size.

use std::path::Path;

use reprise_tests::film::{ffmpeg, run};
use serde_json::json;

use super::Target;

/// Uploads a file that must be refused, with a reason that contains `expected`. The server works on.
async fn check(make: impl FnOnce(&Path), expected: &str) {
    let target = Target::start(&[]);
    let file = target.file("bomb.mp4");
    make(&file);
    assert!(std::fs::metadata(&file).unwrap().len() < 10_000);
    let (status, problem) = target.server.upload(&file, &[]).await;
    assert_eq!(status, 422, "{problem}");
    assert_eq!(problem["errors"][0]["pointer"], "file", "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains(expected), "{problem}");
    assert_eq!(target.server.get("/v1/videos").await.1["items"], json!([]));
    assert_eq!(target.server.get("/readyz").await.0, 200);
}

/// Three frames, 10^6 s apart: 1.2 kB.
fn y4m(file: &Path) {
    let mut bytes = b"YUV4MPEG2 W16 H16 F1:1000000 Ip C420jpeg\n".to_vec();
    for shade in [0, 100, 200] {
        bytes.extend(b"FRAME\n");
        bytes.extend([shade; 16 * 16 * 3 / 2]);
    }
    std::fs::write(file, bytes).unwrap();
}

/// Three frames, two hours apart.
fn gaps(file: &Path) {
    let source = "testsrc=size=16x16:rate=1:duration=3";
    let mut command = ffmpeg();
    command.args(["-f", "lavfi", "-i", source, "-vf", "setpts=N*7200/TB", "-fps_mode", "passthrough"]);
    run(command.args(["-enc_time_base", "1:1000", "-c:v", "libx264", "-pix_fmt", "yuv420p"]).arg(file));
}

#[tokio::test]
async fn a_clock_that_jumps_by_days_is_refused() {
    check(y4m, "277.8 hours apart").await;
}

#[tokio::test]
async fn a_gap_of_hours_is_refused() {
    check(gaps, "2.0 hours apart").await;
}

/// The clips of a small file may cost minutes. A cancel ends them at once, so the only runner takes the next job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_stops_a_job_whose_file_is_decoded() {
    let target = Target::start(&["--runners", "1"]);
    let file = target.file("still.mp4");
    let source = "color=c=red:size=16x16:rate=1/60:duration=40000";
    run(ffmpeg().args(["-f", "lavfi", "-i", source, "-g", "9999", "-pix_fmt", "yuv420p"]).arg(&file));
    let segmentation = json!({"policy": "fixed", "params": {"every_seconds": 1}});
    let (status, added) = target.server.upload(&file, &[("segmentation", segmentation)]).await;
    assert_eq!(status, 202, "{added}");
    let id = added["job"]["id"].as_str().unwrap();
    loop {
        let job = target.server.get(&format!("/v1/jobs/{id}")).await.1;
        assert!(["queued", "running"].contains(&job["state"].as_str().unwrap()), "{job}");
        // Nearly all of its 667 frames; its 40,000 clips follow.
        if job["frames_done"].as_i64().is_some_and(|frames| frames >= 660) {
            break;
        }
    }
    let cancelled = target.server.post(&format!("/v1/jobs/{id}/cancel"), &json!({})).await;
    assert_eq!(cancelled.1["state"], "cancelled", "{cancelled:?}");
    let next = target.file("next.mp4");
    run(ffmpeg()
        .args(["-f", "lavfi", "-i", "testsrc2=size=64x64:duration=2", "-pix_fmt", "yuv420p"])
        .arg(&next));
    target.server.ingest(&next).await;
    let changes =
        target.server.metric("reprise_index_seq").await.expect("the index reports its newest change");
    assert!(changes < 40_000.0, "the cancelled job went on: {changes} changes");
}

#[tokio::test]
async fn a_segmentation_into_too_many_clips_fails_with_the_reason() {
    let target = Target::start(&[]);
    let file = target.file("still.mp4");
    let source = "color=c=red:size=16x16:rate=1/60:duration=54000";
    run(ffmpeg().args(["-f", "lavfi", "-i", source, "-g", "9999", "-pix_fmt", "yuv420p"]).arg(&file));
    let segmentation = json!({"policy": "fixed", "params": {"every_seconds": 1}});
    let (status, added) = target.server.upload(&file, &[("segmentation", segmentation)]).await;
    assert_eq!(status, 202, "{added}");
    let job = target.server.job_end(added["job"]["id"].as_str().unwrap()).await;
    assert_eq!((&job["state"], &job["attempts"]), (&json!("failed"), &json!(1)), "{job}");
    assert!(job["reason"].as_str().unwrap().contains("more than 50000 clips"), "{job}");
}
