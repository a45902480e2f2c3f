//! `reprise doctor` on machines that lack something.

use std::path::Path;
use std::process::Command;

use reprise_tests::postgres::vector_database;
use reprise_tests::server::{Server, binary};
use serde_json::{Value, json};

/// Runs it on this data folder. Returns whether it succeeds, and the states of the checks by name.
fn examine(data: &Path, more: &[&str], environment: &[(&str, &str)]) -> (bool, Value) {
    let mut command = Command::new(binary());
    for name in ["DATABASE_URL", "REPRISE_INDEX_ENGINE", "REPRISE_INDEX_URL"] {
        command.env_remove(name);
    }
    command.args(["doctor", "--json", "--data-dir"]).arg(data).args(more);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(said["problems"] != 0)), "{said}");
    (output.status.success(), said)
}

fn find<'a>(said: &'a Value, name: &str) -> &'a Value {
    let checks = said["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name} in {said}"))
}

/// Expects a problem in exactly these checks, each with advice.
#[track_caller]
fn check(data: &Path, more: &[&str], environment: &[(&str, &str)], problems: &[&str]) {
    let (is_good, said) = examine(data, more, environment);
    assert_eq!(is_good, problems.is_empty(), "{said}");
    for check in said["checks"].as_array().unwrap() {
        let is_problem = problems.contains(&check["name"].as_str().unwrap());
        assert_eq!(check["state"] == "problem", is_problem, "{check}");
        assert_eq!(check["state"] == "ok", check["advice"].is_null(), "{check}");
    }
}

#[test]
fn a_good_folder_has_no_problem() {
    let folder = tempfile::tempdir().unwrap();
    check(folder.path(), &[], &[], &[]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    drop(Server::start(folder.path(), &[]));
    let (_, said) = examine(folder.path(), &[], &[]);
    assert_eq!(find(&said, "database")["state"], "ok", "{said}");
    assert!(find(&said, "schema")["found"].as_str().unwrap().starts_with("version "), "{said}");
    let names = [
        "ffmpeg",
        "ffprobe",
        "formats",
        "tesseract",
        "data folder",
        "disk",
        "index engine",
        "processor",
        "gpu",
    ];
    for name in names.into_iter().chain(["memory", "open files"]) {
        assert_ne!(find(&said, name)["state"], "problem", "{said}");
    }
}

#[test]
fn without_json_a_check_is_a_line_and_a_problem_the_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.args(["doctor", "--data-dir"]).arg(folder.path()).env("REPRISE_FFMPEG", "/no/such");
    let output = command.env_remove("DATABASE_URL").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("problem  ffmpeg"), "{said}");
    assert!(
        said.lines().all(|line| ["ok", "warning", "problem"].iter().any(|it| line.starts_with(it))),
        "{said}"
    );
}

#[test]
fn missing_programs_are_problems() {
    let folder = tempfile::tempdir().unwrap();
    check(folder.path(), &[], &[("REPRISE_FFMPEG", "/no/such")], &["ffmpeg"]);
    check(folder.path(), &[], &[("REPRISE_FFPROBE", "/no/such")], &["ffprobe"]);
    check(folder.path(), &[], &[("REPRISE_FFMPEG", "/bin/true")], &["ffmpeg"]);
}

#[test]
fn a_missing_tesseract_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for program in ["/no/such", "/bin/true"] {
        let (is_good, said) = examine(folder.path(), &[], &[("REPRISE_TESSERACT", program)]);
        assert!(is_good, "{said}");
        assert_eq!(find(&said, "tesseract")["state"], "warning", "{said}");
    }
}

/// Nobody may write below `/sys`, not even the superuser, whom the rights of an ordinary folder do not stop.
#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_can_not_be_written_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", folder.path().join("catalog.sqlite").display());
    let (_, said) = examine(Path::new("/sys/kernel"), &["--database-url", &database], &[]);
    assert_eq!(find(&said, "data folder")["state"], "problem", "{said}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    check(&file, &["--database-url", &database], &[], &["data folder"]);
}

#[test]
fn a_wrong_database_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["mysql://here", "postgres://reprise@127.0.0.1:1/reprise"] {
        check(folder.path(), &["--database-url", url], &[], &["database"]);
    }
    let no_database = folder.path().join("text");
    std::fs::write(&no_database, "no database, but a text that is long enough to be read as a header of one")
        .unwrap();
    let url = format!("sqlite:{}", no_database.display());
    check(folder.path(), &["--database-url", &url], &[], &["database"]);
}

#[test]
fn an_engine_without_what_it_needs_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let engine = |kind: &'static str| ["--index-engine", kind];
    check(folder.path(), &engine("hnsw_rs"), &[], &[]);
    check(folder.path(), &engine("pgvector"), &[], &["index engine"]);
    check(
        folder.path(),
        &[&engine("builtin")[..], &["--index-url", "http://x"]].concat(),
        &[],
        &["index engine"],
    );
    check(
        folder.path(),
        &[&engine("milvus")[..], &["--index-url", "http://127.0.0.1:1"]].concat(),
        &[],
        &["index engine"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_described_with_its_clock_and_its_extension() {
    let Some(url) = vector_database().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--database-url", url.as_str(), "--index-engine", "pgvector"];
    let (is_good, said) = examine(folder.path(), &arguments, &[]);
    assert!(is_good, "{said}");
    assert!(find(&said, "database")["found"].as_str().unwrap().starts_with("postgres "), "{said}");
    assert_eq!(find(&said, "clock")["state"], json!("ok"), "{said}");
    assert!(find(&said, "index engine")["found"].as_str().unwrap().starts_with("pgvector 0."), "{said}");
}
