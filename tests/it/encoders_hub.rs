//! Models from a hub, with a stand-in for it on this machine.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reprise_encoders::{LoadError, LoadOptions, Loaded, load_with};

use crate::encoders::folder;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A hub with the models `org/whole` (one weight file), `org/sharded`, `org/bare` (a config.json only)
/// `org/sentence` and `org/e5-tiny` (sentence encoders, the second without modules), `org/odd` (a redirect to nowhere) and `org/gated` (for the token `secret`). Serves until the test ends.
struct Hub {
    endpoint: String,
    requests: Arc<AtomicUsize>,
}

impl Hub {
    fn start() -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::SeqCst);
                // A client that goes away is its own business.
                drop(answer(stream));
            }
        });
        Hub { endpoint, requests }
    }

    fn load(&self, model: &str, cache: &std::path::Path, token: Option<&str>) -> Result<Loaded, LoadError> {
        let options = LoadOptions {
            frames_per_second: None,
            replicas: 1,
            endpoint: Some(self.endpoint.clone()),
            cache: Some(cache.to_owned()),
            token: Some(token.unwrap_or("nobody").to_owned()),
        };
        load_with(&model.parse().unwrap(), &options)
    }
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = respond(path, headers.get("authorization").map_or("", String::as_str));
    let range = headers.get("range").map_or("bytes=0-", String::as_str);
    write(stream, status, &body, range)
}

/// Status and whole body.
fn respond(path: &str, authorization: &str) -> (&'static str, Vec<u8>) {
    let parts: Vec<&str> = path.trim_start_matches("/api/models").split('/').skip(1).collect();
    let [org, model, rest @ ..] = &parts[..] else { return ("404 Not Found", Vec::new()) };
    let variant = match (*org, *model) {
        ("org", "gated") if authorization != "Bearer secret" => return ("401 Unauthorized", Vec::new()),
        ("org", "whole" | "gated" | "bare") => "legacy",
        ("org", "odd") => return ("302 Found", Vec::new()),
        ("org", "sharded") => "wordpiece",
        ("org", "sentence") => "sentence/cls",
        ("org", "e5-tiny") => "sentence/e5-tiny",
        _ => return ("404 Not Found", Vec::new()),
    };
    match rest {
        [] | ["revision", "main" | COMMIT] => {
            ("200 OK", format!(r#"{{"siblings": [], "sha": "{COMMIT}"}}"#).into_bytes())
        }
        ["resolve", "main" | COMMIT, file @ ..] if *model != "bare" || file == ["config.json"] => {
            match std::fs::read(folder(variant).join(file.join("/"))) {
                Ok(body) => ("206 Partial Content", body),
                Err(_) => ("404 Not Found", Vec::new()),
            }
        }
        _ => ("404 Not Found", Vec::new()),
    }
}

fn write(mut stream: TcpStream, status: &str, body: &[u8], range: &str) -> std::io::Result<()> {
    let (first, last) = range.trim_start_matches("bytes=").split_once('-').unwrap_or(("0", ""));
    let total = body.len();
    let first = first.parse().unwrap_or(0).min(total);
    let end = last.parse().map_or(total, |last: usize| last + 1).clamp(first, total);
    let etag = body.iter().fold(total, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    write!(
        stream,
        "HTTP/1.1 {status}\r\nconnection: close\r\nx-repo-commit: {COMMIT}\r\netag: \"{etag:x}\"\r\n\
         content-range: bytes {first}-{}/{total}\r\ncontent-length: {}\r\n\r\n",
        end.saturating_sub(1),
        end - first
    )?;
    stream.write_all(&body[first..end])
}

#[test]
fn a_hub_model_is_the_space_of_its_folder_and_is_downloaded_once() {
    let (hub, cache) = (Hub::start(), tempfile::tempdir().unwrap());
    for (model, variant) in
        [("org/whole", "legacy"), ("org/sharded", "wordpiece"), ("org/whole@main", "legacy")]
    {
        let loaded = hub.load(model, cache.path(), None).unwrap();
        let local = reprise_encoders::load(&folder(variant).to_str().unwrap().parse().unwrap(), 1).unwrap();
        assert_eq!(loaded.space.id, local.space.id);
        assert_eq!(loaded.space.model, model);
    }
    let requests = hub.requests.load(Ordering::SeqCst);
    assert!(requests > 0);
    hub.load("org/whole", cache.path(), None).unwrap();
    assert_eq!(hub.requests.load(Ordering::SeqCst), requests, "the cache needs no network");
}

#[test]
fn a_sentence_encoder_comes_with_all_that_follows_its_tower() {
    for (model, variant) in [("org/sentence", "sentence/cls"), ("org/e5-tiny", "sentence/e5-tiny")] {
        let (hub, cache) = (Hub::start(), tempfile::tempdir().unwrap());
        let loaded = hub.load(model, cache.path(), None).unwrap();
        let local = reprise_encoders::load(&folder(variant).to_str().unwrap().parse().unwrap(), 1).unwrap();
        assert_eq!(loaded.space.id, local.space.id);
        let requests = hub.requests.load(Ordering::SeqCst);
        hub.load(model, cache.path(), None).unwrap();
        assert_eq!(
            hub.requests.load(Ordering::SeqCst),
            requests,
            "nor what {model} lacks is asked for again"
        );
    }
}

#[test]
fn a_gated_model_loads_with_the_right_token() {
    let (hub, cache) = (Hub::start(), tempfile::tempdir().unwrap());
    assert!(hub.load("org/gated", cache.path(), Some("secret")).is_ok());
}

/// The error of loading `model`.
#[track_caller]
fn check(model: &str, is_expected: fn(&LoadError) -> bool, says: &[&str]) {
    let (hub, cache) = (Hub::start(), tempfile::tempdir().unwrap());
    let error = match hub.load(model, cache.path(), None) {
        Ok(_) => panic!("it loaded"),
        Err(error) => error,
    };
    assert!(is_expected(&error), "{error:?}");
    let text = error.to_string();
    assert!(says.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn a_model_or_revision_that_does_not_exist_is_not_found() {
    check(
        "org/nothing",
        |error| matches!(error, LoadError::NotFound { .. }),
        &["org/nothing", "name and revision"],
    );
    check("org/whole@other", |error| matches!(error, LoadError::NotFound { .. }), &["org/whole@other"]);
}

#[test]
fn a_gated_model_asks_for_a_token() {
    check("org/gated", |error| matches!(error, LoadError::Unauthorized { .. }), &["org/gated", "HF_TOKEN"]);
}

#[test]
fn a_file_that_a_hub_model_lacks_is_named() {
    let missing = |error: &LoadError| matches!(error, LoadError::MissingFile { model, file } if model == "org/bare" && file == "preprocessor_config.json");
    check("org/bare", missing, &["org/bare has no preprocessor_config.json"]);
}

#[test]
fn a_hub_that_talks_nonsense_is_a_network_error() {
    let is_network = |error: &LoadError| matches!(error, LoadError::Network { .. });
    check("org/odd", is_network, &["can't be read", "HF_ENDPOINT"]);
}

#[test]
fn a_hub_that_does_not_answer_is_a_network_error() {
    let cache = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let options = LoadOptions {
        endpoint: Some(endpoint),
        cache: Some(cache.path().to_owned()),
        ..LoadOptions::default()
    };
    let error = load_with(&"org/whole".parse().unwrap(), &options).map(|_| ()).unwrap_err();
    assert!(matches!(error, LoadError::Network { .. }), "{error:?}");
    assert!(error.to_string().contains("HF_ENDPOINT"), "{error}");
}
