//! `reprise index check`, `rebuild` and `rebuild --to`: from one engine to another and back.

use std::path::Path;
use std::process::{Command, Output};

use reprise_tests::film::{Store, film};
use reprise_tests::postgres::vector_database;
use reprise_tests::server::{Server, binary};
use serde_json::{Value, json};

/// Runs `reprise index` with these arguments.
fn index(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("index").args(arguments).arg("--data-dir").arg(data).env_remove("DATABASE_URL");
    command.output().unwrap()
}

#[track_caller]
fn index_json(data: &Path, arguments: &[&str]) -> Value {
    let output = index(data, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn scores(server: &Server) -> Vec<Value> {
    let hits = server.search_hits(json!({"query": {"text": "x"}, "limit": 50})).await;
    hits.iter().map(|hit| json!([hit["clip_id"], hit["score"]])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_library_moves_to_another_engine_and_back() {
    let Some(url) = vector_database().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = ["--index-url", url.as_str()];
    let server = Server::start(folder.path(), &[]);
    for (name, colour) in [("one", "color=c=red"), ("two", "color=c=blue"), ("three", "color=c=green")] {
        server.ingest(&film(folder.path(), name, &["testsrc2", colour], Store::Web)).await;
    }
    let before = scores(&server).await;
    // While the old engine answers.
    let filled = index_json(folder.path(), &[&["rebuild", "--to", "pgvector"][..], &to].concat());
    assert_eq!(scores(&server).await, before);
    let vectors = |of: &Value| -> i64 {
        of["levels"].as_array().unwrap().iter().filter_map(|level| level["vectors"].as_i64()).sum()
    };
    assert_eq!(vectors(&filled), server.get("/v1/stats").await.1["vectors"].as_i64().unwrap());
    // What came after the move.
    server.ingest(&film(folder.path(), "four", &["testsrc2", "color=c=white"], Store::Web)).await;
    let before = scores(&server).await;
    assert!(server.stop());
    let pgvector = [&["--index-engine", "pgvector"][..], &to].concat();
    let behind = index_json(folder.path(), &[&["check"][..], &pgvector].concat());
    assert_eq!(behind["wrong"], json!([]), "later changes are no fault");

    let server = Server::start(folder.path(), &pgvector);
    assert_eq!(scores(&server).await, before);
    let rebuilt = index_json(folder.path(), &[&["rebuild"][..], &pgvector].concat());
    assert_eq!(vectors(&rebuilt), server.get("/v1/stats").await.1["vectors"].as_i64().unwrap());
    assert_eq!(scores(&server).await, before);
    let checked = index_json(folder.path(), &[&["check"][..], &pgvector].concat());
    assert_eq!((&checked["wrong"], &checked["levels"][0]["keys_equal"]), (&json!([]), &json!(true)));
    assert!(server.stop());

    index_json(folder.path(), &["rebuild", "--to", "builtin"]);
    let server = Server::start(folder.path(), &[]);
    assert_eq!(scores(&server).await, before);
}

#[test]
fn an_engine_in_memory_has_nothing_to_check() {
    let folder = tempfile::tempdir().unwrap();
    drop(Server::start(folder.path(), &[]));
    for command in ["check", "rebuild"] {
        let output = index(folder.path(), &[command, "--index-engine", "hnsw_rs"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("only in memory"), "{text}");
    }
}
