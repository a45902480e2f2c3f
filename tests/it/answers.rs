//! What an answer is made of: near duplicates, diversity and facets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::{Value, json};

use crate::faults::bed::{Bed, on_both};
use crate::standing::{ROOT, add_in_seconds};

on_both!(
    pictures_that_are_shown_again_are_one_hit,
    diverse_hits_are_the_same_hits_in_another_order_on_all_pages,
    hits_are_counted_by_field_video_and_day,
    hits_are_counted_by_folder_and_tag,
    what_can_not_be_counted_or_spread_is_refused,
);

/// A film of 30 shots, and one that shows them again in the other order. Each has 60 clips of a second.
struct Library {
    server: Server,
    one: String,
    again: String,
}

impl Library {
    async fn start(bed: &Bed) -> Library {
        let (server, folder) = (bed.start(&["--api-key", ROOT]), bed.folder());
        let shots: Vec<String> =
            (0..30).map(|at| format!("color=c=0x{:06x}", at * 0x07_2b_61 % 0xff_ff_ff)).collect();
        let mut shots: Vec<&str> = shots.iter().map(String::as_str).collect();
        let one = add(&server, folder, "one", &shots).await;
        shots.reverse();
        let again = add(&server, folder, "again", &shots).await;
        Library { server, one, again }
    }

    /// Searches with the first film's first second, and with the fields of `more` set.
    async fn search(&self, more: Value) -> Value {
        self.ask(ROOT, &self.body(more), 200).await
    }

    fn body(&self, more: Value) -> Value {
        let query = json!({"clip": {"video_id": self.one, "start": 0.0, "end": 1.0}});
        let mut body = json!({"query": query, "exclude": {"self": false}, "overlaps": "keep", "limit": 1000});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    }

    async fn ask(&self, key: &str, body: &Value, expected: u16) -> Value {
        let request = self.server.request("POST", "/v1/search").bearer_auth(key).json(body);
        let (status, answer) = self.server.send(request).await;
        assert_eq!(status, expected, "{body}: {answer}");
        answer
    }

    /// The hits of all pages.
    async fn pages(&self, more: Value) -> Vec<Value> {
        let mut page = self.search(more).await;
        let mut all = hits(&page).clone();
        while let Some(cursor) = page["next_cursor"].as_str().map(str::to_owned) {
            page = self.ask(ROOT, &json!({"cursor": cursor}), 200).await;
            all.extend(hits(&page).clone());
        }
        all
    }

    /// A key that sees one film.
    async fn key_for(&self, team: &str) -> String {
        let only = json!({"field": "metadata.team", "eq": team});
        let body = json!({"name": team, "scopes": ["read"], "only": only});
        let request = self.server.request("POST", "/v1/keys").bearer_auth(ROOT).json(&body);
        let (status, key) = self.server.send(request).await;
        assert_eq!(status, 201, "{key}");
        key["key"].as_str().unwrap().to_owned()
    }
}

/// Ingests a film in clips of a second. Returns the video's id.
async fn add(server: &Server, folder: &Path, name: &str, shots: &[&str]) -> String {
    let mut fields = vec![("metadata", json!({"team": name, "tags": ["all", name]}).to_string())];
    if name == "one" {
        fields.push(("recorded_at", "2024-07-01T23:30:00Z".to_owned()));
    }
    add_in_seconds(server, &film(folder, name, shots, Store::Web), &fields).await
}

fn hits(answer: &Value) -> &Vec<Value> {
    answer["results"].as_array().unwrap()
}

fn inside(hit: &Value) -> &[Value] {
    hit["folded"].as_array().map_or(&[], Vec::as_slice)
}

fn clip(hit: &Value) -> String {
    hit["clip_id"].as_str().unwrap().to_owned()
}

fn clips(hits: &[Value]) -> Vec<String> {
    hits.iter().map(clip).collect()
}

/// Checks that each hit stands for near duplicates, and that all clips of `kept` are there once. Entries show 20 at most.
fn check_folded(folded: &[Value], kept: &[Value], least: f64) {
    let mut shown: Vec<String> = clips(folded);
    for hit in folded {
        for other in inside(hit) {
            let similarity = other["similarity"].as_f64().unwrap_or_else(|| panic!("{other}"));
            assert!(similarity >= least && other["score"].as_f64() <= hit["score"].as_f64(), "{other}");
            shown.push(clip(other));
        }
    }
    let distinct: BTreeSet<&String> = shown.iter().collect();
    assert_eq!(distinct.len(), shown.len(), "a clip came twice");
    if folded.iter().all(|hit| inside(hit).len() < 20) {
        assert_eq!(shown.len(), kept.len());
    }
}

async fn pictures_that_are_shown_again_are_one_hit(bed: &Bed) {
    let library = Library::start(bed).await;
    let kept = library.search(json!({})).await;
    assert!(kept["near_duplicates"].is_null() && hits(&kept).len() == 120, "{kept}");
    let folded = library.search(json!({"near_duplicates": "fold"})).await;
    let least = folded["near_duplicates"]["min_similarity"].as_f64().unwrap_or_else(|| panic!("{folded}"));
    assert!((0.899..0.996).contains(&least), "{least}");
    let (folded, kept) = (hits(&folded), hits(&kept));
    check_folded(folded, kept, least);
    assert!(folded.len() <= 60, "each shot is there four times: {} hits", folded.len());
    let is_across = |hit: &&Value| inside(hit).iter().any(|it| it["video_id"] != hit["video_id"]);
    assert!(folded.iter().filter(is_across).count() > 0);
    assert_eq!(clip(&folded[0]), clip(&kept[0]));

    // Pages are full, and no later one repeats what an earlier one folded.
    let paged = library.pages(json!({"near_duplicates": "fold", "limit": 3})).await;
    assert_eq!(clips(&paged), clips(folded));
    let first = library.search(json!({"near_duplicates": "fold", "limit": 3})).await;
    assert_eq!(hits(&first).len(), 3.min(folded.len()));

    // A group keeps its video, so pictures of other videos do not fold into it.
    let grouped = json!({"near_duplicates": "fold", "group_by": "video", "per_group": 1000});
    let grouped = library.search(grouped).await;
    let groups = grouped["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{grouped}");
    for group in groups {
        let of_group = group["results"].as_array().unwrap();
        assert!(of_group.len() <= 30, "{} hits", of_group.len());
        let of_video = |hit: &Value| hit["video_id"] == group["video_id"];
        assert!(of_group.iter().all(|hit| of_video(hit) && inside(hit).iter().all(of_video)));
    }

    // The space tells the bound to who has searched, and each caller's is that of what it sees.
    let of = async |key: &str| {
        let (_, spaces) =
            library.server.send(library.server.request("GET", "/v1/spaces").bearer_auth(key)).await;
        spaces["items"][0]["near_duplicate_similarity"].as_f64()
    };
    assert_eq!(of(ROOT).await, Some(least));
    let key = library.key_for("one").await;
    assert_eq!(of(&key).await, None);
    let seen = library.ask(&key, &library.body(json!({"near_duplicates": "fold"})), 200).await;
    assert_eq!(of(&key).await, seen["near_duplicates"]["min_similarity"].as_f64());
    let all = hits(&seen).iter().flat_map(|hit| inside(hit).iter().chain([hit]));
    assert!(all.into_iter().all(|hit| hit["video_id"] == library.one.as_str()));
}

async fn diverse_hits_are_the_same_hits_in_another_order_on_all_pages(bed: &Bed) {
    let library = Library::start(bed).await;
    let of_one = json!({"field": "video_id", "eq": library.one});
    let ask =
        |diversity: f64, limit: usize| json!({"diversity": diversity, "limit": limit, "filter": of_one});
    let plain = clips(&library.pages(json!({"limit": 7, "filter": of_one})).await);
    assert_eq!(clips(&library.pages(ask(0.0, 7)).await), plain);
    let diverse = library.pages(ask(0.7, 7)).await;
    assert_eq!(diverse.len(), 60);
    let ranks: Vec<u64> = diverse.iter().filter_map(|hit| hit["rank"].as_u64()).collect();
    assert_eq!(ranks, (1..=60).collect::<Vec<u64>>());
    let diverse = clips(&diverse);
    assert_eq!(diverse.iter().collect::<BTreeSet<_>>(), plain.iter().collect::<BTreeSet<_>>());
    assert!(diverse[0] == plain[0] && diverse != plain, "{diverse:?}");
    assert_eq!(clips(&library.pages(ask(0.7, 60)).await), diverse);
    // With near duplicates folded, each picture comes once.
    let mut both = ask(0.7, 5);
    both["near_duplicates"] = json!("fold");
    let folded = library.pages(both).await;
    assert!(folded.len() <= 30, "{} hits", folded.len());
}

/// `counts`: the counts of one facet. Returns hits and videos by value.
fn values(counts: &Value) -> BTreeMap<String, (u64, u64)> {
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap();
    let of = |it: &Value| (it["value"].to_string(), (number(it, "hits"), number(it, "videos")));
    counts["values"].as_array().unwrap().iter().map(of).collect()
}

async fn hits_are_counted_by_field_video_and_day(bed: &Bed) {
    let library = Library::start(bed).await;
    let facets =
        json!([{"field": "metadata.team"}, {"field": "metadata.tags"}, {"by": "video"}, {"by": "day"}]);
    let answer = library.search(json!({"facets": facets, "limit": 5})).await;
    assert_eq!(hits(&answer).len(), 5);
    let counts = &answer["facets"]["counts"];
    assert_eq!((&answer["facets"]["counted"], &answer["facets"]["complete"]), (&json!(120), &json!(true)));
    let text = |text: &str| json!(text).to_string();
    let both = BTreeMap::from([(text("again"), (60, 1)), (text("one"), (60, 1))]);
    assert_eq!(values(&counts[0]), both);
    let mut tags = both;
    tags.insert(text("all"), (120, 2));
    assert_eq!(values(&counts[1]), tags);
    assert_eq!(counts[1]["values"][0], json!({"value": "all", "hits": 120, "videos": 2}));
    let videos = BTreeMap::from([(text(&library.one), (60, 1)), (text(&library.again), (60, 1))]);
    assert_eq!((values(&counts[2]), &counts[2]["by"]), (videos, &json!("video")));
    assert!(counts[2]["values"][0]["title"].is_string(), "{counts}");
    assert_eq!(
        (values(&counts[3]), &counts[3]["missing"]),
        (BTreeMap::from([(text("2024-07-01"), (60, 1))]), &json!(60))
    );

    // Later pages count nothing; groups are counted hit by hit; the filter and the caller decide what is counted.
    let next = library.ask(ROOT, &json!({"cursor": answer["next_cursor"]}), 200).await;
    assert!(next["facets"].is_null() && hits(&next).len() == 5, "{next}");
    let grouped = library.search(json!({"facets": facets, "group_by": "video", "per_group": 1})).await;
    assert_eq!(&grouped["facets"], &answer["facets"]);
    let filter = json!({"field": "metadata.team", "eq": "again"});
    let filtered = library.search(json!({"facets": facets, "filter": filter})).await;
    assert_eq!(
        (&filtered["facets"]["counted"], values(&filtered["facets"]["counts"][2]).len()),
        (&json!(60), 1)
    );
    let key = library.key_for("one").await;
    let seen = library.ask(&key, &library.body(json!({"facets": facets})), 200).await;
    assert_eq!(values(&seen["facets"]["counts"][0]), BTreeMap::from([(text("one"), (60, 1))]));
}

async fn hits_are_counted_by_folder_and_tag(bed: &Bed) {
    let library = Library::start(bed).await;
    for (video, labels) in [
        (&library.one, json!({"folder": "Season/Finals", "tags": ["vault", "best"]})),
        (&library.again, json!({"folder": "season", "tags": ["Vault"]})),
    ] {
        let request = library.server.request("PATCH", &format!("/v1/videos/{video}")).bearer_auth(ROOT);
        let (status, answer) = library.server.send(request.json(&labels)).await;
        assert_eq!(status, 200, "{answer}");
    }
    let facets = json!([{"by": "folder"}, {"by": "tag"}]);
    let counts = library.search(json!({"facets": facets})).await["facets"]["counts"].clone();
    let folded = |counts: &Value| -> BTreeMap<String, (u64, u64)> {
        values(counts).into_iter().map(|(value, number)| (value.to_lowercase(), number)).collect()
    };
    let text = |text: &str| json!(text).to_string();
    let folders = BTreeMap::from([(text("season"), (120, 2)), (text("season/finals"), (60, 1))]);
    assert_eq!((folded(&counts[0]), &counts[0]["by"]), (folders, &json!("folder")));
    let tags = BTreeMap::from([(text("vault"), (120, 2)), (text("best"), (60, 1))]);
    assert_eq!((folded(&counts[1]), &counts[1]["by"]), (tags, &json!("tag")));
    // A key counts what it sees.
    let key = library.key_for("one").await;
    let seen = library.ask(&key, &library.body(json!({"facets": facets})), 200).await;
    let tags = BTreeMap::from([(text("vault"), (60, 1)), (text("best"), (60, 1))]);
    assert_eq!(folded(&seen["facets"]["counts"][1]), tags);
}

async fn what_can_not_be_counted_or_spread_is_refused(bed: &Bed) {
    let library = Library::start(bed).await;
    let many = vec![json!({"by": "video"}); 11];
    let cases = [
        (json!({"diversity": 1.5}), "/diversity"),
        (json!({"diversity": -0.1}), "/diversity"),
        (json!({"diversity": 0.5, "group_by": "video"}), "/diversity"),
        (json!({"facets": many}), "/facets"),
        (json!({"facets": [{"by": "video"}, {}]}), "/facets/1"),
        (json!({"facets": [{"by": "day", "field": "metadata.x"}]}), "/facets/0"),
        (json!({"facets": [{"field": "title"}]}), "/facets/0/field"),
        (json!({"facets": [{"field": "metadata.a..b"}]}), "/facets/0/field"),
        (json!({"facets": [{"by": "month"}]}), "/facets/0/by"),
        (json!({"near_duplicates": "yes"}), "/near_duplicates"),
    ];
    for (more, pointer) in cases {
        let problem = library.ask(ROOT, &library.body(more), 422).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
}
