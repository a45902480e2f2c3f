//! `GET /v1/map` of a server: points, pages, kills, rights.

use std::collections::{BTreeMap, BTreeSet};

use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::faults::bed::{Bed, clips, on_both, text, until};

on_both!(a_map_has_every_clip_once_and_stays, a_deleted_clip_is_on_no_map, a_key_sees_its_own_points);

/// One page, once the map is made and no job will make it anew.
async fn made(server: &Server, parameters: &str) -> Value {
    let path = format!("/v1/map{parameters}");
    let is_made = async || {
        let (status, map) = server.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{map}");
        (map["made_at"].is_string() && map["refreshing"] == false).then_some(map)
    };
    until("the map is made", is_made).await
}

/// The points of a page by the spans' ids: video and place.
fn points(map: &Value) -> BTreeMap<String, (String, String)> {
    let list = |name: &str| map[name].as_array().unwrap_or_else(|| panic!("{name}: {map}")).clone();
    let (ids, videos, x, y) = (list("ids"), list("videos"), list("x"), list("y"));
    assert!(
        [videos.len(), x.len(), y.len(), list("start").len(), list("end").len()] == [ids.len(); 5],
        "{map}"
    );
    let point = |number: usize| {
        for axis in [&x, &y] {
            assert!(axis[number].as_f64().is_some_and(|value| value.abs() <= 1.0), "{map}");
        }
        let video = &map["video_ids"][videos[number].as_u64().unwrap() as usize];
        (
            text(&ids[number], "").to_owned(),
            (text(video, "").to_owned(), format!("{} {}", x[number], y[number])),
        )
    };
    (0..ids.len()).map(point).collect()
}

async fn a_map_has_every_clip_once_and_stays(bed: &Bed) {
    let server = bed.start(&["--lease-seconds", "2"]);
    let mut expected = BTreeSet::new();
    for number in 0..2 {
        let video = server.ingest(&bed.film(number, 4)).await;
        let clips = clips(&server, text(&video, "/id")).await;
        expected
            .extend(clips.iter().map(|clip| (text(clip, "/id").to_owned(), text(&video, "/id").to_owned())));
    }
    let (status, first) = server.get("/v1/map").await;
    assert_eq!((status, &first["refreshing"], &first["ids"]), (StatusCode::OK, &json!(true), &json!([])));
    // The job may be at work, or done.
    server.kill();
    let server = bed.start(&["--lease-seconds", "2"]);
    let whole = made(&server, "").await;
    let all = points(&whole);
    let seen: BTreeSet<(String, String)> =
        all.iter().map(|(id, (video, _))| (id.clone(), video.clone())).collect();
    assert_eq!(seen, expected);
    let mut paged = BTreeMap::new();
    let mut cursor = String::new();
    for _ in 0..9 {
        let page = server.get(&format!("/v1/map?limit=3{cursor}")).await.1;
        paged.extend(points(&page));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, all);
    let (_, jobs) = server.get("/v1/jobs?kind=map").await;
    assert_eq!(jobs["items"].as_array().map(Vec::len), Some(1), "one job made it: {jobs}");
    let videos = made(&server, "?level=video&space=tiny-1ade90").await;
    assert_eq!(videos["ids"].as_array().map(Vec::len), Some(2));
    assert!(server.stop());
    let server = bed.start(&[]);
    assert_eq!(server.get("/v1/map").await.1, whole);
    server.ingest(&bed.film(2, 1)).await;
    assert_eq!(server.get("/v1/map").await.1["refreshing"], true, "over a tenth is new");
    let more = points(&made(&server, "").await);
    assert_eq!(more.len(), all.len() + 1);
    for (parameters, pointer) in [
        ("?limit=0", "limit"),
        ("?limit=20001", "limit"),
        ("?level=x", "level"),
        ("?space=x", "space"),
        ("?cursor=x", "cursor"),
    ] {
        let refused = server.refused(server.request("GET", &format!("/v1/map{parameters}")), 422).await;
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{refused}");
    }
}

async fn a_deleted_clip_is_on_no_map(bed: &Bed) {
    let server = bed.start(&[]);
    let (kept, gone) = (server.ingest(&bed.film(0, 3)).await, server.ingest(&bed.film(1, 3)).await);
    assert_eq!(points(&made(&server, "").await).len(), 6);
    assert_eq!(server.delete(&format!("/v1/videos/{}", text(&gone, "/id"))).await.0, StatusCode::NO_CONTENT);
    let left = points(&server.get("/v1/map").await.1);
    assert_eq!(left.len(), 3);
    assert!(left.values().all(|(video, _)| video == text(&kept, "/id")), "{left:?}");
    assert_eq!(points(&made(&server, "").await).len(), 3);
}

async fn a_key_sees_its_own_points(bed: &Bed) {
    let server = bed.start(&[]);
    for (number, team) in ["a", "b"].iter().enumerate() {
        server.ingest_with(&bed.film(number, 3), &[("metadata", json!({"team": team}))]).await;
    }
    let all = points(&made(&server, "").await);
    let only = json!({"field": "metadata.team", "eq": "a"});
    let (_, key) = server.post("/v1/keys", &json!({"name": "a", "scopes": ["read"], "only": only})).await;
    let request = |path: &str| server.request("GET", path).bearer_auth(text(&key, "/key"));
    let (status, own) = server.send(request("/v1/map?limit=2")).await;
    assert_eq!(status, StatusCode::OK, "{own}");
    let next = format!("/v1/map?limit=2&cursor={}", text(&own, "/next_cursor"));
    let rest = server.send(request(&next)).await.1;
    let mut own = points(&own);
    own.extend(points(&rest));
    assert_eq!((own.len(), &rest["next_cursor"], &rest["refreshing"]), (3, &Value::Null, &json!(false)));
    assert!(own.iter().all(|(id, point)| all.get(id) == Some(point)), "{own:?} {all:?}");
    let jobs = server.send(request("/v1/jobs?kind=map")).await.1;
    assert_eq!(jobs["items"], json!([]), "{jobs}");
}
