//! `GET /v1/insights` against the list of searches.

use reprise_tests::server::Server;
use serde_json::{Value, json};

use crate::faults::bed::{Bed, on_both, text, until};

on_both!(
    insights_are_those_of_the_log,
    a_log_of_hashes_tells_no_texts,
    a_server_without_a_log_counts_videos,
    a_key_counts_its_own,
);

async fn insights(server: &Server, parameters: &str) -> Value {
    let (status, answer) = server.get(&format!("/v1/insights{parameters}")).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

fn list(answer: &Value, name: &str) -> Vec<Value> {
    answer[name].as_array().unwrap_or_else(|| panic!("no {name} in {answer}")).clone()
}

/// The sum of a number over all days.
fn of_days(answer: &Value, name: &str) -> f64 {
    list(answer, "days").iter().map(|day| day[name].as_f64().unwrap()).sum()
}

async fn insights_are_those_of_the_log(bed: &Bed) {
    let server = bed.start(&[]);
    let nothing = insights(&server, "").await;
    assert_eq!((&nothing["searches"], &nothing["latency_ms"]), (&json!(0), &Value::Null), "{nothing}");
    assert_eq!((list(&nothing, "days").len(), &nothing["complete"]), (30, &json!(true)));
    let video = server.ingest(&bed.film(0, 2)).await;
    let none = json!({"field": "metadata.x", "eq": 1});
    let mut newest = Value::Null;
    for body in [
        json!({"query": {"text": "bars"}}),
        json!({"query": {"text": "a red square"}}),
        json!({"query": {"text": "nothing"}, "filter": none}),
        json!({"query": {"text": "A  red square"}}),
        json!({"query": {"clip": {"video_id": video["id"], "start": 0.0, "end": 2.0}}}),
        json!({"query": {"text": "A red square"}, "filter": none}),
    ] {
        newest = server.search(&body).await;
    }
    // The log is written behind the answers.
    let log = until("the log has all searches", async || {
        let (_, log) = server.get("/v1/searches?limit=1000").await;
        (list(&log, "items").len() == 6).then_some(log)
    })
    .await;
    let found = insights(&server, "").await;
    let mut took: Vec<f64> =
        list(&log, "items").iter().map(|search| search["timings_ms"]["total"].as_f64().unwrap()).collect();
    took.sort_by(f64::total_cmp);
    assert_eq!(took.len(), 6);
    assert_eq!(found["latency_ms"], json!({"p50": took[2], "p95": took[5], "p99": took[5]}), "{found}");
    assert_eq!((&found["searches"], &found["without_results"]), (&json!(6), &json!(2)));
    assert_eq!((of_days(&found, "searches"), of_days(&found, "without_results")), (6.0, 2.0), "{found}");
    let slowest: Vec<f64> =
        list(&found, "slowest").iter().map(|search| search["took_ms"].as_f64().unwrap()).collect();
    assert_eq!(slowest, took.iter().rev().copied().collect::<Vec<_>>());
    let most = &list(&found, "most_searched")[0];
    assert_eq!((&most["searches"], &most["without_results"]), (&json!(3), &json!(1)), "{found}");
    assert_eq!(
        (&most["text"], &most["last_search_id"]),
        (&json!("A red square"), &newest["search_id"]),
        "{found}"
    );
    let missing: Vec<Value> = list(&found, "nothing_found").iter().map(|it| it["text"].clone()).collect();
    assert_eq!(missing, ["A red square", "nothing"]);
    assert_eq!(
        found["kinds"],
        json!([{"kind": "text", "searches": 5, "without_results": 2}, {"kind": "clip", "searches": 1, "without_results": 0}])
    );
    assert_eq!((&found["videos_added"], &found["seconds_added"]), (&json!(1), &video["duration"]), "{found}");
    assert_eq!(of_days(&found, "seconds_added"), video["duration"].as_f64().unwrap());
    check_parameters(&server).await;
}

async fn check_parameters(server: &Server) {
    assert_eq!(insights(server, "?kind=clip").await["searches"], 1);
    assert_eq!(insights(server, "?space=other").await["searches"], 0);
    assert_eq!(insights(server, "?key_id=0190163d-8694-739b-aea5-966c26f8ad91").await["searches"], 0);
    assert_eq!(list(&insights(server, "?days=366").await, "days").len(), 366);
    let old = insights(server, "?since=2001-01-01&until=2001-02-01").await;
    assert_eq!((&old["searches"], &old["videos_added"]), (&json!(0), &json!(0)));
    assert_eq!(text(&old, "/days/30/day"), "2001-01-31");
    for parameters in [
        "?since=x",
        "?until=x",
        "?days=0",
        "?days=367",
        "?kind=x",
        "?days=2&since=2001-01-01",
        "?since=2001-01-01&until=2001-01-01",
        "?since=2001-01-01",
    ] {
        server.refused(server.request("GET", &format!("/v1/insights{parameters}")), 422).await;
    }
}

async fn a_log_of_hashes_tells_no_texts(bed: &Bed) {
    let server = bed.start(&["--query-log", "hashed"]);
    server.search(&json!({"query": {"text": "xylophone"}})).await;
    let found = until("the log has the search", async || {
        let found = insights(&server, "").await;
        (found["searches"] == 1).then_some(found)
    })
    .await;
    assert_eq!(found["without_results"], 1, "{found}");
    assert_eq!((&found["most_searched"], &found["nothing_found"]), (&json!([]), &json!([])));
    assert!(!found.to_string().contains("xylophone"), "{found}");
}

async fn a_server_without_a_log_counts_videos(bed: &Bed) {
    let server = bed.start(&["--query-log", "off"]);
    server.ingest(&bed.film(0, 1)).await;
    server.search(&json!({"query": {"text": "x"}})).await;
    let found = insights(&server, "?days=2").await;
    assert_eq!((&found["searches"], &found["videos_added"]), (&json!(0), &json!(1)), "{found}");
}

async fn a_key_counts_its_own(bed: &Bed) {
    let server = bed.start(&["--api-key", "root"]);
    let root = |method: &str, path: &str| server.request(method, path).bearer_auth("root");
    let only = json!({"field": "metadata.team", "eq": "a"});
    let key = json!({"name": "a", "scopes": ["read"], "only": only});
    let (_, key) = server.send(root("POST", "/v1/keys").json(&key)).await;
    let own = |method: &str, path: &str| server.request(method, path).bearer_auth(text(&key, "/key"));
    let search = json!({"query": {"text": "x"}});
    for request in [root("POST", "/v1/search"), own("POST", "/v1/search"), root("POST", "/v1/search")] {
        assert_eq!(server.send(request.json(&search)).await.0, 200);
    }
    let figures = |found: &Value| json!([found["searches"], found["most_searched"][0]["searches"]]);
    until("the log has all searches", async || {
        let (_, all) = server.send(root("GET", "/v1/insights")).await;
        (figures(&all) == json!([3, 3])).then_some(())
    })
    .await;
    let (_, mine) = server.send(own("GET", "/v1/insights")).await;
    assert_eq!(figures(&mine), json!([1, 1]), "{mine}");
    let of_key = format!("/v1/insights?key_id={}", text(&key, "/id"));
    let (_, theirs) = server.send(root("GET", &of_key)).await;
    assert_eq!(figures(&theirs), json!([1, 1]), "{theirs}");
}
