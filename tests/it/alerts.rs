//! Alerts on running servers: each new video is asked once, across restarts and kills.

use reprise_tests::receiver::Receiver;
use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::faults::bed::{Bed, on_both, see_through, text, until};
use crate::webhooks::{PRIVATE, ended, hook};

on_both!(
    a_video_matches_once_across_restarts,
    a_match_survives_a_kill,
    thresholds_and_filters_hold,
    an_alert_without_its_space_says_so,
    an_alert_is_changed_under_its_etag,
);

async fn alert(server: &Server, body: &Value) -> String {
    let (status, alert) = server.post("/v1/alerts", body).await;
    assert_eq!(status, StatusCode::CREATED, "{alert}");
    text(&alert, "/id").to_owned()
}

fn visual(text: &str) -> Value {
    json!({"query": {"text": text}, "sources": ["visual"], "limit": 2})
}

/// Waits until an alert has asked every video. Returns it.
async fn asked(server: &Server, alert: &str) -> Value {
    let path = format!("/v1/alerts/{alert}");
    let is_done = async || Some(server.get(&path).await.1).filter(|it| it["waiting"] == 0);
    until("every video was asked", is_done).await
}

/// The videos in which an alert found something, newest first.
async fn matched(server: &Server, alert: &str) -> Vec<String> {
    let (status, page) = server.get(&format!("/v1/alerts/{alert}/matches")).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    page["items"].as_array().unwrap().iter().map(|it| text(it, "/video_id").to_owned()).collect()
}

async fn ingest(bed: &Bed, server: &Server, number: usize) -> String {
    text(&server.ingest(&bed.film(number, 2)).await, "/id").to_owned()
}

async fn a_video_matches_once_across_restarts(bed: &Bed) {
    let Some(receiver) = Receiver::start() else { return };
    let server = bed.start(&[PRIVATE]);
    ingest(bed, &server, 0).await;
    let hook = hook(&server, &receiver, "/ok", json!(["alert.matched"])).await;
    let body = json!({"name": "Anything", "search": visual("x"), "webhooks": [hook["id"]]});
    let alert = alert(&server, &body).await;
    let first = ingest(bed, &server, 1).await;
    asked(&server, &alert).await;
    assert_eq!(matched(&server, &alert).await, std::slice::from_ref(&first), "older videos are not asked");
    ended(&server, &hook, "delivered").await;
    assert!(server.stop());
    let server = bed.start(&[PRIVATE]);
    let second = ingest(bed, &server, 2).await;
    let cut = json!({"policy": "fixed", "params": {"every_seconds": 1}});
    let (_, recut) = server.post(&format!("/v1/videos/{first}/resegment"), &cut).await;
    see_through(&server, text(&recut, "/job/id")).await;
    let after = asked(&server, &alert).await;
    assert_eq!(
        (&after["matches"], &after["missed"], &after["trouble"]),
        (&json!(2), &json!(0), &Value::Null)
    );
    assert_eq!(matched(&server, &alert).await, [second.clone(), first.clone()]);
    let both = async || Some(receiver.received("/ok").await).filter(|all| all.len() >= 2);
    let received = until("the matches arrive", both).await;
    let told: Vec<&str> = received.iter().map(|it| text(it, "/event/data/video_id")).collect();
    assert_eq!(told, [first.as_str(), second.as_str()]);
    let page = server.get(&format!("/v1/alerts/{alert}/matches?limit=1")).await.1;
    let (listed, sent) = (&page["items"][0], &received[1]["event"]["data"]);
    assert_eq!((&listed["id"], &listed["space"]), (&sent["match_id"], &sent["space"]));
    let hits = listed["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 2);
    assert_eq!(hits[0]["clip_id"], sent["hits"][0]["clip_id"]);
    // They are what the search finds in this video.
    let mut search = visual("x");
    search["filter"] = json!({"field": "video_id", "eq": second});
    let found = server.search_hits(search).await;
    for (hit, expected) in hits.iter().zip(&found) {
        assert_eq!((&hit["clip_id"], &hit["start"]), (&expected["clip_id"], &expected["start"]));
    }
    assert_eq!(server.delete(&format!("/v1/alerts/{alert}")).await.0, StatusCode::NO_CONTENT);
    assert_eq!(server.get(&format!("/v1/alerts/{alert}/matches")).await.0, StatusCode::NOT_FOUND);
}

async fn a_match_survives_a_kill(bed: &Bed) {
    let Some(receiver) = Receiver::start() else { return };
    let quick = [PRIVATE, "--lease-seconds", "0.5", "--timeout-seconds", "3"];
    let server = bed.start(&quick);
    let hook = hook(&server, &receiver, "/ok", json!(["alert.matched"])).await;
    let body = json!({"name": "Anything", "search": visual("x"), "webhooks": [hook["id"]]});
    let alert = alert(&server, &body).await;
    let mut videos = Vec::new();
    let mut server = server;
    for number in 0..3 {
        videos.insert(0, ingest(bed, &server, number).await);
        server.kill();
        server = bed.start(&quick);
    }
    asked(&server, &alert).await;
    assert_eq!(matched(&server, &alert).await.len(), 3);
    let all = async || {
        let received = receiver.received("/ok").await;
        let ids: std::collections::BTreeSet<String> =
            received.iter().map(|it| text(it, "/event/data/video_id").to_owned()).collect();
        (ids == videos.iter().cloned().collect()).then_some(received)
    };
    let received = until("every match arrives", all).await;
    // At least once each, and each time as the same delivery.
    let deliveries: std::collections::BTreeSet<&str> = received.iter().map(|it| text(it, "/id")).collect();
    assert_eq!(deliveries.len(), 3, "{received:?}");
}

async fn thresholds_and_filters_hold(bed: &Bed) {
    let server = bed.start(&[]);
    let with = |min_score: f64| json!({"name": "x", "search": visual("x"), "min_score": min_score});
    let (all, none) = (alert(&server, &with(-1.0)).await, alert(&server, &with(1.1)).await);
    let mut search = visual("x");
    search["filter"] = json!({"field": "metadata.kind", "eq": "match"});
    let filtered = alert(&server, &json!({"name": "filtered", "search": search})).await;
    // So few clips are no background: no hit has a z.
    let mut strong = visual("x");
    strong["min_z"] = json!(-100);
    let strong = alert(&server, &json!({"name": "strong", "search": strong})).await;
    let words = json!({"query": {"text": "harmonica"}, "sources": ["spoken"]});
    let said = alert(&server, &json!({"name": "said", "search": words})).await;
    let plain = ingest(bed, &server, 0).await;
    let parts = [("metadata", json!({"kind": "match"}))];
    let kind = server.ingest_with(&bed.film(1, 2), &parts).await;
    let kind = text(&kind, "/id").to_owned();
    for (alert, expected) in [
        (&all, vec![kind.clone(), plain.clone()]),
        (&none, vec![]),
        (&strong, vec![]),
        (&filtered, vec![kind.clone()]),
        (&said, vec![]),
    ] {
        asked(&server, alert).await;
        assert_eq!(matched(&server, alert).await, expected);
    }
    assert_eq!(server.delete(&format!("/v1/videos/{kind}")).await.0, StatusCode::NO_CONTENT);
    assert_eq!(matched(&server, &all).await, [plain]);
}

async fn an_alert_without_its_space_says_so(bed: &Bed) {
    let server = bed.start(&[]);
    let spaces = server.get("/v1/spaces").await.1;
    let space = text(&spaces, "/items/0/name").to_owned();
    let mut search = visual("x");
    search["space"] = json!(space);
    let alert = alert(&server, &json!({"name": "x", "search": search})).await;
    assert!(server.stop());
    // Another rate of frames makes another space.
    let server = bed.start(&["--frames-per-second", "3"]);
    let video = ingest(bed, &server, 0).await;
    let path = format!("/v1/alerts/{alert}");
    let says = async || Some(server.get(&path).await.1).filter(|it| it["trouble"].is_string());
    let troubled = until("the alert says so", says).await;
    assert!(text(&troubled, "/trouble").contains(&space), "{troubled}");
    assert_eq!(troubled["waiting"], 1);
    assert!(server.stop());
    // Once the space is back, and the video has vectors in it, the alert goes on.
    let server = bed.start(&[]);
    let after = asked(&server, &alert).await;
    assert_eq!(after["trouble"], Value::Null);
    assert_eq!(matched(&server, &alert).await, [video]);
}

/// Changes an alert. Returns status, answer and ETag.
async fn change(server: &Server, path: &str, state: Option<&str>, body: &Value) -> (u16, Value, String) {
    let request = server.request("PATCH", path).json(body);
    let answer = state.into_iter().fold(request, |it, tag| it.header("if-match", tag)).send().await.unwrap();
    let (status, tag) = (answer.status().as_u16(), tag(&answer));
    (status, serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap(), tag)
}

fn tag(answer: &reqwest::Response) -> String {
    answer.headers().get("etag").map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default()
}

async fn an_alert_is_changed_under_its_etag(bed: &Bed) {
    let server = bed.start(&[]);
    let id = alert(&server, &json!({"name": "x", "search": visual("x"), "min_score": 1.1})).await;
    let path = format!("/v1/alerts/{id}");
    let first = tag(&server.request("GET", &path).send().await.unwrap());
    let (status, renamed, second) = change(&server, &path, Some(&first), &json!({"name": "y"})).await;
    assert_eq!(
        (status, &renamed["name"], &renamed["min_score"]),
        (200, &json!("y"), &json!(1.1)),
        "{renamed}"
    );
    assert_ne!(first, second);
    let (status, problem, _) = change(&server, &path, Some(&first), &json!({"name": "z"})).await;
    assert_eq!(status, 412, "{problem}");
    let both = json!({"query": {"text": "x"}, "limit": 2});
    for (body, pointer) in [
        (json!({"name": ""}), "/name"),
        (json!({"name": null}), "/name"),
        (json!({"search": both}), "/min_score"),
        (json!({"search": {"query": {}}}), "/search/query"),
        (json!({"search": null}), "/search"),
        (json!({"min_score": 2e6}), "/min_score"),
        (json!({"webhooks": null}), "/webhooks"),
        (json!({"other": 1}), ""),
    ] {
        let (status, problem, _) = change(&server, &path, None, &body).await;
        assert_eq!(status, 422, "{body}: {problem}");
        let told = text(&problem, "/errors/0/pointer");
        assert!(told.starts_with(pointer), "{body}: {problem}");
    }
    let hidden = ingest(bed, &server, 0).await;
    asked(&server, &id).await;
    assert_eq!(matched(&server, &id).await, Vec::<String>::new(), "{hidden} has no such score");
    // What it found does not change its state.
    let same = tag(&server.request("GET", &path).send().await.unwrap());
    assert_eq!(same, second);
    let (status, changed, _) =
        change(&server, &path, Some(&same), &json!({"search": both, "min_score": null})).await;
    assert_eq!((status, &changed["min_score"]), (200, &Value::Null), "{changed}");
    let shown = ingest(bed, &server, 1).await;
    asked(&server, &id).await;
    assert_eq!(matched(&server, &id).await, [shown], "the first video is not asked again");
    assert_eq!(server.delete(&path).await.0, StatusCode::NO_CONTENT);
    assert_eq!(change(&server, &path, None, &json!({"name": "y"})).await.0, 404);
}
