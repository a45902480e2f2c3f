//! Two servers, one catalog, one shared engine.

use std::path::Path;
use std::time::{Duration, Instant};

use reprise_tests::film::{Store, film};
use reprise_tests::postgres::vector_database;
use reprise_tests::server::Server;
use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;

use crate::faults::bed::until;

/// What was ingested on one server is found on another within this time.
const FOUND_WITHIN: Duration = Duration::from_secs(2);

struct Pair {
    folders: [TempDir; 2],
    url: String,
}

impl Pair {
    fn start(&self, which: usize, runners: &str) -> Server {
        let arguments =
            ["--database-url", self.url.as_str(), "--index-engine", "pgvector", "--runners", runners];
        Server::start(self.folders[which].path(), &arguments)
    }
}

async fn found(server: &Server, video: &str) -> (bool, Value) {
    let body = json!({"query": {"text": "x"}, "limit": 100});
    let answer = server.search(&body).await;
    let hits = answer["results"].as_array().unwrap();
    (hits.iter().any(|hit| hit["video_id"] == video), answer["index"].clone())
}

fn shots(folder: &Path, name: &str, colour: &str) -> std::path::PathBuf {
    film(folder, name, &["testsrc2", colour], Store::Web)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_an_engine_and_the_second_takes_over() {
    let Some(url) = vector_database().await else { return };
    let pair = Pair { folders: [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()], url };
    let (first, second) = (pair.start(0, "1"), pair.start(1, "0"));
    let films = tempfile::tempdir().unwrap();
    let video = first.ingest(&shots(films.path(), "one", "color=c=red")).await;
    let video = video["id"].as_str().unwrap();
    let began = Instant::now();
    let (is_found, index) = found(&second, video).await;
    assert!(is_found && began.elapsed() < FOUND_WITHIN, "{index} after {:?}", began.elapsed());
    assert_eq!((&index["behind"], &index["depth_limited"]), (&json!(0), &json!(false)));

    let kept = first.ingest(&shots(films.path(), "two", "color=c=blue")).await;
    first.kill();
    // Nobody else could write yet; the catalog alone hides the deleted video at once.
    assert_eq!(second.delete(&format!("/v1/videos/{video}")).await.0, 204);
    assert!(!found(&second, video).await.0);
    let taken_over = async || {
        let stats = second.get("/v1/stats").await.1;
        (stats["engine"] == json!({"kind": "pgvector", "behind": 0, "trouble": null})).then_some(())
    };
    until("the second server writes", taken_over).await;
    assert!(found(&second, kept["id"].as_str().unwrap()).await.0);
    assert!(second.stop());

    // The engine and its lease are as they were for the next start.
    let again = pair.start(0, "1");
    assert!(found(&again, kept["id"].as_str().unwrap()).await.0);
    let third = again.ingest(&shots(films.path(), "three", "color=c=green")).await;
    assert!(found(&again, third["id"].as_str().unwrap()).await.0);
    assert!(again.stop());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_engine_a_server_ingests_and_later_finds() {
    let Some(mut outside) = reprise_tests::postgres::Mortal::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = outside.url();
    let arguments = ["--index-engine", "pgvector", "--index-url", url.as_str()];
    let server = Server::start(folder.path(), &arguments);
    outside.kill();
    let body = json!({"query": {"text": "x"}});
    let refused = server.request("POST", "/v1/search").json(&body).send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "1");
    reprise_tests::server::problem_of(refused, 503).await;
    let video = server.ingest(&shots(folder.path(), "one", "color=c=red")).await;
    let ready = server.request("GET", "/readyz").send().await.unwrap().text().await.unwrap();
    assert!(ready.starts_with("ready\nengine pgvector: away; the server's log says why\n"), "{ready}");
    let stats = server.get("/v1/stats").await.1;
    assert_eq!((&stats["index_seq"], &stats["engine"]["behind"]), (&Value::Null, &Value::Null));
    outside.start_again().await;
    let id = video["id"].as_str().unwrap();
    let finds = async || {
        let (status, answer) = server.post("/v1/search", &body).await;
        let hits = answer["results"].as_array().cloned().unwrap_or_default();
        (status == 200 && hits.iter().any(|hit| hit["video_id"] == id)).then_some(())
    };
    until("the server finds again", finds).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_lacks_commits_says_how_many() {
    let Some(url) = vector_database().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--index-engine", "pgvector", "--index-url", url.as_str()];
    let server = Server::start(folder.path(), &arguments);
    let first = server.ingest(&shots(folder.path(), "one", "color=c=red")).await;
    assert!(found(&server, first["id"].as_str().unwrap()).await.0);
    // Another session holds the row that every batch locks.
    let mut other = PgConnection::connect(&url).await.unwrap();
    let mut held = other.begin().await.unwrap();
    held.execute("SELECT applied FROM reprise_vectors.engine FOR UPDATE").await.unwrap();
    let second = server.ingest(&shots(folder.path(), "two", "color=c=blue")).await;
    let second = second["id"].as_str().unwrap();
    let (is_found, index) = found(&server, second).await;
    let (_, clips) = server.get(&format!("/v1/videos/{second}/clips")).await;
    let changes = 1 + clips["items"].as_array().unwrap().len();
    assert_eq!((is_found, &index["behind"]), (false, &json!(changes)));
    held.rollback().await.unwrap();
    let catches_up = async || found(&server, second).await.0.then_some(());
    until("the engine has caught up", catches_up).await;
    assert_eq!(found(&server, second).await.1["behind"], 0);
}
