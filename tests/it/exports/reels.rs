//! Reels: their states, and refusals of reels and exports with the place of the fault.

use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};

use reprise_tests::numbered::Numbered;

use super::{Studio, range};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_needs_the_state_that_it_is_for() {
    let studio = Studio::open();
    let (server, video) = (&studio.server, studio.film("dive.mp4", Numbered::default()).await);
    let other = studio.film("other.mp4", Numbered { frames: 60, ..Numbered::default() }).await;
    let body = json!({"name": "Dives", "ranges": [range(&video, 0.0, 1.0), range(&other, 0.5, 1.0)]});
    let (first, reel) = sent(server.request("POST", "/v1/reels").json(&body), 201).await;
    let path = format!("/v1/reels/{}", reel["id"].as_str().unwrap());
    assert_eq!((&reel["version"], &reel["duration"]), (&json!(1), &json!(1.5)));
    assert_eq!(reel["ranges"][1], json!({"video_id": other, "start": 0.5, "end": 1.0, "note": ""}));
    let played = |id: &str| json!({"id": id, "media_offset": 0.0, "plays_in_browsers": true});
    assert_eq!(reel["videos"], json!([played(&video), played(&other)]));
    let put = |etag: &str| server.request("PUT", &path).header("if-match", etag).json(&body);
    server.refused(server.request("PUT", &path).json(&body), 428).await;
    server.refused(server.request("DELETE", &path), 428).await;
    // A proxy that compresses answers makes tags weak.
    let (second, changed) = sent(put(&format!("\"0-0\", W/{first}")), 200).await;
    assert_eq!(changed["version"], 2);
    for stale in [first.as_str(), "\"x\"", "2-2"] {
        server.refused(put(stale), 412).await;
        server.refused(server.request("DELETE", &path).header("if-match", stale), 412).await;
    }
    assert_eq!(server.delete(&format!("/v1/videos/{other}")).await.0, StatusCode::NO_CONTENT);
    let (third, left) = sent(server.request("GET", &path), 200).await;
    assert_eq!((left["ranges"].as_array().unwrap().len(), &left["videos"]), (1, &json!([played(&video)])));
    assert!(third != second, "the deletion changed its state");
    let listed = server.get("/v1/reels").await.1;
    assert_eq!((&listed["items"][0]["etag"], &listed["items"][0]["ranges"]), (&json!(third), &json!(1)));
    let refused = server.refused(put("*"), 404).await;
    assert_eq!(refused["errors"][0]["pointer"], "/ranges/1/video_id");
    let delete = server.request("DELETE", &path).header("if-match", third);
    assert_eq!(server.send(delete).await.0, StatusCode::NO_CONTENT);
    assert_eq!(server.get(&path).await.0, StatusCode::NOT_FOUND);
}

/// The ETag and the body of an answer with this status.
async fn sent(request: RequestBuilder, status: u16) -> (String, Value) {
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), status);
    let etag = answer.headers()["etag"].to_str().unwrap().to_owned();
    (etag, answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_requests_are_refused_with_the_place() {
    let studio = Studio::open();
    let video = studio.film("dive.mp4", Numbered::default()).await;
    let other = studio.film("other.mp4", Numbered { frames: 60, ..Numbered::default() }).await;
    let missing = "01890000-0000-7000-8000-000000000000";
    let good = range(&video, 0.0, 1.0);
    let many = |count: usize| vec![good.clone(); count];
    let noted = |note: &str| json!({"video_id": video, "start": 0, "end": 1, "note": note});
    let check = async |path: &str, body: Value, expected: (u16, &str)| {
        let request = studio.server.request("POST", path).json(&body);
        let problem = studio.server.refused(request, expected.0).await;
        let shown: String = body.to_string().chars().take(200).collect();
        assert_eq!(problem["errors"][0]["pointer"], expected.1, "{shown}: {problem}");
    };
    for (ranges, expected) in [
        (json!([]), (422, "/ranges")),
        (json!(many(1001)), (422, "/ranges")),
        (json!([good, range(&video, 1.0, 1.0)]), (422, "/ranges/1/end")),
        (json!([range(&video, -1.0, 1.0)]), (422, "/ranges/0/start")),
        (json!([range(&video, 2.0, 3.0)]), (422, "/ranges/0/start")),
        (json!([good, range(missing, 0.0, 1.0)]), (404, "/ranges/1/video_id")),
        (json!([range("x", 0.0, 1.0)]), (422, "/ranges/0/video_id")),
        (json!([noted(&"x".repeat(1001))]), (422, "/ranges/0/note")),
        (json!([noted("a\u{0}b")]), (422, "/ranges/0/note")),
        (json!([{"video_id": video, "start": 0}]), (422, "/ranges/0")),
    ] {
        check("/v1/reels", json!({"name": "x", "ranges": ranges}), expected).await;
        check("/v1/exports", json!({"format": "csv", "ranges": ranges}), expected).await;
    }
    for name in ["", " ", &"x".repeat(201), "a\u{0}"] {
        check("/v1/reels", json!({"name": name, "ranges": [good]}), (422, "/name")).await;
        check("/v1/exports", json!({"format": "csv", "title": name, "ranges": [good]}), (422, "/title"))
            .await;
    }
    let both = json!([good, range(&other, 0.0, 1.0)]);
    for (more, expected) in [
        (json!({"format": "avi"}), (422, "/format")),
        (json!({"format": "edl", "cut": "copy"}), (422, "/cut")),
        (json!({"format": "csv", "files": "each"}), (422, "/files")),
        (json!({"format": "mp4", "drop_frame": true}), (422, "/drop_frame")),
        (json!({"format": "edl", "frame_rate": "25", "drop_frame": true}), (422, "/drop_frame")),
        (json!({"format": "edl", "frame_rate": "26"}), (422, "/frame_rate")),
        (json!({"format": "mp4", "frame_rate": "25", "files": "each"}), (422, "/frame_rate")),
        (json!({"format": "mp4", "cut": "copy", "ranges": both}), (422, "/cut")),
        (json!({"format": "edl", "ranges": many(1000)}), (422, "/format")),
        (json!({"format": "csv", "reel_id": missing}), (422, "")),
        (json!({"format": "csv", "ranges": null, "reel_id": missing}), (404, "/reel_id")),
        (json!({"format": "csv", "ranges": null}), (422, "")),
        (json!({"format": "csv", "ranges": null, "search": {}}), (422, "/search/query")),
        (
            json!({"format": "csv", "ranges": null, "search": {"query": {"text": " "}}}),
            (422, "/search/query/text"),
        ),
        (
            json!({"format": "csv", "ranges": null, "search": {"query": {"clip_id": missing}}}),
            (404, "/search/query/clip_id"),
        ),
        (
            json!({"format": "csv", "ranges": null, "search": {"query": {"text": "x"}, "group_by": "video"}}),
            (422, "/search/group_by"),
        ),
    ] {
        let mut body = json!({"ranges": [good]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        check("/v1/exports", body, expected).await;
    }
}
