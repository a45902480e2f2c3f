//! A hundred hostile media files, uploaded to one server. Each is refused, or its job ends; nothing is left behind.

mod atoms;
mod films;
mod processes;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use futures_util::StreamExt;
use futures_util::stream;
use reprise_tests::is_full;
use reprise_tests::server::Server;
use tempfile::tempdir;

use processes::{Watched, children};

use crate::faults::bed::until;

/// The most memory of the server and its children together.
const MOST_BYTES: u64 = 1_500_000_000;
/// Uploads at once.
const AT_ONCE: usize = 3;
/// The short run takes every file whose number, counted by name, is a multiple of this.
const SAMPLE: usize = 7;

/// A file by its name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// All files.
fn files(folder: &Path) -> Files {
    let good = films::good(folder);
    let mut files = Files::new();
    files.extend(films::damaged(&good));
    files.extend(films::strange(folder));
    files.extend(atoms::files(&good["film.mp4"]));
    files.extend(texts::files(&good["film.mp4"]));
    files
}

/// What became of a file: refused with a status, or its job's end.
async fn outcome(server: &Server, folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    let (status, answer) = server.upload(&path, &[]).await;
    if status.is_client_error() {
        assert!(answer["detail"].as_str().is_some_and(|why| !why.is_empty()), "{name}: {answer}");
        return format!("refused: {}", answer["detail"]);
    }
    // Equal files are one video.
    assert!(status.is_success(), "{name}: {status} {answer}");
    let Some(job) = answer["job"]["id"].as_str() else { return "known".to_owned() };
    let job = server.job_end(job).await;
    match job["state"].as_str() {
        Some("succeeded") => "ingested".to_owned(),
        Some("failed") => {
            assert!(job["reason"].as_str().is_some_and(|why| !why.is_empty()), "{name}: {job}");
            format!("failed: {}", job["reason"])
        }
        _ => panic!("{name}: {job}"),
    }
}

#[test]
fn there_are_a_hundred_different_files() {
    let folder = tempdir().unwrap();
    let files = files(folder.path());
    let different: BTreeSet<&Vec<u8>> = files.values().collect();
    assert!(files.len() >= 100 && different.len() >= 100, "{} files", files.len());
    assert!(files.values().all(|bytes| bytes.len() < 4 << 20), "a hostile file is small");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_files_are_refused_or_end_and_leave_nothing_behind() {
    let folder = tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let all = files(folder.path());
    let chosen: Vec<_> = all
        .iter()
        .enumerate()
        .filter(|(number, _)| is_full() || number % SAMPLE == 0)
        .map(|it| it.1)
        .collect();
    let server = Server::start(&data, &[]);
    let watched = Watched::start(server.pid());
    let of = async |(name, bytes): (&String, &Vec<u8>)| {
        (name.clone(), outcome(&server, folder.path(), name, bytes).await)
    };
    let outcomes: Vec<(String, String)> =
        stream::iter(chosen).map(of).buffer_unordered(AT_ONCE).collect().await;
    outcomes.iter().for_each(|(name, outcome)| eprintln!("{name}: {outcome}"));
    assert_eq!(server.get("/readyz").await.0, 200);
    until("no child is left", async || children(server.pid()).is_empty().then_some(())).await;
    let most = watched.most();
    eprintln!("{} files, at most {} MB", outcomes.len(), most / 1_000_000);
    assert!(most < MOST_BYTES, "{most} bytes");
    let good = folder.path().join("good.mkv");
    films::render(&good, &["-c:v", "ffv1"]);
    assert_eq!(server.ingest(&good).await["state"], "ready");
}
