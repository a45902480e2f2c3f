//! Clients that send slowly, break off, forge, or hold connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reprise_tests::film::{Store, film};
use reprise_tests::server::PATIENCE;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::Target;

fn connect(target: &Target) -> TcpStream {
    let stream = TcpStream::connect(target.server.base().strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends `request` and returns the beginning of the answer.
fn answer(mut stream: TcpStream, request: &[u8]) -> String {
    stream.write_all(request).unwrap();
    beginning(stream)
}

/// The beginning of what the server answers.
fn beginning(mut stream: TcpStream) -> String {
    let mut bytes = [0; 2000];
    let read = stream.read(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

/// A multipart search whose file begins and never ends.
fn slow_search(target: &Target) -> TcpStream {
    let mut stream = connect(target);
    let query = r#"{"query": {"upload": true}}"#;
    let body = format!(
        "--x\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\n{query}\r\n\
         --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp4\"\r\n\r\nslow"
    );
    let head = "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n\
                Content-Length: 100000\r\n\r\n";
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_uploads_deny_nobody_a_search_and_end() {
    let target = Target::start(&["--max-requests", "4", "--max-uploads", "8"]);
    target.server.ingest(&film(target.folder.path(), "film", &["testsrc2"], Store::Web)).await;
    let (said, answers) = mpsc::channel();
    for _ in 0..9 {
        let (slow, said) = (slow_search(&target), said.clone());
        thread::spawn(move || said.send(beginning(slow)));
    }
    let answer = || answers.recv_timeout(PATIENCE).unwrap();
    // All places for uploads are taken as soon as one client finds none, whichever it is.
    let refused = answer();
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    for _ in 0..10 {
        assert_eq!(target.server.search_hits(json!({"query": {"text": "a"}})).await.len(), 1);
    }
    for slow in (0..8).map(|_| answer()) {
        assert!(slow.starts_with("HTTP/1.1 408"), "{slow}");
    }
    let file = film(target.folder.path(), "query", &["testsrc2"], Store::Web);
    let (status, found) = target.server.search_upload(&json!({"query": {"upload": true}}), &file).await;
    assert_eq!(status, 200, "{found}");
}

#[tokio::test]
async fn a_cursor_that_somebody_else_signed_is_refused() {
    let target = Target::start(&[]);
    let films = ["testsrc2", "color=c=red"];
    target.server.ingest(&film(target.folder.path(), "film", &films, Store::Web)).await;
    let page = target.server.search(&json!({"query": {"text": "a"}, "limit": 1})).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = target.server.search(&json!({"cursor": cursor})).await;
    assert_eq!(rest["results"].as_array().unwrap().len(), 1);
    let bytes = URL_SAFE_NO_PAD.decode(cursor).unwrap();
    for signature in [8, 16, 32] {
        let forged = [&Sha256::digest(&bytes[16..])[..signature], &bytes[16..]].concat();
        let body = json!({"cursor": URL_SAFE_NO_PAD.encode(forged)});
        let problem =
            target.server.refused(target.server.request("POST", "/v1/search").json(&body), 422).await;
        assert_eq!(problem["errors"][0]["pointer"], "/cursor", "{problem}");
    }
}

#[tokio::test]
async fn a_cursor_continues_on_another_start_of_the_same_library() {
    let target = Target::start(&[]);
    let films = ["testsrc2", "color=c=red"];
    target.server.ingest(&film(target.folder.path(), "film", &films, Store::Web)).await;
    let page = target.server.search(&json!({"query": {"text": "a"}, "limit": 1})).await;
    let Target { folder, server } = target;
    assert!(server.stop());
    let again = reprise_tests::server::Server::start(&folder.path().join("data"), &[]);
    let rest = again.search(&json!({"cursor": page["next_cursor"]})).await;
    assert_eq!(rest["results"].as_array().unwrap().len(), 1, "{rest}");
}

#[tokio::test]
async fn idle_connections_give_their_places_away() {
    let target = Target::start(&["--max-connections", "20"]);
    let mut idle: Vec<TcpStream> = (0..60).map(|_| connect(&target)).collect();
    // A connection of its own: none of the client's pool.
    let request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let text = answer(connect(&target), request);
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    // The first ones were closed for it.
    assert_eq!(idle[0].read(&mut [0; 10]).unwrap_or(0), 0);
    // The last ones are still open.
    let last = idle.pop().unwrap();
    assert!(answer(last, request).starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_broken_chunked_body_is_a_bad_request() {
    let target = Target::start(&[]);
    let request = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Transfer-Encoding: chunked\r\n\r\nnot a length\r\n";
    let text = answer(connect(&target), request);
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
}

#[tokio::test]
async fn a_request_that_stands_still_is_ended() {
    let limits = ["--header-seconds", "1", "--idle-seconds", "1", "--timeout-seconds", "1"];
    let target = Target::start(&limits);
    // Nothing, half of the headers, and a connection that waits for its next request: closed.
    let closed = |mut stream: TcpStream| {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        String::from_utf8(rest).unwrap()
    };
    assert_eq!(closed(connect(&target)), "");
    let mut half = connect(&target);
    half.write_all(b"GET /livez HTTP/1.1\r\nHost: local").unwrap();
    let said = closed(half);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
    let mut waits = connect(&target);
    waits.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert!(closed(waits).starts_with("HTTP/1.1 200"));
    // A body that begins and stops: an answer, whatever it calls itself.
    for kind in ["application/json", "multipart/form-data; boundary=x"] {
        let mut stream = connect(&target);
        let head = format!(
            "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 100\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let said = closed(stream);
        assert!(said.starts_with("HTTP/1.1 408") || said.starts_with("HTTP/1.1 504"), "{kind}: {said}");
    }
}

#[tokio::test]
async fn a_request_that_calls_itself_multipart_has_a_time_limit() {
    let target = Target::start(&["--timeout-seconds", "1"]);
    let request =
        b"PUT /v1/videos/00000000-0000-0000-0000-000000000000/subtitles/en HTTP/1.1\r\nHost: localhost\r\n\
                    Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 100\r\n\r\n";
    let text = answer(connect(&target), request);
    assert!(text.starts_with("HTTP/1.1 404"), "{text}");
    let request =
        b"POST /v1/spaces/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n\
                    Content-Length: 100\r\n\r\n";
    let text = answer(connect(&target), request);
    assert!(text.starts_with("HTTP/1.1 4"), "{text}");
}

#[tokio::test]
async fn other_sites_are_told_which_headers_they_may_send() {
    let target = Target::start(&["--cors-origin", "https://a.example"]);
    let asked = target.server.request("OPTIONS", "/v1/search").header("origin", "https://a.example");
    let asked = asked
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type");
    let answer = asked.timeout(Duration::from_secs(20)).send().await.unwrap();
    let allowed = answer.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(allowed.split(',').any(|name| name.trim() == "authorization"), "{allowed}");
}
