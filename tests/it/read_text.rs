//! Text on screen through a running server: read for new videos and on demand, found by its words and its meaning.

use std::path::Path;

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use reprise_tests::skip;
use reprise_tests::written::{Look, Slide, can_read, written};
use serde_json::{Value, json};

use crate::faults::bed::until;

/// It answers `spoken` by meaning.
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/parity/data/sentence/mean");

const SLIDES: [Slide<'_>; 2] = [
    Slide { lines: &["Recurrent networks", "", "Clip the norm of the gradient"], seconds: 3 },
    Slide { lines: &["Convolution", "", "A kernel slides over the input"], seconds: 3 },
];

/// The job that reads a new video.
async fn reading(server: &Server, video: &Value) -> Value {
    let path = format!("/v1/jobs?kind=read_text&video_id={}", video["id"].as_str().unwrap());
    let queued = async || server.get(&path).await.1["items"].as_array().unwrap().first().cloned();
    let job = until("the reading is enqueued", queued).await;
    server.job_end(job["id"].as_str().unwrap()).await
}

fn near(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|it| (it - expected).abs() < 0.03)
}

#[tokio::test]
async fn every_new_video_is_read_and_found_by_what_is_written() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--read-text"]);
    let file = written(folder.path(), "slides", &Look::default(), &SLIDES);
    let video = server.ingest(&file).await;
    let job = reading(&server, &video).await;
    assert_eq!(
        (&job["state"], &job["stage"], &job["note"]),
        (&json!("succeeded"), &json!("done"), &Value::Null)
    );

    let asked = json!({"query": {"text": "kernel slides over the input"}, "sources": ["screen"]});
    let hits = server.search_hits(asked).await;
    let evidence = &hits[0]["evidence"][0];
    assert_eq!((hits.len(), &evidence["source"]), (1, &json!("screen")), "{hits:?}");
    assert!(near(&evidence["box"]["left"], 0.1) && near(&evidence["box"]["top"], 0.25), "{evidence}");
    assert!(evidence["text"].as_str().unwrap().contains("<mark>kernel</mark>"), "{evidence}");
    assert!(evidence["start"].as_f64().is_some_and(|it| (2.0..=4.0).contains(&it)), "{evidence}");
    let answer = server.search(&json!({"query": {"text": "clip the norm of the gradient"}})).await;
    let weights = &answer["query_info"]["weights"];
    assert_eq!((&weights["spoken"], &weights["screen"]), (&json!(1.0), &json!(1.0)), "{answer}");
    let sources: Vec<&Value> =
        answer["results"][0]["evidence"].as_array().unwrap().iter().map(|it| &it["source"]).collect();
    assert!(sources.contains(&&json!("screen")), "{answer}");

    let path = format!("/v1/videos/{}", video["id"].as_str().unwrap());
    let (_, tracks) = server.get(&format!("{path}/subtitles")).await;
    let track = &tracks["items"][0];
    assert_eq!(
        (&track["kind"], &track["language"], &track["machine"], &track["cues"]),
        (&json!("ocr"), &json!("en"), &json!(true), &json!(4)),
        "{tracks}"
    );
    let (_, lines) = server.get(&format!("{path}/transcript?kind=ocr")).await;
    let texts: Vec<&str> =
        lines["items"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(texts, [SLIDES[0].lines[0], SLIDES[0].lines[2], SLIDES[1].lines[0], SLIDES[1].lines[2]]);
    assert!(near(&lines["items"][0]["box"]["left"], 0.1), "{lines}");

    let (status, again) = server.post(&format!("{path}/read-text"), &json!({})).await;
    assert_eq!((status.as_u16(), &again["job"]["kind"]), (202, &json!("read_text")), "{again}");
    assert_eq!(server.job_end(again["job"]["id"].as_str().unwrap()).await["state"], "succeeded");
    let (_, tracks) = server.get(&format!("{path}/subtitles")).await;
    assert_eq!((tracks["items"].as_array().unwrap().len(), &tracks["items"][0]["cues"]), (1, &json!(4)));
}

#[tokio::test]
async fn a_stored_video_without_text_is_read_on_demand() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let video = server.ingest(&film(folder.path(), "film", &["color=c=red"], Store::Web)).await;
    let path = format!("/v1/videos/{}/read-text", video["id"].as_str().unwrap());
    let (status, asked) = server.post(&path, &json!({})).await;
    assert_eq!(status, 202, "{asked}");
    let job = server.job_end(asked["job"]["id"].as_str().unwrap()).await;
    assert_eq!((&job["state"], &job["note"]), (&json!("succeeded"), &json!("no text is on screen")), "{job}");
    let unknown = "/v1/videos/018f0000-0000-7000-8000-000000000000/read-text";
    assert_eq!(server.post(unknown, &json!({})).await.0, 404);
}

#[tokio::test]
async fn what_is_written_is_found_by_its_meaning() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--read-text", "--model", "builtin:tiny", "--model", READER]);
    let video = server.ingest(&written(folder.path(), "slides", &Look::default(), &SLIDES)).await;
    assert_eq!(reading(&server, &video).await["state"], "succeeded");
    let are_encoded = async || {
        let (_, spaces) = server.get("/v1/spaces").await;
        let reader = spaces["items"].as_array().unwrap().iter().find(|it| it["model"] == READER).cloned();
        reader.filter(|it| it["passages"] == 2 && it["coverage"] == 1.0)
    };
    until("the slides are encoded", are_encoded).await;
    let asked = json!({"query": {"text": "something else entirely"}, "sources": ["screen"]});
    let hits = server.search_hits(asked).await;
    assert!(!hits.is_empty() && hits[0]["evidence"][0]["text"].is_string(), "{hits:?}");
}

#[test]
fn a_server_that_is_to_read_does_not_start_without_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let start = |languages: &str| {
        Server::try_start(folder.path(), &["--read-text", "--text-languages", languages]).err().unwrap()
    };
    assert!(start("eng+none").contains("--read-text: tesseract"), "{}", start("eng+none"));
    assert!(start("../eng").contains("joined with `+`"), "{}", start("../eng"));
    assert!(Path::new(folder.path()).exists());
}

#[tokio::test]
async fn what_a_damaged_file_lacks_is_said_by_the_job() {
    if !can_read() {
        return skip("ffmpeg draws no text, or tesseract has no English");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--read-text"]);
    let file =
        film(folder.path(), "cut", &["testsrc2", "color=c=red", "testsrc2", "color=c=blue"], Store::Web);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let video = server.ingest(&file).await;
    let job = reading(&server, &video).await;
    assert_eq!(job["state"], "succeeded", "{job}");
    assert!(job["note"].as_str().is_some_and(|note| note.contains("cut off")), "{job}");
}
