//! How far hits stand above the background of their query: `z`, `weak` and `min_z`.

use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::{Value, json};

/// The server's own key.
pub(crate) const ROOT: &str = "root";

/// A library of a short film and, later, a long one of 60 clips.
struct Library {
    server: Server,
    folder: tempfile::TempDir,
    short: String,
}

impl Library {
    async fn start() -> Library {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let server = Server::start(&data, &["--api-key", ROOT]);
        let short = add(&server, folder.path(), "short", &["testsrc2", "rgbtestsrc"]).await;
        Library { server, folder, short }
    }

    async fn add_long(&self) -> String {
        let colour = |at: u32| format!("color=c=0x{:06x}", at * 0x07_2b_61 % 0xff_ff_ff);
        let colours: Vec<String> = (0..30).map(colour).collect();
        let shots: Vec<&str> = colours.iter().map(String::as_str).collect();
        add(&self.server, self.folder.path(), "long", &shots).await
    }

    /// The short film's first second as a query.
    fn query(&self) -> Value {
        let query = json!({"clip": {"video_id": self.short, "start": 0.0, "end": 1.0}});
        json!({"query": query, "exclude": {"self": false}, "overlaps": "keep"})
    }

    /// Searches with the fields of `more` set.
    async fn search(&self, more: Value) -> Value {
        let mut body = self.query();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask(ROOT, &body).await
    }

    async fn ask(&self, key: &str, body: &Value) -> Value {
        let request = self.server.request("POST", "/v1/search").bearer_auth(key).json(body);
        let (status, answer) = self.server.send(request).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

/// Ingests a film in clips of a second.
async fn add(server: &Server, folder: &Path, name: &str, shots: &[&str]) -> String {
    let fields = [("metadata", json!({"team": name}).to_string())];
    add_in_seconds(server, &film(folder, name, shots, Store::Web), &fields).await
}

/// Uploads a film with these fields and [`ROOT`] as its key, and waits for the ingest in clips of a second. Returns the
/// video's id.
pub(crate) async fn add_in_seconds(
    server: &Server,
    file: &Path,
    fields: &[(&'static str, String)],
) -> String {
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let part = reqwest::multipart::Part::bytes(std::fs::read(file).unwrap()).file_name(name);
    let cut = json!({"policy": "fixed", "params": {"every_seconds": 1}});
    let mut form = reqwest::multipart::Form::new().text("segmentation", cut.to_string());
    for (name, value) in fields {
        form = form.text(*name, value.clone());
    }
    let request = server.request("POST", "/v1/videos").bearer_auth(ROOT).multipart(form.part("file", part));
    let (status, answer) = server.send(request).await;
    assert_eq!(status, 202, "{answer}");
    let job = format!("/v1/jobs/{}", answer["job"]["id"].as_str().unwrap());
    let ended = async || {
        let (_, job) = server.send(server.request("GET", &job).bearer_auth(ROOT)).await;
        assert_ne!(job["state"], "failed", "{job}");
        (job["state"] == "succeeded").then_some(())
    };
    crate::faults::bed::until("the film is ingested", ended).await;
    answer["video"]["id"].as_str().unwrap().to_owned()
}

fn hits(answer: &Value) -> &Vec<Value> {
    answer["results"].as_array().unwrap()
}

/// Clip, z and weakness of each hit.
fn strengths(hits: &[Value]) -> Vec<(String, Option<f64>, bool)> {
    let of = |hit: &Value| {
        let evidence = &hit["evidence"][0];
        (hit["clip_id"].to_string(), evidence["z"].as_f64(), hit["weak"].as_bool().unwrap())
    };
    hits.iter().map(of).collect()
}

fn z(hit: &Value) -> f64 {
    hit["evidence"][0]["z"].as_f64().unwrap_or_else(|| panic!("no z in {hit}"))
}

#[tokio::test]
async fn a_hit_stands_above_the_background_of_its_query() {
    let library = Library::start().await;
    let few = library.search(json!({})).await;
    assert!(
        strengths(hits(&few)).iter().all(|it| it.1.is_none() && !it.2),
        "4 clips are no background: {few}"
    );
    assert_eq!(hits(&library.search(json!({"min_z": 0.0})).await).len(), 0, "no hit has a z");

    let long = library.add_long().await;
    let all = library.search(json!({"limit": 100})).await;
    assert_eq!(hits(&all).len(), 64);
    assert!(hits(&all).windows(2).all(|pair| z(&pair[0]) >= z(&pair[1])), "{all}");
    assert_eq!((&hits(&all)[0]["video_id"], &hits(&all)[0]["weak"]), (&json!(library.short), &json!(false)));

    // Without the answers, and with the same background.
    let other = json!({"filter": {"field": "video_id", "eq": long}});
    let without = library.search(other.clone()).await;
    let (best, next) = (z(&hits(&all)[0]), z(&hits(&without)[0]));
    assert!(best > next && hits(&without)[0]["weak"] == true, "{best} and {next}");
    let bound = (best + next) / 2.0;
    let strong = library.search(json!({"min_z": bound})).await;
    assert!(!hits(&strong).is_empty() && hits(&strong).iter().all(|hit| z(hit) >= bound), "{strong}");
    let mut nothing = other;
    nothing["min_z"] = json!(bound);
    let nothing = library.search(nothing).await;
    assert_eq!((hits(&nothing).len(), &nothing["exhausted"]), (0, &json!(true)));

    // Each page has the first one's background, also after the library has changed.
    let mut page = library.search(json!({"limit": 10})).await;
    add(&library.server, library.folder.path(), "later", &["mandelbrot", "smptebars"]).await;
    let mut paged = Vec::new();
    loop {
        paged.extend(hits(&page).clone());
        let Some(cursor) = page["next_cursor"].as_str().map(str::to_owned) else { break };
        page = library.ask(ROOT, &json!({"cursor": cursor})).await;
    }
    let old = |hit: &&Value| hits(&all).iter().any(|it| it["clip_id"] == hit["clip_id"]);
    let paged: Vec<Value> = paged.iter().filter(old).cloned().collect();
    assert_eq!(strengths(&paged), strengths(hits(&all)));
}

#[tokio::test]
async fn full_videos_and_their_nearest_clips_have_backgrounds_of_their_own() {
    let library = Library::start().await;
    library.add_long().await;
    let text = json!({"query": {"text": "a red square"}, "level": "both", "sources": ["visual"]});
    let answer = library.ask(ROOT, &text).await;
    for video in answer["videos"].as_array().unwrap() {
        let of = |source: &str| {
            let evidence = video["evidence"].as_array().unwrap();
            evidence.iter().find(|it| it["source"] == source).unwrap_or_else(|| panic!("{video}"))["z"]
                .clone()
        };
        assert!(of("visual").is_number(), "compared as its nearest clip: {video}");
        assert!(of("full_video").is_null(), "two videos are no background: {video}");
    }
}

#[tokio::test]
async fn a_key_has_the_background_of_what_it_sees() {
    let library = Library::start().await;
    library.add_long().await;
    let only = json!({"field": "metadata.team", "eq": "short"});
    let body = json!({"name": "short", "scopes": ["read"], "only": only});
    let request = library.server.request("POST", "/v1/keys").bearer_auth(ROOT).json(&body);
    let (status, key) = library.server.send(request).await;
    assert_eq!(status, 201, "{key}");
    let seen = library.ask(key["key"].as_str().unwrap(), &library.query()).await;
    assert_eq!(hits(&seen).len(), 4);
    assert!(strengths(hits(&seen)).iter().all(|it| it.1.is_none()), "it sees 4 clips: {seen}");
    assert!(z(&hits(&library.search(json!({})).await)[0]) > 0.0);
}

#[tokio::test]
async fn a_bound_outside_its_range_is_refused() {
    let library = Library::start().await;
    for wrong in [json!(101), json!(-101), json!("high")] {
        let mut body = library.query();
        body["min_z"] = wrong;
        let request = library.server.request("POST", "/v1/search").bearer_auth(ROOT).json(&body);
        let problem = library.server.refused(request, 422).await;
        assert_eq!(
            problem["errors"][0]["pointer"].as_str().or(problem["pointer"].as_str()),
            Some("/min_z"),
            "{problem}"
        );
    }
}
