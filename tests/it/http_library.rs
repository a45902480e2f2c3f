//! Videos, clips and jobs over HTTP: adding, repeating, listing, updating, deleting.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use reprise_tests::film::{Store, ffmpeg, film, run};
use reprise_tests::server::Server;
use reqwest::{StatusCode, multipart};
use serde_json::{Value, json};

use crate::faults::bed::until;

fn start(more: &[&str]) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, more);
    (folder, server)
}

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

/// Adds a file with an Idempotency-Key.
async fn add_with_key(server: &Server, file: &Path, key: &str, metadata: &Value) -> (StatusCode, Value) {
    let form =
        multipart::Form::new().text("metadata", metadata.to_string()).file("file", file).await.unwrap();
    let request = server.request("POST", "/v1/videos").header("idempotency-key", key).multipart(form);
    server.send(request).await
}

fn stored_files(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("data/videos")).unwrap().count()
}

#[tokio::test]
async fn videos_are_added_once_per_content_and_once_per_key() {
    let (folder, server) = start(&[]);
    let file = film(folder.path(), "dive", &["testsrc2", "color=c=red"], Store::Web);
    let (status, first) = add_with_key(&server, &file, "one", &json!({"a": 1})).await;
    assert_eq!(status, 202, "{first}");
    assert_eq!((&first["duplicate"], &first["video"]["state"]), (&json!(false), &json!("pending")));
    assert_eq!(
        (&first["video"]["title"], &first["video"]["file_name"]),
        (&json!("dive"), &json!("dive.mp4"))
    );
    let job = server.job_end(id(&first["job"])).await;
    assert_eq!(
        (&job["state"], &job["progress"], &job["video_id"]),
        (&json!("succeeded"), &json!(1.0), &first["video"]["id"])
    );

    let (status, again) = add_with_key(&server, &file, "one", &json!({"a": 1})).await;
    assert_eq!(
        (status.as_u16(), &again["video"]["id"], &again["job"]["id"]),
        (202, &first["video"]["id"], &first["job"]["id"])
    );
    assert_eq!(again["duplicate"], false, "the answer of the first request");
    let (status, other) = add_with_key(&server, &file, "one", &json!({"a": 2})).await;
    assert_eq!(
        (status.as_u16(), &other["errors"][0]["pointer"]),
        (409, &json!("Idempotency-Key")),
        "{other}"
    );
    let (status, duplicate) = add_with_key(&server, &file, "two", &json!({"a": 2})).await;
    assert_eq!(
        (status.as_u16(), &duplicate["video"]["id"], &duplicate["duplicate"]),
        (202, &first["video"]["id"], &json!(true))
    );
    let (status, plain) = server.upload(&file, &[]).await;
    assert_eq!((status.as_u16(), &plain["duplicate"]), (202, &json!(true)));
    assert_eq!(stored_files(folder.path()), 1);

    let file = film(folder.path(), "same time", &["color=c=blue", "smptebars"], Store::Web);
    let metadata = json!({});
    let at_once = (0..4).map(|_| add_with_key(&server, &file, "three", &metadata));
    let answers = futures_util::future::join_all(at_once).await;
    let ids: HashSet<&str> = answers.iter().map(|(_, answer)| id(&answer["video"])).collect();
    let jobs: HashSet<&str> = answers.iter().map(|(_, answer)| id(&answer["job"])).collect();
    assert!(
        answers.iter().all(|(status, answer)| *status == 202 && answer["duplicate"] == false),
        "{answers:?}"
    );
    assert_eq!(
        (ids.len(), jobs.len(), stored_files(folder.path())),
        (1, 1, 2),
        "one video, one job, one file"
    );
    for key in ["", &"k".repeat(256)] {
        let (status, problem) = add_with_key(&server, &file, key, &metadata).await;
        assert_eq!((status.as_u16(), &problem["errors"][0]["pointer"]), (422, &json!("Idempotency-Key")));
    }
    let gone = id(&first["video"]);
    assert_eq!(server.delete(&format!("/v1/videos/{gone}")).await.0, 204);
    let (status, new) = add_with_key(&server, &file, "four", &metadata).await;
    assert_eq!((status.as_u16(), &new["duplicate"]), (202, &json!(true)));
}

#[tokio::test]
async fn what_is_no_video_is_refused_with_the_reason() {
    let (folder, server) = start(&[]);
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("text.mp4"), "just a text").unwrap();
    std::fs::write(at("empty.mp4"), "").unwrap();
    run(ffmpeg().args(["-f", "lavfi", "-i", "sine=d=1"]).arg(at("audio.mp4")));
    for name in ["text.mp4", "empty.mp4", "audio.mp4"] {
        let form = multipart::Form::new().file("file", at(name)).await.unwrap();
        let problem = server.refused(server.request("POST", "/v1/videos").multipart(form), 415).await;
        assert!(problem["detail"].as_str().unwrap().len() > 10, "{name}: {problem}");
        let (status, problem) = server.search_upload(&json!({"query": {"upload": true}}), &at(name)).await;
        assert_eq!(status, 415, "{name}: {problem}");
    }
    assert_eq!(stored_files(folder.path()), 0);
    assert_eq!(std::fs::read_dir(folder.path().join("data/incoming")).unwrap().count(), 0);
}

#[tokio::test]
async fn files_under_a_media_root_are_taken_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let (data, root) = (folder.path().join("data"), folder.path().join("root"));
    std::fs::create_dir(&data).unwrap();
    std::fs::create_dir(&root).unwrap();
    let server = Server::start(&data, &["--media-root", root.to_str().unwrap()]);
    let inside = film(&root, "inside", &["testsrc2"], Store::Web);
    let outside = film(folder.path(), "outside", &["testsrc"], Store::Web);
    std::os::unix::fs::symlink(&outside, root.join("link.mp4")).unwrap();
    std::os::unix::fs::symlink(folder.path(), root.join("up")).unwrap();
    let refused: [(PathBuf, u16); 7] = [
        (outside.clone(), 403),
        (root.join("../outside.mp4"), 403),
        (root.join("link.mp4"), 403),
        (root.join("up/outside.mp4"), 403),
        (root.join("missing.mp4"), 403),
        ("/etc/passwd".into(), 403),
        (root.clone(), 422),
    ];
    for (path, status) in refused {
        let request = server.request("POST", "/v1/videos").json(&json!({"path": path}));
        server.refused(request, status).await;
    }
    let body =
        json!({"path": inside, "title": "In place", "metadata": {"a": 1}, "recorded_at": "2024-07-01"});
    let (status, answer) = server.post("/v1/videos", &body).await;
    assert_eq!((status.as_u16(), &answer["video"]["title"]), (202, &json!("In place")), "{answer}");
    assert_eq!(server.job_end(id(&answer["job"])).await["state"], "succeeded");
    assert_eq!(stored_files(folder.path()), 0, "the file stays where it is");
    let (_, duplicate) = server.upload(&inside, &[]).await;
    assert_eq!(duplicate["duplicate"], true);
    let moved = root.join("moved.mp4");
    std::fs::rename(&inside, &moved).unwrap();
    for path in ["media", "thumbnail", "media?rendition=web"] {
        let path = format!("/v1/videos/{}/{path}", id(&answer["video"]));
        server.refused(server.request("GET", &path), 404).await;
    }
    // No frame is kept of this moment, so that it must be decoded.
    let image = json!({"video_id": answer["video"]["id"], "at": 0.3});
    let search = server.request("POST", "/v1/search").json(&json!({"query": {"image": image}}));
    server.refused(search, 404).await;
    std::fs::rename(&moved, &inside).unwrap();
    assert_eq!(server.delete(&format!("/v1/videos/{}", id(&answer["video"]))).await.0, 204);
    assert!(inside.exists(), "the user's file is the user's");

    for url in ["https://127.0.0.1/a.mp4", "https://example.com/a.mp4"] {
        let request = server.request("POST", "/v1/videos").json(&json!({"url": url}));
        assert!(server.refused(request, 403).await["detail"].as_str().unwrap().contains("--allow-url"));
    }
}

#[tokio::test]
async fn addresses_that_are_not_public_are_not_fetched() {
    let (_folder, server) = start(&["--allow-url"]);
    let cases = [
        ("https://127.0.0.1/a.mp4", 403),
        ("https://localhost/a.mp4", 403),
        ("https://[::1]/a.mp4", 403),
        ("https://10.0.0.1/a.mp4", 403),
        ("https://169.254.169.254/latest/meta-data", 403),
        ("https://2130706433/a.mp4", 403),
        ("https://0x7f.1/a.mp4", 403),
        ("http://93.184.216.34/a.mp4", 422),
        ("file:///etc/passwd", 422),
        ("ftp://example.com/a.mp4", 422),
        ("not a url", 422),
    ];
    for (url, status) in cases {
        server.refused(server.request("POST", "/v1/videos").json(&json!({"url": url})), status).await;
    }
}

#[tokio::test]
async fn a_library_is_listed_changed_and_emptied() {
    let (folder, server) = start(&[]);
    let mut videos = Vec::new();
    for (name, colour) in [("a", "red"), ("b", "blue"), ("c", "green")] {
        let file = film(folder.path(), name, &["testsrc2", &format!("color=c={colour}")], Store::Web);
        videos.push(server.ingest_with(&file, &[("metadata", json!({"colour": colour}))]).await);
    }
    videos_show_their_facts(&videos[0]);
    pages_hold_every_video_once_while_one_is_added(&server, folder.path(), &videos).await;
    a_patch_changes_what_it_names(&server, &videos[0]).await;
    given_clips_come_and_go(&server, &videos[1]).await;
    jobs_are_listed_and_followed(&server, &videos).await;
    a_deleted_video_is_gone_at_once(&server, folder.path(), &videos[2]).await;
}

fn videos_show_their_facts(video: &Value) {
    let expected = json!({
        "state": "ready", "duration": 4.0, "frame_rate": 25.0, "frames": 100, "width": 160, "height": 120,
        "codec": "h264", "variable_frame_rate": false, "media_offset": 0.0, "plays_in_browsers": true,
        "warnings": [], "metadata": {"colour": "red"}, "recorded_at": null, "clips": 2, "rendition_url": null,
        "segmentation": {"policy": "hybrid", "params": {
            "detector": "content", "threshold": 27.0, "filter": "merge", "min_scene_frames": 15,
            "weights": {"hue": 1.0, "saturation": 1.0, "value": 1.0, "edges": 0.0},
            "slide_area_percent": 1.0, "gradual": true, "min_clip_seconds": 0.5, "max_clip_seconds": 30.0,
        }},
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&video[name], value, "{name} of {video}");
    }
    assert_eq!(video["content_hash"].as_str().unwrap().len(), 64);
    assert!(video["created_at"].as_str().unwrap().ends_with('Z'));
}

async fn pages_hold_every_video_once_while_one_is_added(server: &Server, folder: &Path, videos: &[Value]) {
    let (_, first) = server.get("/v1/videos?limit=2").await;
    let late = server.ingest(&film(folder, "late", &["rgbtestsrc"], Store::Web)).await;
    let mut seen: Vec<Value> = first["items"].as_array().unwrap().clone();
    let mut cursor = first["next_cursor"].clone();
    while let Some(after) = cursor.as_str() {
        let (_, page) = server.get(&format!("/v1/videos?limit=2&cursor={after}")).await;
        seen.extend(page["items"].as_array().unwrap().clone());
        cursor = page["next_cursor"].clone();
    }
    let seen: Vec<&str> = seen.iter().map(id).collect();
    let mut expected: Vec<&str> = videos.iter().map(id).collect();
    expected.push(id(&late));
    assert_eq!(seen, expected, "oldest first, none twice, none skipped");
    let (_, clips) = server.get(&format!("/v1/videos/{}/clips?limit=1", id(&videos[0]))).await;
    let after = clips["next_cursor"].as_str().unwrap();
    let (_, rest) = server.get(&format!("/v1/videos/{}/clips?limit=1&cursor={after}", id(&videos[0]))).await;
    let range = |page: &Value| {
        (page["items"][0]["start"].as_f64().unwrap(), page["items"][0]["end"].as_f64().unwrap())
    };
    assert_eq!((range(&clips), range(&rest)), ((0.0, 2.0), (2.0, 4.0)));
}

async fn a_patch_changes_what_it_names(server: &Server, video: &Value) {
    let path = format!("/v1/videos/{}", id(video));
    let patch = |body: Value| server.send(server.request("PATCH", &path).json(&body));
    let (status, changed) =
        patch(json!({"title": "Finals", "metadata": {"round": 2}, "recorded_at": "2024-07-01"})).await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!((&changed["title"], &changed["metadata"]), (&json!("Finals"), &json!({"round": 2})));
    assert_eq!(patch(json!({})).await.1["metadata"], json!({"round": 2}), "what is not sent stays");
    let found = |field: Value| server.search_hits(json!({"query": {"text": "x"}, "filter": field}));
    assert_eq!(found(json!({"field": "metadata.round", "eq": 2})).await.len(), 2, "a filter sees it at once");
    assert_eq!(found(json!({"field": "recorded_at", "gte": "2024-01-01"})).await.len(), 2);
    let (_, emptied) = patch(json!({"metadata": null, "recorded_at": null})).await;
    assert_eq!((&emptied["metadata"], &emptied["recorded_at"]), (&json!({}), &Value::Null));
    assert_eq!(emptied["title"], "Finals");
    assert_eq!(found(json!({"field": "recorded_at", "gte": "2024-01-01"})).await.len(), 0);
}

async fn given_clips_come_and_go(server: &Server, video: &Value) {
    let path = format!("/v1/videos/{}/clips", id(video));
    let (status, added) =
        server.post(&path, &json!({"start": 1.0, "end": 3.0, "metadata": {"judge": "A"}})).await;
    assert_eq!(
        (status.as_u16(), &added["clip"]["given"], &added["job"]["kind"]),
        (202, &json!(true), &json!("fill"))
    );
    assert_eq!(server.job_end(id(&added["job"])).await["state"], "succeeded");
    let clip = format!("/v1/clips/{}", id(&added["clip"]));
    let judged = |name: &str| {
        let filter = json!({"field": "metadata.judge", "eq": name});
        server.search_hits(json!({"query": {"text": "x"}, "filter": filter}))
    };
    assert_eq!(judged("A").await[0]["clip_id"], added["clip"]["id"]);
    let (status, changed) =
        server.send(server.request("PATCH", &clip).json(&json!({"metadata": {"judge": "B"}}))).await;
    assert_eq!((status.as_u16(), &changed["metadata"]), (200, &json!({"judge": "B"})));
    assert_eq!((judged("A").await.len(), judged("B").await.len()), (0, 1));
    let (_, listed) = server.get(&path).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 3);
    assert_eq!(server.delete(&clip).await.0, 204);
    assert_eq!((judged("B").await.len(), server.get(&clip).await.0.as_u16()), (0, 404));
    let found = format!("/v1/clips/{}", id(&listed["items"][0]));
    server.refused(server.request("DELETE", &found), 409).await;
    server.refused(server.request("PATCH", &found).json(&json!({"metadata": {}})), 409).await;
    for (start, end, pointer) in [(3.0, 2.0, "/end"), (-1.0, 2.0, "/start"), (4.0, 5.0, "/start")] {
        let request = server.request("POST", &path).json(&json!({"start": start, "end": end}));
        assert_eq!(server.refused(request, 422).await["errors"][0]["pointer"], pointer);
    }
}

async fn jobs_are_listed_and_followed(server: &Server, videos: &[Value]) {
    let (_, all) = server.get("/v1/jobs").await;
    let items = all["items"].as_array().unwrap();
    assert_eq!(items.len(), 5, "four ingests and one fill: {all}");
    assert!(items.iter().map(id).is_sorted_by(|a, b| a > b), "newest first");
    for (query, expected) in
        [("kind=fill", 1), ("kind=ingest", 4), ("state=succeeded", 5), ("state=failed", 0)]
    {
        let (_, page) = server.get(&format!("/v1/jobs?{query}")).await;
        assert_eq!(page["items"].as_array().unwrap().len(), expected, "{query}");
    }
    let (_, page) = server.get(&format!("/v1/jobs?video_id={}", id(&videos[1]))).await;
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let (_, first) = server.get("/v1/jobs?limit=3").await;
    let (_, second) =
        server.get(&format!("/v1/jobs?limit=3&cursor={}", first["next_cursor"].as_str().unwrap())).await;
    let paged =
        [first["items"].as_array().unwrap().clone(), second["items"].as_array().unwrap().clone()].concat();
    assert_eq!(&paged, items);
    let job = format!("/v1/jobs/{}", id(&items[0]));
    assert_eq!(&server.get(&job).await.1, &items[0]);
    for action in ["cancel", "retry"] {
        server.refused(server.request("POST", &format!("{job}/{action}")), 409).await;
    }
}

async fn a_deleted_video_is_gone_at_once(server: &Server, folder: &Path, video: &Value) {
    let path = format!("/v1/videos/{}", id(video));
    let (_, clips) = server.get(&format!("{path}/clips")).await;
    let clip = format!("/v1/clips/{}", id(&clips["items"][0]));
    for picture in [format!("{path}/thumbnail"), format!("{clip}/thumbnail"), format!("{clip}/preview")] {
        let (status, problem) = server.get(&picture).await;
        assert_eq!(status, 200, "{picture}: {problem}");
    }
    server.after_jobs().await;
    let files = || {
        ["videos", "thumbnails", "previews", "incoming"]
            .map(|name| std::fs::read_dir(folder.join("data").join(name)).unwrap().count())
    };
    let [videos, thumbnails, previews, _] = files();
    assert_eq!(previews, 1);
    let its_own = 1 + clips["items"].as_array().unwrap().len();
    assert_eq!(server.delete(&format!("{path}?purge=true")).await.0, 204);
    for level in ["clip", "video"] {
        let hits = server.search_hits(json!({"query": {"text": "x"}, "level": level, "limit": 100})).await;
        assert!(!hits.is_empty() && hits.iter().all(|hit| hit["video_id"] != video["id"]), "{level}");
    }
    // They are removed in the background.
    let are_gone = async || (files() == [videos - 1, thumbnails - its_own, 0, 0]).then_some(());
    until("its files are gone", are_gone).await;
    for gone in [
        path.clone(),
        format!("{path}/media"),
        format!("{path}/clips"),
        clip.clone(),
        format!("{clip}/preview"),
    ] {
        server.refused(server.request("GET", &gone), 404).await;
    }
    server.refused(server.request("DELETE", &path), 404).await;
}

#[tokio::test]
async fn videos_are_cut_as_asked() {
    let (folder, server) = start(&["--max-clip-seconds", "10"]);
    let shots = ["testsrc2", "color=c=red", "smptebars", "color=c=blue"];
    let mut number = 0;
    // Each film differs in its last shot, because equal bytes count as the same video.
    let mut another = || {
        number += 1;
        let last = format!("color=c=0x{:06x}", number * 0x10_1810);
        let shots = [&shots[..], &[&last]].concat();
        film(folder.path(), &format!("film {number}"), &shots, Store::Web)
    };
    let whole = [(0.0, 2.0), (2.0, 4.0), (4.0, 6.0), (6.0, 8.0), (8.0, 10.0)];
    let cases: [(Value, Vec<(f64, f64)>); 8] = [
        (json!({}), whole.to_vec()),
        (json!({"policy": "content", "params": {"threshold": 255}}), vec![(0.0, 10.0)]),
        (json!({"policy": "content", "params": {"min_scene_seconds": 3600}}), vec![(0.0, 10.0)]),
        (json!({"params": {"preset": "lovr"}}), vec![(0.0, 10.0)]),
        (
            json!({"policy": "fixed", "params": {"every_seconds": 4}}),
            vec![(0.0, 4.0), (4.0, 8.0), (8.0, 10.0)],
        ),
        (json!({"policy": "subtitle"}), vec![(0.0, 10.0)]),
        (
            json!({"policy": "given", "clips": [{"start": 1, "end": 3}, {"start": 2, "end": 2.5}, {"start": 9, "end": 99}]}),
            vec![(1.0, 3.0), (2.0, 2.5), (9.0, 10.0)],
        ),
        (
            json!({"clips": [{"start": 1, "end": 3, "metadata": {"a": 1}}]}),
            [vec![(0.0, 2.0), (1.0, 3.0)], whole[1..].to_vec()].concat(),
        ),
    ];
    for (segmentation, expected) in cases {
        let video = server.ingest_with(&another(), &[("segmentation", segmentation.clone())]).await;
        let (_, clips) = server.get(&format!("/v1/videos/{}/clips", id(&video))).await;
        let range = |clip: &Value| (clip["start"].as_f64().unwrap(), clip["end"].as_f64().unwrap());
        let got: Vec<_> = clips["items"].as_array().unwrap().iter().map(range).collect();
        assert_eq!(got, expected, "{segmentation}");
        let filter = json!({"field": "video_id", "eq": video["id"]});
        let hits = server.search_hits(json!({"query": {"text": "x"}, "filter": filter})).await;
        assert_eq!(hits.len(), expected.len(), "every clip can be found");
    }
    let video = server
        .ingest_with(
            &another(),
            &[("segmentation", json!({"params": {"threshold": 255, "max_clip_seconds": 3}}))],
        )
        .await;
    let (_, clips) = server.get(&format!("/v1/videos/{}/clips", id(&video))).await;
    let clips = clips["items"].as_array().unwrap();
    assert!(clips.iter().all(|it| it["end"].as_f64().unwrap() - it["start"].as_f64().unwrap() <= 3.0));
    assert!(clips.windows(2).all(|pair| pair[0]["end"] == pair[1]["start"]), "no gap, no overlap");
    assert_eq!((&clips[0]["start"], &clips.last().unwrap()["end"]), (&json!(0.0), &json!(10.0)));
    let refused = [
        (json!({"policy": "scenes"}), "/segmentation/policy"),
        (json!({"policy": "fixed", "params": {"threshold": 27}}), "/segmentation/params/threshold"),
        (json!({"policy": "hybrid", "params": {"preset": "lovr"}}), "/segmentation/params/preset"),
        (json!({"params": {"weights": {"edges": -1}}}), "/segmentation/params/weights/edges"),
        (json!({"policy": "given"}), "/segmentation/clips"),
        (
            json!({"policy": "given", "clips": [{"start": 0, "end": 1}, {"start": 2, "end": 2}]}),
            "/segmentation/clips/1/end",
        ),
        (json!({"params": {"threshold": 0}}), "/segmentation/params/threshold"),
        (json!({"params": {"max_clip_seconds": 11}}), "/segmentation/params/max_clip_seconds"),
        (
            json!({"params": {"min_scene_frames": 5, "min_scene_seconds": 1}}),
            "/segmentation/params/min_scene_seconds",
        ),
        (json!({"clips": [{"start": 0, "end": 1, "metadata": 7}]}), "/segmentation/clips/0/metadata"),
    ];
    let file = another();
    for (segmentation, pointer) in refused {
        let (status, problem) = server.upload(&file, &[("segmentation", segmentation.clone())]).await;
        assert_eq!(
            (status.as_u16(), &problem["errors"][0]["pointer"]),
            (422, &json!(pointer)),
            "{segmentation}: {problem}"
        );
    }
}

#[tokio::test]
async fn a_queued_job_is_cancelled_and_tried_again() {
    // Without runners, the job waits for another process.
    let (folder, server) = start(&["--runners", "0"]);
    let file = film(folder.path(), "waits", &["testsrc2"], Store::Web);
    let (_, added) = server.upload(&file, &[]).await;
    let job = format!("/v1/jobs/{}", id(&added["job"]));
    assert_eq!(server.get(&job).await.1["state"], "queued");
    server.refused(server.request("POST", &format!("{job}/retry")), 409).await;
    let (status, cancelled) = server.post(&format!("{job}/cancel"), &json!({})).await;
    assert_eq!((status.as_u16(), &cancelled["state"]), (200, &json!("cancelled")));
    assert_eq!(server.job_end(id(&added["job"])).await["state"], "cancelled", "the events end");
    let (status, queued) = server.post(&format!("{job}/retry"), &json!({})).await;
    assert_eq!((status.as_u16(), &queued["state"], &queued["attempts"]), (200, &json!("queued"), &json!(0)));
    let data = folder.path().join("data");
    assert!(server.stop());
    let server = Server::start(&data, &[]);
    assert_eq!(server.job_end(id(&added["job"])).await["state"], "succeeded");
    assert_eq!(server.search_hits(json!({"query": {"text": "x"}})).await.len(), 1);
}

#[tokio::test]
async fn tags_and_folders_are_given_changed_listed_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let file = film(folder.path(), "one", &["testsrc2"], Store::Web);
    let form = reqwest::multipart::Form::new().text("tags", "Dive").text("tags", "10 m");
    let form = form.text("folder", "Season 2026/Finals").file("file", &file).await.unwrap();
    let (status, added) = server.send(server.request("POST", "/v1/videos").multipart(form)).await;
    let video = &added["video"];
    assert_eq!((status.as_u16(), &video["tags"]), (202, &json!(["10 m", "Dive"])), "{added}");
    assert_eq!(video["folder"], "Season 2026/Finals");
    let path = format!("/v1/videos/{}", video["id"].as_str().unwrap());
    for (query, found) in [
        ("tag=dive", 1),
        ("tag=dive,10%20M", 1),
        ("tag=dive,none", 0),
        ("folder=season%202026", 1),
        ("folder=season%202026&subfolders=false", 0),
        ("subfolders=false", 0),
        ("folder=season%202026/finals&tag=DIVE&subfolders=false", 1),
        ("folder=&trashed=true", 0),
    ] {
        let (status, page) = server.get(&format!("/v1/videos?{query}")).await;
        assert_eq!((status.as_u16(), page["items"].as_array().map(Vec::len)), (200, Some(found)), "{query}");
    }
    let expected = json!({"videos": 0, "next_cursor": null, "items": [
        {"folder": "Season 2026", "name": "Season 2026", "videos": 0, "total": 1, "has_folders": true}]});
    assert_eq!(server.get("/v1/folders").await.1, expected);
    let (_, inner) = server.get("/v1/folders?parent=season%202026&limit=1").await;
    assert_eq!(inner["items"][0]["name"], "Finals");
    let cursor = inner["next_cursor"].as_str().unwrap();
    let (_, next) = server.get(&format!("/v1/folders?parent=season%202026&limit=1&cursor={cursor}")).await;
    assert_eq!((&next["items"], &next["next_cursor"]), (&json!([]), &Value::Null));
    let (_, tags) = server.get("/v1/tags?prefix=D").await;
    assert_eq!(tags, json!({"items": [{"tag": "Dive", "videos": 1}], "next_cursor": null}));

    let change =
        json!({"ids": [video["id"]], "add_tags": ["Final"], "remove_tags": ["DIVE"], "folder": null});
    let (_, changed) = server.send(server.request("PATCH", "/v1/videos").json(&change)).await;
    let expected = json!({"items": [{"id": video["id"], "tags": ["10 m", "Final"], "folder": null}]});
    assert_eq!(changed, expected);
    assert_eq!(server.get("/v1/folders").await.1["videos"], 1);
    let nobody = "0190163d-8694-739b-aea5-966c26f8ad91";
    let many: Vec<String> = (0..51).map(|it| it.to_string()).collect();
    for (method, at, body, status, pointer) in [
        ("PATCH", path.as_str(), json!({"tags": ["a", "b,c"]}), 422, "/tags/1"),
        ("PATCH", path.as_str(), json!({"tags": many}), 422, "/tags"),
        ("PATCH", path.as_str(), json!({"folder": "a//b"}), 422, "/folder"),
        ("PATCH", "/v1/videos", json!({"ids": []}), 422, "/ids"),
        ("PATCH", "/v1/videos", json!({"ids": vec![nobody; 501]}), 422, "/ids"),
        ("PATCH", "/v1/videos", json!({"ids": [video["id"], nobody]}), 404, "/ids/1"),
        ("PATCH", "/v1/videos", json!({"ids": [video["id"]], "add_tags": [""]}), 422, "/add_tags/0"),
        ("GET", "/v1/videos?tag=", Value::Null, 422, "tag"),
        ("GET", "/v1/videos?folder=/", Value::Null, 422, "folder"),
        ("GET", &format!("/v1/videos?text={}", "x".repeat(501)), Value::Null, 422, "text"),
        ("GET", &format!("/v1/videos?text={}", "x+".repeat(21)), Value::Null, 422, "text"),
        ("GET", "/v1/videos?added_since=tomorrow", Value::Null, 422, "added_since"),
        (
            "GET",
            "/v1/videos?order=title&cursor=0190163d-8694-739b-aea5-966c26f8ad91",
            Value::Null,
            422,
            "cursor",
        ),
        (
            "GET",
            "/v1/videos?order=largest&cursor=0190163d-8694-739b-aea5-966c26f8ad91.x",
            Value::Null,
            422,
            "cursor",
        ),
        ("GET", "/v1/videos?cursor=7", Value::Null, 422, "cursor"),
        ("GET", "/v1/folders?parent=..", Value::Null, 422, "parent"),
        ("GET", "/v1/folders?cursor=$", Value::Null, 422, "cursor"),
        ("GET", "/v1/tags?prefix=,", Value::Null, 422, "prefix"),
    ] {
        let request = server.request(method, at);
        let request = if body.is_null() { request } else { request.json(&body) };
        let problem = server.refused(request, status).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{method} {at}: {problem}");
    }
    let (_, video) = server.get(&path).await;
    assert_eq!(video["tags"], json!(["10 m", "Final"]));
}
