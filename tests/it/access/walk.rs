//! Two keys of two teams walk over every operation of the contract: neither sees or changes what the other has.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use reprise_server::catalog::instant;
use serde_json::{Value, json};

use super::{Guarded, Holder};

/// Words that occur in what the other team has, and nowhere else.
const SECRETS: [&str; 3] = ["alpha-secret", "xylophone", "hidden title"];

/// The expected answer to a key about the other team's entries.
enum Expected {
    /// Open to everybody: it shows no data.
    Open,
    /// Refused for any limited key.
    Forbidden(Option<Value>),
    /// 404, with this body.
    Missing(Option<Value>),
    /// The same answer as before the other team had anything.
    Unchanged(Vec<(String, Option<Value>)>),
    /// Tried in a test of its own.
    Elsewhere,
}

use Expected::{Elsewhere, Forbidden, Missing, Open, Unchanged};

/// What each operation must answer. `None`: the walk does not know the operation.
fn expected(operation: &str, theirs: &Theirs) -> Option<Expected> {
    let search = |body: Value| ("/v1/search".to_owned(), Some(body));
    let clip = json!({"video_id": theirs.video, "start": 0.0, "end": 1.0});
    let only = |path: &str| Unchanged(vec![(path.to_owned(), None)]);
    Some(match operation {
        "get /livez" | "get /readyz" => Open,
        "get /metrics" | "get /v1/keys" | "delete /v1/keys/{id}" | "get /v1/audit" => Forbidden(None),
        "post /v1/keys" => Forbidden(Some(json!({"name": "x", "scopes": ["read"]}))),
        "post /v1/spaces" => Forbidden(Some(json!({"model": "builtin:tiny"}))),
        "post /v1/spaces/{id}/activate" => Forbidden(Some(json!({"for": ["text"]}))),
        "post /v1/spaces/{id}/pause" | "post /v1/spaces/{id}/resume" => Forbidden(None),
        "get /v1/videos" => {
            Unchanged(vec![("/v1/videos".to_owned(), None), ("/v1/videos?trashed=true".to_owned(), None)])
        }
        "patch /v1/videos" => Missing(Some(json!({"ids": [theirs.video], "add_tags": ["mine now"]}))),
        "get /v1/folders" => Unchanged(vec![
            ("/v1/folders".to_owned(), None),
            ("/v1/folders?parent=hidden%20title".to_owned(), None),
        ]),
        "get /v1/jobs"
        | "get /v1/tags"
        | "get /v1/models"
        | "get /v1/stats"
        | "get /v1/spaces"
        | "get /v1/reels"
        | "get /v1/exports"
        | "get /v1/webhooks"
        | "get /v1/alerts"
        | "get /v1/evaluations" => only(operation.split_once(' ')?.1),
        "post /v1/reels" | "put /v1/reels/{id}" => {
            Missing(Some(json!({"name": "mine now", "ranges": [clip]})))
        }
        "post /v1/exports" => Missing(Some(json!({"format": "csv", "ranges": [clip]}))),
        "post /v1/evaluations" => Missing(Some(
            json!({"name": "x", "spaces": ["tiny-1ade90"], "queries": [{"text": "x", "relevant": [clip]}]}),
        )),
        "delete /v1/evaluations/{id}" => Missing(None),
        "delete /v1/reels/{id}" | "delete /v1/exports/{id}" => Missing(None),
        // The walk itself searches by text.
        "get /v1/searches" => Unchanged(vec![("/v1/searches?kind=clip".to_owned(), None)]),
        "get /v1/insights" => Unchanged(vec![(insights(), None)]),
        "get /v1/searches/{id}" => Missing(None),
        "post /v1/searches/{id}/feedback" => {
            Missing(Some(json!({"clip_id": theirs.clip, "verdict": "relevant"})))
        }
        "post /v1/search/batch" => Unchanged(vec![(
            "/v1/search/batch".to_owned(),
            Some(json!({"searches": [{"query": {"text": "xylophone"}}, {"query": {"text": "harmonica"}}]})),
        )]),
        "post /v1/search" => Unchanged(vec![
            search(json!({"query": {"text": "harmonica"}, "level": "both", "explain": true})),
            search(json!({"query": {"text": "xylophone"}, "level": "both"})),
            search(json!({"query": {"text": "harmonica"}, "level": "video"})),
            search(json!({"query": {"text": "harmonica"}, "sources": ["spoken"]})),
            search(json!({"query": {"text": "red"}, "exact": true, "limit": 100})),
            search(json!({"query": {"like": [{"text": "red"}], "unlike": [{"text": "xylophone"}]}})),
            search(json!({"query": {"text": "red"}, "filter": {"field": "metadata.marker", "exists": true}})),
        ]),
        "post /v1/embeddings" => Missing(Some(json!({"input": {"clip": clip}}))),
        "post /v1/media-links" => {
            Missing(Some(json!({"paths": [format!("/v1/videos/{}/media", theirs.video)]})))
        }
        "post /v1/videos" | "post /v1/uploads" | "post /v1/webhooks" | "get /v1/map" => Elsewhere,
        "post /v1/alerts" => Missing(Some(
            json!({"name": "x", "search": {"query": {"text": "x"}}, "webhooks": [theirs.webhook]}),
        )),
        "patch /v1/alerts/{id}" => Missing(Some(json!({"name": "mine now"}))),
        "delete /v1/webhooks/{id}"
        | "delete /v1/alerts/{id}"
        | "post /v1/webhooks/{id}/rotate"
        | "post /v1/webhooks/{id}/test" => Missing(None),
        "head /v1/uploads/{id}" | "patch /v1/uploads/{id}" | "delete /v1/uploads/{id}" => Missing(None),
        "post /v1/reels/{id}/links" => Missing(Some(json!({}))),
        "delete /v1/reels/{id}/links" => Missing(None),
        "post /v1/videos/{id}/clips" => Missing(Some(json!({"start": 0.0, "end": 1.0}))),
        "patch /v1/clips/{id}" => Missing(Some(json!({"metadata": {}}))),
        "patch /v1/videos/{id}" => Missing(Some(json!({"title": "mine now"}))),
        "post /v1/videos/{id}/resegment" => {
            Missing(Some(json!({"policy": "fixed", "params": {"every_seconds": 1}})))
        }
        "patch /v1/videos/{id}/transcript/{line}" => Missing(Some(json!({"text": "mine now"}))),
        "post /v1/videos/{id}/transcribe" => Missing(Some(json!({}))),
        "post /v1/videos/{id}/read-text" => Missing(None),
        "post /v1/jobs/{id}/cancel" | "post /v1/jobs/{id}/retry" | "post /v1/videos/{id}/restore" => {
            Missing(None)
        }
        "put /v1/videos/{id}/subtitles/{lang}" => Missing(Some(json!("subtitles"))),
        "delete /v1/videos/{id}" | "delete /v1/clips/{id}" | "delete /v1/videos/{id}/subtitles/{lang}" => {
            Missing(None)
        }
        "get /v1/videos/{id}"
        | "get /v1/videos/{id}/clips"
        | "get /v1/videos/{id}/media"
        | "get /v1/videos/{id}/thumbnail"
        | "get /v1/videos/{id}/sprites"
        | "get /v1/videos/{id}/sprites/{sheet}"
        | "get /v1/videos/{id}/timeline"
        | "get /v1/videos/{id}/transcript"
        | "get /v1/videos/{id}/subtitles"
        | "get /v1/videos/{id}/subtitles/{lang}"
        | "get /v1/clips/{id}"
        | "get /v1/clips/{id}/preview"
        | "get /v1/clips/{id}/thumbnail"
        | "get /v1/reels/{id}"
        | "get /v1/evaluations/{id}"
        | "get /v1/exports/{id}"
        | "get /v1/exports/{id}/download"
        | "get /v1/jobs/{id}"
        | "get /v1/jobs/{id}/events"
        | "get /v1/webhooks/{id}"
        | "get /v1/webhooks/{id}/deliveries"
        | "get /v1/alerts/{id}"
        | "get /v1/alerts/{id}/matches" => Missing(None),
        _ => return None,
    })
}

/// The path of the figures of three days, the same throughout the walk.
fn insights() -> String {
    static PATH: OnceLock<String> = OnceLock::new();
    let day = |offset: i64| instant::format(instant::now_ms() + offset * 24 * 3600 * 1000);
    // The walk itself searches by text.
    PATH.get_or_init(|| format!("/v1/insights?kind=clip&since={}&until={}", day(-1), day(2))).clone()
}

/// What the other team has.
#[derive(Default)]
struct Theirs {
    video: String,
    line: String,
    clip: String,
    job: String,
    key: String,
    reel: String,
    export: String,
    search: String,
    evaluation: String,
    webhook: String,
    alert: String,
    upload: String,
}

impl Theirs {
    /// The path of an operation, about their entries.
    fn path(&self, template: &str) -> String {
        let id = match template {
            it if it.starts_with("/v1/videos") => &self.video,
            it if it.starts_with("/v1/clips") => &self.clip,
            it if it.starts_with("/v1/jobs") => &self.job,
            it if it.starts_with("/v1/keys") => &self.key,
            it if it.starts_with("/v1/reels") => &self.reel,
            it if it.starts_with("/v1/exports") => &self.export,
            it if it.starts_with("/v1/searches") => &self.search,
            it if it.starts_with("/v1/evaluations") => &self.evaluation,
            it if it.starts_with("/v1/webhooks") => &self.webhook,
            it if it.starts_with("/v1/alerts") => &self.alert,
            it if it.starts_with("/v1/uploads") => &self.upload,
            _ => "tiny",
        };
        let path = template.replace("{id}", id).replace("{line}", &self.line);
        let path = path.replace("{lang}", "en").replace("{sheet}", "0");
        if path.ends_with("/timeline") { format!("{path}?text=x") } else { path }
    }
}

/// A request of a walk.
struct Step<'a> {
    method: &'a str,
    path: String,
    body: Option<Value>,
}

impl Step<'_> {
    /// Sends it. Subtitles are the only body that is no JSON.
    async fn send(&self, holder: Holder<'_>) -> (u16, String) {
        let request = holder.request(self.method, &self.path).header("if-match", "*");
        let request = request.header("tus-resumable", "1.0.0");
        let request = match &self.body {
            Some(Value::String(_)) => request.header("content-type", "text/vtt").body(SUBTITLES),
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), String::from_utf8_lossy(&answer.bytes().await.unwrap()).into_owned())
    }

    /// The answer as JSON, without what differs from one request to the next.
    async fn answer(&self, holder: Holder<'_>) -> Value {
        let (status, text) = self.send(holder).await;
        assert_eq!(status, 200, "{} {}: {text}", self.method, self.path);
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        forget_times(&mut answer);
        answer
    }
}

/// Removes durations, cursors and ids of searches, which differ from one answer to the next.
fn forget_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                !["timings", "timings_ms", "took_ms", "next_cursor", "search_id"].contains(&name.as_str())
            });
            fields.values_mut().for_each(forget_times);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        _ => {}
    }
}

const SUBTITLES: &str = "WEBVTT\n\n00:00.000 --> 00:01.000\na harmonica plays\n";

/// Every operation of the contract, as `get /path`.
async fn operations(holder: Holder<'_>) -> Vec<String> {
    let contract = holder.good("GET", "/openapi.json", None).await;
    let paths = contract["paths"].as_object().unwrap().clone().into_iter();
    let named = |(path, item): (String, Value)| {
        let methods: Vec<String> = item.as_object().unwrap().keys().cloned().collect();
        methods.into_iter().map(move |method| format!("{method} {path}"))
    };
    paths.flat_map(named).collect()
}

async fn put_subtitles(holder: Holder<'_>, video: &str, text: &str) {
    let request = holder.request("PUT", &format!("/v1/videos/{video}/subtitles/en"));
    let sent = request.header("content-type", "text/vtt").body(text.to_owned()).send().await.unwrap();
    assert!(sent.status().is_success(), "{}", sent.text().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_hides_what_another_team_has() {
    let guarded = Guarded::start(&[]);
    let (a, b) = (guarded.team_key("a").await, guarded.team_key("b").await);
    let (a, b) = (guarded.as_holder(&a), guarded.as_holder(&b));
    let file = guarded.film("same", &["color=c=red", "testsrc2"]);
    let mine = b.ingest(&file, json!({"team": "b", "marker": "beta"})).await;
    put_subtitles(b, mine["video"]["id"].as_str().unwrap(), SUBTITLES).await;
    let nothing = Theirs::default();
    let operations = operations(b).await;
    let mut before = BTreeMap::new();
    for operation in &operations {
        let what =
            expected(operation, &nothing).unwrap_or_else(|| panic!("the walk does not know {operation}"));
        let Unchanged(requests) = what else { continue };
        let method = operation.split(' ').next().unwrap();
        for (path, body) in requests {
            let said = format!("{path} {body:?}");
            before.insert(said, Step { method: &method.to_uppercase(), path, body }.answer(b).await);
        }
    }

    // The same bytes under another key are another video.
    let theirs = a.ingest(&file, json!({"team": "a", "marker": "alpha-secret"})).await;
    assert_eq!(theirs["duplicate"], false, "{theirs}");
    let video = theirs["video"]["id"].as_str().unwrap().to_owned();
    a.good("PATCH", &format!("/v1/videos/{video}"), Some(&json!({"title": "hidden title"}))).await;
    let shelved = json!({"tags": ["hidden title"], "folder": "hidden title/alpha-secret"});
    a.good("PATCH", &format!("/v1/videos/{video}"), Some(&shelved)).await;
    put_subtitles(a, &video, "WEBVTT\n\n00:00.000 --> 00:01.000\na xylophone and a harmonica\n").await;
    let said = a.good("GET", &format!("/v1/videos/{video}/transcript"), None).await;
    let line = said["items"][0]["id"].as_str().unwrap().to_owned();
    let clips = a.good("GET", &format!("/v1/videos/{video}/clips"), None).await;
    let clip = clips["items"][0]["id"].as_str().unwrap().to_owned();
    let job = theirs["job"]["id"].as_str().unwrap().to_owned();
    let range = json!([{"video_id": video, "start": 0.0, "end": 1.0, "note": "hidden title"}]);
    let id = |made: Value| made["id"].as_str().unwrap().to_owned();
    let body = json!({"name": "hidden title", "ranges": range});
    let reel = id(a.good("POST", "/v1/reels", Some(&body)).await);
    let body = json!({"format": "csv", "reel_id": reel});
    let export = id(a.good("POST", "/v1/exports", Some(&body)).await);
    let ended = a.request("GET", &format!("/v1/jobs/{export}/events")).send().await.unwrap();
    assert!(ended.text().await.unwrap().contains("\"succeeded\""));
    let searched = a.good("POST", "/v1/search", Some(&json!({"query": {"clip_id": clip}}))).await;
    let searched = searched["search_id"].as_str().unwrap().to_owned();
    let wanted = json!([{"label": "hidden title", "text": "xylophone", "relevant": [{"clip_id": clip}]}]);
    let body = json!({"name": "hidden title", "spaces": ["tiny-1ade90"], "queries": wanted});
    let evaluation = id(a.good("POST", "/v1/evaluations", Some(&body)).await);
    let ended = a.request("GET", &format!("/v1/jobs/{evaluation}/events")).send().await.unwrap();
    assert!(ended.text().await.unwrap().contains("\"succeeded\""));
    let body = json!({"url": "https://example.com/alpha-secret", "events": ["alert.matched"]});
    let webhook = id(a.good("POST", "/v1/webhooks", Some(&body)).await);
    let search = json!({"query": {"text": "xylophone"}});
    let body = json!({"name": "hidden title", "search": search, "webhooks": [webhook]});
    let alert = id(a.good("POST", "/v1/alerts", Some(&body)).await);
    let key = "01890000-0000-7000-8000-000000000000".to_owned();
    let begin = a.request("POST", "/v1/uploads").header("tus-resumable", "1.0.0");
    // Its metadata is {"team":"a"}.
    let begin = begin.header("upload-length", "9").header("upload-metadata", "metadata eyJ0ZWFtIjoiYSJ9");
    let begun = begin.send().await.unwrap();
    let upload = begun.headers()["location"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let search = searched;
    let theirs =
        Theirs { video, line, clip, job, key, reel, export, search, evaluation, webhook, alert, upload };
    let text = guarded.folder.path().join("alpha-secret.mp4");
    std::fs::write(&text, "no video").unwrap();
    let (status, refused) = a.upload(&text, json!({"team": "a"})).await;
    assert_eq!(status, 415, "{refused}");
    let refused = format!("/v1/jobs/{}", refused["job_id"].as_str().unwrap());
    let other = guarded.film("other", &["smptebars"]);
    let trashed = a.ingest(&other, json!({"team": "a", "marker": "alpha-secret"})).await;
    let trashed = format!("/v1/videos/{}", trashed["video"]["id"].as_str().unwrap());
    assert_eq!(a.send("DELETE", &trashed, None).await.0, 204);

    for operation in &operations {
        let (method, template) = operation.split_once(' ').unwrap();
        let method = method.to_uppercase();
        let step = |path: String, body| Step { method: &method, path, body };
        match expected(operation, &theirs).unwrap() {
            Open | Elsewhere => {}
            Forbidden(body) => {
                let (status, text) = step(theirs.path(template), body).send(b).await;
                assert_eq!(status, 403, "{operation}: {text}");
            }
            Missing(body) => {
                let (status, text) = step(theirs.path(template), body).send(b).await;
                assert_eq!(status, 404, "{operation}: {text}");
                assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{operation}: {text}");
            }
            Unchanged(requests) => {
                for (path, body) in requests {
                    let said = format!("{path} {body:?}");
                    let answer = step(path, body).answer(b).await;
                    assert_eq!(Some(&answer), before.get(&said), "{said}");
                }
            }
        }
    }
    let stored = json!({"video_id": theirs.video, "start": 0.0, "end": 1.0});
    for query in [json!({"clip_id": theirs.clip}), json!({"clip": stored})] {
        let body = json!({"name": "x", "search": {"query": query}});
        assert_eq!(b.send("POST", "/v1/alerts", Some(&body)).await.0, 404, "{body}");
    }
    for path in ["/v1/jobs/{id}", "/v1/jobs/{id}/events"] {
        for id in [&theirs.export, &theirs.evaluation] {
            assert_eq!(b.send("GET", &path.replace("{id}", id), None).await.0, 404, "{path}");
        }
    }
    for (method, path) in [("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/retry")] {
        assert_eq!(b.send(method, &format!("{refused}{path}"), None).await.0, 404, "{path}");
    }
    assert_eq!(a.send("POST", &format!("{refused}/retry"), None).await.0, 409);
    let failed = a.good("GET", "/v1/jobs?state=failed", None).await;
    assert_eq!(failed["items"][0]["refused_file"]["file_name"], "alpha-secret.mp4", "{failed}");
    assert_eq!(b.send("POST", &format!("{trashed}/restore"), None).await.0, 404);
    assert_eq!(b.send("DELETE", &format!("{trashed}?purge=true"), None).await.0, 404);
    let listed = a.good("GET", "/v1/videos?trashed=true", None).await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
    a.good("POST", &format!("{trashed}/restore"), None).await;
    for id in [&theirs.export, &theirs.evaluation] {
        assert_eq!(b.send("POST", &format!("/v1/jobs/{id}/cancel"), None).await.0, 404);
        assert_eq!(a.send("POST", &format!("/v1/jobs/{id}/cancel"), None).await.0, 409, "it has ended");
    }
    let links = json!({"paths": [format!("/v1/exports/{}/download", theirs.export)]});
    assert_eq!(b.send("POST", "/v1/media-links", Some(&links)).await.0, 404);
    let exported = json!({"format": "csv", "reel_id": theirs.reel});
    assert_eq!(b.send("POST", "/v1/exports", Some(&exported)).await.0, 404);
    let own = a.good("GET", &format!("/v1/searches/{}", theirs.search), None).await;
    assert_eq!(own["hits"][0]["feedback"], json!([]), "nobody else gives feedback on it: {own}");
    let unharmed = a.good("GET", &format!("/v1/reels/{}", theirs.reel), None).await;
    assert_eq!((&unharmed["name"], &unharmed["version"]), (&json!("hidden title"), &json!(1)));
    let unharmed = a.good("GET", &format!("/v1/videos/{}", theirs.video), None).await;
    assert_eq!(unharmed["title"], "hidden title");
    assert_eq!(unharmed["tags"], json!(["hidden title"]));
    let found = a.good("POST", "/v1/search", Some(&json!({"query": {"text": "xylophone"}}))).await;
    assert!(found.to_string().contains(&theirs.video), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_moves_nothing_out_of_its_reach() {
    let guarded = Guarded::start(&["--media-root", "/"]);
    let (a, b) = (guarded.team_key("a").await, guarded.team_key("b").await);
    let (a, b) = (guarded.as_holder(&a), guarded.as_holder(&b));
    let file = guarded.film("one", &["testsrc2"]);
    for metadata in [json!({}), json!({"team": "a"}), json!({"team": ["a", "c"]})] {
        assert_eq!(b.upload(&file, metadata.clone()).await.0, 403, "{metadata}");
    }
    assert_eq!(b.good("GET", "/v1/videos", None).await["items"], json!([]), "nothing was stored");
    let in_place = json!({"path": file, "metadata": {"team": "b"}});
    assert_eq!(
        b.send("POST", "/v1/videos", Some(&in_place)).await.0,
        403,
        "the server's folders are not a team's"
    );
    let added = b.ingest(&file, json!({"team": "b"})).await;
    let video = format!("/v1/videos/{}", added["video"]["id"].as_str().unwrap());
    for metadata in [json!({}), json!({"team": "a"}), json!(null)] {
        let (status, answer) = b.send("PATCH", &video, Some(&json!({"metadata": metadata}))).await;
        assert_eq!(status, 403, "{answer}");
    }
    assert_eq!(b.good("GET", &video, None).await["metadata"], json!({"team": "b"}));
    let (_, again) = b.upload(&file, json!({"team": "b"})).await;
    assert_eq!(again["duplicate"], true, "{again}");

    // Cursors and idempotency keys belong to their key.
    let first = b.good("POST", "/v1/search", Some(&json!({"query": {"text": "x"}, "limit": 1}))).await;
    let next = json!({"cursor": first["next_cursor"].as_str().unwrap_or("none")});
    assert_eq!(a.send("POST", "/v1/search", Some(&next)).await.0, 422);
    let other = guarded.film("two", &["smptebars"]);
    for (holder, team) in [(a, "a"), (b, "b")] {
        let part = reqwest::multipart::Part::bytes(std::fs::read(&other).unwrap()).file_name("two.mp4");
        let form = reqwest::multipart::Form::new().text("metadata", json!({"team": team}).to_string());
        let request = holder.request("POST", "/v1/videos").header("idempotency-key", "same");
        let (status, added) = guarded.server.send(request.multipart(form.part("file", part))).await;
        assert_eq!((status.as_u16(), &added["duplicate"]), (202, &json!(false)), "{added}");
    }
}
