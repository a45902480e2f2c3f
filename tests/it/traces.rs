//! Traces as a collector gets them over OTLP/HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde_json::json;

use crate::faults::bed::until;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A span, as far as these tests read it.
#[derive(Debug, Clone)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    attributes: BTreeMap<String, String>,
}

/// The fields of a protobuf message that have bytes; others are skipped.
fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let length = match key & 7 {
            0 => {
                varint(&mut message);
                continue;
            }
            1 => 8,
            2 => varint(&mut message) as usize,
            5 => 4,
            other => panic!("wire type {other}"),
        };
        let (value, rest) = message.split_at(length);
        message = rest;
        if key & 7 == 2 {
            found.push((key >> 3, value));
        }
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for at in 0.. {
        let byte = message[0];
        *message = &message[1..];
        value |= u64::from(byte & 127) << (7 * at);
        if byte < 128 {
            break;
        }
    }
    value
}

/// The values of the field `number`.
fn all(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    fields(message).into_iter().filter(move |it| it.0 == number).map(|it| it.1)
}

fn text(message: &[u8], number: u64) -> String {
    all(message, number).next().map(|it| String::from_utf8_lossy(it).into_owned()).unwrap_or_default()
}

fn hex(message: &[u8], number: u64) -> String {
    all(message, number).flatten().map(|byte| format!("{byte:02x}")).collect()
}

/// The spans of an `ExportTraceServiceRequest`.
fn spans(request: &[u8]) -> Vec<Span> {
    let scopes = all(request, 1).flat_map(|resource| all(resource, 2));
    let spans = scopes.flat_map(|scope| all(scope, 2));
    let attribute = |it: &[u8]| (text(it, 1), all(it, 2).map(|value| text(value, 1)).collect());
    let span = |it: &[u8]| Span {
        trace: hex(it, 1),
        id: hex(it, 2),
        parent: hex(it, 4),
        name: text(it, 5),
        attributes: all(it, 9).map(attribute).collect(),
    };
    spans.map(span).collect()
}

/// A collector that keeps what it gets.
struct Collector {
    address: String,
    got: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<Span>>> = Arc::default();
        let keep = Arc::clone(&got);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let keep = Arc::clone(&keep);
                std::thread::spawn(move || serve(connection, &keep));
            }
        });
        Collector { address, got }
    }
}

/// Answers requests until the connection ends.
fn serve(connection: TcpStream, keep: &Mutex<Vec<Span>>) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut writer = connection;
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while reader.read_line(&mut head).ok()? > 2 {
            let line = head.lines().last()?.to_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().ok()?;
            }
        }
        if head.is_empty() {
            return None;
        }
        assert!(head.starts_with("POST /v1/traces "), "{head}");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        keep.lock().unwrap().extend(spans(&body));
        writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
    }
}

fn start(folder: &Path, endpoint: &str) -> Server {
    let environment = [("OTEL_BSP_SCHEDULE_DELAY", Path::new("50"))];
    Server::try_start_with(folder, &["--otlp-endpoint", endpoint], &environment).unwrap()
}

#[tokio::test]
async fn the_parts_of_a_search_arrive_in_the_callers_trace() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start());
    let server = start(folder.path(), &collector.address);
    let video = server.ingest(&film(folder.path(), "one", &["testsrc2", "mandelbrot"], Store::Web)).await;
    let query = json!({"query": {"image": {"video_id": video["id"], "at": 3.7}}});
    let request = server.request("POST", "/v1/search").json(&query);
    let (status, answer) =
        server.send(request.header("traceparent", format!("00-{TRACE}-{CALLER}-01"))).await;
    assert_eq!(status, 200, "{answer}");
    let parts = BTreeSet::from(["decode", "encode", "index", "request", "sql"]);
    let arrived = async || {
        let got: Vec<Span> =
            collector.got.lock().unwrap().iter().filter(|it| it.trace == TRACE).cloned().collect();
        let names: BTreeSet<&str> = got.iter().map(|it| it.name.as_str()).collect();
        names.is_superset(&parts).then_some(got)
    };
    let got = until("the five spans of a search arrive", arrived).await;
    let named = |name: &str| got.iter().find(|it| it.name == name).unwrap();
    let request = named("request");
    assert_eq!(request.parent, CALLER);
    assert_eq!(
        (request.attributes["method"].as_str(), request.attributes["http.route"].as_str()),
        ("POST", "/v1/search")
    );
    assert!(request.attributes.contains_key("http.response.status_code"), "{request:?}");
    for part in ["decode", "encode", "index"] {
        assert_eq!(named(part).parent, request.id, "{part}");
    }
    assert!(named("encode").attributes["model"].starts_with("tiny-"));
    assert!(named("encode").attributes.contains_key("batch_size"));
    assert_eq!(named("sql").attributes["statement"], "SELECT");
    let traces: BTreeSet<String> = collector.got.lock().unwrap().iter().map(|it| it.name.clone()).collect();
    assert!(
        traces.is_subset(&parts.iter().map(|it| (*it).to_owned()).chain(["job".to_owned()]).collect()),
        "{traces:?}"
    );
}

#[tokio::test]
async fn an_absent_collector_is_not_noticed() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens on port 1.
    let server = start(folder.path(), "http://127.0.0.1:1");
    for _ in 0..20 {
        server.search(&json!({"query": {"text": "x"}})).await;
    }
    assert!(server.stop(), "the exit is a good one");
    let log = std::fs::read_to_string(folder.path().join("server.log")).unwrap();
    for word in ["WARN", "ERROR", "panicked"] {
        assert!(!log.contains(word), "{log}");
    }
}

#[test]
fn the_endpoint_must_be_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let said = Server::try_start(folder.path(), &["--otlp-endpoint", "not an address"]).err().unwrap();
    assert!(said.contains("--otlp-endpoint"), "{said}");
}
