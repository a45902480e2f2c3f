//! Deleted videos: in the trash, out of it again, and purged, also by a server that dies in between.

use std::fs;
use std::path::PathBuf;

use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::bed::{
    Bed, assert_consistent, assert_whole, decoding, on_both, see_through, text, until, upload, videos,
};

on_both!(
    a_deleted_video_is_hidden_before_it_is_purged_and_purged_after_a_kill,
    a_deleted_video_leaves_no_file,
    a_video_leaves_the_trash_as_it_was,
    a_video_that_is_deleted_during_its_ingest_is_ingested_after_a_restore,
    a_server_without_a_trash_purges_at_once,
);

/// As long as features are no folder, no purge gets to its end.
fn hold_up_purges(bed: &Bed) {
    fs::rename(bed.data().join("features"), bed.data().join("aside")).unwrap();
    fs::write(bed.data().join("features"), "").unwrap();
}

fn let_purges_go_on(bed: &Bed) {
    fs::remove_file(bed.data().join("features")).unwrap();
    fs::rename(bed.data().join("aside"), bed.data().join("features")).unwrap();
}

/// Files and folders of the data folder that bear this id.
fn files(bed: &Bed, id: &str) -> Vec<PathBuf> {
    let folders = ["videos", "features", "thumbnails", "previews", "renditions", "sprites"];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(bed.data().join(folder)).ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.to_string_lossy().contains(id)).collect()
}

async fn assert_hidden(server: &Server, video: &str, clip: &str) {
    for path in [
        format!("/v1/videos/{video}"),
        format!("/v1/videos/{video}/clips"),
        format!("/v1/videos/{video}/media"),
        format!("/v1/videos/{video}/thumbnail"),
        format!("/v1/videos/{video}/subtitles"),
        format!("/v1/videos/{video}/timeline?text=red"),
        format!("/v1/clips/{clip}"),
        format!("/v1/clips/{clip}/preview"),
    ] {
        assert_eq!(server.get(&path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(server.delete(&format!("/v1/videos/{video}")).await.0, StatusCode::NOT_FOUND);
    let (_, jobs) = server.get(&format!("/v1/jobs?video_id={video}")).await;
    assert_eq!(jobs["items"], json!([]), "{jobs}");
    for level in ["clip", "video", "both"] {
        for query in [json!({"text": "a clean entry"}), json!({"text": "red"})] {
            let body = json!({"query": query, "level": level, "exact": true, "limit": 1000});
            let hits = server.search_hits(body).await;
            assert!(hits.iter().all(|hit| hit["video_id"] != video), "it is still found: {hits:?}");
        }
    }
}

const SUBTITLES: &str = "1\n00:00:00,200 --> 00:00:01,400\nA clean entry into the water.\n";

async fn add_subtitles(server: &Server, video: &str) {
    let request = server.request("PUT", &format!("/v1/videos/{video}/subtitles/en"));
    let request = request.header("content-type", "application/x-subrip").body(SUBTITLES);
    assert_eq!(server.send(request).await.0, StatusCode::OK);
}

async fn a_deleted_video_is_hidden_before_it_is_purged_and_purged_after_a_kill(bed: &Bed) {
    let server = bed.start(&[]);
    let (kept, doomed) = (server.ingest(&bed.film(0, 2)).await, server.ingest(&bed.film(1, 2)).await);
    let (kept, doomed) = (text(&kept, "/id"), text(&doomed, "/id"));
    add_subtitles(&server, doomed).await;
    let (_, clips) = server.get(&format!("/v1/videos/{doomed}/clips")).await;
    let clip = text(&clips, "/items/0/id");
    hold_up_purges(bed);
    assert_eq!(server.delete(&format!("/v1/videos/{doomed}?purge=true")).await.0, StatusCode::NO_CONTENT);
    assert_eq!(restore(&server, doomed).await.0, StatusCode::NOT_FOUND);
    assert_hidden(&server, doomed, clip).await;
    let stats = assert_consistent(&server).await;
    assert_eq!((&stats["videos"], &stats["passages"]), (&json!(1), &json!(0)), "{stats}");
    // Its content can be added again while it waits.
    let (status, again) = server.upload(&bed.film(1, 2), &[]).await;
    assert_eq!((status.as_u16(), &again["duplicate"]), (202, &json!(false)), "{again}");
    let (again, job) = (text(&again, "/video/id"), text(&again, "/job/id"));
    assert_ne!(again, doomed);
    server.kill();
    assert!(bed.data().join("aside").join(doomed).exists(), "it was purged already");

    let_purges_go_on(bed);
    let server = bed.start(&["--lease-seconds", "2"]);
    until("the files are gone", async || files(bed, doomed).is_empty().then_some(())).await;
    see_through(&server, job).await;
    assert_hidden(&server, doomed, clip).await;
    for video in [kept, again] {
        assert_whole(&server, video).await;
    }
    assert_consistent(&server).await;
    let left: Vec<Value> = videos(&server).await;
    assert_eq!(left.len(), 2, "{left:?}");
}

async fn a_deleted_video_leaves_no_file(bed: &Bed) {
    let server = bed.start(&[]);
    let (video, job) = upload(&server, &bed.film(0, 2)).await;
    see_through(&server, &job).await;
    let (_, clips) = server.get(&format!("/v1/videos/{video}/clips")).await;
    let clip = text(&clips, "/items/0/id");
    for path in [format!("/v1/videos/{video}/thumbnail"), format!("/v1/clips/{clip}/preview")] {
        assert_eq!(server.get(&path).await.0, StatusCode::OK, "{path}");
    }
    assert!(files(bed, &video).len() >= 3 && files(bed, clip).len() == 2, "{:?}", files(bed, &video));
    let path = format!("/v1/videos/{video}");
    assert_eq!(server.delete(&path).await.0, StatusCode::NO_CONTENT);
    assert_eq!(trash(&server).await.len(), 1);
    assert!(files(bed, &video).len() >= 3 && files(bed, clip).len() == 2, "{:?}", files(bed, &video));
    // From the trash too.
    assert_eq!(server.delete(&format!("{path}?purge=true")).await.0, StatusCode::NO_CONTENT);
    let gone = async || (files(bed, &video).is_empty() && files(bed, clip).is_empty()).then_some(());
    until("its files are gone", gone).await;
    assert_eq!(restore(&server, &video).await.0, StatusCode::NOT_FOUND);
    assert_eq!(server.delete(&format!("{path}?purge=true")).await.0, StatusCode::NOT_FOUND);
}

/// The videos in the trash.
async fn trash(server: &Server) -> Vec<Value> {
    let (status, page) = server.get("/v1/videos?trashed=true").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    page["items"].as_array().cloned().expect("a list")
}

/// The status, ETag and body of a restore.
async fn restore(server: &Server, video: &str) -> (StatusCode, String, Value) {
    let request = server.request("POST", &format!("/v1/videos/{video}/restore"));
    let answer = request.send().await.expect("the server answers");
    let tag = answer.headers().get("etag").map_or("", |tag| tag.to_str().expect("a tag is text")).to_owned();
    (answer.status(), tag, answer.json().await.expect("it is JSON"))
}

async fn found_by_word(server: &Server, video: &str) -> bool {
    let body = json!({"query": {"text": "a clean entry"}, "sources": ["spoken"]});
    server.search_hits(body).await.iter().any(|hit| hit["video_id"] == video)
}

async fn a_video_leaves_the_trash_as_it_was(bed: &Bed) {
    let server = bed.start(&[]);
    server.ingest(&bed.film(0, 2)).await;
    let parts = [("metadata", json!({"event": "vault"}))];
    let video = server.ingest_with(&bed.film(1, 3), &parts).await;
    let id = text(&video, "/id");
    add_subtitles(&server, id).await;
    let (_, given) = server.post(&format!("/v1/videos/{id}/clips"), &json!({"start": 0.5, "end": 1.5})).await;
    see_through(&server, text(&given, "/job/id")).await;
    let range = json!([{"video_id": id, "start": 0.5, "end": 1.5}]);
    let (_, reel) = server.post("/v1/reels", &json!({"name": "a reel", "ranges": range})).await;
    let before = server.get(&format!("/v1/videos/{id}")).await.1;
    let (clips, stats) =
        (server.get(&format!("/v1/videos/{id}/clips")).await.1, assert_consistent(&server).await);
    let (_, tag, same) = restore(&server, id).await;
    assert_eq!((&same, same["restored_at"].is_null()), (&before, true), "it is not in the trash");
    assert!(found_by_word(&server, id).await);

    assert_eq!(server.delete(&format!("/v1/videos/{id}")).await.0, StatusCode::NO_CONTENT);
    assert_hidden(&server, id, text(&clips, "/items/0/id")).await;
    assert_consistent(&server).await;
    let listed = trash(&server).await;
    let (deleted, purged) = (text(&listed[0], "/deleted_at"), text(&listed[0], "/purge_at"));
    assert_eq!((listed.len(), text(&listed[0], "/id")), (1, id));
    let at = |text: &str| reprise_server::catalog::instant::parse(text).expect("an instant");
    assert_eq!(at(purged) - at(deleted), 7 * 24 * 3600 * 1000);
    assert_eq!(bed.run(&["verify"]).status.code(), Some(0), "a video in the trash is no fault");
    server.kill();

    let server = bed.start(&["--lease-seconds", "2"]);
    assert_hidden(&server, id, text(&clips, "/items/0/id")).await;
    let (status, new_tag, restored) = restore(&server, id).await;
    assert_eq!((status, &restored["deleted_at"]), (StatusCode::OK, &Value::Null), "{restored}");
    assert!(!tag.is_empty() && tag != new_tag, "{tag} {new_tag}");
    let since = json!({"restored_at": restored["restored_at"]});
    let mut expected = before;
    expected.as_object_mut().expect("an object").extend(since.as_object().cloned().expect("an object"));
    assert_eq!(restored, expected);
    assert_eq!(server.get(&format!("/v1/videos/{id}/clips")).await.1, clips);
    assert_whole(&server, id).await;
    assert!(found_by_word(&server, id).await);
    let now = assert_consistent(&server).await;
    assert_eq!((&now["videos"], &now["vectors"]), (&stats["videos"], &stats["vectors"]));
    let (_, reel) = server.get(&format!("/v1/reels/{}", text(&reel, "/id"))).await;
    assert_eq!(text(&reel, "/ranges/0/video_id"), id);
    assert_eq!(trash(&server).await, [] as [Value; 0]);
    let (status, _) = server.get(&format!("/v1/videos/{id}/media")).await;
    assert_eq!(status, StatusCode::OK);
}

async fn a_video_that_is_deleted_during_its_ingest_is_ingested_after_a_restore(bed: &Bed) {
    let film = bed.film(0, 8);
    bed.slow(true);
    let server = bed.start(&[]);
    let (video, id) = upload(&server, &film).await;
    decoding(&server, &id).await;
    assert_eq!(server.delete(&format!("/v1/videos/{video}")).await.0, StatusCode::NO_CONTENT);
    assert_eq!(server.get(&format!("/v1/jobs/{id}")).await.0, StatusCode::NOT_FOUND);
    // The same bytes are another video meanwhile.
    bed.slow(false);
    let again = server.ingest(&film).await;
    assert_ne!(text(&again, "/id"), video);
    assert_eq!(restore(&server, &video).await.0, StatusCode::OK);
    see_through(&server, &id).await;
    for video in [&video, text(&again, "/id")] {
        assert_whole(&server, video).await;
    }
    assert_consistent(&server).await;
}

async fn a_server_without_a_trash_purges_at_once(bed: &Bed) {
    let server = bed.start(&[]);
    let videos = [server.ingest(&bed.film(0, 2)).await, server.ingest(&bed.film(1, 2)).await];
    let [one, other] = videos.each_ref().map(|video| text(video, "/id"));
    assert_eq!(server.delete(&format!("/v1/videos/{one}")).await.0, StatusCode::NO_CONTENT);
    assert!(server.stop(), "it did not stop well");
    let server = bed.start(&["--trash-days", "0"]);
    until("the trash is empty", async || files(bed, one).is_empty().then_some(())).await;
    assert_eq!(server.delete(&format!("/v1/videos/{other}")).await.0, StatusCode::NO_CONTENT);
    assert_eq!(restore(&server, other).await.0, StatusCode::NOT_FOUND);
    until("its files are gone", async || files(bed, other).is_empty().then_some(())).await;
    assert_eq!(trash(&server).await, [] as [Value; 0]);
}
