//! A server that dies between deleting a video and freeing its files.

use std::fs;
use std::path::PathBuf;

use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::bed::{Bed, assert_consistent, assert_whole, on_both, see_through, text, until, upload, videos};

on_both!(
    a_deleted_video_is_hidden_before_it_is_purged_and_purged_after_a_kill,
    a_deleted_video_leaves_no_file,
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
    let folders = ["videos", "features", "thumbnails", "previews", "renditions"];
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
    assert_eq!(server.delete(&format!("/v1/videos/{doomed}")).await.0, StatusCode::NO_CONTENT);
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
    assert!(files(bed, &video).len() >= 3 && files(bed, clip).len() == 1, "{:?}", files(bed, &video));
    assert_eq!(server.delete(&format!("/v1/videos/{video}")).await.0, StatusCode::NO_CONTENT);
    let gone = async || (files(bed, &video).is_empty() && files(bed, clip).is_empty()).then_some(());
    until("its files are gone", gone).await;
}
