//! A served index large enough to be sealed: saving, damage and repair, checks, grouping.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reprise_index::{Index, Settings};
use reprise_server::catalog::{self, Ingested, IngestedSpan};
use reprise_server::terms::{Collection, KeySet, Level, SpanKey, UnitVector};
use reprise_server::vectors::{Allowed, Ask, EngineKind, EngineSettings, Vectors};
use reprise_tests::server::{Server, binary};
use serde_json::{Value, json};
use sqlx::Connection;

use crate::catalog::samples::{add, facts, lease, vector, video};
use crate::faults::bed::{Bed, until};

/// Number of videos in the library; below: of clips per video.
const VIDEOS: u32 = 20;
const CLIPS: u32 = 500;

/// A folder whose catalog has one cluster of clips per video. The clips of the first video are nearest to `x`.
async fn stocked() -> Bed {
    let bed = Bed::sqlite();
    let server = bed.start(&[]);
    let (_, answer) = server.post("/v1/embeddings", &json!({"input": {"text": "x"}})).await;
    let query: Vec<f32> = serde_json::from_value(answer["vector"].clone()).unwrap();
    assert!(server.stop());
    let catalog = catalog::open(&catalog::embedded_url(&bed.data())).await.unwrap();
    let space = catalog.spaces().await.unwrap().remove(0);
    for number in 0..VIDEOS {
        let centre =
            if number == 0 { query.clone() } else { vector(number, query.len()).0.values().to_vec() };
        add(&catalog, video(&format!("video {number}"))).await;
        let leased = lease(&catalog).await;
        let span = |level, clip: u32| {
            let noise = vector(1_000 + number * CLIPS + clip, query.len()).0;
            let near: Vec<f32> =
                centre.iter().zip(noise.values()).map(|(centre, noise)| centre + 0.3 * noise).collect();
            let (unit, norm) = UnitVector::from_raw(&near).unwrap();
            let (start_ms, end_ms) = match level {
                Level::Video => (0, i64::from(CLIPS) * 1000),
                _ => (i64::from(clip) * 1000, i64::from(clip + 1) * 1000),
            };
            IngestedSpan { given: None, level, start_ms, end_ms, vectors: vec![(space.key, unit, norm)] }
        };
        let spans =
            [span(Level::Video, CLIPS)].into_iter().chain((0..CLIPS).map(|clip| span(Level::Clip, clip)));
        let facts = facts(i64::from(CLIPS) * 1000);
        let ingested = Ingested { facts, warnings: vec![], spans: spans.collect() };
        catalog.finish_ingest(&leased.lease, ingested).await.unwrap();
    }
    catalog.close().await;
    // Without the index folder, the next start reads the catalog and seals at once. Applied changes would grow first.
    fs::remove_dir_all(bed.data().join("index")).unwrap();
    bed
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    files.sort();
    files
}

fn segments(bed: &Bed) -> Vec<PathBuf> {
    files(&bed.data().join("index/segments"))
}

/// Waits until a finished snapshot lists a segment. A snapshot that is being written has a manifest too, in a folder that
/// is renamed at the end.
async fn saved(bed: &Bed) {
    let is_saved = async || {
        let manifests = files(&bed.data().join("index"));
        let is_finished = |path: &Path| !path.to_string_lossy().contains(".partial-");
        let mut manifests =
            manifests.iter().filter(|path| path.ends_with("manifest.json") && is_finished(path));
        let text = fs::read_to_string(manifests.next()?).ok()?;
        text.contains(".segment").then_some(())
    };
    until("a snapshot holds a segment", is_saved).await;
}

/// Hits of clips and full videos with their scores: from exact search, from the graph, and from text windows.
async fn answers(server: &Server) -> Vec<Value> {
    let long = "a dive with a twist and a half. ".repeat(40);
    let mut found = Vec::new();
    for (text, limit, exact) in
        [("x", 5, false), ("x", 30, true), ("a dive", 30, true), (long.as_str(), 30, true)]
    {
        let query = json!({"query": {"text": text}, "level": "both", "limit": limit, "exact": exact});
        let answer = server.search(&query).await;
        for list in ["results", "videos"] {
            let hits = answer[list].as_array().unwrap().iter();
            found.extend(hits.map(|hit| json!([hit["clip_id"], hit["video_id"], hit["score"]])));
        }
    }
    found
}

fn check_index(data: &Path) -> Output {
    let mut command = Command::new(binary());
    command.args(["index", "check", "--json", "--sample", "100", "--data-dir"]).arg(data);
    command.env_remove("DATABASE_URL").output().unwrap()
}

/// Rebuilds the snapshot, whose segment must have these codes. Returns the size of the clips in bytes.
fn rebuild(bed: &Bed, flags: &[&str], codes: &str) -> u64 {
    let mut command = Command::new(binary());
    command.args(["index", "rebuild", "--json"]).args(flags).arg("--data-dir").arg(bed.data());
    let output = command.env_remove("DATABASE_URL").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&clips(&found)["vectors"], &clips(&found)["graph"]), (&json!(VIDEOS * CLIPS), &json!(true)));
    let held = segments(bed);
    assert_eq!(held.len(), 1, "{held:?}");
    let header = fs::read(&held[0]).unwrap()[..200].to_vec();
    assert!(String::from_utf8_lossy(&header).contains(&format!("\"codes\":\"{codes}\"")));
    clips(&found)["bytes"].as_u64().unwrap()
}

/// The report of `reprise index check`. Its list of faults must be empty exactly if the exit code is 0.
fn checked(bed: &Bed) -> Value {
    let output = check_index(&bed.data());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let wrong = found["wrong"].as_array().unwrap();
    assert_eq!(output.status.success(), wrong.is_empty(), "{said}");
    assert!(wrong.iter().all(|wrong| said.contains(wrong.as_str().unwrap())), "{said}");
    found
}

fn clips(found: &Value) -> &Value {
    found["levels"].as_array().unwrap().iter().find(|level| level["level"] == "clip").unwrap()
}

#[tokio::test]
async fn a_sealed_index_is_saved_at_once_and_outlives_a_crash() {
    let bed = stocked().await;
    let server = bed.start(&[]);
    saved(&bed).await;
    let before = answers(&server).await;
    server.kill();
    let held = segments(&bed);
    let server = bed.start(&[]);
    assert!(bed.log().contains("the index snapshot is loaded"), "{}", bed.log());
    assert!(!bed.log().contains("making the index hold"), "{}", bed.log());
    assert_eq!(answers(&server).await, before);
    assert!(server.stop());
    assert_eq!(segments(&bed), held, "nothing is sealed twice");
}

#[tokio::test]
async fn flipped_bits_of_a_segment_never_change_an_answer_and_are_mended() {
    let bed = stocked().await;
    let server = bed.start(&[]);
    saved(&bed).await;
    let before = answers(&server).await;
    assert!(server.stop());
    // From the end: checksums, vectors of the last blocks, vectors of the first, codes, links and keys, header.
    for place in [0.999_99, 0.95, 0.6, 0.2, 0.05, 0.0] {
        rebuild(&bed, &["--index-codes", "int8"], "int8");
        let segment = segments(&bed).remove(0);
        let mut bytes = fs::read(&segment).unwrap();
        let at = (place * bytes.len() as f64) as usize;
        bytes[at] ^= 0x10;
        fs::write(&segment, bytes).unwrap();
        let is_vectors = (0.6..0.99).contains(&place);
        let found = checked(&bed);
        assert!(!found["wrong"].as_array().unwrap().is_empty(), "{place}: {found}");
        assert_eq!(clips(&found)["damaged"].as_u64() > Some(0), is_vectors, "{place}: {found}");

        let server = bed.start(&[]);
        assert_eq!(answers(&server).await, before, "{place}");
        if is_vectors {
            let mended =
                async || server.metric("reprise_index_mended_total").await.filter(|count| *count > 0.0);
            let mended = until("it is mended", mended).await;
            assert_eq!(Some(mended as u64), clips(&found)["damaged"].as_u64());
            assert!(bed.log().contains("look after the disk"), "{}", bed.log());
        } else {
            assert!(bed.log().contains("a part of the index is read from the catalog"), "{}", bed.log());
        }
        assert_eq!(answers(&server).await, before, "{place}");
        assert!(server.stop());
        let whole = async || Some(checked(&bed)).filter(|found| found["wrong"] == json!([]));
        until("the snapshot is whole", whole).await;
    }
}

/// Hits for a stored vector among all clips as (key, score): automatic, exact, and with a filter.
async fn found(vectors: &Vectors, at: Collection, query: &UnitVector) -> Vec<Vec<(SpanKey, f32)>> {
    let odd: KeySet = (1..20_000).step_by(2).map(SpanKey::new).collect();
    let mut all = Vec::new();
    for (exact, only) in [(true, None), (true, Some(&odd)), (false, Some(&odd)), (false, None)] {
        let ask = Ask { k: 12, only: only.cloned().map(Allowed::keys), exact };
        let found = vectors.search(at, std::slice::from_ref(query), &ask).await.unwrap().remove(0);
        assert!(found.exact || !exact);
        all.push(found.hits.iter().map(|hit| (hit.key, hit.score)).collect());
    }
    all
}

#[tokio::test]
async fn what_cannot_be_read_is_scored_as_the_catalog_has_it() {
    let bed = stocked().await;
    rebuild(&bed, &["--index-codes", "int8"], "int8");
    let catalog = catalog::open(&catalog::embedded_url(&bed.data())).await.unwrap();
    let space = catalog.spaces().await.unwrap().remove(0);
    let at = Collection { space: space.key, level: Level::Clip };
    let keys: Vec<SpanKey> =
        catalog.vector_keys(space.key, Level::Clip).await.unwrap().iter().step_by(997).collect();
    let queries = catalog.vectors_of(space.key, &keys).await.unwrap();
    // Without background repairs.
    let open = async || {
        let folder = bed.data().join("index");
        let (kind, builtin) = (EngineKind::Builtin, Settings::default());
        let settings = EngineSettings { kind, url: None, catalog_url: String::new(), folder, builtin };
        Vectors::open(settings, catalog.clone(), vec![space.expectation()]).await.unwrap()
    };
    let vectors = open().await;
    let mut before = Vec::new();
    for query in &queries {
        before.push(found(&vectors, at, &query.unit).await);
    }
    let segment = segments(&bed).remove(0);
    let mut bytes = fs::read(&segment).unwrap();
    let at_vectors = bytes.len() * 6 / 10;
    bytes[at_vectors] ^= 0x10;
    fs::write(&segment, bytes).unwrap();

    let vectors = open().await;
    for (query, before) in queries.iter().zip(&before) {
        assert_eq!(found(&vectors, at, &query.unit).await, *before);
    }
    let folder = bed.data().join("index");
    let index = Index::load(&folder, &[space.expectation()], Settings::default()).unwrap().index;
    let damaged = index.verify();
    assert_eq!(damaged.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [at]);
    let key = SpanKey::new(damaged[0].1[0]);
    assert_eq!(index.vector(at, key.number()), None);
    let stored = catalog.vectors_of(space.key, &[key]).await.unwrap().remove(0).unit;
    let asked = [stored.clone(), queries[0].unit.clone()];
    let scored = vectors.scores(at, &KeySet::from_iter([key]), &asked).await.unwrap();
    assert_eq!(scored.len(), 1);
    assert_eq!(
        (scored[0].key, &scored[0].cosines),
        (key, &vec![stored.dot(&asked[0]), stored.dot(&asked[1])])
    );
}

#[tokio::test]
async fn a_check_finds_what_differs_beside_a_server_and_changes_nothing() {
    let bed = stocked().await;
    for (data, expected) in [(bed.folder().join("nothing"), "can't open"), (bed.data(), "no snapshot")] {
        let said = String::from_utf8(check_index(&data).stderr).unwrap();
        assert!(said.contains(expected), "{said}");
    }
    assert!(!bed.folder().join("nothing").exists());
    let server = bed.start(&[]);
    saved(&bed).await;
    let times = || {
        files(&bed.data().join("index"))
            .into_iter()
            .map(|path| (path.metadata().unwrap().modified().unwrap(), path))
            .collect::<Vec<_>>()
    };
    let written = times();
    let found = checked(&bed);
    assert_eq!((&found["wrong"], found["levels"].as_array().unwrap().len()), (&json!([]), 2), "{found}");
    let level = clips(&found);
    assert_eq!((&level["vectors"], &level["graph"]), (&json!(VIDEOS * CLIPS), &json!(true)));
    assert!(
        level["recall_at_10"].as_f64() > Some(0.95) && level["bytes"].as_u64() > Some(1_000_000),
        "{level}"
    );
    // Changes after the snapshot are no difference.
    let (_, listed) = server.get("/v1/videos?limit=1").await;
    let id = listed["items"][0]["id"].as_str().unwrap();
    assert_eq!(server.delete(&format!("/v1/videos/{id}")).await.0, 204);
    assert_eq!(checked(&bed)["wrong"], json!([]));
    assert_eq!(times(), written, "nothing was written or removed");
    assert!(server.stop());

    // A row deleted without a change is a difference.
    let gone = lose_one_vector(&bed).await;
    let found = checked(&bed);
    let level = clips(&found);
    assert_eq!(
        (&level["extra_keys"], &level["missing"], &level["keys_equal"]),
        (&json!([gone]), &json!(0), &json!(false))
    );
    let server = bed.start(&[]);
    assert!(bed.log().contains("making the index hold"), "{}", bed.log());
    assert!(server.stop());
    assert_eq!(checked(&bed)["wrong"], json!([]));
}

/// Deletes a row behind the catalog's back. Returns its span.
async fn lose_one_vector(bed: &Bed) -> i64 {
    let mut connection = sqlx::SqliteConnection::connect(&catalog::embedded_url(&bed.data())).await.unwrap();
    let (span,): (i64,) =
        sqlx::query_as("SELECT max(span) FROM embeddings").fetch_one(&mut connection).await.unwrap();
    sqlx::query("DELETE FROM embeddings WHERE span = $1").bind(span).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    span
}

#[tokio::test]
async fn a_running_server_says_how_good_its_index_is_and_makes_it_hold_what_the_catalog_has() {
    let bed = stocked().await;
    let server = bed.start(&["--index-check-seconds", "0.05", "--index-recall-target", "1"]);
    let level = async || clips(&json!({"levels": server.get("/v1/stats").await.1["index"]})).clone();
    let measured = async || Some(level().await).filter(|level| level["recall_at_10"].is_number());
    let level = until("recall is measured", measured).await;
    assert_eq!(
        (&level["live"], &level["graph"], &level["keys_equal"]),
        (&json!(VIDEOS * CLIPS), &json!(true), &json!(true))
    );
    assert!(
        level["bytes"].as_u64() > Some(1_000_000) && level["checked_at"].as_str().unwrap().ends_with('Z'),
        "{level}"
    );
    let recall = level["recall_at_10"].as_f64().unwrap();
    assert!(recall > 0.95, "{level}");
    assert_eq!(bed.log().contains("the index finds less than it should"), recall < 1.0);
    let labels = "{space=\"tiny-";
    for (name, expected) in [("recall_at_10", recall), ("keys_equal", 1.0)] {
        assert_eq!(server.metric(&format!("reprise_index_{name}{labels}")).await, Some(expected), "{name}");
    }
    assert!(server.metric(&format!("reprise_index_bytes{labels}")).await > Some(0.0));

    // The server notices a row deleted without a change when anything else changes.
    lose_one_vector(&bed).await;
    let (_, listed) = server.get("/v1/videos?limit=1").await;
    assert_eq!(
        server.delete(&format!("/v1/videos/{}", listed["items"][0]["id"].as_str().unwrap())).await.0,
        204
    );
    let completed = async || bed.log().contains("holds other spans than the catalog").then_some(());
    until("the lost row is noticed", completed).await;
    let held = async || {
        let stats = server.get("/v1/stats").await.1;
        let live: u64 =
            stats["index"].as_array().unwrap().iter().filter_map(|level| level["live"].as_u64()).sum();
        (stats["vectors"].as_u64() == Some(live)).then_some(())
    };
    until("the index holds what the catalog has", held).await;
}

#[tokio::test]
async fn groups_are_full_although_one_video_owns_the_best_hits() {
    let bed = stocked().await;
    rebuild(&bed, &["--index-codes", "int8"], "int8");
    let server = bed.start(&[]);
    let (_, listed) = server.get("/v1/videos?limit=1").await;
    let owner = listed["items"][0]["id"].as_str().unwrap();
    let flat = server.search_hits(json!({"query": {"text": "x"}, "limit": CLIPS + 1})).await;
    let owned = flat.iter().take_while(|hit| hit["video_id"] == owner).count();
    assert_eq!(owned as u32, CLIPS, "all of one video's clips come before any other");
    for exact in [false, true] {
        // Requested groups, groups in the answer, and the rest on the second page; `None` if the first page exhausts
        // the search.
        for (limit, count, rest) in
            [(5, 5, Some(5)), (VIDEOS - 1, VIDEOS - 1, Some(1)), (VIDEOS, VIDEOS, None), (100, VIDEOS, None)]
        {
            let query = json!({"query": {"text": "x"}, "group_by": "video", "per_group": 3, "limit": limit, "exact": exact});
            let answer = server.search(&query).await;
            let groups = answer["groups"].as_array().unwrap();
            assert_eq!((groups.len() as u32, &groups[0]["video_id"]), (count, &json!(owner)));
            assert!(
                groups.iter().all(|group| group["results"].as_array().unwrap().len() == 3),
                "all are full"
            );
            assert_eq!(
                (&answer["exhausted"], answer["next_cursor"].is_null()),
                (&json!(rest.is_none()), rest.is_none())
            );
            if let Some(rest) = rest {
                let next = server.search(&json!({"cursor": answer["next_cursor"]})).await;
                let more = next["groups"].as_array().unwrap();
                assert_eq!((more.len(), &next["exhausted"]), (rest, &json!(limit + rest as u32 == VIDEOS)));
                assert!(
                    more.iter().all(|group| groups.iter().all(|one| one["video_id"] != group["video_id"]))
                );
            }
        }
    }
}

#[tokio::test]
async fn segments_hold_the_codes_that_were_asked_for_and_a_server_uses_them() {
    let bed = stocked().await;
    let bytes = ["f32", "f16", "int8", "int4"].map(|codes| rebuild(&bed, &["--index-codes", codes], codes));
    // 64 values of 4 bytes, against 2 bytes each, or against 1 byte each or half of one, with padding; in whole pages, so
    // that a difference may lack a part of one.
    let least = 64 * 2 * u64::from(VIDEOS * CLIPS) / 4_096 * 4_096;
    assert!(bytes[1..].iter().all(|fewer| fewer + least <= bytes[0]), "{bytes:?}");
    let held = segments(&bed);
    let server = bed.start(&["--index-codes", "f32"]);
    let stats = server.get("/v1/stats").await.1;
    assert_eq!(
        clips(&json!({"levels": stats["index"]}))["bytes"],
        bytes[3],
        "only new segments are of other codes"
    );
    assert!(server.stop());
    assert_eq!(segments(&bed), held);
}

#[tokio::test]
async fn a_server_without_memory_for_the_index_answers_the_same() {
    let bed = stocked().await;
    rebuild(&bed, &["--index-codes", "f32"], "f32");
    let server = bed.start(&[]);
    let expected = answers(&server).await;
    assert!(server.stop());
    let server = bed.start(&["--index-memory", "0"]);
    assert_eq!(answers(&server).await, expected);
    assert!(server.stop());
    rebuild(&bed, &["--index-codes", "f32", "--index-memory", "0"], "int4");
    let server = bed.start(&["--index-memory", "0"]);
    assert_eq!(answers(&server).await, expected);
    assert!(server.stop());
}
