//! `POST /v1/search` over a small library: every kind of query, levels, groups, filters, exclusions, pages.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server with four films of three shots each; equal shots have equal pixels.
struct Library {
    server: Server,
    folder: TempDir,
    /// The API's JSON of each video, in the order of [`films`].
    videos: Vec<Value>,
    files: Vec<PathBuf>,
}

/// Name, shots, metadata.
fn films() -> [(&'static str, [&'static str; 3], Value); 4] {
    [
        (
            "vault",
            ["smptebars", "color=c=red", "testsrc2"],
            json!({"event": "vault", "score": 9.1, "day": 1}),
        ),
        ("beam", ["color=c=red", "color=c=blue", "rgbtestsrc"], json!({"event": "beam", "score": 8})),
        ("floor", ["testsrc", "color=c=red", "color=c=green"], json!({"event": "floor", "final": true})),
        ("bars", ["color=c=white", "smptebars", "color=c=blue"], json!({})),
    ]
}

impl Library {
    async fn new() -> Library {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        // Equal pictures have equal vectors in batches of any size: in AMX's tiles a large product is rounded otherwise than a small one.
        let without_tiles = [("REPRISE_MAX_CPU_ISA", Path::new("avx512_bf16"))];
        let server = Server::try_start_with(&data, &["--max-clip-seconds", "5"], &without_tiles).unwrap();
        let (mut videos, mut files) = (Vec::new(), Vec::new());
        for (name, shots, metadata) in films() {
            let file = film(folder.path(), name, &shots, Store::Lossless);
            // Segments at cuts alone: the counter in a test picture would be a slide change.
            let parts = [("metadata", metadata), ("segmentation", json!({"policy": "content"}))];
            videos.push(server.ingest_with(&file, &parts).await);
            files.push(file);
        }
        Library { server, folder, videos, files }
    }

    fn id(&self, film: usize) -> &str {
        self.videos[film]["id"].as_str().unwrap()
    }

    /// A clip query for shot `shot` of a film.
    fn shot(&self, film: usize, shot: usize) -> Value {
        let start = 2.0 * shot as f64;
        json!({"clip": {"video_id": self.id(film), "start": start, "end": start + 2.0}})
    }

    async fn search(&self, body: Value) -> Value {
        self.server.search(&body).await
    }

    /// Hits as (film, shot), best first.
    fn shots(&self, hits: &Value) -> Vec<(usize, usize)> {
        let film = |hit: &Value| self.videos.iter().position(|it| it["id"] == hit["video_id"]).unwrap();
        let shot = |hit: &Value| (hit["start"].as_f64().unwrap() / 2.0).round() as usize;
        hits.as_array().unwrap().iter().map(|hit| (film(hit), shot(hit))).collect()
    }
}

fn ids(hits: &Value) -> Vec<String> {
    hits.as_array().unwrap().iter().map(|hit| hit["clip_id"].as_str().unwrap().to_owned()).collect()
}

fn scores(hits: &Value) -> Vec<f64> {
    hits.as_array().unwrap().iter().map(|hit| hit["score"].as_f64().unwrap()).collect()
}

#[track_caller]
fn assert_close(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    let near = got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-5);
    assert!(near, "{got:?} instead of {expected:?}");
}

#[tokio::test]
async fn a_library_is_searched_as_the_contract_says() {
    let library = Library::new().await;
    texts_find_clips_in_order_of_score(&library).await;
    levels_are_clips_videos_or_both(&library).await;
    groups_hold_the_best_of_each_video(&library).await;
    a_clip_finds_its_like_and_not_itself(&library).await;
    an_upload_is_searched_and_recognised(&library).await;
    a_composed_query_lies_between_clip_and_text(&library).await;
    filters_act_inside_the_search(&library).await;
    long_texts_are_windowed_truncated_or_refused(&library).await;
    neighbours_are_merged_where_asked(&library).await;
    the_exact_answer_is_the_answer(&library).await;
    spaces_are_named_by_name_and_id(&library).await;
    what_is_wrong_is_refused_with_a_pointer(&library).await;
    pages_are_the_ranking_cut_in_pieces(&library).await;
    pages_go_on_while_videos_come_and_go(&library).await;
}

async fn texts_find_clips_in_order_of_score(library: &Library) {
    let answer = library.search(json!({"query": {"text": "a red floor"}})).await;
    let hits = answer["results"].as_array().unwrap();
    assert_eq!(hits.len(), 12, "every shot is a clip: {answer}");
    assert!(scores(&answer["results"]).is_sorted_by(|a, b| a >= b));
    for (index, hit) in hits.iter().enumerate() {
        assert_eq!(hit["rank"], index + 1);
        assert_eq!(hit["level"], "clip");
        let (id, video) = (hit["clip_id"].as_str().unwrap(), hit["video_id"].as_str().unwrap());
        let (start, end) = (hit["start"].as_f64().unwrap(), hit["end"].as_f64().unwrap());
        assert_eq!(hit["thumbnail_url"], format!("/v1/clips/{id}/thumbnail"));
        assert_eq!(hit["media_url"], format!("/v1/videos/{video}/media#t={start:.3},{end:.3}"));
        let peak = hit["peak"].as_f64().unwrap();
        assert!(start <= peak && peak < end, "the best frame lies inside: {hit}");
        assert_eq!(hit["page_url"], format!("/v/{video}?t={:.3}", (peak - 1.0).max(0.0)));
        let evidence = json!([{"source": "visual", "score": hit["score"], "z": null, "rank": index + 1}]);
        assert_eq!(hit["evidence"], evidence);
        let stored = library.videos.iter().find(|it| it["id"] == hit["video_id"]).unwrap();
        assert_eq!((&hit["title"], &hit["metadata"]), (&stored["title"], &stored["metadata"]));
    }
    assert_eq!((&answer["videos"], &answer["groups"]), (&Value::Null, &Value::Null));
    assert_eq!((&answer["next_cursor"], &answer["exhausted"]), (&Value::Null, &json!(true)));
    let info = &answer["query_info"];
    assert_eq!(
        (&info["kind"], &info["windows"], &info["truncated"]),
        (&json!("text"), &json!(1), &json!(false))
    );
    assert_eq!(
        (&info["fusion"], &info["weights"], &info["frames"]),
        (&Value::Null, &json!({"visual": 1.0, "spoken": 1.0, "screen": 1.0}), &json!(0))
    );
    assert_eq!(info["tokens_total"], info["tokens_used"]);
    assert_eq!(answer["index"]["live"], 12);
    assert!(answer["index"]["space"].as_str().unwrap().starts_with("tiny-"));
    // A text has no pictures.
    check_timings(&answer, &["encode", "search", "catalog"]);
    assert!(answer.get("explain").is_none());
}

/// These parts of a search took time, the others none, and all together no longer than the whole.
#[track_caller]
fn check_timings(answer: &Value, expected: &[&str]) {
    let of = |part: &str| answer["timings_ms"][part].as_f64().unwrap();
    let parts = ["decode", "encode", "search", "catalog"];
    for part in parts {
        assert_eq!(of(part) > 0.0, expected.contains(&part), "{part}: {}", answer["timings_ms"]);
    }
    assert!(parts.map(of).iter().sum::<f64>() <= of("total") + 0.01, "{}", answer["timings_ms"]);
}

async fn levels_are_clips_videos_or_both(library: &Library) {
    let query = json!({"text": "bars"});
    let videos = library.search(json!({"query": query, "level": "video"})).await;
    let hits = videos["results"].as_array().unwrap();
    assert_eq!(hits.len(), 4);
    for hit in hits {
        assert_eq!((&hit["level"], &hit["start"], &hit["end"]), (&json!("video"), &json!(0.0), &json!(6.0)));
    }
    let clips = library.search(json!({"query": query})).await;
    for hit in hits {
        let of_video = |it: &&Value| it["video_id"] == hit["video_id"];
        let best = clips["results"].as_array().unwrap().iter().find(of_video).expect("each video has clips");
        let [start, peak, end] = [&best["start"], &hit["peak"], &best["end"]].map(|it| it.as_f64().unwrap());
        assert!(start < peak && peak < end, "a full video opens at its best clip: {hit} {best}");
    }
    let both = library.search(json!({"query": query, "level": "both", "limit": 5})).await;
    assert_eq!(both["results"].as_array().unwrap()[..], clips["results"].as_array().unwrap()[..5]);
    assert_eq!(both["videos"], videos["results"]);
    let second = library.search(json!({"cursor": both["next_cursor"]})).await;
    assert_eq!(second["videos"], Value::Null, "full videos come with the first page only");
    assert_eq!(second["results"].as_array().unwrap().len(), 5);
}

async fn groups_hold_the_best_of_each_video(library: &Library) {
    let flat = library.search(json!({"query": {"text": "red"}})).await;
    let body = json!({"query": {"text": "red"}, "group_by": "video", "per_group": 2, "limit": 3});
    let first = library.search(body).await;
    assert_eq!(first["results"], json!([]));
    let second = library.search(json!({"cursor": first["next_cursor"]})).await;
    assert_eq!(
        (first["groups"].as_array().unwrap().len(), second["groups"].as_array().unwrap().len()),
        (3, 1)
    );
    assert_eq!((&second["exhausted"], &second["next_cursor"]), (&json!(true), &Value::Null));
    let groups =
        [first["groups"].as_array().unwrap().clone(), second["groups"].as_array().unwrap().clone()].concat();
    let mut seen = HashSet::new();
    let expected: Vec<&Value> = flat["results"].as_array().unwrap().iter().collect();
    let order: Vec<&Value> =
        expected.iter().map(|hit| &hit["video_id"]).filter(|it| seen.insert(it.to_string())).collect();
    assert_eq!(groups.iter().map(|it| &it["video_id"]).collect::<Vec<_>>(), order, "best member first");
    for group in &groups {
        let members: Vec<&&Value> =
            expected.iter().filter(|it| it["video_id"] == group["video_id"]).collect();
        assert_eq!(group["score"], members[0]["score"]);
        let got = ids(&group["results"]);
        assert_eq!(got, members.iter().take(2).map(|it| it["clip_id"].as_str().unwrap()).collect::<Vec<_>>());
        assert_eq!(group["results"][1]["rank"], 2);
    }
}

async fn a_clip_finds_its_like_and_not_itself(library: &Library) {
    let red = library.shot(0, 1);
    let answer = library.search(json!({"query": red})).await;
    assert_eq!(answer["results"].as_array().unwrap().len(), 11, "all but itself");
    let mut best = library.shots(&answer["results"])[..2].to_vec();
    best.sort_unstable();
    assert_eq!(best, [(1, 0), (2, 1)], "the other red shots");
    assert!(scores(&answer["results"])[1] > 0.9999, "equal pictures, equal vectors");
    assert_eq!((&answer["query_info"]["kind"], &answer["query_info"]["frames"]), (&json!("clip"), &json!(0)));

    let itself = library.search(json!({"query": red, "exclude": {"self": false}})).await;
    assert_eq!(itself["results"].as_array().unwrap().len(), 12);
    assert!(library.shots(&itself["results"])[..3].contains(&(0, 1)));
    let others = library.search(json!({"query": red, "exclude": {"same_video": true}})).await;
    assert!(library.shots(&others["results"]).iter().all(|it| it.0 != 0));
    assert_eq!(others["results"].as_array().unwrap().len(), 9);
    let videos = library.search(json!({"query": red, "level": "video"})).await;
    assert!(videos["results"].as_array().unwrap().iter().all(|it| it["video_id"] != library.id(0)));

    let id = ids(&itself["results"])
        [library.shots(&itself["results"]).iter().position(|it| *it == (0, 1)).unwrap()]
    .clone();
    let by_id = library.search(json!({"query": {"clip_id": id}})).await;
    assert_eq!(ids(&by_id["results"]), ids(&answer["results"]));
    // A range that is no clip excludes the clips that overlap it by more than half. Its frames' features were kept.
    let stretch = json!({"clip": {"video_id": library.id(0), "start": 2.5, "end": 3.5}});
    let pooled = library.search(json!({"query": stretch})).await;
    assert!(pooled["query_info"]["frames"].as_u64().unwrap() > 0);
    assert!(!library.shots(&pooled["results"]).contains(&(0, 1)));
    check_timings(&pooled, &["encode", "search", "catalog"]);
    let one_frame = json!({"clip": {"video_id": library.id(0), "start": 2.5, "end": 2.501}});
    let one_frame = library.search(json!({"query": one_frame})).await;
    assert_eq!(one_frame["query_info"]["frames"], 1);
    // No kept frame lies in it.
    check_timings(&one_frame, &["decode", "encode", "search", "catalog"]);
}

async fn an_upload_is_searched_and_recognised(library: &Library) {
    let body = json!({"query": {"upload": true}, "limit": 100});
    let (status, known) = library.server.search_upload(&body, &library.files[0]).await;
    assert_eq!(status, 200, "{known}");
    assert!(library.shots(&known["results"]).iter().all(|it| it.0 != 0), "all of a stored file is itself");
    let part = json!({"query": {"upload": true, "start": 2.0, "end": 4.0}});
    let (_, part) = library.server.search_upload(&part, &library.files[0]).await;
    assert!(
        !library.shots(&part["results"]).contains(&(0, 1))
            && library.shots(&part["results"]).contains(&(0, 0))
    );
    assert!(scores(&part["results"])[0] > 0.9999, "{part}");
    let itself = json!({"query": {"upload": true, "start": 2.0, "end": 4.0}, "exclude": {"self": false}});
    let (_, itself) = library.server.search_upload(&itself, &library.files[0]).await;
    assert!(library.shots(&itself["results"])[..3].contains(&(0, 1)));

    let unknown = film(library.folder.path(), "unknown", &["color=c=blue"], Store::Lossless);
    let (_, unknown) = library.server.search_upload(&body, &unknown).await;
    let mut best = library.shots(&unknown["results"])[..2].to_vec();
    best.sort_unstable();
    assert_eq!(best, [(1, 1), (3, 2)], "the blue shots");
    assert_eq!(unknown["results"].as_array().unwrap().len(), 12, "nothing of it is stored");
    let (status, stats) = library.server.get("/v1/stats").await;
    assert_eq!((status.as_u16(), &stats["videos"]), (200, &json!(4)), "a query is not stored");
}

async fn a_composed_query_lies_between_clip_and_text(library: &Library) {
    let composed = |alpha: f64| {
        let mut query = library.shot(3, 1);
        query["modification"] = json!("show it in red");
        json!({"query": query, "fusion": {"mode": "average", "alpha": alpha}, "exclude": {"self": false}})
    };
    let clip = library.search(json!({"query": library.shot(3, 1), "exclude": {"self": false}})).await;
    let text = library.search(json!({"query": {"text": "show it in red"}})).await;
    for (alpha, like) in [(1.0, &clip), (0.0, &text)] {
        let answer = library.search(composed(alpha)).await;
        assert_close(&scores(&answer["results"]), &scores(&like["results"]));
        let info = &answer["query_info"];
        assert_eq!((&info["kind"], &info["fusion"]), (&json!("composed"), &json!("average")));
        assert!(info["tokens_used"].as_u64().unwrap() > 0);
    }
    let mut query = library.shot(3, 1);
    query["modification"] = json!("show it in red");
    let middle = library.search(json!({"query": query})).await;
    assert_eq!(middle["query_info"]["fusion"], "average", "this model has no head");
    check_timings(&middle, &["encode", "search", "catalog"]);
    let request = library.server.request("POST", "/v1/search");
    let problem = library
        .server
        .refused(request.json(&json!({"query": query, "fusion": {"mode": "combiner"}})), 409)
        .await;
    assert!(problem["detail"].as_str().unwrap().contains("average"), "{problem}");
    assert_eq!(problem["errors"][0]["pointer"], "/fusion/mode", "{problem}");
}

async fn filters_act_inside_the_search(library: &Library) {
    // A given clip whose metadata overlays its video's.
    let given = json!({"start": 0.5, "end": 3.0, "metadata": {"event": "warm-up", "judge": "A"}});
    let (status, added) = library.server.post(&format!("/v1/videos/{}/clips", library.id(0)), &given).await;
    assert_eq!(status, 202, "{added}");
    assert_eq!(library.server.job_end(added["job"]["id"].as_str().unwrap()).await["state"], "succeeded");
    let id = added["clip"]["id"].as_str().unwrap().to_owned();
    let cases: [(Value, usize); 15] = [
        (json!({"field": "metadata.event", "eq": "vault"}), 3),
        (json!({"field": "metadata.event", "eq": "warm-up"}), 1),
        (json!({"field": "metadata.score", "gte": 8}), 7),
        (json!({"field": "metadata.score", "gt": 8}), 4),
        (json!({"field": "metadata.event", "in": ["beam", "floor"]}), 6),
        (json!({"field": "metadata.event", "exists": false}), 3),
        (json!({"not": {"field": "metadata.event", "exists": true}}), 3),
        (
            json!({"all": [{"field": "metadata.score", "gte": 8}, {"field": "metadata.event", "eq": "beam"}]}),
            3,
        ),
        (
            json!({"any": [{"field": "metadata.final", "eq": true}, {"field": "metadata.judge", "eq": "A"}]}),
            4,
        ),
        (json!({"field": "metadata.day", "eq": "1"}), 0),
        (json!({"field": "video_id", "eq": library.id(1)}), 3),
        (json!({"field": "duration", "lte": 6}), 13),
        (json!({"field": "created_at", "lt": "2020-01-01"}), 0),
        (json!({"field": "title", "eq": "floor"}), 3),
        (json!({"all": []}), 13),
    ];
    for (filter, expected) in cases {
        let answer = library.search(json!({"query": {"text": "x"}, "filter": filter, "limit": 50})).await;
        assert_eq!(answer["results"].as_array().unwrap().len(), expected, "{filter}");
        assert_eq!(answer["exhausted"], true, "{filter}");
    }
    let filter = json!({"field": "metadata.judge", "eq": "A"});
    let hit = library.search(json!({"query": {"text": "x"}, "filter": filter})).await["results"][0].clone();
    let overlaid = json!({"event": "warm-up", "judge": "A", "score": 9.1, "day": 1});
    assert_eq!((&hit["metadata"], &hit["clip_id"]), (&overlaid, &json!(id)));
    // A search returns k hits if k live matches exist, however low they rank.
    let filter = json!({"field": "metadata.event", "in": ["beam", "floor"]});
    let few = library.search(json!({"query": library.shot(3, 0), "filter": filter, "limit": 4})).await;
    assert_eq!((few["results"].as_array().unwrap().len(), &few["exhausted"]), (4, &json!(false)));
    assert_eq!(library.server.delete(&format!("/v1/clips/{id}")).await.0, 204);
    assert_eq!(
        library.search(json!({"query": {"text": "x"}})).await["results"].as_array().unwrap().len(),
        12
    );
}

async fn long_texts_are_windowed_truncated_or_refused(library: &Library) {
    let words = |count: usize| {
        let sentence = ["the gymnast turns twice and lands", "a slide shows the bias of a model"].join(" ");
        sentence.split(' ').cycle().take(count).collect::<Vec<_>>().join(" ")
    };
    let search = |text: String, overflow: &str| {
        library.search(json!({"query": {"text": text}, "on_overflow": overflow, "limit": 1}))
    };
    let windowed = search(words(2000), "window").await["query_info"].clone();
    assert!(windowed["windows"].as_u64().unwrap() > 1, "{windowed}");
    assert_eq!(
        (&windowed["tokens_used"], &windowed["truncated"]),
        (&windowed["tokens_total"], &json!(false))
    );
    let truncated = search(words(2000), "truncate").await["query_info"].clone();
    assert_eq!((&truncated["windows"], &truncated["truncated"]), (&json!(1), &json!(true)));
    assert!(truncated["tokens_used"].as_u64() < truncated["tokens_total"].as_u64());
    let request = |body: Value| library.server.request("POST", "/v1/search").json(&body);
    let error = request(json!({"query": {"text": words(2000)}, "on_overflow": "error"}));
    assert_eq!(library.server.refused(error, 422).await["errors"][0]["pointer"], "/query/text");
    let too_long = request(json!({"query": {"text": words(60_000)}}));
    let problem = library.server.refused(too_long, 422).await;
    assert_eq!(problem["errors"][0]["pointer"], "/query/text");
    assert!(problem["detail"].as_str().unwrap().contains("128"), "{problem}");
}

async fn neighbours_are_merged_where_asked(library: &Library) {
    // The query contains all colours of the film, so every clip scores alike. Neighbours then join up to 5 s.
    let body = json!({"query": library.shot(0, 1), "exclude": {"self": false}, "merge_adjacent": true, "limit": 100});
    let merged = library.search(body).await;
    let mut originals = 0;
    let best = merged["results"][0]["score"].as_f64().unwrap();
    for hit in merged["results"].as_array().unwrap() {
        let inside = hit["merged"].as_array().map_or(0, Vec::len);
        originals += inside.max(1);
        if inside == 0 {
            continue;
        }
        let length = hit["end"].as_f64().unwrap() - hit["start"].as_f64().unwrap();
        assert!(inside > 1 && length <= 5.0 && length >= 2.0 * inside as f64 - 0.001, "{hit}");
        assert!(
            hit["merged"].as_array().unwrap().iter().all(|it| it["score"].as_f64().unwrap() >= 0.9 * best)
        );
    }
    assert_eq!(originals, 12, "every hit is there once");
}

async fn the_exact_answer_is_the_answer(library: &Library) {
    let body = |exact: bool| json!({"query": {"text": "bars"}, "exact": exact, "explain": true});
    let (usual, exact) = (library.search(body(false)).await, library.search(body(true)).await);
    assert_eq!(usual["results"], exact["results"]);
    assert_eq!(exact["index"]["exact"], true);
    assert_eq!((&exact["explain"]["matching"], &exact["explain"]["filtered"]), (&json!(12), &json!(false)));
}

async fn spaces_are_named_by_name_and_id(library: &Library) {
    let (_, spaces) = library.server.get("/v1/spaces").await;
    let space = &spaces["items"][0];
    assert_eq!((&space["clips"], &space["videos"], &space["coverage"]), (&json!(12), &json!(4), &json!(1.0)));
    assert_eq!(space["active_for"], json!(["text", "clip", "composed"]));
    let default = library.search(json!({"query": {"text": "bars"}})).await;
    for name in [&space["name"], &space["id"]] {
        let named = library.search(json!({"query": {"text": "bars"}, "space": name})).await;
        assert_eq!(named["results"], default["results"]);
        assert_eq!(named["index"]["space"], space["name"]);
    }
}

async fn what_is_wrong_is_refused_with_a_pointer(library: &Library) {
    let clip = |start: f64, end: f64| json!({"query": {"clip": {"video_id": library.id(0), "start": start, "end": end}}});
    let text = |more: Value| {
        let mut body = json!({"query": {"text": "x"}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let nobody = "01890000-0000-7000-8000-000000000000";
    let cases = [
        (json!({}), 422, "/query"),
        (json!({"query": {}}), 422, "/query"),
        (json!({"query": {"text": ""}}), 422, "/query/text"),
        (json!({"query": {"text": "a", "clip_id": nobody}}), 422, "/query"),
        (json!({"query": {"text": "a", "modification": "b"}}), 422, "/query/modification"),
        (json!({"query": {"text": "a", "start": 1}}), 422, "/query/start"),
        (json!({"query": {"upload": true}}), 422, "/query/upload"),
        (json!({"query": {"clip_id": "7"}}), 422, "/query/clip_id"),
        (json!({"query": {"clip_id": nobody}}), 404, "/query/clip_id"),
        (json!({"query": {"clip": {"video_id": nobody, "start": 0, "end": 1}}}), 404, "/query/clip/video_id"),
        (clip(2.0, 2.0), 422, "/query/clip/end"),
        (clip(3.0, 2.0), 422, "/query/clip/end"),
        (clip(-1.0, 2.0), 422, "/query/clip/start"),
        (clip(7.0, 8.0), 422, "/query/clip"),
        (clip(0.0, 1e9), 422, "/query/clip/end"),
        (text(json!({"space": "nowhere"})), 422, "/space"),
        (text(json!({"level": "moment"})), 422, "/level"),
        (text(json!({"limit": 0})), 422, "/limit"),
        (text(json!({"limit": 1001})), 422, "/limit"),
        (text(json!({"per_group": 2})), 422, "/per_group"),
        (text(json!({"group_by": "title"})), 422, "/group_by"),
        (text(json!({"group_by": "video", "per_group": 0})), 422, "/per_group"),
        (text(json!({"sources": ["visual", "heard"]})), 422, "/sources/1"),
        (json!({"query": library.shot(0, 0), "sources": ["spoken"]}), 422, "/sources"),
        (text(json!({"sources": []})), 422, "/sources"),
        (text(json!({"fusion": {"alpha": 0.5}})), 422, "/fusion"),
        (text(json!({"fusion": {"weights": {"visual": -1}}})), 422, "/fusion/weights/visual"),
        (
            text(json!({"sources": ["visual"], "fusion": {"weights": {"spoken": 1}}})),
            422,
            "/fusion/weights/spoken",
        ),
        (
            text(json!({"fusion": {"weights": {"visual": 0, "spoken": 0, "screen": 0}}})),
            422,
            "/fusion/weights",
        ),
        (text(json!({"filter": {"field": "metadata.a", "like": "b"}})), 422, "/filter/like"),
        (text(json!({"filter": {"all": [{"field": "colour", "eq": 1}]}})), 422, "/filter/all/0/field"),
        (text(json!({"on_overflow": "drop"})), 422, "/on_overflow"),
        (text(json!({"exclude": {"others": true}})), 422, "/exclude/others"),
        (text(json!({"cursor": "abc"})), 422, "/cursor"),
        (json!({"cursor": "abc"}), 422, "/cursor"),
        (text(json!({"offset": 20})), 422, "/offset"),
    ];
    for (body, status, pointer) in cases {
        let request = library.server.request("POST", "/v1/search").json(&body);
        let problem = library.server.refused(request, status).await;
        let got = problem["errors"][0]["pointer"].as_str().unwrap_or_default();
        assert_eq!(got, pointer, "{body}: {problem}");
    }
    let mut query = library.shot(0, 0);
    query["modification"] = json!("x");
    let request = json!({"query": query, "fusion": {"alpha": 1.5}});
    let problem =
        library.server.refused(library.server.request("POST", "/v1/search").json(&request), 422).await;
    assert_eq!(problem["errors"][0]["pointer"], "/fusion/alpha");
}

/// All pages of a search. Every page except the last must be full.
async fn pages(library: &Library, body: &Value) -> Vec<Value> {
    let limit = body["limit"].as_u64().unwrap() as usize;
    let mut answer = library.search(body.clone()).await;
    let mut hits = answer["results"].as_array().unwrap().clone();
    while let Some(cursor) = answer["next_cursor"].as_str() {
        assert_eq!(
            (answer["results"].as_array().unwrap().len(), &answer["exhausted"]),
            (limit, &json!(false))
        );
        let info = answer["query_info"].clone();
        answer = library.search(json!({"cursor": cursor})).await;
        assert_eq!(answer["query_info"], info, "a cursor knows the query");
        hits.extend(answer["results"].as_array().unwrap().clone());
    }
    assert_eq!(answer["exhausted"], true);
    hits
}

async fn pages_are_the_ranking_cut_in_pieces(library: &Library) {
    let filter = json!({"field": "metadata.event", "exists": true});
    // Three shots have equal pixels and so equal scores; pages of one hit split them.
    for limit in [1, 2, 5, 12] {
        for more in [
            json!({}),
            json!({"filter": filter}),
            json!({"exclude": {"self": false}}),
            json!({"level": "video"}),
        ] {
            let mut body = json!({"query": library.shot(0, 1), "limit": 1000});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let whole = library.search(body.clone()).await;
            body["limit"] = json!(limit);
            assert_eq!(Value::Array(pages(library, &body).await), whole["results"], "{body}");
        }
    }
    let all = library.search(json!({"query": library.shot(0, 1), "exclude": {"self": false}})).await;
    let equal = scores(&all["results"]);
    assert!(equal[0] == equal[1] && equal[1] == equal[2], "{equal:?}");
}

async fn pages_go_on_while_videos_come_and_go(library: &Library) {
    let body = json!({"query": {"text": "red bars"}, "limit": 4});
    let before = library.search(json!({"query": {"text": "red bars"}, "limit": 1000})).await;
    let first = library.search(body).await;
    let file =
        film(library.folder.path(), "late", &["color=c=red", "smptebars", "color=c=yellow"], Store::Lossless);
    let late = library.server.ingest(&file).await;
    let second = library.search(json!({"cursor": first["next_cursor"]})).await;
    let third = library.search(json!({"cursor": second["next_cursor"]})).await;
    let mut rest = Value::Array(Vec::new());
    if let Some(cursor) = third["next_cursor"].as_str() {
        rest = library.search(json!({"cursor": cursor})).await["results"].clone();
    }
    let seen: Vec<String> = [&first["results"], &second["results"], &third["results"], &rest]
        .iter()
        .flat_map(|it| ids(it))
        .collect();
    let distinct: HashSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "nothing twice");
    let old = ids(&before["results"]);
    let shown: Vec<&String> = seen.iter().filter(|it| old.contains(it)).collect();
    assert_eq!(shown, old.iter().collect::<Vec<_>>(), "nothing that was there is skipped");
    // A deleted video is missing from all later answers and pages.
    let first = library.search(json!({"query": {"text": "red bars"}, "limit": 1})).await;
    assert_eq!(library.server.delete(&format!("/v1/videos/{}", late["id"].as_str().unwrap())).await.0, 204);
    let mut answer = library.search(json!({"cursor": first["next_cursor"]})).await;
    while answer["next_cursor"].is_string() {
        assert_ne!(answer["results"][0]["video_id"], late["id"]);
        answer = library.search(json!({"cursor": answer["next_cursor"]})).await;
    }
}

#[tokio::test]
async fn a_cursor_lives_as_long_as_the_space_it_searched() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, &[]);
    server.ingest(&film(folder.path(), "one", &["testsrc2", "color=c=red"], Store::Lossless)).await;
    let first = server.search(&json!({"query": {"text": "x"}, "limit": 1})).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(server.search(&json!({"cursor": cursor})).await["results"].as_array().unwrap().len(), 1);
    // Another library did not sign it.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let other = Server::start(&other, &[]);
    other.refused(other.request("POST", "/v1/search").json(&json!({"cursor": cursor})), 422).await;
    // The search can't continue without its space, and continues after a restart with it.
    let second = server.search(&json!({"cursor": cursor})).await;
    assert!(server.stop());
    let model = crate::encoders::folder("legacy");
    let server = Server::start(&data, &["--model", model.to_str().unwrap()]);
    server.refused(server.request("POST", "/v1/search").json(&json!({"cursor": cursor})), 410).await;
    assert!(server.stop());
    let server = Server::start(&data, &[]);
    assert_eq!(server.search(&json!({"cursor": cursor})).await["results"], second["results"]);
}
