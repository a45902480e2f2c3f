//! A library moves from one kind of database to the other, and answers as before.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reprise_tests::server::Server;
use reqwest::StatusCode;
use reqwest::multipart::Form;
use serde_json::{Value, json};

use super::{complains, prints, prints_json, said, shown};
use crate::faults::bed::{
    Bed, assert_consistent, assert_whole, clips, on_both, see_through, text, until, upload, videos,
};

on_both!(
    a_library_in_use_is_saved_and_moves_to_the_other_database,
    purges_wait_for_a_backup_and_go_on_after_a_dead_one,
    one_server_at_a_time_has_an_embedded_database,
    what_was_cut_off_can_be_started_again,
    the_trash_is_saved_and_restored,
);

/// Videos that stay as they are during the backup.
const KEPT: usize = 5;
const QUERIES: usize = 50;
/// Queries that subtitles answer.
const SAID: [&str; 3] = ["a clean entry", "the judges", "water"];
const SUBTITLES: &str = "1\n00:00:00,200 --> 00:00:01,400\nA clean entry into the water.\n\n\
                         2\n00:00:01,500 --> 00:00:03,400\nThe judges are quiet.\n";

async fn a_library_in_use_is_saved_and_moves_to_the_other_database(bed: &Bed) {
    let Some(other) = bed.other().await else { return };
    let server = bed.start(&[]);
    let kept = fill(&server, bed).await;
    let before = answers(&server, &kept).await;
    let reels = server.get("/v1/reels").await.1;
    let searched = judged(&server).await;
    let hooks = server.get("/v1/webhooks").await.1;
    let matches = matches(&server).await;
    assert_eq!(matches.len(), KEPT - 1);
    let first_page =
        server.search(&json!({"query": {"text": "red"}, "filter": only_kept(), "limit": 2})).await;
    let backup = bed.folder().join("backup");
    save_under_load(&server, bed, &backup).await;
    assert!(server.stop(), "it did not stop well");

    let restored = prints_json(&other, &["restore", "--json", shown(&backup)]);
    assert_eq!((&restored["skipped"], &restored["without_file"]), (&json!([]), &json!([])), "{restored}");
    assert_same_rows(bed, &other).await;
    let server = other.start(&[]);
    assert_eq!(answers(&server, &kept).await, before);
    assert_eq!(
        (reels["items"].as_array().map(Vec::len), &server.get("/v1/reels").await.1),
        (Some(1), &reels)
    );
    let path = format!("/v1/searches/{}", text(&searched, "/id"));
    assert_eq!(server.get(&path).await.1, searched, "searches and feedback are kept");
    assert_eq!(server.get("/v1/exports").await.1["items"], json!([]), "a backup leaves exports out");
    assert_eq!(server.get("/v1/webhooks").await.1, hooks);
    let of_kept = self::matches(&server).await.into_iter().filter(|it| matches.contains(it)).count();
    assert_eq!(of_kept, matches.len());
    let next = json!({"cursor": first_page["next_cursor"]});
    assert_eq!(
        server.search(&next).await["results"].as_array().map(Vec::len),
        Some(2),
        "a cursor stays valid"
    );
    finish_jobs(&server).await;
    let left = videos(&server).await;
    assert!(left.len() >= KEPT, "{left:?}");
    for video in &left {
        assert_whole(&server, text(video, "/id")).await;
        let (status, _) = server.get(&format!("/v1/videos/{}/media", text(video, "/id"))).await;
        assert_eq!(status, StatusCode::OK, "{video}");
    }
    assert_numbers_go_on(&server, &other).await;
    assert!(server.stop(), "it did not stop well");
    assert!(complains(&other, &["restore", shown(&backup)]).contains("restore into an empty one"));
    assert!(complains(bed, &["backup", shown(&backup)]).contains("is there already"));
    prints(&other, &["verify"]);
}

/// What the only alert found, once it has asked every video.
async fn matches(server: &Server) -> Vec<Value> {
    let alert = server.get("/v1/alerts").await.1["items"][0].clone();
    let path = format!("/v1/alerts/{}", text(&alert, "/id"));
    let asked = async || (server.get(&path).await.1["waiting"] == 0).then_some(());
    until("the alert has asked every video", asked).await;
    let page = server.get(&format!("{path}/matches?limit=1000")).await.1;
    page["items"].as_array().cloned().expect("a list")
}

/// Adds videos with metadata, a given clip and subtitles. Returns ids of clips.
async fn fill(server: &Server, bed: &Bed) -> Vec<String> {
    let mut kept = Vec::new();
    for number in 0..KEPT {
        let parts = [
            ("metadata", json!({"kept": true, "number": number, "note": "é\"'\\"})),
            ("title", json!(format!("Film {number}"))),
        ];
        let video = server.ingest_with(&bed.film(number, 3), &parts).await;
        let id = text(&video, "/id").to_owned();
        if number == 0 {
            let request = server.request("PUT", &format!("/v1/videos/{id}/subtitles/en"));
            let request = request.header("content-type", "application/x-subrip").body(SUBTITLES);
            assert_eq!(server.send(request).await.0, StatusCode::OK);
            let range = json!({"video_id": id, "start": 0.5, "end": 1.5, "note": "é\"'\\"});
            let (status, reel) = server.post("/v1/reels", &json!({"name": "é", "ranges": [range]})).await;
            assert_eq!(status, StatusCode::CREATED, "{reel}");
            let hook = json!({"url": "https://example.com/é", "events": ["alert.matched", "video.failed"]});
            let (status, hook) = server.post("/v1/webhooks", &hook).await;
            assert_eq!(status, StatusCode::CREATED, "{hook}");
            let search = json!({"query": {"text": "red"}, "sources": ["visual"]});
            let alert = json!({"name": "é", "search": search, "min_score": -1, "webhooks": [hook["id"]]});
            assert_eq!(server.post("/v1/alerts", &alert).await.0, StatusCode::CREATED);
            let export = json!({"format": "csv", "reel_id": reel["id"]});
            assert_eq!(server.post("/v1/exports", &export).await.0, StatusCode::ACCEPTED);
        }
        let given = json!({"start": 0.5, "end": 1.5, "metadata": {"take": number}});
        let (status, answer) = server.post(&format!("/v1/videos/{id}/clips"), &given).await;
        assert!(status.is_success(), "{answer}");
        kept.extend(clips(server, &id).await.iter().map(|clip| text(clip, "/id").to_owned()));
    }
    let form = Form::new().file("file", bed.film(0, 3)).await.unwrap();
    let again = server.request("POST", "/v1/videos").header("idempotency-key", "again").multipart(form);
    assert_eq!(server.send(again).await.1["duplicate"], true);
    finish_jobs(server).await;
    kept
}

/// A search of the log whose first hit has feedback.
async fn judged(server: &Server) -> Value {
    let body = json!({"query": {"text": "a clean entry é"}, "filter": only_kept()});
    let found = server.search(&body).await;
    let path = format!("/v1/searches/{}", text(&found, "/search_id"));
    let feedback = json!({"clip_id": found["results"][0]["clip_id"], "verdict": "relevant"});
    assert_eq!(server.post(&format!("{path}/feedback"), &feedback).await.0, StatusCode::NO_CONTENT);
    let (_, logged) = server.get(&path).await;
    assert_eq!(logged["hits"][0]["feedback"], json!(["relevant"]), "{logged}");
    logged
}

fn only_kept() -> Value {
    json!({"field": "metadata.kept", "eq": true})
}

/// The ten best answers to fifty queries, by text, by words that are said, and by clip.
async fn answers(server: &Server, kept: &[String]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for number in 0..QUERIES {
        let query = match number % 3 {
            0 => json!({"text": format!("scene {number}")}),
            1 => json!({"text": SAID[number / 3 % SAID.len()]}),
            _ => json!({"clip_id": kept[number % kept.len()]}),
        };
        let level = ["clip", "video"][number % 2];
        let body = json!({"query": query, "filter": only_kept(), "level": level, "limit": 10});
        let hits = server.search_hits(body).await;
        let hit = |it: &Value| json!([it["video_id"], it["clip_id"], it["start"], it["end"], it["score"]]);
        all.push(hits.iter().map(hit).collect());
    }
    assert!(
        all.iter().filter(|hits| hits.as_array().is_some_and(|hits| !hits.is_empty())).count() > QUERIES / 2
    );
    all
}

/// Makes the backup while the server takes uploads and deletes.
async fn save_under_load(server: &Server, bed: &Bed, to: &Path) {
    let films: Vec<PathBuf> = (0..8).map(|number| bed.film(100 + number, 2)).collect();
    let is_saved = AtomicBool::new(false);
    let load = async {
        let mut added = Vec::new();
        let mut films = films.iter();
        while !is_saved.load(Ordering::Acquire) {
            match films.next() {
                Some(film) => added.push(upload(server, film).await.0),
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
            if added.len() > 2 {
                let doomed = added.remove(0);
                let path = format!("/v1/videos/{doomed}?purge={}", added.len() % 2 == 0);
                assert_eq!(server.delete(&path).await.0, StatusCode::NO_CONTENT);
            }
        }
    };
    let mut command = bed.command(&["backup", shown(to)]);
    let save = async {
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        is_saved.store(true, Ordering::Release);
        output
    };
    let (_, output) = tokio::join!(load, save);
    assert!(output.status.success(), "{}", said(&output));
}

/// A backup of what was restored, restored into the first kind of database and saved once more, holds the same rows.
async fn assert_same_rows(bed: &Bed, other: &Bed) {
    let (second, third) = (other.folder().join("second"), other.folder().join("third"));
    prints(other, &["backup", "--link", shown(&second)]);
    let again = bed.fresh().await;
    prints(&again, &["restore", shown(&second)]);
    prints(&again, &["backup", shown(&third)]);
    let mut compared = 0;
    for entry in std::fs::read_dir(second.join("tables")).unwrap() {
        let path = entry.unwrap().path();
        let copy = third.join("tables").join(path.file_name().unwrap());
        let (rows, copied) =
            (std::fs::read_to_string(&path).unwrap(), std::fs::read_to_string(copy).unwrap());
        assert_eq!(rows, copied, "{}", path.display());
        compared += rows.lines().count();
    }
    assert!(compared > 10 * KEPT, "{compared} rows");
    assert_same_keys(&again, other).await;
}

/// API keys are the same after a restore. The servers of this test know no key, so only this copy gets one.
async fn assert_same_keys(with_rows: &Bed, other: &Bed) {
    let (backup, target) = (with_rows.folder().join("with-key"), other.fresh().await);
    prints(with_rows, &["keys", "add", "--name", "team", "--scope", "read,write", "--searches-at-once", "3"]);
    prints(with_rows, &["backup", shown(&backup)]);
    prints(&target, &["restore", shown(&backup)]);
    let keys = prints(with_rows, &["keys", "list", "--json"]);
    assert!(keys.contains("team"), "{keys}");
    assert_eq!(prints(&target, &["keys", "list", "--json"]), keys);
}

async fn finish_jobs(server: &Server) {
    let (_, jobs) = server.get("/v1/jobs?limit=1000").await;
    for job in jobs["items"].as_array().unwrap() {
        see_through(server, text(job, "/id")).await;
    }
}

/// What is added after a restore does not meet what was there before.
async fn assert_numbers_go_on(server: &Server, bed: &Bed) {
    let video = server.ingest(&bed.film(200, 2)).await;
    assert_whole(server, text(&video, "/id")).await;
}

async fn purges_wait_for_a_backup_and_go_on_after_a_dead_one(bed: &Bed) {
    let server = bed.start(&[]);
    let video = server.ingest(&bed.film(0, 2)).await;
    let id = text(&video, "/id");
    let file = bed.data().join("videos").join(format!("{id}.mp4"));
    let until_ms = reprise_server::catalog::instant::now_ms() + 5000;
    // What a backup leaves behind that was killed.
    let row = if bed.is_embedded() { "x'01'" } else { "'00000000-0000-0000-0000-000000000001'" };
    bed.execute(&format!("INSERT INTO backups (id, until_ms) VALUES ({row}, {until_ms})")).await;
    assert_eq!(server.delete(&format!("/v1/videos/{id}?purge=true")).await.0, StatusCode::NO_CONTENT);
    let lease_ends = async || (reprise_server::catalog::instant::now_ms() >= until_ms - 500).then_some(());
    until("the lease ends soon", async || {
        assert!(file.exists() || reprise_server::catalog::instant::now_ms() >= until_ms, "purged too early");
        lease_ends().await
    })
    .await;
    until("the file is gone", async || (!file.exists()).then_some(())).await;
}

/// Kills a command after a while; false if it had ended.
fn kill_after(mut command: Command, wait: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(wait);
    let is_running = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    is_running
}

/// How long a command takes that must succeed.
fn time_of(bed: &Bed, arguments: &[&str]) -> Duration {
    let started = Instant::now();
    prints(bed, arguments);
    started.elapsed()
}

async fn what_was_cut_off_can_be_started_again(bed: &Bed) {
    let server = bed.start(&[]);
    for number in 0..3 {
        server.ingest(&bed.film(number, 2)).await;
    }
    let whole = bed.folder().join("whole");
    let mut backup_takes = time_of(bed, &["backup", shown(&whole)]);
    let mut restore_takes = time_of(&bed.fresh().await, &["restore", shown(&whole)]);
    let mut killed = [0, 0];
    // At many moments: before, between and after the files and the rows.
    for number in 0..12 {
        let backup = bed.folder().join(format!("backup{number}"));
        let partial = bed.folder().join(format!("backup{number}.partial"));
        let wait = backup_takes * number / 12;
        if kill_after(bed.command(&["backup", shown(&backup)]), wait) {
            killed[0] += 1;
        } else {
            // It was over before: the machine is less busy than when the time was taken.
            backup_takes = wait;
        }
        if partial.exists() {
            assert!(!backup.exists() && complains(bed, &["backup", shown(&backup)]).contains("already"));
            std::fs::remove_dir_all(&partial).unwrap();
        }
        if !backup.exists() {
            prints(bed, &["backup", shown(&backup)]);
        }
        let target = bed.fresh().await;
        let restore = ["restore", shown(&backup)];
        let wait = restore_takes * number / 12;
        if kill_after(target.command(&restore), wait) {
            killed[1] += 1;
        } else {
            restore_takes = wait;
        }
        let again = target.run(&restore);
        assert!(again.status.success() || said(&again).contains("holds 3 videos"), "{}", said(&again));
        prints(&target, &["verify"]);
    }
    assert!(killed.iter().all(|times| *times > 3), "{killed:?} of 12 were cut off");
}

async fn one_server_at_a_time_has_an_embedded_database(bed: &Bed) {
    let server = bed.start(&[]);
    let rebuild = bed.run(&["index", "rebuild"]);
    let backup = bed.folder().join("backup");
    prints(bed, &["backup", shown(&backup)]);
    let second = bed.try_start(&[], &[]);
    if bed.is_embedded() {
        let holder = format!("in use by a server (process {}", server.pid());
        let refused = [
            second.err().expect("a second server started"),
            said(&rebuild),
            complains(bed, &["restore", shown(&backup)]),
        ];
        for said in refused {
            assert!(said.contains(&holder) && said.contains("--database-url"), "{said}");
        }
        server.kill();
        // The lock dies with the process.
        drop(bed.start(&[]));
    } else {
        assert!(second.is_ok(), "several servers share Postgres");
    }
}

async fn the_trash_is_saved_and_restored(bed: &Bed) {
    let Some(other) = bed.other().await else { return };
    let server = bed.start(&[]);
    let videos = [server.ingest(&bed.film(0, 2)).await, server.ingest(&bed.film(1, 2)).await];
    let [kept, trashed] = videos.each_ref().map(|video| text(video, "/id"));
    let request = server.request("PUT", &format!("/v1/videos/{trashed}/subtitles/en"));
    let request = request.header("content-type", "application/x-subrip").body(SUBTITLES);
    assert_eq!(server.send(request).await.0, StatusCode::OK);
    finish_jobs(&server).await;
    assert_eq!(server.delete(&format!("/v1/videos/{trashed}")).await.0, StatusCode::NO_CONTENT);
    let (_, listed) = server.get("/v1/videos?trashed=true").await;
    let backup = bed.folder().join("backup");
    prints(bed, &["backup", shown(&backup)]);
    prints(&other, &["restore", shown(&backup)]);
    prints(&other, &["verify"]);
    let server = other.start(&[]);
    assert_eq!(server.get("/v1/videos?trashed=true").await.1, listed);
    assert_consistent(&server).await;
    let query = json!({"query": {"text": "a clean entry"}, "sources": ["spoken"]});
    assert_eq!(server.search_hits(query.clone()).await, [] as [Value; 0]);
    let (status, _) = server.post(&format!("/v1/videos/{trashed}/restore"), &json!({})).await;
    assert_eq!(status, StatusCode::OK);
    for video in [kept, trashed] {
        assert_whole(&server, video).await;
    }
    assert_eq!(server.search_hits(query).await.len(), 1, "its words count again");
    assert_consistent(&server).await;
}
