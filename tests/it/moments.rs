//! Moments inside clips, through a running server with a model that depends on frame order.

use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::{Value, json};

use crate::faults::bed::until;

/// A model that depends on frame order.
const TEMPORAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/parity/data/covr/bert");

/// Stores a film without repetition, with one given clip of six seconds. Returns the ids of video and clip.
async fn given(server: &Server, folder: &Path) -> (String, String) {
    let file = film(folder, "moving", &["testsrc2", "mandelbrot", "testsrc"], Store::Lossless);
    let clip = json!({"start": 0.0, "end": 6.0});
    let parts = [("segmentation", json!({"policy": "given", "clips": [clip]}))];
    let video = server.ingest_with(&file, &parts).await["id"].as_str().expect("a video has an id").to_owned();
    let (_, clips) = server.get(&format!("/v1/videos/{video}/clips")).await;
    let clips = clips["items"].as_array().expect("clips are a list");
    assert_eq!(clips.len(), 1, "moments are no clips of the list: {clips:?}");
    (video, clips[0]["id"].as_str().expect("a clip has an id").to_owned())
}

async fn hits(server: &Server, video: &str, (start, end): (f64, f64)) -> Vec<(String, f64, f64)> {
    let body = json!({
        "query": {"clip": {"video_id": video, "start": start, "end": end}},
        "exclude": {"self": false},
        "limit": 100,
    });
    let hits = server.search_hits(body).await;
    let seconds = |hit: &Value, name: &str| hit[name].as_f64().expect("a time");
    let level = |hit: &Value| hit["level"].as_str().expect("a level").to_owned();
    hits.iter().map(|hit| (level(hit), seconds(hit, "start"), seconds(hit, "end"))).collect()
}

/// Checks that two hits overlap by at most half of their union, unless both are clips.
fn assert_apart(hits: &[(String, f64, f64)]) {
    for (at, one) in hits.iter().enumerate() {
        for other in &hits[at + 1..] {
            let shared = one.2.min(other.2) - one.1.max(other.1);
            let union = one.2.max(other.2) - one.1.min(other.1);
            let clips = one.0 == "clip" && other.0 == "clip";
            assert!(clips || 2.0 * shared <= union + 1e-9, "{one:?} and {other:?}");
        }
    }
}

/// Number of the server's searchable vectors: clips and moments.
async fn live(server: &Server, video: &str) -> Value {
    let body = json!({"query": {"clip": {"video_id": video, "start": 0.0, "end": 6.0}}});
    server.search(&body).await["index"]["live"].clone()
}

#[tokio::test]
async fn a_stretch_inside_a_long_clip_is_found_with_its_own_times() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--model", TEMPORAL]);
    let (video, clip) = given(&server, folder.path()).await;
    // 11 moments of 1 s, 5 of 2 s and 2 of 4 s in a clip of 6 s.
    assert_eq!(live(&server, &video).await, json!(1 + 18));
    for range in [(0.5, 1.5), (3.0, 5.0), (2.0, 6.0)] {
        let hits = hits(&server, &video, range).await;
        assert_eq!(hits[0], ("moment".to_owned(), range.0, range.1), "{hits:?}");
        assert_apart(&hits);
    }
    let (status, answer) = server.delete(&format!("/v1/clips/{clip}")).await;
    assert!(status.is_success(), "{answer}");
    assert_eq!(live(&server, &video).await, json!(0), "moments go with their clip");
}

#[tokio::test]
async fn a_model_that_comes_later_fills_in_the_moments() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--model", "builtin:tiny"]);
    let (video, _) = given(&server, folder.path()).await;
    assert_eq!(live(&server, &video).await, json!(1), "this model has no moments");
    assert!(server.stop(), "it did not stop well");
    let both = ["--model", &format!("clip={TEMPORAL}"), "--model", "text,composed=builtin:tiny"];
    let server = Server::start(folder.path(), &both);
    let filled = async || {
        let (_, spaces) = server.get("/v1/spaces").await;
        let all = spaces["items"].as_array().expect("spaces are a list").clone();
        all.iter().all(|it| it["coverage"].as_f64() == Some(1.0)).then_some(())
    };
    until("the new space is filled", filled).await;
    assert_eq!(live(&server, &video).await, json!(1 + 18));
    assert_eq!(hits(&server, &video, (3.0, 5.0)).await[0], ("moment".to_owned(), 3.0, 5.0));
}

#[tokio::test]
async fn hits_that_show_one_moment_are_one_entry_on_whatever_page() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--model", TEMPORAL]);
    let (video, clip) = given(&server, folder.path()).await;
    let query = json!({"clip": {"video_id": video, "start": 3.0, "end": 5.0}});
    let body = |overlaps: &str, limit: usize| json!({"query": query, "exclude": {"self": false}, "overlaps": overlaps, "limit": limit});
    let folded = server.search_hits(body("fold", 100)).await;
    let inside = |hit: &Value| hit["folded"].as_array().cloned().unwrap_or_default();
    assert_eq!(folded.iter().map(|hit| 1 + inside(hit).len()).sum::<usize>(), 1 + 18, "clip and moments");
    assert_eq!((&folded[0]["level"], &folded[0]["start"]), (&json!("moment"), &json!(3.0)));
    let holds_clip = |hit: &&Value| inside(hit).iter().any(|it| it["clip_id"] == json!(clip));
    assert_eq!(folded.iter().filter(holds_clip).count(), 1);
    assert_apart_strictly(&folded);
    let mut paged = Vec::new();
    let mut page = server.search(&body("fold", 2)).await;
    loop {
        paged.extend(page["results"].as_array().expect("hits").clone());
        if page["next_cursor"].is_null() {
            break;
        }
        page = server.search(&json!({"cursor": page["next_cursor"]})).await;
    }
    assert_eq!(paged, folded);
    let kept = server.search_hits(body("keep", 100)).await;
    assert!(!kept.is_empty() && kept.iter().all(|hit| hit.get("folded").is_none()));
}

/// Checks that no two hits overlap by more than half of their union.
fn assert_apart_strictly(hits: &[Value]) {
    let time = |hit: &Value, name: &str| hit[name].as_f64().expect("a time");
    for (at, one) in hits.iter().enumerate() {
        for other in &hits[at + 1..] {
            let shared =
                time(one, "end").min(time(other, "end")) - time(one, "start").max(time(other, "start"));
            let union =
                time(one, "end").max(time(other, "end")) - time(one, "start").min(time(other, "start"));
            assert!(2.0 * shared <= union + 1e-9, "{one} and {other}");
        }
    }
}
