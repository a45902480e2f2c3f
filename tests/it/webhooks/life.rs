//! The life of a webhook and its deliveries on running servers.

use std::collections::BTreeSet;

use reprise_tests::receiver::Receiver;
use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{PRIVATE, ended, hook, path_of, test};
use crate::faults::bed::{Bed, on_both, text, until};

on_both!(
    a_receiver_gets_events_of_videos_and_exports,
    secrets_are_rotated_without_a_gap,
    a_receiver_that_answers_gone_gets_nothing_more,
    a_killed_server_loses_no_delivery,
);

async fn a_receiver_gets_events_of_videos_and_exports(bed: &Bed) {
    let Some(receiver) = Receiver::start() else { return };
    let server = bed.start(&[PRIVATE]);
    let all = hook(&server, &receiver, "/ok", json!(["video.ready", "video.failed", "export.ready"])).await;
    let failures = hook(&server, &receiver, "/failures", json!(["video.failed"])).await;
    let video = server.ingest(&bed.film(0, 1)).await;
    let video = text(&video, "/id");
    let range = json!([{"video_id": video, "start": 0.0, "end": 1.0}]);
    let (_, export) = server.post("/v1/exports", &json!({"format": "csv", "ranges": range})).await;
    server.job_end(text(&export, "/id")).await;
    let both = async || Some(receiver.received("/ok").await).filter(|all| all.len() == 2);
    let received = until("both events arrive", both).await;
    let data = |kind: &str| {
        let event = received.iter().map(|it| &it["event"]).find(|it| it["type"] == kind);
        event.unwrap_or_else(|| panic!("no {kind} in {received:?}"))["data"].clone()
    };
    assert_eq!(data("video.ready"), json!({"video_id": video, "url": format!("/v1/videos/{video}")}));
    assert_eq!(data("export.ready")["export_id"], export["id"]);
    let listed = async || {
        let page = server.get(&path_of(&all, "/deliveries?limit=1")).await.1;
        Some(page).filter(|page| page["items"][0]["state"] == "delivered")
    };
    let page = until("the delivery is listed", listed).await;
    assert_eq!(
        (&page["items"][0]["type"], &page["items"][0]["status"]),
        (&json!("export.ready"), &json!(204))
    );
    let next = format!("/deliveries?cursor={}", text(&page, "/next_cursor"));
    assert_eq!(server.get(&path_of(&all, &next)).await.1["items"][0]["type"], "video.ready");
    assert_eq!(server.get(&path_of(&failures, "/deliveries")).await.1["items"], json!([]));
    let shown = server.get(&path_of(&all, "")).await.1;
    assert!(shown["secret"].is_null() && shown["disabled_at"].is_null(), "{shown}");
    assert_eq!(server.delete(&path_of(&all, "")).await.0, StatusCode::NO_CONTENT);
    assert_eq!(server.get(&path_of(&all, "")).await.0, StatusCode::NOT_FOUND);
}

async fn secrets_are_rotated_without_a_gap(bed: &Bed) {
    let Some(receiver) = Receiver::start() else { return };
    let server = bed.start(&[PRIVATE]);
    let old = hook(&server, &receiver, "/ok", json!(["video.ready"])).await;
    let (status, new) = server.post(&path_of(&old, "/rotate"), &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{new}");
    assert!(new["secret"] != old["secret"], "{new}");
    // The receiver knows the old secret, then the new one.
    for secret in [&old, &new] {
        receiver.trust("/ok", text(secret, "/secret")).await;
        let delivery = test(&server, &old).await;
        let delivered = ended(&server, &old, "delivered").await;
        assert_eq!(delivered["id"], delivery["id"]);
    }
    let received = receiver.received("/ok").await;
    assert!(received.len() == 2 && received.iter().all(|it| it["signatures"] == 2), "{received:?}");
}

async fn a_receiver_that_answers_gone_gets_nothing_more(bed: &Bed) {
    let Some(receiver) = Receiver::start() else { return };
    let server = bed.start(&[PRIVATE]);
    let hook = hook(&server, &receiver, "/gone", json!(["video.ready"])).await;
    test(&server, &hook).await;
    let failed = ended(&server, &hook, "failed").await;
    assert_eq!((&failed["status"], &failed["attempts"]), (&json!(410), &json!(1)));
    let shown = server.get(&path_of(&hook, "")).await.1;
    assert_eq!(shown["disabled_reason"], "the receiver answered 410");
    assert!(shown["disabled_at"].is_string(), "{shown}");
    server.refused(server.request("POST", &path_of(&hook, "/test")), 409).await;
    server.ingest(&bed.film(0, 1)).await;
    assert_eq!(receiver.received("/gone").await.len(), 1);
    assert_eq!(server.get(&path_of(&hook, "/deliveries")).await.1["items"].as_array().map(Vec::len), Some(1));
}

async fn a_killed_server_loses_no_delivery(bed: &Bed) {
    let Some(receiver) = Receiver::start() else { return };
    let quick = [PRIVATE, "--lease-seconds", "0.1"];
    let server = bed.start(&quick);
    let hook = hook(&server, &receiver, "/hangs", json!(["video.ready"])).await;
    let video = server.ingest(&bed.film(0, 1)).await;
    let first = async || receiver.received("/hangs").await.pop();
    let first = until("the delivery is under way", first).await;
    server.kill();
    let server = bed.start(&quick);
    let delivered = ended(&server, &hook, "delivered").await;
    assert_eq!((&delivered["attempts"], &delivered["id"]), (&json!(2), &first["id"]));
    let received = receiver.received("/hangs").await;
    let data = json!({"video_id": video["id"], "url": format!("/v1/videos/{}", text(&video, "/id"))});
    assert_eq!(received.len(), 2, "{received:?}");
    assert!(received.iter().all(|it| it["id"] == first["id"] && it["event"]["data"] == data), "{received:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_on_one_database_send_each_delivery_once() {
    let Some(url) = reprise_tests::postgres::database().await else { return };
    let Some(receiver) = Receiver::start() else { return };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let servers: Vec<Server> = folders
        .iter()
        .map(|folder| Server::start(folder.path(), &[PRIVATE, "--database-url", &url]))
        .collect();
    let mut hooks = Vec::new();
    for number in 0..4 {
        hooks.push(hook(&servers[0], &receiver, &format!("/{number}"), json!(["video.ready"])).await);
    }
    let mut sent = BTreeSet::new();
    for number in 0..40 {
        let delivery = test(&servers[number % 2], &hooks[number % 4]).await;
        sent.insert(text(&delivery, "/id").to_owned());
    }
    let mut received: Vec<Value> = Vec::new();
    for (number, hook) in hooks.iter().enumerate() {
        let all_ended = async || {
            let listed = servers[1].get(&path_of(hook, "/deliveries")).await.1;
            let listed = listed["items"].as_array().cloned().unwrap_or_default();
            (listed.len() == 10 && listed.iter().all(|it| it["state"] == "delivered")).then_some(())
        };
        until("all deliveries have ended", all_ended).await;
        received.extend(receiver.received(&format!("/{number}")).await);
    }
    let ids: BTreeSet<String> = received.iter().map(|it| text(it, "/id").to_owned()).collect();
    assert_eq!((received.len(), ids), (40, sent));
}
