//! Faults in a scripted day: an error or the end of the process at each write, and `kill -9` at random moments. Afterwards
//! everything acknowledged is there, and catalog, files and index agree.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use reprise_tests::is_full;
use reprise_tests::server::{PATIENCE, Server};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::bed::{Bed, Random, assert_consistent, assert_whole, on_both, see_through, text, until, videos};

/// Faults of each kind in a short run; a full run tries every write.
pub(super) const TRIED: u64 = 4;
/// Failed jobs are tried again at once, and a dead server's jobs return soon.
pub(super) const QUICK: [&str; 7] =
    ["--lease-seconds", "2", "--retry-waits", "0s", "--timeout-seconds", "10", "--allow-private-webhooks"];

/// The small model that a day adds.
fn model() -> PathBuf {
    crate::encoders::folder("legacy")
}

fn arguments() -> Vec<&'static str> {
    static ROOT: LazyLock<String> = LazyLock::new(|| model().to_string_lossy().into_owned());
    [&QUICK[..], &["--model-root", &ROOT]].concat()
}

on_both!(
    an_error_at_any_write_loses_nothing,
    a_death_at_any_write_loses_nothing,
    a_death_at_any_moment_loses_nothing,
);

async fn an_error_at_any_write_loses_nothing(bed: &Bed) {
    walk(bed, "error").await;
}

async fn a_death_at_any_write_loses_nothing(bed: &Bed) {
    walk(bed, "kill").await;
}

async fn a_death_at_any_moment_loses_nothing(bed: &Bed) {
    let rounds = if is_full() { 100 } else { 2 };
    let films = Films { kept: bed.film(0, 2), deleted: bed.film(1, 1), in_parts: bed.film(2, 1) };
    let started = Instant::now();
    count_writes(bed, &films).await;
    let day_ms = started.elapsed().as_millis() as u64;
    let mut random = Random(18);
    for round in 1..=rounds {
        let fresh = bed.fresh().await;
        let mut acknowledged = Acknowledged::default();
        let server = fresh.start(&arguments());
        let moment = Duration::from_millis(random.below(day_ms));
        tokio::select! {
            _ = day(&films, &server, &mut acknowledged) => {}
            () = tokio::time::sleep(moment) => {}
        }
        server.kill();
        let server = fresh.start(&arguments());
        check(&fresh, server, &films, &acknowledged, &format!("kill {round} after {moment:?}")).await;
        fresh.discard().await;
    }
}

/// Everything that a server has acknowledged.
#[derive(Debug, Default)]
struct Acknowledged {
    webhook: Option<String>,
    alert: Option<String>,
    video: Option<String>,
    subtitles: bool,
    metadata: bool,
    clip: Option<String>,
    recut: bool,
    reel: Option<String>,
    export: Option<String>,
    evaluation: Option<String>,
    /// The search whose hit was judged.
    judged: Option<String>,
    /// Whether a second model was added.
    space: bool,
    /// A second video, and whether its deletion, first into the trash and then for ever, was acknowledged.
    other: Option<String>,
    deleted: bool,
    /// The path of a resumable upload, and the offset that was acknowledged.
    parts: Option<(String, usize)>,
}

/// The films of a day.
struct Films {
    kept: PathBuf,
    deleted: PathBuf,
    in_parts: PathBuf,
}

async fn walk(bed: &Bed, kind: &str) {
    let films = Films { kept: bed.film(0, 2), deleted: bed.film(1, 1), in_parts: bed.film(2, 1) };
    let writes = count_writes(bed, &films).await;
    assert!(writes > 50, "only {writes} writes were counted");
    let step = if is_full() { 1 } else { (writes / TRIED).max(1) };
    // The first write of a short run is not always the same.
    let first = if is_full() { first_fault() } else { 1 + writes % step };
    let mut failures = Vec::new();
    for number in (first..=writes).step_by(step as usize) {
        let fault = format!("{kind}:{number}");
        // One fault that is not healed must not hide the others.
        let tried = AssertUnwindSafe(try_fault(bed, &films, &fault)).catch_unwind().await;
        failures.extend(tried.err().map(|panic| format!("{fault}: {}", message(&*panic))));
    }
    assert!(failures.is_empty(), "{} of {writes} writes:\n{}", failures.len(), failures.join("\n"));
}

/// The first write that a full walk tries: a walk takes hours and can go on where one ended.
fn first_fault() -> u64 {
    let named = std::env::var("REPRISE_TEST_FIRST_FAULT").ok();
    named.map_or(1, |first| first.parse().expect("REPRISE_TEST_FIRST_FAULT is the number of a write"))
}

/// A day on a new library with a fault at one write. Then a server without faults.
async fn try_fault(bed: &Bed, films: &Films, fault: &str) {
    let fresh = bed.fresh().await;
    let mut acknowledged = Acknowledged::default();
    if let Ok(server) = fresh.try_start(&arguments(), &[("REPRISE_FAULT", Path::new(fault))]) {
        let _ = day(films, &server, &mut acknowledged).await;
        server.stop();
    }
    let server = fresh.start(&arguments());
    check(&fresh, server, films, &acknowledged, fault).await;
    fresh.discard().await;
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text")
}

/// Number of writes of a day without faults.
async fn count_writes(bed: &Bed, films: &Films) -> u64 {
    let fresh = bed.fresh().await;
    let list = fresh.folder().join("writes");
    let named = format!("list:{}", list.display());
    let server =
        fresh.try_start(&arguments(), &[("REPRISE_FAULT", Path::new(&named))]).expect("nothing fails");
    let mut acknowledged = Acknowledged::default();
    day(films, &server, &mut acknowledged).await.expect("nothing fails");
    assert!(acknowledged.deleted && acknowledged.recut && acknowledged.space, "{acknowledged:?}");
    assert!(server.stop());
    std::fs::read_to_string(list).expect("the server writes").lines().count() as u64
}

/// A day of the server: every kind of write. Ends at the first request without an answer. `None`: the server has died.
async fn day(films: &Films, server: &Server, done: &mut Acknowledged) -> Option<()> {
    listen(server, done).await?;
    done.video = upload(server, &films.kept).await?;
    let Some(video) = done.video.clone() else { return Some(()) };
    let path = format!("/v1/videos/{video}");
    finish_jobs(server).await?;
    let subtitles = "WEBVTT\n\n00:00.000 --> 00:01.000\na harmonica plays\n";
    let put = server.request("PUT", &format!("{path}/subtitles/en")).header("content-type", "text/vtt");
    done.subtitles = try_send(put.body(subtitles)).await?.0.is_success();
    let patch = server.request("PATCH", &path).json(&json!({"metadata": {"day": 1}}));
    done.metadata = try_send(patch).await?.0.is_success();
    let add = server.request("POST", &format!("{path}/clips")).json(&json!({"start": 0.5, "end": 1.5}));
    let (status, added) = try_send(add).await?;
    done.clip = status.is_success().then(|| text(&added, "/clip/id").to_owned());
    finish_jobs(server).await?;
    let cut = json!({"policy": "fixed", "params": {"every_seconds": 1}});
    let recut = server.request("POST", &format!("{path}/resegment")).json(&cut);
    done.recut = try_send(recut).await?.0.is_success();
    finish_jobs(server).await?;
    // Its vector is kept.
    let range = json!({"query": {"clip": {"video_id": video, "start": 0.25, "end": 1.25}}});
    try_send(server.request("POST", "/v1/search").json(&range)).await?;
    done.judged = search_and_judge(server).await?;
    try_send(server.request("DELETE", &path)).await?;
    try_send(server.request("POST", &format!("{path}/restore"))).await?;
    let range = json!([{"video_id": video, "start": 0.5, "end": 1.5}]);
    let add = server.request("POST", "/v1/reels").json(&json!({"name": "a reel", "ranges": range}));
    let (status, added) = try_send(add).await?;
    done.reel = status.is_success().then(|| text(&added, "/id").to_owned());
    if let Some(reel) = &done.reel {
        let put = server.request("PUT", &format!("/v1/reels/{reel}")).header("if-match", "*");
        try_send(put.json(&json!({"name": "a reel", "ranges": range}))).await?;
    }
    let export = server.request("POST", "/v1/exports").json(&json!({"format": "mp4", "ranges": range}));
    let (status, added) = try_send(export).await?;
    done.export = status.is_success().then(|| text(&added, "/id").to_owned());
    let queries = json!([{"text": "a harmonica", "relevant": range}, {"clip": range[0], "relevant": range}]);
    let evaluation = json!({"name": "both", "spaces": ["tiny-1ade90"], "queries": queries});
    let (status, added) = try_send(server.request("POST", "/v1/evaluations").json(&evaluation)).await?;
    done.evaluation = status.is_success().then(|| text(&added, "/id").to_owned());
    finish_jobs(server).await?;
    let short = server.request("POST", "/v1/exports").json(&json!({"format": "vtt", "ranges": range}));
    let (status, added) = try_send(short).await?;
    if status.is_success() {
        finish_jobs(server).await?;
        try_send(server.request("DELETE", &format!("/v1/exports/{}", text(&added, "/id")))).await?;
    }
    upload_in_parts(films, server, done).await?;
    finish_jobs(server).await?;
    let add = server.request("POST", "/v1/spaces").json(&json!({"model": model()}));
    done.space = try_send(add).await?.0.is_success();
    finish_jobs(server).await?;
    done.other = upload(server, &films.deleted).await?;
    if let Some(other) = &done.other {
        finish_jobs(server).await?;
        for path in [format!("/v1/videos/{other}"), format!("/v1/videos/{other}?purge=true")] {
            done.deleted |= try_send(server.request("DELETE", &path)).await?.0.is_success();
        }
    }
    Some(())
}

/// Searches, and gives feedback on the first hit. Returns the search's id; inner `None`: it was refused.
async fn search_and_judge(server: &Server) -> Option<Option<String>> {
    let search = server.request("POST", "/v1/search").json(&json!({"query": {"text": "a harmonica"}}));
    let (_, found) = try_send(search).await?;
    let Some(id) = found["search_id"].as_str() else { return Some(None) };
    let feedback = json!({"clip_id": found["results"][0]["clip_id"], "verdict": "relevant"});
    let give = server.request("POST", &format!("/v1/searches/{id}/feedback")).json(&feedback);
    let (status, _) = try_send(give).await?;
    Some(status.is_success().then(|| id.to_owned()))
}

/// Makes a webhook, to which nobody listens, and an alert that everything matches.
async fn listen(server: &Server, done: &mut Acknowledged) -> Option<()> {
    let events = ["video.ready", "export.ready", "alert.matched"];
    let add =
        server.request("POST", "/v1/webhooks").json(&json!({"url": "http://127.0.0.1:9/", "events": events}));
    let (status, added) = try_send(add).await?;
    done.webhook = status.is_success().then(|| text(&added, "/id").to_owned());
    let search = json!({"query": {"text": "x"}, "sources": ["visual"]});
    let mut alert = json!({"name": "an alert", "search": search});
    if let Some(webhook) = &done.webhook {
        alert["webhooks"] = json!([webhook]);
        try_send(server.request("POST", &format!("/v1/webhooks/{webhook}/rotate"))).await?;
    }
    let (status, added) = try_send(server.request("POST", "/v1/alerts").json(&alert)).await?;
    done.alert = status.is_success().then(|| text(&added, "/id").to_owned());
    if let Some(alert) = &done.alert {
        let change = json!({"name": "a changed alert", "min_score": -1.0});
        try_send(server.request("PATCH", &format!("/v1/alerts/{alert}")).json(&change)).await?;
    }
    Some(())
}

/// Checks that the kept video has one match, and that its events were stored.
async fn assert_events(server: &Server, done: &Acknowledged, fault: &str) {
    let (Some(webhook), Some(alert), Some(video)) = (&done.webhook, &done.alert, &done.video) else { return };
    let path = format!("/v1/alerts/{alert}");
    let asked = async || (server.get(&path).await.1["waiting"] == 0).then_some(());
    until("the alert has asked every video", asked).await;
    let (_, page) = server.get(&format!("{path}/matches")).await;
    let matches = page["items"].as_array().expect("a list");
    let of_video = matches.iter().filter(|it| it["video_id"] == video.as_str()).count();
    assert_eq!(of_video, 1, "{fault}: {page}");
    let (_, page) = server.get(&format!("/v1/webhooks/{webhook}/deliveries?limit=1000")).await;
    let stored = |kind: &str| {
        let all = page["items"].as_array().into_iter().flatten();
        all.filter(|it| it["type"] == kind).count()
    };
    // More, if the uploaded parts became a video, and if the video that was deleted became searchable before.
    assert!((1..=3).contains(&stored("video.ready")), "{fault}: {page}");
    assert!((1..=3).contains(&stored("alert.matched")), "{fault}: {page}");
}

/// Begins a resumable upload and sends its file in two parts. `None`: the server has died.
async fn upload_in_parts(films: &Films, server: &Server, done: &mut Acknowledged) -> Option<()> {
    let bytes = std::fs::read(&films.in_parts).expect("the film was made");
    let begin = server.request("POST", "/v1/uploads").header("upload-length", bytes.len());
    let begun = begin.header("tus-resumable", "1.0.0").send().await.ok()?;
    let Some(path) = begun.headers().get("location") else { return Some(()) };
    let path = path.to_str().expect("a path").to_owned();
    done.parts = Some((path.clone(), 0));
    for until in [bytes.len() / 2, bytes.len()] {
        let offset = done.parts.as_ref().map_or(0, |(_, offset)| *offset);
        if !send_part(server, &path, offset, &bytes[offset..until]).await?.is_success() {
            break;
        }
        done.parts = Some((path.clone(), until));
    }
    Some(())
}

async fn send_part(server: &Server, path: &str, offset: usize, bytes: &[u8]) -> Option<StatusCode> {
    let part = server.request("PATCH", path).header("upload-offset", offset).header("tus-resumable", "1.0.0");
    let part = part.header("content-type", "application/offset+octet-stream").body(bytes.to_vec());
    Some(part.send().await.ok()?.status())
}

/// Completes the resumable upload, and checks that its video has every byte.
async fn check_parts(films: &Films, server: &Server, path: &str, acknowledged: usize) {
    let bytes = std::fs::read(&films.in_parts).expect("the film was made");
    let state = async || {
        let head =
            server.request("HEAD", path).header("tus-resumable", "1.0.0").send().await.expect("it answers");
        let text = |name: &str| head.headers().get(name).map(|it| it.to_str().expect("text").to_owned());
        (text("upload-offset"), text("reprise-video-id"))
    };
    let offset: usize = state().await.0.and_then(|offset| offset.parse().ok()).expect("an offset");
    assert!(offset >= acknowledged, "{offset} of {acknowledged} acknowledged bytes are left");
    assert_eq!(send_part(server, path, offset, &bytes[offset..]).await, Some(StatusCode::NO_CONTENT));
    let video = state().await.1.expect("the upload is complete");
    let media = server.request("GET", &format!("/v1/videos/{video}/media")).send().await.expect("it answers");
    assert!(media.bytes().await.expect("it is whole") == bytes, "the stored file has other bytes");
    finish_jobs(server).await.expect("the second server has no faults");
    assert_whole(server, &video).await;
}

/// Sends a request. `None`: no answer came.
pub(super) async fn try_send(request: reqwest::RequestBuilder) -> Option<(StatusCode, Value)> {
    let answer = request.send().await.ok()?;
    let status = answer.status();
    let body = answer.bytes().await.ok()?;
    Some((status, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Uploads a film. Inner `None`: it was refused.
async fn upload(server: &Server, film: &Path) -> Option<Option<String>> {
    let bytes = std::fs::read(film).expect("the film was made");
    let part = reqwest::multipart::Part::bytes(bytes).file_name("film.mp4");
    let form = reqwest::multipart::Form::new().part("file", part);
    let (status, answer) = try_send(server.request("POST", "/v1/videos").multipart(form)).await?;
    Some((status == StatusCode::ACCEPTED).then(|| text(&answer, "/video/id").to_owned()))
}

/// Waits until no job is queued or running.
pub(super) async fn finish_jobs(server: &Server) -> Option<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "the jobs do not end");
        let (_, stats) = try_send(server.request("GET", "/v1/stats")).await?;
        if stats["jobs_queued"] == 0 && stats["jobs_running"] == 0 {
            return Some(());
        }
        tokio::task::yield_now().await;
    }
}

/// Checks what was acknowledged on a server without faults, then the stopped library.
async fn check(bed: &Bed, server: Server, films: &Films, done: &Acknowledged, fault: &str) {
    check_served(bed, &server, films, done, fault).await;
    assert!(server.stop(), "{fault}: it did not stop well");
    let verified = bed.run(&["verify"]);
    assert!(verified.status.success(), "{fault}: {}", String::from_utf8_lossy(&verified.stdout));
}

async fn check_served(bed: &Bed, server: &Server, films: &Films, done: &Acknowledged, fault: &str) {
    if let Some(video) = &done.video {
        // Between its deletion and its restore it is in the trash.
        let (status, _) = server.post(&format!("/v1/videos/{video}/restore"), &json!({})).await;
        assert_eq!(status, StatusCode::OK, "{fault}");
    }
    finish_jobs(server).await.expect("the second server has no faults");
    let (_, jobs) = server.get("/v1/jobs?state=failed").await;
    for job in jobs["items"].as_array().expect("a list") {
        see_through(server, text(job, "/id")).await;
    }
    assert_events(server, done, fault).await;
    if let Some((path, acknowledged)) = &done.parts {
        check_parts(films, server, path, *acknowledged).await;
    }
    if let Some(video) = &done.video {
        assert_whole(server, video).await;
        let (_, stored) = server.get(&format!("/v1/videos/{video}")).await;
        assert!(!done.metadata || stored["metadata"] == json!({"day": 1}), "{fault}: {stored}");
        let (_, tracks) = server.get(&format!("/v1/videos/{video}/subtitles")).await;
        assert!(!done.subtitles || tracks.to_string().contains("\"en\""), "{fault}: {tracks}");
    }
    if let Some(clip) = &done.clip {
        assert_eq!(server.get(&format!("/v1/clips/{clip}")).await.0, 200, "{fault}: {done:?}");
    }
    if let Some(search) = &done.judged {
        let (_, stored) = server.get(&format!("/v1/searches/{search}")).await;
        assert_eq!(stored["hits"][0]["feedback"], json!(["relevant"]), "{fault}: {stored}");
    }
    if let Some(reel) = &done.reel {
        let (status, stored) = server.get(&format!("/v1/reels/{reel}")).await;
        assert_eq!((status, &stored["ranges"][0]["end"]), (StatusCode::OK, &json!(1.5)), "{fault}: {stored}");
    }
    if let Some(export) = &done.export {
        let (_, stored) = server.get(&format!("/v1/exports/{export}")).await;
        let url = stored["file"]["url"].as_str().unwrap_or_else(|| panic!("{fault}: {stored}"));
        let file =
            server.request("GET", url).send().await.expect("it answers").bytes().await.expect("it is whole");
        assert_eq!(file.len(), stored["file"]["bytes"], "{fault}: {stored}");
    }
    if let Some(evaluation) = &done.evaluation {
        let (_, stored) = server.get(&format!("/v1/evaluations/{evaluation}")).await;
        assert_eq!(stored["evaluation"]["figures"]["asked"], 2, "{fault}: {stored}");
    }
    if done.space {
        let (_, spaces) = server.get("/v1/spaces").await;
        let full = spaces["items"].as_array().expect("a list").iter().filter(|it| it["coverage"] == 1.0);
        assert_eq!(full.count(), 2, "{fault}: {spaces}");
    }
    let stored = videos(server).await;
    if let Some(other) = done.other.as_ref().filter(|_| done.deleted) {
        assert!(stored.iter().all(|video| video["id"] != other.as_str()), "{fault}: a deleted video is back");
    }
    assert_consistent(server).await;
    // The purge of what was deleted runs in the background. A file that no row names is swept after some minutes only.
    let files = async || {
        let names: Vec<String> = names(&bed.data().join("videos"));
        stored.iter().all(|video| names.iter().any(|name| name.starts_with(text(video, "/id")))).then_some(())
    };
    until("every video has its file", files).await;
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder of videos");
    entries.filter_map(Result::ok).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
