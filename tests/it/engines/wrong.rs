//! Wrong settings of an engine: the start says what to do.

use reprise_server::terms::SpaceInfo;
use reprise_server::vectors::{EngineError, Pgvector, VectorIndex};
use reprise_tests::milvus::{Doorkeeper, Empty};
use reprise_tests::postgres::{database, vector_database};
use reprise_tests::server::Server;
use uuid::Uuid;

/// Starts a server that must refuse to start, and checks its message.
#[track_caller]
fn check(arguments: &[&str], expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let said = Server::try_start(folder.path(), arguments).err().expect("the start fails");
    assert!(said.contains(expected), "{arguments:?}: {said}");
    assert!(!said.contains("s3cret"), "a password is in the message: {said}");
}

fn pgvector(url: &str) -> [&str; 4] {
    ["--index-engine", "pgvector", "--index-url", url]
}

#[test]
fn a_url_that_fits_no_engine_is_refused() {
    check(&["--index-engine", "pgvector"], "needs a Postgres");
    check(&["--index-engine", "milvus"], "needs --index-url");
    check(&["--index-url", "postgres://localhost/x"], "--index-engine is builtin");
    check(&pgvector("http://localhost:19530"), "must start with postgres://");
    check(&pgvector("postgres://me:s3cret@[nowhere/x"), "no URL of a Postgres");
    check(&["--index-engine", "milvus", "--index-url", "postgres://localhost/x"], "it must be http://");
}

#[test]
fn an_engine_that_is_not_there_is_named() {
    let nobody = "postgres://me:s3cret@127.0.0.1:9/clips";
    check(&pgvector(nobody), "the vector engine (pgvector 127.0.0.1:9/clips) does not answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_or_database_that_is_not_there_is_named() {
    let Some(url) = vector_database().await else { return };
    check(&pgvector(&url.replace("reprise@", "nobody:s3cret@")), "refuses the user or the password");
    let (server, parameters) = url.split_once('?').unwrap();
    let elsewhere = format!("{server}_not_there?{parameters}");
    check(&pgvector(&elsewhere), "create it, or mend --index-url");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_without_the_extension_is_refused() {
    let Some(url) = database().await else { return };
    let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    let sql = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'";
    if sqlx::query(sql).fetch_optional(&mut connection).await.unwrap().is_some() {
        // The installed server carries it: then nothing is missing.
        return;
    }
    check(&pgvector(&url), "lacks the extension pgvector");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_of_another_library_is_refused() {
    let Some(url) = vector_database().await else { return };
    let folder = tempfile::tempdir().unwrap();
    drop(Server::start(folder.path(), &pgvector(&url)));
    check(&pgvector(&url), "holds the vectors of library");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_over_the_engines_limit_are_refused() {
    let Some(url) = vector_database().await else { return };
    let engine = Pgvector::open(&url, Uuid::new_v4()).await.unwrap();
    for (key, dim) in [(1, 2_000), (2, 2_001), (3, 4_000)] {
        engine.create(&SpaceInfo { key, id: format!("space {dim}"), dim }).await.unwrap();
    }
    let wide = engine.create(&SpaceInfo { key: 4, id: "wide".to_owned(), dim: 4_001 }).await.err();
    assert!(matches!(wide, Some(EngineError::TooWide { values: 4_001, most: 4_000, .. })), "{wide:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exact_search_is_refused_where_the_engine_has_none() {
    let Some(milvus) = Empty::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = milvus.url();
    let server = Server::start(folder.path(), &["--index-engine", "milvus", "--index-url", url.as_str()]);
    let body = serde_json::json!({"query": {"text": "x"}, "exact": true});
    let problem = server.refused(server.request("POST", "/v1/search").json(&body), 422).await;
    assert!(problem["detail"].as_str().unwrap().contains("exact"), "{problem}");
    assert_eq!(server.search_hits(serde_json::json!({"query": {"text": "x"}})).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_extension_is_refused() {
    let Some(url) = vector_database().await else { return };
    let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    let sql =
        "CREATE EXTENSION vector; UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'";
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    check(&pgvector(&url), "0.8.0 is the oldest that can be used");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_refused() {
    let Some(server) = reprise_tests::postgres::Mortal::start().await else { return };
    server.add_guarded_user().await;
    let url = server.url().replace("reprise@", "guarded:s3cret@");
    check(&pgvector(&url), "refuses the user or the password");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_milvus_and_a_wrong_password_are_refused() {
    let Some(old) = Doorkeeper::start("v2.3.5").await else { return };
    let milvus = |password| old.url(password);
    let (right, wrong) = (milvus("right"), milvus("s3cret"));
    check(&["--index-engine", "milvus", "--index-url", &right], "Milvus v2.3.5 is too old; use 2.4 or later");
    check(&["--index-engine", "milvus", "--index-url", &wrong], "Milvus refuses the name or password");
}
