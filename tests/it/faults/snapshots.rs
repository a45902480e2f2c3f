//! The index snapshot: used when valid, replaced when damaged or outdated.

use std::fs;
use std::path::{Path, PathBuf};

use reprise_tests::server::Server;
use serde_json::{Value, json};

use super::bed::{Bed, assert_consistent, assert_whole, clips, text};

/// The hits of a search over everything, and the index's generation. Loading a snapshot raises the generation by one.
/// An index filled from the catalog has generation 1.
async fn look(server: &Server) -> (Vec<Value>, i64) {
    let query = json!({"query": {"text": "a dive with a twist"}, "exact": true, "limit": 1000});
    let answer = server.search(&query).await;
    let hits = answer["results"].as_array().expect("results are a list").iter();
    let named = hits.map(|hit| json!([hit["clip_id"], hit["score"]])).collect();
    (named, answer["index"]["generation"].as_i64().expect("an answer names its generation"))
}

/// Prepares the data folder of a stopped server with three films and a snapshot. Returns the hits of a search.
async fn stopped(bed: &Bed) -> Vec<Value> {
    let server = bed.start(&[]);
    for number in 0..3 {
        server.ingest(&bed.film(number, 2)).await;
    }
    let (hits, generation) = look(&server).await;
    assert_eq!((hits.len(), generation), (6, 1));
    assert!(server.stop(), "it did not stop well");
    hits
}

/// All non-empty files: empty lock files cannot be damaged.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.metadata().unwrap().len() > 0 {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_snapshot_is_used() {
    let bed = Bed::sqlite();
    let hits = stopped(&bed).await;
    let server = bed.start(&[]);
    assert_eq!(look(&server).await, (hits, 2), "{}", bed.log());
    assert_consistent(&server).await;
}

#[tokio::test]
async fn what_was_ingested_after_a_snapshot_is_found_too() {
    let bed = Bed::sqlite();
    stopped(&bed).await;
    let server = bed.start(&[]);
    let late = server.ingest(&bed.film(7, 2)).await;
    server.kill();
    let server = bed.start(&[]);
    let (hits, generation) = look(&server).await;
    assert_eq!((hits.len(), generation), (8, 2), "{}", bed.log());
    assert_whole(&server, text(&late, "/id")).await;
    assert_consistent(&server).await;
}

/// Log messages for a snapshot that is damaged as a whole; below: in part.
const REFUSED: &str = "the index snapshot is refused";
const LEFT_OUT: &str = "a part of the index is read from the catalog instead";

#[tokio::test]
async fn any_flipped_bit_of_a_snapshot_is_noticed_and_it_is_made_anew() {
    let bed = Bed::sqlite();
    let hits = stopped(&bed).await;
    let count = files(&bed.data().join("index")).len();
    assert!(count >= 4, "a manifest, its checksum, keys and vectors");
    for number in 0..count {
        let file = files(&bed.data().join("index")).swap_remove(number);
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(&file, bytes).unwrap();
        let server = bed.start(&[]);
        assert_eq!(look(&server).await.0, hits, "{}: {}", file.display(), bed.log());
        let is_manifest = file.file_name().unwrap().to_str().unwrap().starts_with("manifest");
        assert!(bed.log().contains(if is_manifest { REFUSED } else { LEFT_OUT }), "{}", bed.log());
        assert_consistent(&server).await;
        assert!(server.stop(), "it did not stop well");
        let server = bed.start(&[]);
        assert_eq!(look(&server).await.0, hits, "{}", bed.log());
        let is_whole = bed.log().contains("the index snapshot is loaded") && !bed.log().contains(LEFT_OUT);
        assert!(is_whole, "it was not written anew: {}", bed.log());
        assert!(server.stop(), "it did not stop well");
    }
}

#[tokio::test]
async fn a_snapshot_newer_than_its_catalog_is_not_used() {
    let bed = Bed::sqlite();
    let hits = stopped(&bed).await;
    let (database, backup) = (bed.data().join("catalog.sqlite"), bed.folder().join("backup.sqlite"));
    fs::copy(&database, &backup).unwrap();
    let server = bed.start(&[]);
    server.ingest(&bed.film(7, 2)).await;
    assert!(server.stop(), "it did not stop well");
    fs::copy(&backup, &database).unwrap();
    let server = bed.start(&[]);
    assert_eq!(look(&server).await, (hits, 1), "{}", bed.log());
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_snapshot_of_a_server_with_fewer_models_is_completed() {
    let bed = Bed::sqlite();
    let hits = stopped(&bed).await;
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/parity/data/legacy");
    // The new snapshot lacks the first model's space.
    let server = bed.start(&["--model", other]);
    assert!(server.stop(), "it did not stop well");
    let server = bed.start(&[]);
    assert_eq!(look(&server).await.0, hits, "{}", bed.log());
    let video = server.get("/v1/videos").await.1["items"][0].clone();
    assert_eq!(clips(&server, text(&video, "/id")).await.len(), 2);
}
