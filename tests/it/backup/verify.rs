//! `reprise verify` finds each kind of damage, mends what can be made again, and reports nothing that is under way.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use reprise_tests::server::Server;
use serde_json::{Value, json};

use super::{complains, prints, prints_json};
use crate::faults::bed::{Bed, assert_whole, on_both, see_through, text, until, upload};

on_both!(
    each_kind_of_damage_is_found_and_mended,
    a_lost_file_is_found_and_marked,
    a_lost_export_is_found_and_ended,
    a_faulty_index_is_found_and_built_anew,
    what_a_server_is_doing_is_no_fault,
);

const UNKNOWN: &str = "0190163d-8694-739b-aea5-966c26f8ad91";

/// The report of a check that must find faults.
fn found(bed: &Bed, more: &[&str]) -> Value {
    let output = bed.run(&[&["verify", "--json"], more].concat());
    assert!(!output.status.success(), "no fault: {}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", super::said(&output)))
}

fn kinds(report: &Value) -> BTreeSet<&str> {
    report["faults"].as_array().unwrap().iter().map(|fault| text(fault, "/kind")).collect()
}

fn make_old(path: &Path) {
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

async fn jobs_of(server: &Server) -> Vec<Value> {
    let (_, jobs) = server.get("/v1/jobs?limit=1000").await;
    jobs["items"].as_array().cloned().unwrap()
}

/// Damages the library of a stopped server, checks what is found, mends it, and lets a server do the queued jobs.
async fn check(bed: &Bed, damage: &[&str], expected: &[&str]) {
    for sql in damage {
        bed.execute(sql).await;
    }
    let report = found(bed, &[]);
    assert_eq!(kinds(&report), expected.iter().copied().collect(), "{report}");
    assert_eq!(report["fixed"], json!([]), "{report}");
    let fixed = found(bed, &["--fix"]);
    assert_ne!(fixed["fixed"], json!([]), "{fixed}");
    let server = bed.start(&[]);
    for job in jobs_of(&server).await {
        see_through(&server, text(&job, "/id")).await;
    }
    assert!(server.stop(), "it did not stop well");
    prints(bed, &["verify"]);
}

async fn each_kind_of_damage_is_found_and_mended(bed: &Bed) {
    let server = bed.start(&[]);
    let video = server.ingest(&bed.film(0, 3)).await;
    server.ingest(&bed.film(1, 2)).await;
    assert!(server.stop(), "it did not stop well");
    assert_eq!(prints_json(bed, &["verify", "--json"])["faults"], json!([]));

    let (one, three) =
        if bed.is_embedded() { ("x'0000'", "x'0000c07f'") } else { ("'\\x0000'", "'\\x0000c07f'") };
    let last = "(SELECT max(span) FROM embeddings)";
    let lost = format!("DELETE FROM embeddings WHERE span = {last}");
    check(bed, &[&lost], &["vectors_missing"]).await;
    check(bed, &["DELETE FROM embeddings"], &["vectors_missing"]).await;
    let short = format!("UPDATE embeddings SET unit = {one} WHERE span = {last}");
    check(bed, &[&short], &["vector_bad"]).await;
    let not_finite = if bed.is_embedded() {
        format!("UPDATE embeddings SET unit = CAST({three} || substr(unit, 5) AS BLOB) WHERE span = {last}")
    } else {
        format!("UPDATE embeddings SET unit = {three}::bytea || substr(unit, 5) WHERE span = {last}")
    };
    check(bed, &[&not_finite], &["vector_bad"]).await;
    // Without its rule the database keeps a vector of a span that is gone.
    let rule = if bed.is_embedded() {
        "PRAGMA foreign_keys = OFF"
    } else {
        "ALTER TABLE embeddings DROP CONSTRAINT embeddings_span_fkey"
    };
    let orphan = format!(
        "{rule}; INSERT INTO embeddings (space, span, unit, norm) SELECT space, 999999, unit, norm FROM embeddings \
         WHERE span = {last}"
    );
    check(bed, &[&orphan], &["vector_bad"]).await;

    let derived = [format!("thumbnails/{UNKNOWN}.jpg"), format!("previews/{UNKNOWN}.mp4")]
        .map(|it| bed.data().join(it));
    derived.iter().for_each(|path| fs::write(path, "old").unwrap());
    let features = bed.data().join("features").join(UNKNOWN);
    fs::create_dir(&features).unwrap();
    derived.iter().chain([&features]).for_each(|path| make_old(path));
    check(bed, &[], &["derived_foreign"]).await;
    assert!(derived.iter().chain([&features]).all(|path| !path.exists()));

    let foreign = bed.data().join("videos/holiday.mp4");
    fs::write(&foreign, "mine").unwrap();
    prints(bed, &["verify"]);
    make_old(&foreign);
    assert_eq!(kinds(&found(bed, &["--fix"])), BTreeSet::from(["file_foreign"]));
    assert!(foreign.exists(), "it may be somebody's own");
    fs::remove_file(foreign).unwrap();

    let server = bed.start(&[]);
    assert_whole(&server, text(&video, "/id")).await;
}

async fn a_lost_export_is_found_and_ended(bed: &Bed) {
    let server = bed.start(&[]);
    let video = server.ingest(&bed.film(0, 2)).await;
    let range = json!({"video_id": video["id"], "start": 0, "end": 1});
    let (_, export) = server.post("/v1/exports", &json!({"format": "csv", "ranges": [range]})).await;
    see_through(&server, text(&export, "/id")).await;
    assert!(server.stop(), "it did not stop well");
    prints(bed, &["verify"]);
    let folder = bed.data().join("exports");
    let files = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    fs::write(&files()[0], "other bytes").unwrap();
    assert_eq!(kinds(&found(bed, &["--fix"])), BTreeSet::from(["export_lost"]));
    prints(bed, &["verify"]);
    let stray = folder.join(format!("{UNKNOWN}.x.mp4"));
    fs::write(&stray, "old").unwrap();
    make_old(&stray);
    assert_eq!(kinds(&found(bed, &[])), BTreeSet::from(["file_foreign"]));
    let server = bed.start(&[]);
    assert_eq!(server.get(&format!("/v1/exports/{}", text(&export, "/id"))).await.0, 404);
    until("both files are gone", async || files().is_empty().then_some(())).await;
}

async fn a_faulty_index_is_found_and_built_anew(bed: &Bed) {
    let server = bed.start(&[]);
    server.ingest(&bed.film(0, 3)).await;
    assert!(server.stop(), "it did not stop well");
    prints(bed, &["verify"]);
    for file in files(&bed.data().join("index")).iter().filter(|file| !file.ends_with("manifest.json")) {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes.iter_mut().skip(middle).take(1).for_each(|byte| *byte ^= 0xff);
        fs::write(file, bytes).unwrap();
    }
    let report = found(bed, &[]);
    assert!(!report["index"].as_array().unwrap().is_empty(), "{report}");
    let fixed = found(bed, &["--fix"]);
    assert!(fixed["fixed"].to_string().contains("built the index anew"), "{fixed}");
    prints(bed, &["verify"]);
    prints(bed, &["index", "check"]);
}

async fn a_lost_file_is_found_and_marked(bed: &Bed) {
    let server = bed.start(&[]);
    let (damaged, gone) = (server.ingest(&bed.film(0, 2)).await, server.ingest(&bed.film(1, 2)).await);
    let [damaged, gone] = [damaged, gone].map(|video| text(&video, "/id").to_owned());
    let file = |id: &str| bed.data().join("videos").join(format!("{id}.mp4"));
    let (whole, kept) = (fs::read(file(&damaged)).unwrap(), fs::read(file(&gone)).unwrap());
    let mut bytes = whole.clone();
    bytes[2000] ^= 1;
    fs::write(file(&damaged), bytes).unwrap();
    fs::remove_file(file(&gone)).unwrap();
    for _ in 0..2 {
        let report = found(bed, &["--fix"]);
        assert_eq!(kinds(&report), BTreeSet::from(["file_damaged", "file_missing"]), "{report}");
    }
    let backup = bed.folder().join("backup");
    let said = complains(bed, &["backup", super::shown(&backup)]);
    assert!(said.contains("is written") && said.contains(&damaged) && said.contains(&gone), "{said}");
    let failed =
        |jobs: Vec<Value>| jobs.into_iter().filter(|job| job["state"] == "failed").collect::<Vec<_>>();
    let marked = failed(jobs_of(&server).await);
    assert_eq!(marked.len(), 2, "one mark a video, however often: {marked:?}");
    assert!(marked.iter().any(|job| text(job, "/reason").contains("is gone")), "{marked:?}");
    // What is stored of the video stays.
    assert_whole(&server, &gone).await;
    fs::write(file(&damaged), whole).unwrap();
    fs::write(file(&gone), kept).unwrap();
    for job in marked {
        let (status, _) = server.post(&format!("/v1/jobs/{}/retry", text(&job, "/id")), &json!({})).await;
        assert_eq!(status, reqwest::StatusCode::OK);
        see_through(&server, text(&job, "/id")).await;
    }
    prints(bed, &["verify"]);
}

async fn what_a_server_is_doing_is_no_fault(bed: &Bed) {
    let server = bed.start(&[]);
    let mut jobs = Vec::new();
    for number in 0..4 {
        jobs.push(upload(&server, &bed.film(number, 3)).await);
        prints(bed, &["verify"]);
    }
    for (video, job) in jobs {
        prints(bed, &["verify"]);
        see_through(&server, &job).await;
        assert_eq!(server.delete(&format!("/v1/videos/{video}")).await.0, reqwest::StatusCode::NO_CONTENT);
        prints(bed, &["verify"]);
    }
}
