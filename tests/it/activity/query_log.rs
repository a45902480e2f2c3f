//! The query log of a running server: what it lists, keeps, hides and forgets.

use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::faults::bed::{Bed, clips, on_both, text, until};

on_both!(
    a_search_is_listed_with_what_it_showed_and_stays_over_a_restart,
    every_kind_of_query_is_in_the_log,
    a_hashed_log_tells_only_which_queries_are_equal,
    a_log_that_is_off_keeps_nothing,
    searches_are_forgotten_after_their_days,
);

async fn entry(server: &Server, id: &str) -> Value {
    let (status, entry) = server.get(&format!("/v1/searches/{id}")).await;
    assert_eq!(status, StatusCode::OK, "{entry}");
    entry
}

async fn listed(server: &Server, query: &str) -> Vec<Value> {
    let (status, page) = server.get(&format!("/v1/searches{query}")).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    page["items"].as_array().unwrap().clone()
}

async fn give(server: &Server, search: &str, clip: &Value, verdict: &str) -> (StatusCode, Value) {
    let body = json!({"clip_id": clip, "verdict": verdict});
    server.post(&format!("/v1/searches/{search}/feedback"), &body).await
}

/// The fields that an answer's hits and logged hits share.
fn shared(hits: &Value) -> Vec<Value> {
    let evidence = |it: &Value| json!([it["source"], it["score"], it["rank"]]);
    let hit = |it: &Value| {
        let evidence: Vec<Value> = it["evidence"].as_array().unwrap().iter().map(evidence).collect();
        let score = it["score"].as_f64().unwrap() as f32;
        json!([
            it["rank"],
            score,
            it["level"],
            it["clip_id"],
            it["video_id"],
            it["start"],
            it["end"],
            evidence.len()
        ])
    };
    hits.as_array().unwrap().iter().map(hit).collect()
}

async fn a_search_is_listed_with_what_it_showed_and_stays_over_a_restart(bed: &Bed) {
    let server = bed.start(&[]);
    server.ingest_with(&bed.film(0, 4), &[("metadata", json!({"team": "a"}))]).await;
    let filter = json!({"field": "metadata.team", "eq": "a"});
    let body =
        json!({"query": {"text": "A  red\u{0} square"}, "filter": filter, "limit": 2, "overlaps": "keep"});
    let first = server.search(&body).await;
    let id = text(&first, "/search_id");
    let logged = entry(&server, id).await;
    assert_eq!(
        (&logged["kind"], &logged["query"]["text"]),
        (&json!("text"), &json!("A  red\u{fffd} square"))
    );
    assert_eq!((&logged["filter"], &logged["space"]), (&filter, &first["index"]["space"]));
    assert_eq!((&logged["shown"], &logged["exhausted"]), (&json!(2), &json!(false)));
    assert_eq!((&logged["key_id"], &logged["live"]), (&Value::Null, &first["index"]["live"]));
    assert_eq!(logged["timings_ms"], first["timings_ms"]);
    assert_eq!(shared(&logged["hits"]), shared(&first["results"]));
    assert_eq!(logged["hits"][0]["evidence"][0]["z"], Value::Null);

    let second = server.search(&json!({"cursor": first["next_cursor"]})).await;
    assert_eq!(second["search_id"], first["search_id"], "a later page is the same search");
    let logged = entry(&server, id).await;
    let both = [shared(&first["results"]), shared(&second["results"])].concat();
    assert_eq!((shared(&logged["hits"]), &logged["shown"]), (both, &json!(4)));

    let clip = &second["results"][0]["clip_id"];
    for verdict in ["opened", "relevant", "relevant"] {
        assert_eq!(give(&server, id, clip, verdict).await.0, StatusCode::NO_CONTENT, "{verdict}");
    }
    let (status, problem) = give(&server, id, &json!("01980f5e-0000-7000-8000-000000000000"), "opened").await;
    assert_eq!((status.as_u16(), &problem["errors"][0]["pointer"]), (422, &json!("/clip_id")), "{problem}");
    let (status, problem) = give(&server, id, clip, "liked").await;
    assert_eq!((status.as_u16(), &problem["errors"][0]["pointer"]), (422, &json!("/verdict")), "{problem}");
    assert_eq!(give(&server, "01980f5e-0000-7000-8000-000000000000", clip, "opened").await.0, 404);
    let logged = entry(&server, id).await;
    assert_eq!(logged["hits"][2]["feedback"], json!(["opened", "relevant"]));

    // Not asked for again before the stop: what waits is written then.
    let last = server.search(&json!({"query": {"text": "last"}})).await;
    assert!(server.stop(), "it did not stop well");
    let server = bed.start(&[]);
    assert_eq!(entry(&server, id).await, logged);
    let all: Vec<Value> = listed(&server, "").await.iter().map(|it| it["id"].clone()).collect();
    assert_eq!(all, [last["search_id"].clone(), first["search_id"].clone()]);
    assert_eq!(
        exported(bed),
        [json!(["opened", id, clip, "film0.mp4"]), json!(["relevant", id, clip, "film0.mp4"])]
    );
}

/// The lines of `reprise feedback export`: verdict, search, clip and file.
fn exported(bed: &Bed) -> Vec<Value> {
    let file = bed.folder().join("feedback.jsonl");
    let output = bed.run(&["feedback", "export", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        json!([line["verdict"], line["search_id"], line["hit"]["clip_id"], line["hit"]["file_name"]])
    };
    std::fs::read_to_string(file).unwrap().lines().map(line).collect()
}

async fn every_kind_of_query_is_in_the_log(bed: &Bed) {
    let server = bed.start(&[]);
    let film = bed.film(0, 3);
    let video = server.ingest(&film).await;
    let id = text(&video, "/id");
    let clip = &clips(&server, id).await[0];
    let range = json!({"video_id": id, "start": 0.5, "end": 1.5});
    let mut all = Vec::new();
    for (query, kind, expected) in [
        (json!({"text": "x"}), "text", json!(["x", null, null, null, null, false])),
        (
            json!({"clip_id": clip["id"]}),
            "clip",
            json!([null, clip["id"], id, clip["start"], clip["end"], false]),
        ),
        (
            json!({"clip": range, "modification": "from the side"}),
            "composed",
            json!(["from the side", null, id, 0.5, 1.5, false]),
        ),
        (json!({"upload": true, "end": 1.0}), "clip", json!([null, null, id, null, 1.0, true])),
    ] {
        let answer = match query["upload"] == true {
            true => server.search_upload(&json!({"query": query}), &film).await.1,
            false => server.search(&json!({"query": query})).await,
        };
        let logged = entry(&server, text(&answer, "/search_id")).await;
        let q = &logged["query"];
        let got = json!([q["text"], q["clip_id"], q["video_id"], q["start"], q["end"], q["uploaded"]]);
        assert_eq!((logged["kind"].as_str(), got), (Some(kind), expected), "{query}");
        all.push(q["hash"].clone());
    }
    let again = server.search(&json!({"query": {"text": " X"}, "limit": 1})).await;
    assert_eq!(entry(&server, text(&again, "/search_id")).await["query"]["hash"], all[0]);
    assert!((1..4).all(|at| all[at] != all[at - 1] && all[at] != all[0]), "{all:?}");
    assert_eq!(listed(&server, "?kind=composed").await.len(), 1);
    assert_eq!(listed(&server, "?without_results=true").await.len(), 0);
    let nothing = json!({"query": {"text": "x"}, "filter": {"field": "title", "eq": "none"}});
    let nothing = server.search(&nothing).await;
    let found = listed(&server, "?without_results=true").await;
    assert_eq!(found.iter().map(|it| &it["id"]).collect::<Vec<_>>(), [&nothing["search_id"]]);
    for (query, pointer) in [("?since=soon", "since"), ("?kind=picture", "kind"), ("?limit=0", "limit")] {
        let problem = server.refused(server.request("GET", &format!("/v1/searches{query}")), 422).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    let page = server.get("/v1/searches?limit=2").await.1;
    let next = format!("/v1/searches?limit=9&cursor={}", text(&page, "/next_cursor"));
    let rest = server.get(&next).await.1;
    assert_eq!(rest["items"].as_array().unwrap().len(), 4, "{rest}");
}

async fn a_hashed_log_tells_only_which_queries_are_equal(bed: &Bed) {
    let server = bed.start(&["--query-log", "hashed"]);
    let video = server.ingest(&bed.film(0, 2)).await;
    let filter = json!({"all": [{"field": "title", "eq": "unspeakable"}, {"field": "duration", "gt": 1}]});
    let asked = async |word: &str| {
        let answer = server.search(&json!({"query": {"text": word}, "filter": filter})).await;
        entry(&server, text(&answer, "/search_id")).await
    };
    let (one, same, other) =
        (asked("Unspeakable word").await, asked("unspeakable  word").await, asked("x").await);
    assert_eq!(one["query"]["text"], Value::Null);
    assert_eq!(
        one["filter"],
        json!({"all": [{"field": "title", "eq": null}, {"field": "duration", "gt": null}]})
    );
    assert_eq!(one["query"]["hash"], same["query"]["hash"]);
    assert_ne!(one["query"]["hash"], other["query"]["hash"]);
    let clip = json!({"query": {"clip": {"video_id": video["id"], "start": 0.5, "end": 1.5}}});
    let logged = entry(&server, text(&server.search(&clip).await, "/search_id")).await;
    for field in ["text", "clip_id", "video_id", "start", "end"] {
        assert_eq!(logged["query"][field], Value::Null, "{field}");
    }
    assert!(!logged["hits"].as_array().unwrap().is_empty());
    assert!(server.stop());
    if bed.is_embedded() {
        for name in ["catalog.sqlite", "catalog.sqlite-wal"] {
            let bytes = std::fs::read(bed.data().join(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).to_lowercase();
            assert!(!text.contains("unspeakable"), "{name} has the text");
        }
    }
}

async fn a_log_that_is_off_keeps_nothing(bed: &Bed) {
    let server = bed.start(&["--query-log", "off"]);
    server.ingest(&bed.film(0, 3)).await;
    let first = server.search(&json!({"query": {"text": "x"}, "limit": 1})).await;
    let next = server.search(&json!({"cursor": first["next_cursor"]})).await;
    for answer in [&first, &next] {
        assert_eq!(answer.get("search_id"), Some(&Value::Null));
    }
    assert_eq!(listed(&server, "").await, Vec::<Value>::new());
}

async fn searches_are_forgotten_after_their_days(bed: &Bed) {
    let server = bed.start(&[]);
    server.ingest(&bed.film(0, 2)).await;
    let [old, young] = [
        server.search(&json!({"query": {"text": "old"}})).await,
        server.search(&json!({"query": {"text": "young"}})).await,
    ];
    assert_eq!(listed(&server, "").await.len(), 2);
    assert!(server.stop());
    let three_days_ago = reprise_server::catalog::instant::now_ms() - 3 * 24 * 3600 * 1000;
    bed.execute(&format!("UPDATE searches SET at_ms = {three_days_ago} WHERE text = 'old'")).await;
    let server = bed.start(&["--query-log-days", "2"]);
    let is_gone = async || {
        let (status, _) = server.get(&format!("/v1/searches/{}", text(&old, "/search_id"))).await;
        (status == StatusCode::NOT_FOUND).then_some(())
    };
    until("the old search is forgotten", is_gone).await;
    entry(&server, text(&young, "/search_id")).await;
}
