//! Searches by several examples: more like some, less like others.

use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::{Value, json};

/// A server with two films of three shots; equal shots have equal pixels.
struct Library {
    server: Server,
    /// The clips' ids, `[film][shot]`.
    clips: Vec<Vec<String>>,
    videos: Vec<String>,
}

const SHOTS: [[&str; 3]; 2] =
    [["color=c=red", "smptebars", "color=c=blue"], ["color=c=blue", "color=c=red", "smptebars"]];

impl Library {
    async fn new(folder: &Path) -> Library {
        let data = folder.join("data");
        std::fs::create_dir(&data).unwrap();
        let server = Server::start(&data, &[]);
        let (mut clips, mut videos) = (Vec::new(), Vec::new());
        for (name, shots) in [("one", SHOTS[0]), ("other", SHOTS[1])] {
            let cut = [("segmentation", json!({"policy": "content"}))];
            let video = server.ingest_with(&film(folder, name, &shots, Store::Lossless), &cut).await;
            let id = video["id"].as_str().unwrap().to_owned();
            let (_, listed) = server.get(&format!("/v1/videos/{id}/clips")).await;
            let mut spans = listed["items"].as_array().unwrap().clone();
            spans.sort_by(|one, other| {
                one["start"].as_f64().unwrap().total_cmp(&other["start"].as_f64().unwrap())
            });
            let ids: Vec<String> = spans.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
            assert_eq!(ids.len(), 3, "{listed}");
            clips.push(ids);
            videos.push(id);
        }
        Library { server, clips, videos }
    }

    fn clip(&self, film: usize, shot: usize) -> Value {
        json!({"clip_id": self.clips[film][shot]})
    }

    fn range(&self, film: usize, start: f64, end: f64) -> Value {
        json!({"clip": {"video_id": self.videos[film], "start": start, "end": end}})
    }

    /// The hits' shots as (film, shot), best first.
    async fn found(&self, body: &Value) -> Vec<(usize, usize)> {
        let answer = self.server.search(body).await;
        let hits = answer["results"].as_array().unwrap().clone();
        let place = |hit: &Value| {
            let film = self.videos.iter().position(|it| hit["video_id"] == **it).unwrap();
            (film, (hit["start"].as_f64().unwrap() / 2.0).round() as usize)
        };
        hits.iter().map(place).collect()
    }
}

fn pairs(answer: &Value, list: &str) -> Vec<(String, f64)> {
    let hits = answer[list].as_array().unwrap().iter();
    hits.map(|hit| (hit["clip_id"].as_str().unwrap().to_owned(), hit["score"].as_f64().unwrap())).collect()
}

#[tokio::test]
async fn several_examples_make_one_ranking() {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::new(folder.path()).await;
    one_example_ranks_as_its_own_query(&library).await;
    examples_attract_and_repel(&library).await;
    pages_are_the_ranking_cut_in_pieces(&library).await;
    a_batch_an_export_and_the_log_take_examples(&library).await;
    what_is_wrong_is_refused_with_a_pointer(&library).await;
    an_alert_asks_new_videos_examples(&library, folder.path()).await;
}

async fn one_example_ranks_as_its_own_query(library: &Library) {
    for example in [
        library.clip(0, 1),
        library.range(0, 2.0, 4.0),
        library.range(1, 0.5, 1.5),
        json!({"text": "red bars"}),
    ] {
        for more in
            [json!({"level": "both"}), json!({"level": "video"}), json!({"exclude": {"same_video": true}})]
        {
            let mut alone = json!({"query": example, "sources": ["visual"]});
            alone.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut listed = alone.clone();
            listed["query"] = json!({"like": [example]});
            let (alone, listed) = (library.server.search(&alone).await, library.server.search(&listed).await);
            assert_eq!(pairs(&listed, "results"), pairs(&alone, "results"), "{example} {more}");
            if alone["videos"].is_array() {
                assert_eq!(pairs(&listed, "videos"), pairs(&alone, "videos"), "{example}");
            }
            let (one, other) = (&listed["query_info"], &alone["query_info"]);
            assert_eq!(one["kind"], "examples");
            // The second query of a range finds its vector in the cache, so `frames` differs.
            for fact in ["tokens_total", "tokens_used", "windows", "truncated", "weights"] {
                assert_eq!(one[fact], other[fact], "{fact} of {example}");
            }
        }
    }
}

async fn examples_attract_and_repel(library: &Library) {
    let (red, bars, blue) = (library.clip(0, 0), library.clip(0, 1), library.clip(0, 2));
    let search = |like: Value, unlike: Value| json!({"query": {"like": like, "unlike": unlike}});
    // The examples' own clips are left out, whichever their sign.
    let found = library.found(&search(json!([red, blue]), json!([bars]))).await;
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|(film, _)| *film == 1), "{found:?}");
    assert_eq!(found[2], (1, 2), "the bars are the least of it: {found:?}");
    // What a negative example shows sinks.
    let found = library.found(&search(json!([bars]), json!([]))).await;
    assert_eq!(found[0], (1, 2), "{found:?}");
    let found = library.found(&search(json!([red, bars]), json!([library.range(0, 2.2, 3.8)]))).await;
    assert_eq!(found[0], (1, 1), "red, as the bars are not wanted: {found:?}");
    // One example twice counts twice.
    let score = async |like: Value| {
        let answer = library.server.search(&search(like, json!([]))).await;
        pairs(&answer, "results").into_iter().find(|(id, _)| *id == library.clips[1][1]).unwrap().1
    };
    assert!(score(json!([red, red, bars])).await > score(json!([red, bars])).await);
    let kept = json!({"query": {"like": [red], "unlike": [bars]}, "exclude": {"self": false}});
    assert_eq!(library.found(&kept).await.len(), 6);
    let others =
        json!({"query": {"like": [red], "unlike": [library.clip(1, 2)]}, "exclude": {"same_video": true}});
    assert!(library.found(&others).await.is_empty());
    // Texts and clips of one space mix.
    let mixed = search(json!([red, {"text": "a red square"}]), json!([{"text": "bars"}]));
    let answer = library.server.search(&mixed).await;
    assert!(answer["query_info"]["tokens_used"].as_u64().unwrap() > 0, "{answer}");
    assert_eq!(answer["query_info"]["windows"], 2);
}

async fn pages_are_the_ranking_cut_in_pieces(library: &Library) {
    let query = json!({"like": [library.clip(0, 0), {"text": "blue"}], "unlike": [library.clip(0, 1)]});
    for more in
        [json!({}), json!({"overlaps": "keep"}), json!({"level": "video", "exclude": {"self": false}})]
    {
        let mut body = json!({"query": query, "limit": 100});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let whole = library.server.search(&body).await["results"].as_array().unwrap().clone();
        assert!(whole.len() > 1, "{more}");
        body["limit"] = json!(1);
        let mut page = library.server.search(&body).await;
        let mut hits = page["results"].as_array().unwrap().clone();
        while page["next_cursor"].is_string() {
            page = library.server.search(&json!({"cursor": page["next_cursor"]})).await;
            assert_eq!(page["query_info"]["kind"], "examples");
            hits.extend(page["results"].as_array().unwrap().clone());
        }
        assert_eq!(hits, whole, "{more}");
    }
}

async fn a_batch_an_export_and_the_log_take_examples(library: &Library) {
    let server = &library.server;
    let query =
        json!({"like": [library.clip(0, 0), {"text": "Red  squares"}], "unlike": [library.clip(0, 1)]});
    let alone = server.search(&json!({"query": query})).await;
    let (_, batch) = server.post("/v1/search/batch", &json!({"searches": [{"query": query}]})).await;
    assert_eq!(batch["results"][0]["answer"]["results"], alone["results"], "{batch}");
    let nobody = json!({"clip_id": "01890000-0000-7000-8000-000000000000"});
    let wrong = json!({"searches": [{"query": {"text": "x"}}, {"query": {"like": [nobody]}}]});
    let (_, batch) = server.post("/v1/search/batch", &wrong).await;
    assert_eq!(batch["results"][1]["status"], 404, "{batch}");
    let export = json!({"format": "csv", "search": {"query": query}});
    assert_eq!(server.post("/v1/exports", &export).await.0, 202);
    let logged = async |id: &Value| server.get(&format!("/v1/searches/{}", id.as_str().unwrap())).await.1;
    let first = logged(&alone["search_id"]).await;
    assert_eq!(first["kind"], "examples", "{first}");
    let (like, unlike) = (&first["query"]["examples"]["like"], &first["query"]["examples"]["unlike"]);
    assert_eq!(like[0]["clip_id"], library.clip(0, 0)["clip_id"], "{first}");
    assert_eq!((&like[1]["text"], &like[1]["clip_id"]), (&json!("Red  squares"), &json!(null)), "{first}");
    assert_eq!(unlike[0]["clip_id"], library.clip(0, 1)["clip_id"], "{first}");
    let (_, listed) = server.get("/v1/searches?kind=examples").await;
    assert!(listed["items"].as_array().unwrap().iter().all(|it| it["kind"] == "examples"), "{listed}");
    let same = json!({"like": [library.clip(0, 0), {"text": "red squares"}], "unlike": [library.clip(0, 1)]});
    let turned =
        json!({"like": [library.clip(0, 1), {"text": "red squares"}], "unlike": [library.clip(0, 0)]});
    for (query, is_same) in [(same, true), (turned, false)] {
        let other = logged(&server.search(&json!({"query": query})).await["search_id"]).await;
        assert_eq!(other["query"]["hash"] == first["query"]["hash"], is_same, "{query}");
    }
}

async fn what_is_wrong_is_refused_with_a_pointer(library: &Library) {
    let (clip, text) = (library.clip(0, 0), json!({"text": "x"}));
    let long = "the gymnast turns twice and lands. ".repeat(9_000);
    let cases = [
        (json!({"query": {"like": []}}), 422, "/query/like"),
        (json!({"query": {"like": null, "unlike": [text]}}), 422, "/query/like"),
        (json!({"query": {"unlike": [text]}}), 422, "/query/like"),
        (json!({"query": {"like": vec![text.clone(); 17]}}), 422, "/query"),
        (json!({"query": {"like": vec![text.clone(); 9], "unlike": vec![text.clone(); 8]}}), 422, "/query"),
        (json!({"query": {"like": [text], "text": "x"}}), 422, "/query"),
        (json!({"query": {"like": [text], "modification": "x"}}), 422, "/query/modification"),
        (json!({"query": {"like": [{}]}}), 422, "/query/like/0"),
        (json!({"query": {"like": [text, {"text": "a", "clip_id": clip["clip_id"]}]}}), 422, "/query/like/1"),
        (json!({"query": {"like": [text, {"text": " "}]}}), 422, "/query/like/1/text"),
        (json!({"query": {"like": [{"clip_id": "7"}]}}), 422, "/query/like/0/clip_id"),
        (json!({"query": {"like": [{"like": [text]}]}}), 422, "/query/like/0/like"),
        (
            json!({"query": {"like": [text], "unlike": [library.range(0, 3.0, 2.0)]}}),
            422,
            "/query/unlike/0/clip/end",
        ),
        (
            json!({"query": {"like": [text], "unlike": [library.range(0, 7.0, 8.0)]}}),
            422,
            "/query/unlike/0/clip",
        ),
        (json!({"query": {"like": [clip, {"text": long}]}}), 422, "/query/like/1/text"),
        (
            json!({"query": {"like": [{"clip_id": "01890000-0000-7000-8000-000000000000"}]}}),
            404,
            "/query/like/0/clip_id",
        ),
        (json!({"query": {"like": [text]}, "sources": ["spoken"]}), 422, "/sources"),
        (json!({"query": {"like": [text]}, "fusion": {"alpha": 0.5}}), 422, "/fusion"),
        (json!({"query": {"like": [text]}, "space": "nowhere"}), 422, "/space"),
    ];
    for (body, status, pointer) in cases {
        let problem =
            library.server.refused(library.server.request("POST", "/v1/search").json(&body), status).await;
        assert_eq!(
            problem["errors"][0]["pointer"].as_str().unwrap_or_default(),
            pointer,
            "{body}: {problem}"
        );
    }
}

async fn an_alert_asks_new_videos_examples(library: &Library, folder: &Path) {
    let server = &library.server;
    let search = json!({"query": {"like": [library.clip(0, 0)], "unlike": [library.clip(0, 1)]}, "limit": 1});
    let (status, alert) = server.post("/v1/alerts", &json!({"name": "Red", "search": search})).await;
    assert_eq!(status, 201, "{alert}");
    let path = format!("/v1/alerts/{}", alert["id"].as_str().unwrap());
    let late = server.ingest(&film(folder, "late", &["color=c=red", "smptebars"], Store::Lossless)).await;
    let is_asked = async || Some(server.get(&path).await.1).filter(|it| it["waiting"] == 0);
    let asked = crate::faults::bed::until("the video was asked", is_asked).await;
    assert_eq!((&asked["matches"], &asked["trouble"]), (&json!(1), &Value::Null), "{asked}");
    let (_, matches) = server.get(&format!("{path}/matches")).await;
    assert_eq!(matches["items"][0]["video_id"], late["id"], "{matches}");
}

#[tokio::test]
async fn examples_of_two_models_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (data, other) = (folder.path().join("data"), crate::encoders::folder("legacy"));
    std::fs::create_dir(&data).unwrap();
    let text = format!("text={}", other.to_str().unwrap());
    let server = Server::start(&data, &["--model", "clip=builtin:tiny", "--model", &text]);
    let video =
        server.ingest(&film(folder.path(), "one", &["color=c=red", "smptebars"], Store::Lossless)).await;
    let clip = json!({"clip": {"video_id": video["id"], "start": 0.0, "end": 2.0}});
    let (_, spaces) = server.get("/v1/spaces").await;
    let named = |kind: &str| {
        let active = |space: &&Value| space["active_for"].as_array().unwrap().contains(&json!(kind));
        spaces["items"].as_array().unwrap().iter().find(active).unwrap()["name"].clone()
    };
    let query = json!({"like": [{"text": "red"}], "unlike": [clip]});
    let problem =
        server.refused(server.request("POST", "/v1/search").json(&json!({"query": query})), 422).await;
    assert_eq!(problem["errors"][0]["pointer"], "/query", "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    for name in [named("text"), named("clip")] {
        assert!(detail.contains(name.as_str().unwrap()), "{detail}");
    }
    let answer = server.search(&json!({"query": query, "space": named("clip")})).await;
    assert_eq!(answer["index"]["space"], named("clip"));
    let texts = server.search(&json!({"query": {"like": [{"text": "red"}, {"text": "a square"}]}})).await;
    assert_eq!(
        texts["index"]["space"],
        named("text"),
        "examples of one kind are answered as a query of their kind"
    );
}
