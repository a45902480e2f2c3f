//! Models added to a running server, and query kinds moved to them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use reprise_tests::film::{Store, film};
use reprise_tests::hub::{Fault, Hub};
use reprise_tests::server::{PATIENCE, Server};
use serde_json::{Value, json};

use crate::encoders::folder;
use crate::encoders_qwen_vl::{embedder, words};

/// A data folder, and arguments of its servers.
struct Bed {
    folder: tempfile::TempDir,
    more: Vec<String>,
}

impl Bed {
    fn new(more: &[&str]) -> Bed {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        Bed { folder, more: more.iter().map(|it| (*it).to_owned()).collect() }
    }

    /// Allows models from the parity tests' folder.
    fn with_models() -> Bed {
        Bed::new(&["--model-root", folder("").to_str().unwrap()])
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn start(&self, more: &[&str]) -> Server {
        let own: Vec<&str> = self.more.iter().map(String::as_str).collect();
        Server::start(&self.data(), &[&own[..], more].concat())
    }

    fn film(&self, name: &str, scenes: &[&str]) -> PathBuf {
        film(self.folder.path(), name, scenes, Store::Lossless)
    }
}

/// Adds a model of the parity tests. Returns its space.
async fn add(server: &Server, variant: &str, status: u16) -> Value {
    let (got, space) = server.post("/v1/spaces", &json!({"model": folder(variant)})).await;
    assert_eq!(got, status, "{space}");
    space
}

async fn activate(server: &Server, space: &Value, kinds: &[&str]) {
    let path = format!("/v1/spaces/{}/activate", space["name"].as_str().unwrap());
    let (status, moved) = server.post(&path, &json!({"for": kinds})).await;
    assert_eq!((status.as_u16(), &moved["active_for"]), (200, &json!(kinds)), "{moved}");
}

/// Waits until all videos are searchable in all spaces and no job is left. Returns the spaces.
async fn filled(server: &Server) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        for state in ["running", "queued"] {
            let (_, jobs) = server.get(&format!("/v1/jobs?state={state}")).await;
            for job in jobs["items"].as_array().unwrap() {
                assert_eq!(server.job_end(job["id"].as_str().unwrap()).await["state"], "succeeded");
            }
        }
        let (_, stats) = server.get("/v1/stats").await;
        let (_, spaces) = server.get("/v1/spaces").await;
        let spaces = spaces["items"].as_array().unwrap().clone();
        let idle = stats["jobs_queued"] == 0 && stats["jobs_running"] == 0;
        if idle && spaces.iter().all(|space| space["coverage"] == 1.0) {
            return spaces;
        }
        assert!(Instant::now() < deadline, "the spaces are never filled: {spaces:?}");
        tokio::task::yield_now().await;
    }
}

/// The names of the default spaces for a text and for a clip.
async fn defaults(server: &Server, shot: &Value) -> (Value, Value) {
    let text = server.search(&json!({"query": {"text": "bars"}})).await;
    let clip = server.search(&json!({"query": shot})).await;
    (text["index"]["space"].clone(), clip["index"]["space"].clone())
}

#[tokio::test]
async fn a_model_is_added_filled_made_active_and_remembered() {
    added_filled_active_and_remembered(Bed::with_models()).await;
}

#[tokio::test]
async fn a_model_is_added_filled_made_active_and_remembered_on_postgres() {
    let Some(url) = reprise_tests::postgres::database().await else { return };
    let mut bed = Bed::with_models();
    bed.more.extend(["--database-url".to_owned(), url]);
    added_filled_active_and_remembered(bed).await;
}

async fn added_filled_active_and_remembered(bed: Bed) {
    let server = bed.start(&[]);
    let one = server.ingest(&bed.film("one", &["smptebars", "color=c=red", "testsrc2"])).await;
    server.ingest(&bed.film("two", &["color=c=blue", "smptebars"])).await;
    let shot = json!({"clip": {"video_id": one["id"], "start": 0.0, "end": 2.0}});
    let (_, before) = server.get("/v1/spaces").await;
    let tiny = before["items"][0]["name"].clone();

    let added = add(&server, "legacy", 201).await;
    assert_eq!((&added["active_for"], &added["added"]), (&json!([]), &json!(true)));
    assert_eq!(defaults(&server, &shot).await, (tiny.clone(), tiny.clone()), "the old space serves");
    let spaces = filled(&server).await;
    assert_eq!(
        (&spaces[1]["name"], &spaces[1]["clips"], &spaces[1]["videos"]),
        (&added["name"], &json!(5), &json!(2))
    );
    let hits = server.search_hits(json!({"query": shot, "space": added["name"]})).await;
    assert_eq!(hits[0]["start"], 2.0, "the same picture in the other film comes first");
    assert!(hits[0]["score"].as_f64().unwrap() > 0.9999);
    assert_eq!(defaults(&server, &shot).await, (tiny.clone(), tiny.clone()), "until it is made active");

    activate(&server, &added, &["text", "clip"]).await;
    let new = (added["name"].clone(), added["name"].clone());
    assert_eq!(defaults(&server, &shot).await, new);
    assert_eq!(add(&server, "legacy", 200).await["id"], added["id"], "what is loaded is not loaded twice");
    // A new video is in both spaces.
    server.ingest(&bed.film("three", &["testsrc", "color=c=green"])).await;
    assert!(filled(&server).await.iter().all(|space| space["videos"] == 3));

    assert!(server.stop());
    let server = bed.start(&[]);
    assert_eq!(defaults(&server, &shot).await, new, "after a restart too");
    let (_, spaces) = server.get("/v1/spaces").await;
    assert_eq!((&spaces["items"][1]["coverage"], &spaces["items"][1]["added"]), (&json!(1.0), &json!(true)));
    assert_eq!(server.search_hits(json!({"query": shot})).await[0]["start"], 2.0);

    assert!(server.stop());
    the_command_line_overrules(&bed, &shot, &tiny, &added["name"]).await;
}

#[tokio::test]
async fn a_fill_can_wait_until_its_time_is_known() {
    let bed = Bed::with_models();
    let server = bed.start(&[]);
    server.ingest(&bed.film("one", &["smptebars", "color=c=red", "testsrc2"])).await;
    server.ingest(&bed.film("two", &["color=c=blue", "smptebars"])).await;
    let body = json!({"model": folder("legacy"), "fill": "paused"});
    let (status, added) = server.post("/v1/spaces", &body).await;
    assert_eq!(status, 201, "{added}");
    let fill = &added["fill"];
    assert_eq!((&fill["state"], &fill["clips_left"]), (&json!("paused"), &json!(5)), "{fill}");
    let estimate = fill["estimated_seconds"].as_f64().unwrap();
    assert!(estimate > 0.0 && estimate < 600.0, "{fill}");
    // A new video is encoded into a paused space, and the stored ones are not.
    server.ingest(&bed.film("three", &["testsrc", "color=c=green"])).await;
    assert!(server.stop());
    let server = bed.start(&[]);
    let (_, spaces) = server.get("/v1/spaces").await;
    let paused = &spaces["items"][1];
    assert_eq!(
        (&paused["videos"], &paused["clips"]),
        (&json!(1), &json!(3)),
        "after a restart too: {paused}"
    );
    assert_eq!((&paused["fill"]["state"], &paused["fill"]["clips_left"]), (&json!("paused"), &json!(5)));
    let (_, jobs) = server.get("/v1/jobs?kind=fill").await;
    assert_eq!(jobs["items"], json!([]), "none is enqueued");
    let turn = |act: &str| format!("/v1/spaces/{}/{act}", added["name"].as_str().unwrap());
    let (status, space) = server.post(&turn("resume"), &Value::Null).await;
    assert_eq!(status, 200, "{space}");
    assert_ne!(space["fill"]["state"], "paused");
    let spaces = filled(&server).await;
    assert_eq!((&spaces[1]["videos"], &spaces[1]["clips"]), (&json!(3), &json!(8)));
    let fill = &spaces[1]["fill"];
    assert_eq!((&fill["state"], &fill["clips_left"]), (&json!("complete"), &json!(0)), "{fill}");
    let (status, space) = server.post(&turn("pause"), &Value::Null).await;
    assert_eq!((status.as_u16(), &space["fill"]["state"]), (200, &json!("paused")));
    server.refused(server.request("POST", "/v1/spaces/nothing/pause"), 404).await;
    server
        .refused(server.request("POST", "/v1/spaces").json(&json!({"model": "a/b", "fill": "no"})), 422)
        .await;
}

#[tokio::test]
async fn a_model_of_the_command_line_is_measured_before_its_fill_begins() {
    let bed = Bed::new(&[]);
    let server = bed.start(&[]);
    server.ingest(&bed.film("one", &["smptebars", "color=c=red", "testsrc2"])).await;
    server.ingest(&bed.film("two", &["color=c=blue", "smptebars"])).await;
    assert!(server.stop());
    let model = folder("legacy");
    let models = ["--model", "builtin:tiny", "--model", model.to_str().unwrap()];
    // Nothing runs jobs here, so the estimate stands before the fill begins.
    let server = bed.start(&[&models[..], &["--runners", "0"]].concat());
    let before = until(&server, |space| space["fill"]["estimated_seconds"].is_number()).await;
    let fill = &before["fill"];
    assert_eq!((&fill["state"], &fill["measuring"]), (&json!("filling"), &json!(false)), "{fill}");
    assert_eq!((&fill["clips_left"], &before["clips"]), (&json!(5), &json!(0)), "{before}");
    assert!(fill["estimated_seconds"].as_f64() > Some(0.0), "{fill}");
    let (_, jobs) = server.get("/v1/jobs?kind=fill&state=queued").await;
    assert_eq!(jobs["items"].as_array().map(Vec::len), Some(2), "{jobs}");
    assert!(server.stop());
    // The fills of that start wait too.
    let server = bed.start(&models);
    let is_filled = |space: &Value| {
        let fill = &space["fill"];
        assert!(space["clips"] == 0 || fill["estimated_seconds"].is_number(), "not measured before: {space}");
        assert!(fill["measuring"] != true || fill["estimated_seconds"].is_null(), "measured twice: {space}");
        fill["state"] == "complete"
    };
    let filled = until(&server, is_filled).await;
    assert_eq!((&filled["clips"], &filled["fill"]["estimated_seconds"]), (&json!(5), &json!(0.0)));
}

/// Waits until the second space is as wanted. Returns it.
async fn until(server: &Server, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, spaces) = server.get("/v1/spaces").await;
        let space = &spaces["items"][1];
        if is_wanted(space) {
            return space.clone();
        }
        assert!(Instant::now() < deadline, "it never comes: {space}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn models_that_read_are_measured_before_their_fill_begins() {
    let Some(words) = words() else { return };
    let models = tempfile::tempdir().unwrap();
    // The small models' patches are small: 32 frames are more tokens than they take.
    let bed = Bed::new(&["--frames-per-clip", "2", "--model-root", models.path().to_str().unwrap()]);
    let server = bed.start(&[]);
    server.ingest(&bed.film("one", &["smptebars", "color=c=red", "testsrc2"])).await;
    for kind in ["gme", "qwen3", "care"] {
        let model = embedder(&words, kind, &models.path().join(kind));
        let (status, space) = server.post("/v1/spaces", &json!({"model": model, "fill": "paused"})).await;
        let fill = &space["fill"];
        assert_eq!((status.as_u16(), &fill["state"], &space["clips"]), (201, &json!("paused"), &json!(0)));
        assert!(fill["estimated_seconds"].as_f64() > Some(0.0), "{kind}: {space}");
    }
    let (_, jobs) = server.get("/v1/jobs?kind=fill").await;
    assert_eq!(jobs["items"], json!([]), "none has begun");
}

async fn the_command_line_overrules(bed: &Bed, shot: &Value, tiny: &Value, added: &Value) {
    let server = bed.start(&["--model", "text=builtin:tiny"]);
    assert_eq!(
        defaults(&server, shot).await,
        (tiny.clone(), added.clone()),
        "what it names since goes there"
    );
    let (_, spaces) = server.get("/v1/spaces").await;
    activate(&server, &spaces["items"][1], &["text", "clip"]).await;
    assert!(server.stop());
    let server = bed.start(&["--model", "text=builtin:tiny"]);
    assert_eq!(
        defaults(&server, shot).await,
        (added.clone(), added.clone()),
        "what it named before does not"
    );
    assert!(server.stop());
    let server = bed.start(&["--forget-added"]);
    assert_eq!(defaults(&server, shot).await, (tiny.clone(), tiny.clone()));
    assert!(server.stop());
    let server = bed.start(&[]);
    assert_eq!(server.get("/v1/spaces").await.1["items"].as_array().unwrap().len(), 1, "forgotten for good");
}

#[tokio::test]
async fn a_video_at_work_while_a_model_is_added_is_filled_into_it() {
    let bed = Bed::with_models();
    let server = bed.start(&["--runners", "1"]);
    let scenes = ["testsrc2", "color=c=red", "smptebars", "testsrc", "color=c=blue", "rgbtestsrc"];
    let first = bed.film("first", &scenes);
    let second = bed.film("second", &scenes[1..]);
    let (_, working) = server.upload(&first, &[]).await;
    let (_, waiting) = server.upload(&second, &[]).await;
    // Each model is added at a different moment of the two ingests.
    for variant in ["legacy", "wordpiece", "unigram"] {
        add(&server, variant, 201).await;
    }
    for answer in [working, waiting] {
        assert_eq!(server.job_end(answer["job"]["id"].as_str().unwrap()).await["state"], "succeeded");
    }
    let spaces = filled(&server).await;
    assert_eq!(spaces.len(), 4);
    for space in &spaces {
        assert_eq!((&space["videos"], &space["clips"]), (&json!(2), &spaces[0]["clips"]), "{space}");
    }
}

#[tokio::test]
async fn one_model_asked_for_by_many_is_loaded_once() {
    let bed = Bed::with_models();
    let server = bed.start(&[]);
    let body = json!({"model": folder("legacy")});
    let asked = (0..4).map(|_| server.post("/v1/spaces", &body));
    let mut answers = futures_util::future::join_all(asked).await;
    answers.sort_by_key(|(status, _)| std::cmp::Reverse(status.as_u16()));
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| status.as_u16()).collect();
    assert_eq!(statuses, [201, 200, 200, 200]);
    assert!(answers.iter().all(|(_, space)| space["id"] == answers[0].1["id"]));
    assert_eq!(server.get("/v1/spaces").await.1["items"].as_array().unwrap().len(), 2);
}

const SUBTITLES: &str = "WEBVTT\n\n00:00.000 --> 00:02.000\na brown dog runs past the red car\n\n\
                         00:02.000 --> 00:04.000\nthe speaker talks about music\n";

#[tokio::test]
async fn what_is_said_is_filled_into_every_space_that_can_answer_it() {
    let bed = Bed::with_models();
    let server = bed.start(&[]);
    let video = server.ingest(&bed.film("talk", &["testsrc2", "color=c=red"])).await;
    let put = server.request("PUT", &format!("/v1/videos/{}/subtitles/en", video["id"].as_str().unwrap()));
    let put = put.header("content-type", "text/vtt").body(SUBTITLES);
    assert_eq!(server.send(put).await.0, 200);
    let first = add(&server, "sentence/mean", 201).await;
    assert_eq!(first["active_for"], json!(["spoken"]), "nothing answered the kind");
    let second = add(&server, "sentence/e5-tiny", 201).await;
    assert_eq!(second["active_for"], json!([]));
    let spaces = filled(&server).await;
    assert_eq!((&spaces[1]["passages"], &spaces[2]["passages"]), (&json!(1), &json!(1)), "{spaces:?}");
    activate(&server, &second, &["spoken"]).await;
    let said = json!({"query": {"text": "music"}, "sources": ["spoken"]});
    assert_eq!(server.search_hits(said.clone()).await.len(), 2);
    assert!(server.stop());
    let server = bed.start(&[]);
    let (_, spaces) = server.get("/v1/spaces").await;
    let active: Vec<&Value> =
        spaces["items"].as_array().unwrap().iter().map(|it| &it["active_for"]).collect();
    assert_eq!(active, [&json!(["text", "clip", "composed"]), &json!([]), &json!(["spoken"])]);
    assert_eq!(server.search_hits(said).await.len(), 2);
}

#[tokio::test]
async fn a_model_or_a_move_that_can_not_be_is_refused_and_changes_nothing() {
    let bed = Bed::with_models();
    let server = bed.start(&[]);
    let (_, before) = server.get("/v1/spaces").await;
    let outside = bed.folder.path().to_str().unwrap();
    for (body, status, says) in [
        (json!({"model": "no model"}), 422, "org/name"),
        (json!({"model": "../up/.."}), 403, "--model-root"),
        (json!({"model": "/etc"}), 403, "--model-root"),
        (json!({"model": "/no/such/folder"}), 403, "--model-root"),
        (json!({"model": outside}), 403, "--model-root"),
        (json!({"model": folder("segment")}), 422, "config.json"),
        (json!({"model": ""}), 422, "org/name"),
        (json!({"model": 7}), 422, "string"),
        (json!({"model": "builtin:tiny", "for": ["text"]}), 422, "unknown field"),
        (json!({}), 422, "model"),
    ] {
        let problem = server.refused(server.request("POST", "/v1/spaces").json(&body), status).await;
        assert!(problem["detail"].as_str().unwrap().contains(says), "{body}: {problem}");
    }
    let name = before["items"][0]["name"].as_str().unwrap();
    for (space, body, status, pointer) in [
        ("nothing", json!({"for": ["text"]}), 404, "id"),
        (name, json!({"for": []}), 422, "/for"),
        (name, json!({"for": ["smell"]}), 422, "/for/0"),
        (name, json!({"for": ["text", "spoken"]}), 409, "/for"),
        (name, json!({}), 422, ""),
    ] {
        let request = server.request("POST", &format!("/v1/spaces/{space}/activate"));
        let problem = server.refused(request.json(&body), status).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
    }
    assert_eq!(server.get("/v1/spaces").await.1, before);
}

fn hub_server(bed: &Bed, hub: &Hub, more: &[&str]) -> Result<Server, String> {
    patient_hub_server(bed, hub, more, "0.1")
}

/// A server that waits `seconds` for a silent hub.
fn patient_hub_server(bed: &Bed, hub: &Hub, more: &[&str], seconds: &str) -> Result<Server, String> {
    let home = bed.folder.path().join("hub");
    let environment = [
        ("HF_ENDPOINT", Path::new(&hub.endpoint)),
        ("HF_HOME", &home),
        ("HF_HUB_DOWNLOAD_TIMEOUT", Path::new(seconds)),
    ];
    Server::try_start_with(&bed.data(), more, &environment)
}

#[tokio::test]
async fn a_model_of_the_hub_is_added_by_its_name() {
    let hub = Hub::start()
        .with("org/whole", &folder("legacy"), &[])
        .with("org/other", &folder("wordpiece"), &[])
        .failing("model.safetensors", Fault::Cut(1000), 1)
        .failing("tokenizer.json", Fault::Status(503), 9);
    let bed = Bed::new(&[]);
    let server = hub_server(&bed, &hub, &[]).unwrap_or_else(|said| panic!("{said}"));
    let ask = |model: &str| server.request("POST", "/v1/spaces").json(&json!({"model": model}));
    let problem = server.refused(ask("org/nothing"), 422).await;
    assert!(problem["detail"].as_str().unwrap().contains("has no model org/nothing"), "{problem}");
    let problem = server.refused(ask("org/whole"), 424).await;
    assert!(problem["detail"].as_str().unwrap().contains("503"), "{problem}");
    let half = listed(&server, "org/whole").await;
    assert_eq!((&half["state"], &half["spaces"]), (&json!("partial"), &json!([])), "{half}");
    for status in [424, 201, 200] {
        let (got, space) = server.send(ask("org/whole")).await;
        assert_eq!(got, status, "{space}");
    }
    let whole = listed(&server, "org/whole").await;
    assert_eq!((&whole["state"], whole["spaces"].as_array().map(Vec::len)), (&json!("loaded"), Some(1)));
    assert!(whole["cached_bytes"].as_u64() > half["cached_bytes"].as_u64(), "{half} {whole}");
    assert_eq!((&whole["licence"], &whole["bytes"]), (&Value::Null, &Value::Null), "nobody stated them");
    let known = listed(&server, "sentence-transformers/all-MiniLM-L6-v2").await;
    assert_eq!((&known["state"], &known["licence"]), (&json!("away"), &json!("Apache-2.0")));
    let reads = listed(&server, "Qwen/Qwen3-VL-Embedding-8B").await;
    assert_eq!((&reads["licence"], &reads["bytes"]), (&json!("Apache-2.0"), &json!(16_289_587_680_u64)));
    assert_eq!(listed(&server, "builtin:tiny").await["state"], "loaded");
    assert_eq!(listed(&server, "builtin:sports").await["state"], "here");
    let asked = hub.asked_for("model.safetensors");
    assert_eq!(asked, [0, 1000], "a cut download goes on");
    assert!(server.stop());
    let server = hub_server(&bed, &hub, &[]).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(server.get("/v1/spaces").await.1["items"][1]["model"], "org/whole");
    assert_eq!(hub.asked_for("model.safetensors"), asked, "a restart needs no network");
    assert!(server.stop());
    let server = hub_server(&bed, &hub, &["--forget-added"]).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(listed(&server, "org/whole").await["state"], "here");
    assert_eq!(listed(&server, "org/other").await, Value::Null, "nobody asked for it");
}

/// A model in the list of models; null if it is not there.
async fn listed(server: &Server, model: &str) -> Value {
    let (status, models) = server.get("/v1/models").await;
    assert_eq!(status, 200, "{models}");
    models["items"].as_array().unwrap().iter().find(|it| it["model"] == model).cloned().unwrap_or_default()
}

#[test]
fn a_wrong_model_name_ends_the_start() {
    let hub = Hub::start().with("org/whole", &folder("legacy"), &[]);
    for (model, says) in [
        ("org/nothing", "has no model org/nothing"),
        ("org/whole@v9", "has no model org/whole@v9"),
        ("nonsense", "is no model"),
    ] {
        let said = hub_server(&Bed::new(&[]), &hub, &["--model", model]).err();
        assert!(said.as_ref().is_some_and(|said| said.contains(says)), "{model}: {said:?}");
    }
}

#[tokio::test]
async fn a_server_comes_up_without_an_added_model_that_is_gone() {
    let models = tempfile::tempdir().unwrap();
    let folder = models.path().join("mine");
    std::fs::create_dir(&folder).unwrap();
    for file in std::fs::read_dir(self::folder("legacy")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    let bed = Bed::new(&["--model-root", models.path().to_str().unwrap()]);
    let server = bed.start(&[]);
    let (status, added) = server.post("/v1/spaces", &json!({"model": folder})).await;
    assert_eq!(status, 201);
    activate(&server, &added, &["text"]).await;
    assert!(server.stop());
    std::fs::rename(&folder, models.path().join("elsewhere")).unwrap();
    let server = bed.start(&[]);
    let (_, spaces) = server.get("/v1/spaces").await;
    assert_eq!(spaces["items"][0]["active_for"], json!(["text", "clip", "composed"]));
    assert_eq!(spaces["unavailable"][0]["model"], folder.to_str().unwrap(), "{spaces}");
    assert!(server.stop());
    std::fs::rename(models.path().join("elsewhere"), &folder).unwrap();
    let server = bed.start(&[]);
    let (_, spaces) = server.get("/v1/spaces").await;
    assert_eq!((&spaces["items"][1]["active_for"], &spaces["unavailable"]), (&json!(["text"]), &json!([])));
}

/// Starts a server with a model of the hub and these environment variables. Returns its output if it fails to start.
fn started(bed: &Bed, hub: &Hub, model: &str, environment: &[(&str, &str)]) -> Option<String> {
    let home = bed.folder.path().join("hub");
    let mut all = vec![("HF_ENDPOINT", Path::new(&hub.endpoint)), ("HF_HOME", &home)];
    all.extend(environment.iter().map(|(name, value)| (*name, Path::new(*value))));
    Server::try_start_with(&bed.data(), &["--model", model], &all).err()
}

#[test]
fn a_server_heeds_what_the_hubs_own_clients_do() {
    let hub = Hub::start().with("org/gated", &folder("legacy"), &[]).closed("org/gated", "secret");
    let bed = Bed::new(&[]);
    let stored = bed.folder.path().join("stored");
    std::fs::write(&stored, "secret\n").unwrap();
    let stored = stored.to_str().unwrap();
    for (environment, says) in [
        (&[("HF_TOKEN", "")][..], Some("set HF_TOKEN")),
        (&[("HF_TOKEN", "wrong")], Some("is gated")),
        (&[("HF_HUB_OFFLINE", "1"), ("HF_TOKEN", "secret")], Some("HF_HUB_OFFLINE")),
        (&[("HF_TOKEN_PATH", stored), ("HF_TOKEN", "")], None),
        // The cache has the model by now.
        (&[("HF_HUB_OFFLINE", "true"), ("HF_TOKEN", "")], None),
    ] {
        let said = started(&bed, &hub, "org/gated", environment);
        assert_eq!(said.is_some(), says.is_some(), "{environment:?}: {said:?}");
        assert!(said.unwrap_or_default().contains(says.unwrap_or_default()), "{environment:?}");
    }
}

#[tokio::test]
async fn while_a_model_is_loaded_the_server_answers_and_stops_when_it_is_told() {
    let hub = Hub::start().with("org/whole", &folder("legacy"), &[]).failing(
        "model.safetensors",
        Fault::Silent(1000),
        1,
    );
    let bed = Bed::with_models();
    let more: Vec<&str> = bed.more.iter().map(String::as_str).chain(["--drain-seconds", "0.1"]).collect();
    let server = patient_hub_server(&bed, &hub, &more, "3600").unwrap_or_else(|said| panic!("{said}"));
    let ask = |model: &str| server.request("POST", "/v1/spaces").json(&json!({"model": model})).send();
    let asked = tokio::spawn(ask("org/whole"));
    let deadline = Instant::now() + PATIENCE;
    let loading = async || server.get("/v1/spaces").await.1["loading"].clone();
    while loading().await != json!(["org/whole"]) || hub.asked_for("model.safetensors").is_empty() {
        assert!(Instant::now() < deadline, "it is never loaded");
        tokio::task::yield_now().await;
    }
    loop {
        let model = listed(&server, "org/whole").await;
        assert_eq!(model["state"], "loading", "{model}");
        let [bytes, total] = ["bytes", "total"].map(|it| model["download"][it].as_u64().unwrap());
        if bytes >= 1000 && model["download"]["files"].as_u64() > Some(1) {
            assert!(total > bytes, "{model}");
            break;
        }
        assert!(Instant::now() < deadline, "it never comes: {model}");
        tokio::task::yield_now().await;
    }
    // The client is gone, but the download continues.
    asked.abort();
    assert_eq!(server.search_hits(json!({"query": {"text": "bars"}})).await.len(), 0);
    assert_eq!(server.get("/readyz").await.0, 200);
    let (_, spaces) = server.get("/v1/spaces").await;
    activate(&server, &spaces["items"][0], &["text", "clip", "composed"]).await;
    assert_eq!(loading().await, json!(["org/whole"]));
    assert!(server.stop(), "a stop does not wait for the hub");
}
