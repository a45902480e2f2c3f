//! Databases and files of an older version (`tests/data/stored`, see `make.py` there). This version opens them and
//! gives the same answers.

use std::path::{Path, PathBuf};

use reprise_tests::postgres;
use reprise_tests::server::Server;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/stored").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(stored(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A copy of the older version's data folder.
async fn sqlite_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&stored("data"), folder.path());
    let url = format!("sqlite:{}?mode=rwc", folder.path().join("catalog.sqlite").display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(text("sqlite.sql"))).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    folder
}

/// Checks the segmentation of every video and the answer of every search against the older version's records.
async fn check(server: &Server, recorded: &Value) {
    for (name, segmentation) in recorded["segmentations"].as_object().expect("they are recorded") {
        let (_, video) = server.get(&format!("/v1/videos/{}", id(recorded, name))).await;
        let mut expected = segmentation.clone();
        if expected["policy"] == "hybrid" {
            // The older version had no such parameter, and did not cut there.
            expected["params"]["gradual"] = json!(false);
        }
        assert_eq!(video["segmentation"], expected, "{name}");
    }
    let searches = recorded["searches"].as_array().expect("they are recorded");
    assert!(searches.iter().all(|it| it["results"].as_array().is_some_and(|results| !results.is_empty())));
    for search in searches {
        let results = server.search_hits(search["body"].clone()).await;
        let results: Vec<Value> =
            results.iter().map(|it| json!([it["video_id"], it["start"], it["end"], it["score"]])).collect();
        let expected = search["results"].as_array().unwrap();
        assert_eq!(results.len(), expected.len(), "{search}");
        for (result, expected) in results.iter().zip(expected) {
            let score = |it: &Value| it[3].as_f64().expect("a result has a score");
            assert!((score(result) - score(expected)).abs() < 1e-5, "{result} is not {expected}: {search}");
            assert_eq!(result.as_array().unwrap()[..3], expected.as_array().unwrap()[..3], "{search}");
        }
    }
}

fn id<'a>(recorded: &'a Value, name: &str) -> &'a str {
    recorded["videos"][name].as_str().expect("its id is recorded")
}

#[tokio::test]
async fn a_stored_sqlite_catalog_opens_and_answers_as_before() {
    let folder = sqlite_folder().await;
    let recorded: Value = serde_json::from_str(&text("sqlite.json")).unwrap();
    for _ in 0..2 {
        let server = Server::start(folder.path(), &["--runners", "0"]);
        check(&server, &recorded).await;
        assert!(server.stop(), "it did not stop well");
    }
}

#[tokio::test]
async fn a_stored_postgres_catalog_opens_and_answers_as_before() {
    let Some(url) = postgres::database().await else { return };
    let recorded: Value = serde_json::from_str(&text("postgres.json")).unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(text("postgres.sql"))).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--runners", "0", "--database-url", &url]);
    check(&server, &recorded).await;
}

#[tokio::test]
async fn a_stored_job_cuts_a_stored_video_anew_without_decoding_it() {
    let folder = sqlite_folder().await;
    let recorded: Value = serde_json::from_str(&text("sqlite.json")).unwrap();
    let server = Server::start(folder.path(), &[]);
    let job = server.job_end(recorded["waiting"].as_str().unwrap()).await;
    assert_eq!((&job["state"], &job["frames_done"]), (&json!("succeeded"), &json!(0)), "{job}");
    let (_, video) = server.get(&format!("/v1/videos/{}", id(&recorded, "anew"))).await;
    let fixed = json!({"policy": "fixed", "params": {"every_seconds": 2.0}});
    assert_eq!((&video["segmentation"], &video["clips"]), (&fixed, &json!(3)), "{video}");
}
