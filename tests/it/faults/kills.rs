//! `kill -9` at seeded moments: after a restart, every acknowledged video is there, complete and once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::is_full;
use reprise_tests::server::{PATIENCE, Server};
use reqwest::{Client, StatusCode, multipart};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::bed::{
    Bed, Random, assert_consistent, assert_whole, clips, decoding, job, on_both, see_through, text, until,
    upload, videos,
};

const FILMS: usize = 20;
/// Short, so that a dead server's job returns soon.
const SHORT_LEASE: [&str; 2] = ["--lease-seconds", "2"];

on_both!(
    kills_during_an_ingest_lose_nothing_and_leave_nothing_half,
    a_kill_during_a_delete_leaves_all_or_nothing,
    the_job_of_a_killed_server_is_taken_by_another,
    what_was_checkpointed_is_not_encoded_again,
    a_job_over_which_three_processes_die_is_given_up_and_can_be_retried,
);

async fn kills_during_an_ingest_lose_nothing_and_leave_nothing_half(bed: &Bed) {
    let rounds = if is_full() { 20 } else { 3 };
    let films: Vec<PathBuf> = (0..FILMS).map(|number| bed.film(number, 2)).collect();
    let mut acknowledged = BTreeMap::new();
    let mut random = Random(20);
    for round in 1..=rounds {
        let server = bed.start(&SHORT_LEASE);
        assert_nothing_is_half(&server, &acknowledged).await;
        let due = &films[..FILMS * round / rounds];
        let work = due.len() - acknowledged.len();
        let moment = Duration::from_millis(random.below(300 * work as u64 + 300));
        tokio::select! {
            () = upload_all(&server, due, &mut acknowledged) => unreachable!("it waits for the end"),
            () = async { tokio::time::sleep(moment).await; kill(&server) } => {}
        }
    }
    let server = bed.start(&SHORT_LEASE);
    assert_nothing_is_half(&server, &acknowledged).await;
    for (number, film) in films.iter().enumerate() {
        let (status, answer) = server.upload(film, &[]).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        let id = text(&answer, "/video/id");
        let known = acknowledged.entry(number).or_insert_with(|| id.to_owned());
        assert_eq!(known, id, "the same bytes became two videos");
        see_through(&server, text(&answer, "/job/id")).await;
    }
    assert_complete(&server, &acknowledged).await;
    assert!(server.stop(), "it did not stop well");
    assert_complete(&bed.start(&[]), &acknowledged).await;
}

fn kill(server: &Server) {
    signal(server, Signal::KILL);
}

fn signal(server: &Server, signal: Signal) {
    let pid = Pid::from_raw(server.pid() as i32).expect("a process has an id");
    kill_process(pid, signal).expect("the server runs");
}

/// Uploads the unacknowledged films one by one, then waits until the test kills the server.
async fn upload_all(server: &Server, films: &[PathBuf], acknowledged: &mut BTreeMap<usize, String>) {
    for (number, film) in films.iter().enumerate() {
        if !acknowledged.contains_key(&number)
            && let Some(id) = try_upload(server.client(), server.base(), film).await
        {
            acknowledged.insert(number, id);
        }
    }
    std::future::pending().await
}

/// The video's id, if the server acknowledged it before it died.
async fn try_upload(client: &Client, base: &str, film: &Path) -> Option<String> {
    let form = multipart::Form::new().file("file", film).await.expect("the film is there");
    let answer = client.post(format!("{base}/v1/videos")).multipart(form).send().await.ok()?;
    if answer.status() != StatusCode::ACCEPTED {
        return None;
    }
    let answer: Value = answer.json().await.ok()?;
    Some(text(&answer, "/video/id").to_owned())
}

/// Checks that every acknowledged video is complete, is still being ingested, or has a reason for its failure. No
/// content is stored twice.
async fn assert_nothing_is_half(server: &Server, acknowledged: &BTreeMap<usize, String>) {
    let all = videos(server).await;
    let ids: BTreeSet<&str> = all.iter().map(|video| text(video, "/id")).collect();
    for id in acknowledged.values() {
        assert!(ids.contains(id.as_str()), "video {id} was acknowledged and is gone");
    }
    let hashes: BTreeSet<&str> = all.iter().map(|video| text(video, "/content_hash")).collect();
    assert_eq!(hashes.len(), all.len(), "the same bytes are there twice");
    for video in &all {
        let id = text(video, "/id");
        if video["state"] == "ready" {
            assert_whole(server, id).await;
            continue;
        }
        let job = job(server, text(video, "/job_id")).await;
        let has_reason = job["reason"].as_str().is_some_and(|why| !why.is_empty());
        assert!(job["state"] != "failed" || has_reason, "no reason: {job}");
        assert_ne!(job["state"], "cancelled", "{job}");
    }
}

async fn assert_complete(server: &Server, expected: &BTreeMap<usize, String>) {
    let stored = videos(server).await;
    let stored: BTreeSet<&str> = stored.iter().map(|video| text(video, "/id")).collect();
    assert_eq!(stored, expected.values().map(String::as_str).collect());
    for id in expected.values() {
        assert_whole(server, id).await;
    }
    let stats = assert_consistent(server).await;
    assert_eq!(stats["videos_ready"], expected.len(), "{stats}");
    assert_eq!(stats["clips"], 2 * expected.len(), "two shots a film: {stats}");
}

async fn a_kill_during_a_delete_leaves_all_or_nothing(bed: &Bed) {
    let mut random = Random(8);
    let mut server = bed.start(&[]);
    let mut left = Vec::new();
    for number in 0..4 {
        left.push(text(&server.ingest(&bed.film(number, 2)).await, "/id").to_owned());
    }
    for _ in 0..3 {
        let doomed = left.remove(0);
        let moment = Duration::from_micros(random.below(20_000));
        let request = server.client().delete(format!("{}/v1/videos/{doomed}", server.base()));
        tokio::select! {
            _ = async { let _ = request.send().await; std::future::pending::<()>().await } => {}
            () = async { tokio::time::sleep(moment).await; kill(&server) } => {}
        }
        drop(server);
        server = bed.start(&[]);
        let (status, _) = server.get(&format!("/v1/videos/{doomed}")).await;
        if status == StatusCode::NOT_FOUND {
            let probe = text(&clips(&server, &left[0]).await[0], "/id").to_owned();
            let hits = server.search_hits(json!({"query": {"clip_id": probe}, "exact": true})).await;
            assert!(hits.iter().all(|hit| hit["video_id"] != doomed.as_str()), "it is still found: {hits:?}");
        } else {
            assert_whole(&server, &doomed).await;
            assert_eq!(server.delete(&format!("/v1/videos/{doomed}")).await.0, StatusCode::NO_CONTENT);
        }
        for video in &left {
            assert_whole(&server, video).await;
        }
        assert_consistent(&server).await;
    }
}

async fn the_job_of_a_killed_server_is_taken_by_another(bed: &Bed) {
    let film = bed.film(0, 8);
    bed.slow(true);
    let first = bed.start(&SHORT_LEASE);
    let (video, id) = upload(&first, &film).await;
    decoding(&first, &id).await;
    bed.slow(false);
    first.kill();
    let second = bed.start(&SHORT_LEASE);
    see_through(&second, &id).await;
    assert_eq!(job(&second, &id).await["attempts"], 2);
    assert_whole(&second, &video).await;
    assert_consistent(&second).await;
}

/// On Postgres alone: an embedded database has one server at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_wakes_up_late_drops_its_result() {
    let Some(bed) = &Bed::postgres().await else { return };
    let film = bed.film(0, 8);
    bed.slow(true);
    let sleeper = bed.start(&SHORT_LEASE);
    let (video, id) = upload(&sleeper, &film).await;
    decoding(&sleeper, &id).await;
    bed.slow(false);
    let other = bed.start(&SHORT_LEASE);
    freeze_until_taken(&sleeper, &other, &id).await;
    see_through(&other, &id).await;
    let clips_then = clips(&other, &video).await;
    signal(&sleeper, Signal::CONT);
    let dropped = async || {
        let metrics = sleeper.client().get(format!("{}/metrics", sleeper.base())).send().await.ok()?;
        metrics.text().await.ok()?.contains(r#"reprise_jobs_total{outcome="dropped"} 1"#).then_some(())
    };
    until("the first server notices", dropped).await;
    assert_eq!(clips(&sleeper, &video).await, clips_then, "the late server wrote");
    assert_whole(&sleeper, &video).await;
    assert_consistent(&sleeper).await;
}

/// Freezes the server until another one leases the job. A server frozen within a transaction blocks all others; then
/// it is thawed and frozen again a little later.
async fn freeze_until_taken(sleeper: &Server, other: &Server, id: &str) {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        signal(sleeper, Signal::STOP);
        let taken = async || (job(other, id).await["attempts"] == 2).then_some(());
        let taken = until("another server takes the job", taken);
        if tokio::time::timeout(Duration::from_secs(10), taken).await.is_ok() {
            return;
        }
        signal(sleeper, Signal::CONT);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no other server took the job: {}", job(other, id).await);
}

async fn a_job_over_which_three_processes_die_is_given_up_and_can_be_retried(bed: &Bed) {
    // The film is too short for a checkpoint, so no start makes progress.
    let film = bed.film(0, 8);
    bed.slow(true);
    let mut server = bed.start(&SHORT_LEASE);
    let (video, id) = upload(&server, &film).await;
    for start in 1..=3 {
        let decodes = async || {
            let job = job(&server, &id).await;
            (job["attempts"] == start && job["frames_done"].as_i64() > Some(0)).then_some(())
        };
        until("the job decodes", decodes).await;
        server.kill();
        server = bed.start(&SHORT_LEASE);
    }
    let failed = server.job_end(&id).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    assert!(text(&failed, "/reason").contains("died 3 times in a row"), "{failed}");
    bed.slow(false);
    let (status, answer) = server.post(&format!("/v1/jobs/{id}/retry"), &json!({})).await;
    assert_eq!((status, &answer["attempts"]), (StatusCode::OK, &json!(0)), "{answer}");
    assert_eq!(server.job_end(&id).await["state"], "succeeded");
    assert_whole(&server, &video).await;
    assert_consistent(&server).await;
}

const LONG_FILM_SECONDS: usize = 1200;

async fn what_was_checkpointed_is_not_encoded_again(bed: &Bed) {
    let film = bed.folder().join("long.mp4");
    let source = format!("testsrc2=s=160x120:r=10:d={LONG_FILM_SECONDS}");
    let mut render = ffmpeg();
    render.args(["-f", "lavfi", "-i", &source, "-c:v", "libx264", "-preset", "ultrafast"]).arg(&film);
    run(&mut render);
    let server = bed.start(&SHORT_LEASE);
    let (video, id) = upload(&server, &film).await;
    let kept = bed.data().join("features").join(&video);
    let checkpointed = async || {
        let files = std::fs::read_dir(&kept).ok()?.filter_map(Result::ok);
        let parts = files.filter(|file| file.path().extension().is_some_and(|it| it == "part"));
        parts.filter_map(|part| part.metadata().ok()).any(|it| it.len() > 4096).then_some(())
    };
    until("features are on disk", checkpointed).await;
    server.kill();
    let server = bed.start(&SHORT_LEASE);
    see_through(&server, &id).await;
    let (kept, encoded) = (frames(&server, "kept").await, frames(&server, "encoder").await);
    assert!(kept > 0 && encoded > 0, "{kept} frames were kept, {encoded} encoded");
    assert_eq!(kept + encoded, 2 * LONG_FILM_SECONDS, "two frames a second");
    assert_whole(&server, &video).await;
}

/// Number of frames whose features this server took from `source`.
async fn frames(server: &Server, source: &str) -> usize {
    let metrics = server.client().get(format!("{}/metrics", server.base())).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let of_source = format!("source=\"{source}\"");
    let mut lines = metrics.lines().filter(|it| it.starts_with("reprise_frames_total{"));
    let line = lines.find(|line| line.contains(&of_source)).unwrap_or_else(|| panic!("{metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
