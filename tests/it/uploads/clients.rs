//! The clients that people use, over connections that break.

use std::path::Path;
use std::process::Command;

use super::Uploading;
use super::cutter::{Cuts, Cutter};

/// Cuts of one upload.
const CUTS: Cuts = Cuts { number: 50, before: 100_000, seed: 19 };
/// Bytes of the file, beside those of the film.
const MORE: usize = 4 << 20;

fn source(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contract").join(name)
}

/// Uploads a film with a program that gets the server's address and the film's path, and checks what is stored.
async fn check(mut client: Command, title: &str) {
    let it = Uploading::start(&[]);
    let (path, bytes) = it.film("film", MORE);
    let cutter = Cutter::start(it.server.base(), CUTS).await;
    client.arg(cutter.base()).arg(path).env("NO_PROXY", "*");
    let output = tokio::task::spawn_blocking(move || client.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.starts_with("sent"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(cutter.left(), 0, "not all cuts were made");
    let upload = said.trim().rsplit('/').next().unwrap();
    let answer = it.request("HEAD", &format!("/v1/uploads/{upload}")).send().await.unwrap();
    let video = it.check_made(&answer, &bytes).await;
    assert_eq!((&video["title"], &video["file_name"]), (&title.into(), &"film.mp4".into()), "{video}");
    assert_eq!(it.server.get("/v1/videos").await.1["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tus_js_client_goes_on_after_fifty_cuts() {
    let Some(tools) = reprise_tests::contract_tools() else {
        return reprise_tests::skip("tus-js-client is not installed; run scripts/contract.sh");
    };
    let Some(node) = reprise_tests::program("node") else { return };
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(tools.join("node/node_modules"), folder.path().join("node_modules")).unwrap();
    let script = folder.path().join("tus.mjs");
    std::fs::copy(source("tus.mjs"), &script).unwrap();
    let mut client = Command::new(node);
    client.arg(script);
    check(client, "By tus-js-client").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tuspy_goes_on_after_fifty_cuts() {
    let Some(tools) = reprise_tests::contract_tools() else {
        return reprise_tests::skip("tuspy is not installed; run scripts/contract.sh");
    };
    let mut client = Command::new(tools.join("python/bin/python"));
    client.arg(source("tus.py"));
    check(client, "By tuspy").await;
}
