//! Evaluations over HTTP: figures against searches, feedback, kills, bounds, rights.

use reprise_tests::server::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::encoders::folder;
use crate::faults::bed::{Bed, on_both, see_through, text, until};

on_both!(
    figures_are_those_of_the_searches,
    feedback_becomes_queries,
    a_killed_evaluation_goes_on,
    a_deleted_video_is_left_out,
    what_is_wrong_is_refused,
);

/// The space of `builtin:tiny`.
const TINY: &str = "tiny-1ade90";

/// Starts an evaluation and waits for its end. Returns it with its first queries.
async fn ended(server: &Server, body: &Value) -> Value {
    let (status, begun) = server.post("/v1/evaluations", body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{begun}");
    see_through(server, text(&begun, "/id")).await;
    got(server, &begun, "?limit=1000").await
}

async fn got(server: &Server, begun: &Value, parameters: &str) -> Value {
    let (status, answer) = server.get(&format!("/v1/evaluations/{}{parameters}", text(begun, "/id"))).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

/// The hits of an exact search by frames alone.
async fn hits(server: &Server, words: &str, space: &Value) -> Vec<Value> {
    let search =
        json!({"query": {"text": words}, "space": space, "sources": ["visual"], "exact": true, "limit": 100});
    server.search_hits(search).await
}

fn range_of(hit: &Value) -> Value {
    json!({"video_id": hit["video_id"], "start": hit["start"], "end": hit["end"]})
}

/// A server with two spaces, and two films of single shots.
async fn two_spaces(bed: &Bed) -> Server {
    let models = folder("");
    let server = bed.start(&["--model-root", models.to_str().unwrap()]);
    let (status, space) = server.post("/v1/spaces", &json!({"model": folder("legacy")})).await;
    assert_eq!(status, StatusCode::CREATED, "{space}");
    for number in 0..2 {
        server.ingest(&bed.film(number, 4)).await;
    }
    let idle = async || {
        let (_, stats) = server.get("/v1/stats").await;
        (stats["jobs_queued"] == 0 && stats["jobs_running"] == 0).then_some(())
    };
    until("every space has every vector", idle).await;
    server
}

async fn figures_are_those_of_the_searches(bed: &Bed) {
    let server = two_spaces(bed).await;
    let (_, spaces) = server.get("/v1/spaces").await;
    let names: Vec<Value> =
        spaces["items"].as_array().unwrap().iter().map(|space| space["name"].clone()).collect();
    assert_eq!(names.len(), 2, "{spaces}");
    let mut queries = Vec::new();
    for (place, words) in ["a red square", "bars", "a green field", "water"].iter().enumerate() {
        let hit = hits(&server, words, &names[0]).await[place].clone();
        queries.push(json!({"label": words, "text": words, "relevant": [range_of(&hit)]}));
    }
    let body = json!({"name": "four texts", "spaces": names, "cutoffs": [1, 3], "queries": queries});
    let done = ended(&server, &body).await;
    let evaluation = &done["evaluation"];
    assert_eq!(
        (&evaluation["state"], &evaluation["query_count"], &evaluation["figures"]["asked"]),
        (&json!("succeeded"), &json!(4), &json!(4)),
        "{done}"
    );
    let mut changes = [0, 0, 0];
    for (place, query) in done["queries"].as_array().unwrap().iter().enumerate() {
        let mut ranks = Vec::new();
        for (outcome, name) in query["outcomes"].as_array().unwrap().iter().zip(&names) {
            let found = hits(&server, text(query, "/text"), name).await;
            let rank = found.iter().position(|hit| range_of(hit) == query["relevant"][0]).map(|at| at + 1);
            assert_eq!(outcome["rank"], json!(rank), "{query} {name}");
            ranks.push(rank.unwrap_or(usize::MAX));
        }
        assert_eq!(ranks[0], place + 1, "{query}");
        changes[usize::from(ranks[1] >= ranks[0]) + usize::from(ranks[1] == ranks[0])] += 1;
    }
    let of_first = &evaluation["figures"]["spaces"][0];
    assert_eq!(
        (&of_first["at"], &of_first["median_rank"], &of_first["mean_rank"], &of_first["exact"]),
        (
            &json!([{"k": 1, "recall": 0.25, "map": 0.25},
                {"k": 3, "recall": 0.75, "map": (1.0 + 1.0 / 2.0 + 1.0 / 3.0) / 4.0}]),
            &json!(2.5),
            &json!(2.5),
            &json!(true)
        ),
        "{evaluation}"
    );
    let compared = &evaluation["figures"]["comparisons"][0];
    let expected = json!({"space": names[1], "baseline": names[0],
        "better": changes[0], "worse": changes[1], "same": changes[2]});
    assert_eq!(*compared, expected);
    for (change, count) in ["better", "worse", "same"].into_iter().zip(changes) {
        let path = format!("?change={change}&space={}&baseline={}", text(&names[1], ""), text(&names[0], ""));
        let listed = got(&server, evaluation, &path).await;
        assert_eq!(listed["queries"].as_array().map(Vec::len), Some(count), "{change} {listed}");
    }
    let page = got(&server, evaluation, "?limit=3").await;
    assert_eq!((&page["queries"][2]["place"], &page["next_cursor"]), (&json!(2), &json!("2")));
    let page = got(&server, evaluation, "?limit=3&cursor=2").await;
    assert_eq!((&page["queries"][0], &page["next_cursor"]), (&done["queries"][3], &Value::Null));
    let videos = json!({"name": "videos", "spaces": [names[0]], "level": "video", "queries": queries});
    let found = ended(&server, &videos).await;
    assert!(
        found["queries"].as_array().unwrap().iter().all(|it| it["outcomes"][0]["rank"].is_u64()),
        "{found}"
    );
    assert_eq!(server.get("/v1/evaluations").await.1["items"].as_array().map(Vec::len), Some(2));
    let logged = server.get("/v1/searches?limit=1000").await.1["items"].as_array().unwrap().len();
    ended(&server, &body).await;
    let after = server.get("/v1/searches?limit=1000").await.1["items"].as_array().unwrap().len();
    assert_eq!(logged, after, "its searches are not in the log");
}

async fn judge(server: &Server, search: &Value, hit: usize, verdict: &str) {
    let body = json!({"clip_id": search["results"][hit]["clip_id"], "verdict": verdict});
    let path = format!("/v1/searches/{}/feedback", text(search, "/search_id"));
    assert_eq!(server.post(&path, &body).await.0, StatusCode::NO_CONTENT);
}

async fn feedback_becomes_queries(bed: &Bed) {
    let server = bed.start(&[]);
    let video = server.ingest(&bed.film(0, 4)).await;
    let body = json!({"name": "log", "spaces": [TINY], "from_feedback": {}});
    let refused = server.refused(server.request("POST", "/v1/evaluations").json(&body), 422).await;
    assert_eq!(refused["errors"][0]["pointer"], "/from_feedback", "{refused}");
    let asked = json!({"query": {"text": "a red square"}, "sources": ["visual"], "exact": true});
    let (first, again) = (server.search(&asked).await, server.search(&asked).await);
    judge(&server, &first, 1, "relevant").await;
    judge(&server, &again, 3, "relevant").await;
    judge(&server, &again, 0, "not_relevant").await;
    judge(&server, &first, 2, "opened").await;
    let clip = json!({"query": {"clip": {"video_id": video["id"], "start": 0.0, "end": 2.0}}, "exact": true});
    judge(&server, &server.search(&clip).await, 0, "relevant").await;
    let (status, uploaded) = server.search_upload(&json!({"query": {"upload": true}}), &bed.film(9, 1)).await;
    assert_eq!(status, StatusCode::OK, "{uploaded}");
    judge(&server, &uploaded, 0, "relevant").await;
    let done = ended(&server, &body).await;
    assert_eq!(
        (&done["evaluation"]["query_count"], &done["evaluation"]["left_out"]),
        (&json!(2), &json!(1)),
        "{done}"
    );
    assert_eq!(done["queries"][0]["outcomes"][0]["ranks"], json!([2, 4]), "{done}");
    assert_eq!(done["queries"][1]["outcomes"][0]["ranks"], json!([1]), "{done}");
    assert_eq!(done["queries"][1]["clip"], clip["query"]["clip"]);
    let before = json!({"name": "log", "spaces": [TINY], "from_feedback": {"until": "2001-01-01"}});
    server.refused(server.request("POST", "/v1/evaluations").json(&before), 422).await;
}

async fn a_killed_evaluation_goes_on(bed: &Bed) {
    let server = bed.start(&["--lease-seconds", "2"]);
    let video = server.ingest(&bed.film(0, 4)).await;
    let relevant = json!([{"video_id": video["id"], "start": 2.0, "end": 4.0}]);
    let query = |number: usize| json!({"text": format!("query {number}"), "relevant": relevant});
    let queries: Vec<Value> = (0..64).map(query).collect();
    let body = json!({"name": "many", "spaces": [TINY], "queries": queries});
    let whole = ended(&server, &body).await;
    let (_, begun) = server.post("/v1/evaluations", &body).await;
    let path = format!("/v1/evaluations/{}", text(&begun, "/id"));
    let has_begun = async || (server.get(&path).await.1["queries"][0]["outcomes"] != json!([])).then_some(());
    until("some queries are answered", has_begun).await;
    server.kill();
    let server = bed.start(&["--lease-seconds", "2"]);
    see_through(&server, text(&begun, "/id")).await;
    let resumed = got(&server, &begun, "?limit=1000").await;
    let lasting = |answer: &Value| -> Vec<Value> {
        let queries = answer["queries"].as_array().unwrap();
        queries.iter().map(|query| json!([query["text"], query["outcomes"][0]["ranks"]])).collect()
    };
    assert_eq!(lasting(&resumed), lasting(&whole));
    let at = |answer: &Value| answer["evaluation"]["figures"]["spaces"][0]["at"].clone();
    assert_eq!(at(&resumed), at(&whole));
    let (_, begun) = server.post("/v1/evaluations", &body).await;
    let job = format!("/v1/jobs/{}", text(&begun, "/id"));
    let (status, cancelled) = server.post(&format!("{job}/cancel"), &json!({})).await;
    if status == StatusCode::OK {
        assert_eq!(cancelled["state"], "cancelled");
        assert_eq!(server.post(&format!("{job}/retry"), &json!({})).await.0, StatusCode::OK);
    }
    see_through(&server, text(&begun, "/id")).await;
    assert_eq!(lasting(&got(&server, &begun, "?limit=1000").await), lasting(&whole));
    for _ in 0..2 {
        let path = format!("/v1/evaluations/{}", text(&begun, "/id"));
        server.delete(&path).await;
        assert_eq!(
            (server.get(&path).await.0, server.get(&job).await.0),
            (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND)
        );
    }
}

async fn a_deleted_video_is_left_out(bed: &Bed) {
    let server = bed.start(&[]);
    let (kept, gone) = (server.ingest(&bed.film(0, 2)).await, server.ingest(&bed.film(1, 2)).await);
    let range = |video: &Value| json!({"video_id": video["id"], "start": 0.0, "end": 2.0});
    let queries = json!([
        {"text": "bars", "relevant": [range(&kept), range(&gone), {"video_id": kept["id"]}]},
        {"clip": range(&gone), "relevant": [range(&kept)]},
    ]);
    let body = json!({"name": "x", "spaces": [TINY], "queries": queries});
    let done = ended(&server, &body).await;
    assert_eq!(done["evaluation"]["figures"]["asked"], 2, "{done}");
    assert_eq!(server.delete(&format!("/v1/videos/{}", text(&gone, "/id"))).await.0, StatusCode::NO_CONTENT);
    let left = got(&server, &done["evaluation"], "").await;
    assert!(!left.to_string().contains(text(&gone, "/id")), "{left}");
    assert_eq!(
        (&left["queries"][1]["clip"], &left["queries"][1]["relevant"]),
        (&Value::Null, &json!([range(&kept)]))
    );
    server.refused(server.request("POST", "/v1/evaluations").json(&body), 404).await;
}

async fn what_is_wrong_is_refused(bed: &Bed) {
    let server = bed.start(&[]);
    let video = server.ingest(&bed.film(0, 2)).await;
    let sound = json!({"name": "x", "spaces": [TINY],
        "queries": [{"text": "bars", "relevant": [{"video_id": video["id"], "start": 0.0, "end": 1.0}]}]});
    let with = |field: &str, value: Value| {
        let mut body = sound.clone();
        *body.pointer_mut(field).unwrap_or_else(|| panic!("{field}")) = value;
        body
    };
    let beside = |field: &str, value: Value| {
        let mut body = sound.clone();
        body[field] = value;
        body
    };
    let query = |value: Value| with("/queries/0", value);
    let relevant = |value: Value| with("/queries/0/relevant/0", value);
    let nobody = "01980f5e-0000-7000-8000-000000000000";
    let ok = json!([{"video_id": video["id"]}]);
    let cases = [
        (with("/name", json!("")), 422, "/name"),
        (with("/spaces", json!([])), 422, "/spaces"),
        (with("/spaces", json!([TINY, "no space"])), 422, "/spaces/1"),
        (with("/spaces", json!([TINY, TINY])), 422, "/spaces/1"),
        (with("/queries", json!([])), 422, "/queries"),
        (beside("from_feedback", json!({})), 422, ""),
        (beside("min_iou", json!(0.0)), 422, "/min_iou"),
        (beside("min_iou", json!(1.1)), 422, "/min_iou"),
        (beside("depth", json!(0)), 422, "/depth"),
        (beside("depth", json!(1001)), 422, "/depth"),
        (beside("cutoffs", json!([])), 422, "/cutoffs"),
        (beside("cutoffs", json!([0])), 422, "/cutoffs"),
        (beside("cutoffs", json!([5, 5])), 422, "/cutoffs"),
        (
            json!({"name": "x", "spaces": [TINY], "depth": 5, "cutoffs": [6], "queries": sound["queries"]}),
            422,
            "/cutoffs",
        ),
        (beside("level", json!("passage")), 422, "/level"),
        (query(json!({"text": " ", "relevant": ok})), 422, "/queries/0/text"),
        (query(json!({"relevant": ok})), 422, "/queries/0"),
        (query(json!({"text": "a", "clip_id": nobody, "relevant": ok})), 422, "/queries/0"),
        (query(json!({"text": "a", "modification": "b", "relevant": ok})), 422, "/queries/0/modification"),
        (
            query(json!({"text": "a", "filter": {"field": "x"}, "relevant": ok})),
            422,
            "/queries/0/filter/field",
        ),
        (query(json!({"text": "a", "relevant": []})), 422, "/queries/0/relevant"),
        (query(json!({"clip_id": nobody, "relevant": ok})), 404, "/queries/0/clip_id"),
        (relevant(json!({"clip_id": nobody})), 404, "/queries/0/relevant/0/clip_id"),
        (relevant(json!({"video_id": nobody})), 404, "/queries/0/relevant/0/video_id"),
        (relevant(json!({"video_id": video["id"], "start": 1.0})), 422, "/queries/0/relevant/0"),
        (
            relevant(json!({"video_id": video["id"], "start": 1.0, "end": 1.0})),
            422,
            "/queries/0/relevant/0/end",
        ),
        (
            relevant(json!({"video_id": video["id"], "start": 99.0, "end": 100.0})),
            422,
            "/queries/0/relevant/0/start",
        ),
        (with("/queries", json!(vec![sound["queries"][0].clone(); 10_001])), 422, "/queries"),
    ];
    for (body, status, pointer) in cases {
        let refused = server.refused(server.request("POST", "/v1/evaluations").json(&body), status).await;
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{refused}");
    }
    let (_, evaluation) = server.post("/v1/evaluations", &sound).await;
    let path = format!("/v1/evaluations/{}", text(&evaluation, "/id"));
    for parameters in ["?change=better", "?change=better&space=other&baseline=other", "?limit=0", "?change=x"]
    {
        server.refused(server.request("GET", &format!("{path}{parameters}")), 422).await;
    }
    let large = format!("{{\"name\": \"{}\"}}", "x".repeat(9 << 20));
    let request = server.request("POST", "/v1/evaluations").header("content-type", "application/json");
    server.refused(request.body(large), 413).await;
}
