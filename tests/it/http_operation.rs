//! A server in operation: health, metrics, keys, origins, full pools, time limits, stopping, several models.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use reprise_tests::film::{Store, film};
use reprise_tests::server::{PATIENCE, Server, binary};
use serde_json::{Value, json};

use crate::faults::bed::until;

fn start(more: &[&str]) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, more);
    (folder, server)
}

/// A multipart search whose file is sent only in part.
struct Held {
    connection: TcpStream,
    rest: Vec<u8>,
}

impl Held {
    /// Sends the headers, `query` and the first `sent` bytes of the file.
    fn start(server: &Server, path: &str, query: &Value, file: &[u8], sent: usize) -> Held {
        let head = format!(
            "--b\r\ncontent-disposition: form-data; name=\"query\"\r\n\r\n{query}\r\n\
             --b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.mkv\"\r\n\r\n"
        );
        let body = [head.as_bytes(), file, b"\r\n--b--\r\n"].concat();
        let address = server.base().strip_prefix("http://").unwrap();
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            connection,
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: multipart/form-data; boundary=b\r\ncontent-length: {length}\r\n\r\n"
        )
        .unwrap();
        let cut = head.len() + sent;
        connection.write_all(&body[..cut]).unwrap();
        Held { connection, rest: body[cut..].to_vec() }
    }

    /// Sends the rest, and returns the answer.
    fn finish(mut self) -> String {
        self.connection.write_all(&self.rest).unwrap();
        self.answer()
    }

    /// Reads the answer without sending more.
    fn answer(&mut self) -> String {
        let mut answer = Vec::new();
        self.connection.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

#[tokio::test]
async fn a_full_pool_is_429_and_serves_what_needs_no_encoder() {
    let (folder, server) = start(&["--max-requests", "1"]);
    let video = server.ingest(&film(folder.path(), "slow", &["mandelbrot", "testsrc2"], Store::Web)).await;
    let mut starts = (0..).map(|at| 0.3 + f64::from(at) / 1000.0);
    let text = || server.request("POST", "/v1/search").json(&json!({"query": {"text": "x"}})).send();
    let full = until("the pool is full", || {
        // The first one holds the pool's only place while its clip is decoded, which is done once for each range.
        let clip = json!({"video_id": video["id"], "start": starts.next(), "end": 3.7});
        let asked =
            (server.request("POST", "/v1/search").json(&json!({"query": {"clip": clip}})).send(), text());
        async { tokio::join!(asked.0, asked.1).1.ok().filter(|answer| answer.status() == 429) }
    });
    let full = full.await;
    assert!(full.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(text().await.unwrap().status(), 200, "the place is free again");
}

/// Waits until the folder of arriving files holds one.
async fn until_something_arrives(folder: &Path) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while std::fs::read_dir(folder).unwrap().next().is_none() {
        assert!(std::time::Instant::now() < deadline, "nothing arrives in {}", folder.display());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn full_places_for_uploads_answer_before_the_file_is_read_and_a_stop_waits_for_who_is_served() {
    let (folder, server) = start(&["--max-uploads", "1", "--drain-seconds", "100"]);
    let file = std::fs::read(film(folder.path(), "query", &["testsrc2"], Store::Lossless)).unwrap();
    let upload = json!({"query": {"upload": true}});
    let held = Held::start(&server, "/v1/search", &upload, &file, file.len() / 2);
    until_something_arrives(&folder.path().join("data/incoming")).await;
    for (path, query) in [("/v1/search", &upload), ("/v1/embeddings", &json!({"input": {"upload": true}}))] {
        // The server answers before it receives a byte of the file.
        let refused = Held::start(&server, path, query, &file, 0).answer();
        assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
        assert!(refused.to_lowercase().contains("\r\nretry-after: "), "{refused}");
    }
    // Everything else is served meanwhile.
    assert_eq!(server.post("/v1/search", &json!({"query": {"text": "x"}})).await.0, 200);
    assert_eq!(server.get("/livez").await.0, 200);
    assert_eq!(server.get("/v1/videos").await.0, 200);

    server.stop_accepting();
    let answer = held.finish();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(server.stop(), "the exit is a good one");
}

#[tokio::test]
async fn a_client_that_still_sends_can_read_why_it_was_refused() {
    let (_folder, server) = start(&["--max-upload-bytes", "1000", "--api-key", "key"]);
    for (key, status) in [("key", 413), ("wrong", 401)] {
        for _ in 0..5 {
            let part = reqwest::multipart::Part::bytes(vec![0; 20_000_000]).file_name("a.mp4");
            let form = reqwest::multipart::Form::new().part("file", part);
            server
                .refused(server.request("POST", "/v1/videos").bearer_auth(key).multipart(form), status)
                .await;
        }
        let json =
            server.request("POST", "/v1/search").bearer_auth(key).header("content-type", "application/json");
        server.refused(json.body(vec![b' '; 20_000_000]), status).await;
    }
}

#[tokio::test]
async fn an_upload_that_stops_coming_loses_its_place() {
    let (folder, server) = start(&["--max-requests", "1", "--timeout-seconds", "2"]);
    let file = std::fs::read(film(folder.path(), "query", &["testsrc2"], Store::Lossless)).unwrap();
    let mut stalled = Held::start(&server, "/v1/search", &json!({"query": {"upload": true}}), &file, 1000);
    let answer = stalled.answer();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("problem+json"), "{answer}");
    assert_eq!(server.post("/v1/search", &json!({"query": {"text": "x"}})).await.0, 200, "the place is free");
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_given_up() {
    let (folder, server) = start(&["--timeout-seconds", "0.02"]);
    let (_, added) =
        server.upload(&film(folder.path(), "slow", &["testsrc2", "mandelbrot"], Store::Web), &[]).await;
    // Adding videos and events have no time limit. Decoding a moment of which no frame is kept takes longer than 20 ms.
    assert_eq!(server.job_end(added["job"]["id"].as_str().unwrap()).await["state"], "succeeded");
    let image = json!({"video_id": added["video"]["id"], "at": 3.7});
    let request = server.request("POST", "/v1/search").json(&json!({"query": {"image": image}}));
    server.refused(request, 504).await;
}

#[tokio::test]
async fn health_metrics_and_counts_tell_how_it_is() {
    let (folder, server) = start(&[]);
    let said = async |path: &str| {
        let response = server.request("GET", path).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(said("/livez").await, (200, "ok".to_owned()));
    let (status, ready) = said("/readyz").await;
    assert_eq!(status, 200, "{ready}");
    let lines: Vec<&str> = ready.lines().collect();
    assert_eq!(lines[..3], ["ready", "engine builtin: up to date", "catalog sqlite: takes writes"]);
    assert!(lines[3].starts_with("model tiny-") && lines[3].ends_with(": works"), "{ready}");
    assert!(lines[4].starts_with("disk: ") && lines[4].ends_with(" GB free"), "{ready}");
    assert_eq!(lines.len(), 5, "{ready}");
    server.ingest(&film(folder.path(), "one", &["testsrc2", "color=c=red"], Store::Web)).await;
    server.search(&json!({"query": {"text": "x"}})).await;
    for path in ["/v1/videos/7", "/nowhere/1", "/nowhere/2"] {
        server.refused(server.request("GET", path), 404).await;
    }
    server.refused(server.request("BREW", "/livez"), 405).await;
    server.after_jobs().await;
    let metrics = server.request("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    for name in [
        "reprise_requests_total{route=\"/v1/search\",method=\"POST\",status=\"200\"} 1",
        "reprise_requests_total{route=\"none\",method=\"GET\",status=\"404\"} 2",
        "reprise_requests_total{route=\"/livez\",method=\"other\",status=\"405\"} 1",
        "reprise_request_seconds_bucket{route=\"/v1/search\"",
        "reprise_search_seconds_bucket{part=\"encode\"",
        "reprise_search_seconds_bucket{part=\"index\"",
        "reprise_search_seconds_bucket{part=\"decode\"",
        "reprise_queue_seconds_bucket{space=\"tiny-",
        "reprise_batch_inputs_bucket{space=\"tiny-",
        "reprise_encode_seconds_bucket{space=\"tiny-",
        "reprise_jobs_total{outcome=\"succeeded\"} 1",
        "reprise_job_seconds_bucket",
        "reprise_pool_waiting{space=\"tiny-",
        "reprise_index_live{space=\"tiny-",
        "reprise_index_seq",
    ] {
        assert!(metrics.contains(name), "{name} is not in\n{metrics}");
    }
    assert!(!metrics.contains("/nowhere") && !metrics.contains("BREW"), "labels are bounded");
    let (_, stats) = server.get("/v1/stats").await;
    let expected = json!({"videos": 1, "videos_ready": 1, "clips": 2, "vectors": 3, "jobs_queued": 0, "jobs_running": 0, "jobs_failed": 0});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&stats[name], value, "{name}");
    }
    assert_eq!((&stats["database"], &stats["catalog_seq"]), (&json!("sqlite"), &stats["index_seq"]));
    assert!(stats["media_bytes"].as_u64().unwrap() > 0);
    request_ids_are_kept_if_they_are_plain(&server).await;
    pages_of_other_sites_change_nothing(&server).await;
}

async fn request_ids_are_kept_if_they_are_plain(server: &Server) {
    let long = "x".repeat(200);
    for (sent, kept) in [("abc-123", true), ("", false), ("with space", false), (long.as_str(), false)] {
        let request = server.request("GET", "/v1/stats").header("x-request-id", sent);
        let response = request.send().await.unwrap();
        let id = response.headers()["x-request-id"].to_str().unwrap();
        assert_eq!(id == sent, kept, "{sent}");
        assert!(kept || id.len() == 36, "{id}");
    }
    let problem =
        server.refused(server.request("GET", "/v1/videos/7").header("x-request-id", "mine"), 404).await;
    assert_eq!(problem["request_id"], "mine");
}

async fn pages_of_other_sites_change_nothing(server: &Server) {
    let search = |origin: &str| {
        server.request("POST", "/v1/search").header("origin", origin).json(&json!({"query": {"text": "x"}}))
    };
    assert_eq!(server.send(search(server.base())).await.0, 200);
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        server.refused(search(origin), 403).await;
    }
    let rebound = |name: &str| server.request("GET", "/v1/videos").header("host", name);
    server.refused(rebound("evil.example:8080"), 403).await;
    assert_eq!(server.send(rebound("localhost:8080")).await.0, 200);
    let read =
        server.request("GET", "/v1/videos").header("origin", "https://evil.example").send().await.unwrap();
    assert!(
        !read.headers().contains_key("access-control-allow-origin"),
        "the browser keeps the answer from it"
    );
}

#[tokio::test]
async fn a_listed_origin_may_call_and_read_even_errors() {
    let (_folder, server) = start(&["--cors-origin", "https://app.example"]);
    let search = |origin: &str, text: &str| {
        server.request("POST", "/v1/search").header("origin", origin).json(&json!({"query": {"text": text}}))
    };
    for (text, status) in [("x", 200), ("", 422)] {
        let answer = search("https://app.example", text).send().await.unwrap();
        assert_eq!(answer.status(), status);
        assert_eq!(answer.headers()["access-control-allow-origin"], "https://app.example");
    }
    server.refused(search("https://evil.example", "x"), 403).await;
    let preflight = server
        .request("OPTIONS", "/v1/search")
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST");
    assert_eq!(preflight.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_key_opens_what_is_closed() {
    let (_folder, server) = start(&["--api-key", "open sesame"]);
    for open in [
        "/",
        "/livez",
        "/readyz",
        "/openapi.json",
        "/docs/",
        "/v/7",
        "/library",
        "/reels/7",
        "/static/css/base.css",
    ] {
        assert_eq!(server.request("GET", open).send().await.unwrap().status(), 200, "{open}");
    }
    for (accept, status, kind) in [
        ("text/html,application/xhtml+xml;q=0.9", 404, "text/html"),
        ("application/json", 401, "application/problem+json"),
    ] {
        let nowhere = server.request("GET", "/nowhere").header("accept", accept).send().await.unwrap();
        assert_eq!(nowhere.status(), status, "{accept}");
        assert_eq!(nowhere.headers()["content-type"], kind, "{accept}");
    }
    let visited = server.request("GET", "/v1/nowhere").header("accept", "text/html");
    server.refused(visited, 401).await;
    for closed in ["/v1/videos", "/v1/stats", "/metrics", "/v1/spaces", "/v1/nowhere"] {
        let response = server.request("GET", closed).send().await.unwrap();
        assert_eq!(response.headers()["www-authenticate"], "Bearer", "{closed}");
        server.refused(server.request("GET", closed), 401).await;
        for wrong in ["Bearer sesame", "Basic open sesame", "Bearer ", "open sesame"] {
            server.refused(server.request("GET", closed).header("authorization", wrong), 401).await;
        }
    }
    let stats = || server.request("GET", "/v1/stats");
    assert_eq!(server.send(stats().bearer_auth("open sesame")).await.0, 200);
    assert_eq!(server.send(stats().header("cookie", "a=b; reprise_key=open%20sesame")).await.0, 200);
    server.refused(stats().header("cookie", "reprise_key=open"), 401).await;
}

#[test]
fn an_open_port_needs_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let started = |more: &[&str]| {
        let mut command = Command::new(binary());
        command.args(["serve", "--data-dir"]).arg(folder.path()).args(more).env_remove("REPRISE_API_KEY");
        let output = command.env_remove("REPRISE_MODEL").output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (good, said) = started(&["--listen", "0.0.0.0:0"]);
    assert!(!good && said.contains("REPRISE_API_KEY") && said.contains("--insecure"), "{said}");
    let (good, said) = started(&["--listen", "127.0.0.1:0", "--api-key", " "]);
    assert!(!good && said.contains("empty"), "{said}");
    let (good, said) = started(&["--listen", "127.0.0.1:0", "--model", "spoken=builtin:tiny"]);
    assert!(!good && said.contains("spoken"), "{said}");
}

#[tokio::test]
async fn a_space_says_what_its_model_was_trained_on() {
    for (model, expected) in [("builtin:sports", "rendered_clips"), ("builtin:tiny", "nothing")] {
        let (_folder, server) = start(&["--model", model]);
        let (_, spaces) = server.get("/v1/spaces").await;
        assert_eq!(spaces["items"][0]["trained_on"], expected, "{spaces}");
    }
}

/// The vector in an answer of `POST /v1/embeddings`.
fn vector(answer: &Value) -> Vec<f32> {
    serde_json::from_value(answer["vector"].clone()).unwrap()
}

#[tokio::test]
async fn two_models_share_the_kinds_of_query() {
    let small = crate::encoders::folder("legacy");
    let other = format!("clip,composed={}", small.display());
    let (folder, server) = start(&["--model", "text=builtin:tiny", "--model", &other]);
    let file = film(folder.path(), "one", &["smptebars", "color=c=red", "testsrc2"], Store::Lossless);
    let video = server.ingest(&file).await;
    server.ingest(&film(folder.path(), "two", &["color=c=blue", "smptebars"], Store::Lossless)).await;
    let (_, spaces) = server.get("/v1/spaces").await;
    let (text, clip) = (&spaces["items"][0], &spaces["items"][1]);
    assert_ne!(text["dim"], clip["dim"], "two spaces of different dimension");
    assert_eq!((&text["active_for"], &clip["active_for"]), (&json!(["text"]), &json!(["clip", "composed"])));
    for space in [text, clip] {
        assert_eq!(
            (&space["clips"], &space["videos"], &space["coverage"]),
            (&json!(5), &json!(2), &json!(1.0))
        );
    }
    let shot = json!({"clip": {"video_id": video["id"], "start": 0.0, "end": 2.0}});
    let by_text = server.search(&json!({"query": {"text": "bars"}})).await;
    let by_clip = server.search(&json!({"query": shot})).await;
    let mut changed = shot.clone();
    changed["modification"] = json!("in red");
    let composed = server.search(&json!({"query": changed})).await;
    assert_eq!(by_text["index"]["space"], text["name"]);
    assert_eq!((&by_clip["index"]["space"], &composed["index"]["space"]), (&clip["name"], &clip["name"]));
    assert_eq!(by_clip["results"][0]["start"], 2.0, "the same picture in the other film comes first");
    assert!(by_clip["results"][0]["score"].as_f64().unwrap() > 0.9999);
    let named = server.search(&json!({"query": shot, "space": text["name"]})).await;
    assert_eq!(named["index"]["space"], text["name"]);
    embeddings_come_from_the_space_of_their_kind(&server, text, clip, &shot["clip"], &file).await;

    // The server fills a model added later while the others answer.
    let data = folder.path().join("data");
    assert!(server.stop());
    let third = crate::encoders::folder("wordpiece");
    let server = Server::start(&data, &["--model", "text=builtin:tiny", "--model", third.to_str().unwrap()]);
    let (_, jobs) = server.get("/v1/jobs?kind=fill").await;
    for job in jobs["items"].as_array().unwrap() {
        assert_eq!(server.job_end(job["id"].as_str().unwrap()).await["state"], "succeeded");
    }
    let (_, spaces) = server.get("/v1/spaces").await;
    assert_eq!(
        (&spaces["items"][1]["clips"], &spaces["items"][1]["coverage"]),
        (&json!(5), &json!(1.0)),
        "{spaces}"
    );
    let name = &spaces["items"][1]["name"];
    assert_eq!(server.search_hits(json!({"query": shot, "space": name})).await[0]["start"], 2.0);
}

async fn embeddings_come_from_the_space_of_their_kind(
    server: &Server,
    text: &Value,
    clip: &Value,
    shot: &Value,
    file: &Path,
) {
    let embed = |body: Value| async move {
        let (status, answer) = server.post("/v1/embeddings", &body).await;
        assert_eq!(status, 200, "{answer}");
        let values = vector(&answer);
        let norm: f32 = values.iter().map(|it| it * it).sum::<f32>().sqrt();
        assert!((norm - 1.0).abs() < 1e-4 && answer["norm"].as_f64().unwrap() > 0.0, "{norm}");
        answer
    };
    let words = embed(json!({"input": {"text": "bars"}})).await;
    assert_eq!(
        (&words["space"], vector(&words).len()),
        (&text["name"], text["dim"].as_u64().unwrap() as usize)
    );
    let stored = embed(json!({"input": {"clip": shot}})).await;
    assert_eq!(
        (&stored["space"], vector(&stored).len()),
        (&clip["name"], clip["dim"].as_u64().unwrap() as usize)
    );
    let changed = embed(json!({"input": {"clip": shot, "modification": "in red"}})).await;
    let info = &changed["query_info"];
    assert_eq!((&changed["space"], &info["kind"]), (&clip["name"], &json!("composed")), "{info}");
    assert_eq!(
        (&info["fusion"], info["tokens_used"].as_u64() > Some(0)),
        (&json!("average"), true),
        "{info}"
    );
    assert_ne!(vector(&changed), vector(&stored));
    let long = embed(json!({"input": {"text": "bars and bars ".repeat(200)}})).await;
    let windows = long["vectors"].as_array().unwrap();
    assert!(windows.len() > 1 && long["query_info"]["windows"] == windows.len());
    assert_eq!(
        (&windows[0]["start_token"], &windows.last().unwrap()["end_token"]),
        (&json!(0), &long["query_info"]["tokens_total"])
    );
    let form = reqwest::multipart::Form::new().text("query", json!({"input": {"upload": true}}).to_string());
    let form = form.file("file", file).await.unwrap();
    let (status, upload) = server.send(server.request("POST", "/v1/embeddings").multipart(form)).await;
    assert_eq!((status.as_u16(), &upload["query_info"]["kind"]), (200, &json!("clip")), "{upload}");
    for (body, status, pointer) in [
        (json!({"input": {}}), 422, "/input"),
        (json!({"input": {"text": " "}}), 422, "/input/text"),
        (json!({"input": {"upload": true}}), 422, "/input/upload"),
        (json!({"input": {"text": "x", "modification": "in red"}}), 422, "/input/modification"),
        (json!({"input": {"clip": shot, "modification": " "}}), 422, "/input/modification"),
        (json!({"input": {"modification": "in red"}}), 422, "/input"),
        (
            json!({"input": {"clip": {"video_id": shot["video_id"], "start": 60, "end": 61}}}),
            422,
            "/input/clip",
        ),
        (json!({"input": {"text": "x"}, "space": "nowhere"}), 422, "/space"),
        (json!({"input": {"text": "long ".repeat(500)}, "on_overflow": "error"}), 422, "/input/text"),
    ] {
        let problem = server.refused(server.request("POST", "/v1/embeddings").json(&body), status).await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
    }
}
