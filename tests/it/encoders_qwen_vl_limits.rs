//! Models that read, through the service, at their limits: very long texts and clips, pictures that they can't read, and
//! folders that don't load. What is left out is said, and what fails leaves nothing behind.

use std::path::{Path, PathBuf};

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::Server;
use reqwest::multipart::Form;
use serde_json::{Value, json};

use super::encoders_qwen_vl::{embedder, words};

/// A folder for models, films and servers' data.
struct Bed {
    words: PathBuf,
    folder: tempfile::TempDir,
}

impl Bed {
    fn new() -> Option<Bed> {
        Some(Bed { words: words()?, folder: tempfile::tempdir().unwrap() })
    }

    fn model(&self, kind: &str) -> String {
        embedder(&self.words, kind, &self.folder.path().join("models").join(kind))
    }

    fn start(&self, data: &str, more: &[&str]) -> Server {
        let data = self.folder.path().join(data);
        std::fs::create_dir(&data).unwrap();
        Server::start(&data, more)
    }

    /// A film of this size.
    fn film(&self, size: &str, rate: u32, frames: u32) -> PathBuf {
        let file = self.folder.path().join(format!("{size}.mkv"));
        let (source, count) = (format!("testsrc2=s={size}:r={rate}"), frames.to_string());
        run(ffmpeg().args(["-f", "lavfi", "-i", &source, "-frames:v", &count, "-c:v", "ffv1"]).arg(&file));
        file
    }
}

#[tokio::test]
async fn a_text_of_a_hundred_thousand_tokens_is_read_in_windows_or_refused_with_the_numbers() {
    let Some(bed) = Bed::new() else { return };
    let model = bed.model("gme");
    let server = bed.start("data", &["--model", &model]);
    // Each digit is a token.
    let text = "7".repeat(100_000);
    let ask = |overflow: &str| json!({"input": {"text": text}, "on_overflow": overflow});
    let (status, whole) = server.post("/v1/embeddings", &ask("window")).await;
    let info = &whole["query_info"];
    assert_eq!(status, 200, "{whole}");
    assert_eq!(
        (&info["tokens_total"], &info["tokens_used"], &info["truncated"]),
        (&json!(100_000), &json!(100_000), &json!(false)),
        "{info}"
    );
    assert_eq!(whole["vectors"].as_array().map(Vec::len), info["windows"].as_u64().map(|it| it as usize));
    assert!((56..=128).contains(&info["windows"].as_u64().unwrap()), "{info}");

    let (_, cut) = server.post("/v1/embeddings", &ask("truncate")).await;
    let info = &cut["query_info"];
    assert_eq!((&info["tokens_total"], &info["truncated"]), (&json!(100_000), &json!(true)), "{info}");
    let room = info["tokens_used"].as_u64().unwrap();
    assert!((1000..1800).contains(&room), "{info}");
    let refused = async |server: &Server, body: &Value, says: &str| {
        let problem = server.refused(server.request("POST", "/v1/embeddings").json(body), 422).await;
        assert_eq!(problem["errors"][0]["pointer"], "/input/text", "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    };
    refused(&server, &ask("error"), &format!("the text has 100000 tokens, the model takes {room}")).await;
    // A search says the same of its query.
    let found = server.search(&json!({"query": {"text": text}, "on_overflow": "truncate"})).await;
    assert_eq!(
        (&found["query_info"]["tokens_used"], &found["query_info"]["truncated"]),
        (&json!(room), &json!(true))
    );
    assert!(server.stop());

    let server = bed.start("few", &["--model", &model, "--max-windows", "8"]);
    let windows = 100_000_u64.div_ceil(room);
    refused(&server, &ask("window"), &format!("the text needs {windows} windows, at most 8 are allowed"))
        .await;
}

#[tokio::test]
async fn a_clip_of_thousands_of_frames_says_how_many_were_taken() {
    let Some(bed) = Bed::new() else { return };
    let film = bed.film("64x48", 40, 4000);
    for (kind, of_change) in [("gme", 1), ("qwen3", 64)] {
        let server = bed.start(kind, &["--model", &bed.model(kind), "--max-pixels", "1024"]);
        let embedded = async |input: Value| {
            let form = Form::new().text("query", json!({"input": input}).to_string());
            let form = form.file("file", &film).await.unwrap();
            let (status, answer) =
                server.send(server.request("POST", "/v1/embeddings").multipart(form)).await;
            assert_eq!(status, 200, "{answer}");
            answer
        };
        let clip = embedded(json!({"upload": true})).await;
        let info = &clip["query_info"];
        assert_eq!((&info["kind"], &info["frames"]), (&json!("clip"), &json!(64)), "{kind}: {info}");
        let changed = embedded(json!({"upload": true, "modification": "but blue"})).await;
        let info = &changed["query_info"];
        assert_eq!((&info["kind"], &info["fusion"]), (&json!("composed"), &json!("combiner")), "{info}");
        assert_eq!(info["frames"], of_change, "{kind}: {info}");
        assert!(info["tokens_used"].as_u64() > Some(0) && changed["vector"] != clip["vector"]);
    }
}

/// No clip, vector or hit of a space.
async fn nothing_is_stored(server: &Server, space: &Value) {
    let (_, spaces) = server.get("/v1/spaces").await;
    let now = spaces["items"].as_array().unwrap().iter().find(|it| it["id"] == space["id"]).unwrap();
    assert_eq!((&now["clips"], &now["videos"]), (&json!(0), &json!(0)), "{now}");
    let hits = server.search_hits(json!({"query": {"text": "bars"}, "space": space["name"]})).await;
    assert_eq!(hits, Vec::<Value>::new());
}

#[tokio::test]
async fn an_ingest_whose_encoder_fails_stores_nothing_and_says_why() {
    let Some(bed) = Bed::new() else { return };
    let server = bed.start("data", &["--model", &bed.model("gme")]);
    let (status, added) = server.upload(&bed.film("1616x8", 10, 40), &[]).await;
    assert_eq!(status, 202, "{added}");
    let job = server.job_end(added["job"]["id"].as_str().unwrap()).await;
    assert_eq!(job["state"], "failed", "{job}");
    let reason = job["reason"].as_str().unwrap();
    assert!(reason.contains("is too narrow: the model takes ratios of sides up to 200"), "{job}");
    let path = format!("/v1/videos/{}", added["video"]["id"].as_str().unwrap());
    let (_, video) = server.get(&path).await;
    assert_eq!(video["state"], "failed", "{video}");
    let (_, clips) = server.get(&format!("{path}/clips")).await;
    assert_eq!(clips["items"], json!([]), "{clips}");
    let (_, spaces) = server.get("/v1/spaces").await;
    nothing_is_stored(&server, &spaces["items"][0]).await;
    // The next video is not in its way.
    let next = server.ingest(&bed.film("64x48", 10, 40)).await;
    let hits = server.search_hits(json!({"query": {"text": "bars"}})).await;
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit["video_id"] == next["id"]), "{hits:?}");
}

#[tokio::test]
async fn a_space_that_can_not_be_filled_or_loaded_leaves_the_others_as_they_are() {
    let Some(bed) = Bed::new() else { return };
    let (model, root) = (bed.model("gme"), bed.folder.path().join("models"));
    let server = bed.start("data", &["--model", "builtin:tiny", "--model-root", root.to_str().unwrap()]);
    let video = server.ingest(&bed.film("1616x8", 10, 40)).await;
    let found = async || server.search_hits(json!({"query": {"text": "bars"}})).await;
    let before = found().await;
    assert!(!before.is_empty() && before.iter().all(|hit| hit["video_id"] == video["id"]), "{before:?}");

    let (status, space) = server.post("/v1/spaces", &json!({"model": model})).await;
    assert_eq!(status, 201, "{space}");
    let (_, fills) = server.get("/v1/jobs?kind=fill").await;
    let fill = server.job_end(fills["items"][0]["id"].as_str().unwrap()).await;
    assert_eq!((&fill["state"], &fill["video_id"]), (&json!("failed"), &video["id"]), "{fill}");
    assert!(fill["reason"].as_str().unwrap().contains("is too narrow"), "{fill}");
    nothing_is_stored(&server, &space).await;
    assert_eq!(found().await, before);
    let (_, still) = server.get(&format!("/v1/videos/{}", video["id"].as_str().unwrap())).await;
    assert_eq!(still["state"], "ready", "{still}");

    let broken = embedder(&bed.words, "qwen3", &root.join("broken"));
    let config = Path::new(&broken).join("config.json");
    let mut json: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    json["text_config"]["intermediate_size"] = 88.into();
    std::fs::write(&config, json.to_string()).unwrap();
    let request = server.request("POST", "/v1/spaces").json(&json!({"model": broken}));
    let problem = server.refused(request, 422).await;
    let detail = problem["detail"].as_str().unwrap();
    let says = ["tensor model.layers.0.mlp.", "has shape [80, 48]", "calls for [88, 48]"];
    assert!(says.iter().all(|part| detail.contains(part)), "{detail}");
    let (_, spaces) = server.get("/v1/spaces").await;
    assert_eq!(spaces["items"].as_array().map(Vec::len), Some(2), "{spaces}");
    assert_eq!(found().await, before);
}
