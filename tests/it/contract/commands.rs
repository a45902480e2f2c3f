//! The commands of docs/api.md, docs/uploads.md and docs/speech.md, run as they stand there.

use std::path::Path;
use std::process::Command;

use reprise_tests::film::{Store, film};

use super::library::{KEY, Library};
use super::run;

#[tokio::test]
async fn the_commands_of_the_guides_work() {
    if reprise_tests::program("curl").is_none() {
        return;
    }
    check("api.md", 6).await;
    check("uploads.md", 3).await;
    check("speech.md", 3).await;
}

/// Runs the commands of a guide, of which there are at least so many.
async fn check(guide: &str, commands: usize) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(guide);
    let guide = std::fs::read_to_string(guide).unwrap();
    let blocks: Vec<&str> =
        guide.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= commands, "{}", blocks.len());
    let library = Library::start().await;
    let folder = tempfile::tempdir().unwrap();
    film(folder.path(), "vault", &["smptebars", "color=c=blue"], Store::Web);
    let script = format!("set -euo pipefail\n{}", blocks.concat());
    run(Command::new("bash")
        .args(["-c", &script])
        .env("REPRISE", library.server.base())
        .env("KEY", KEY)
        .current_dir(folder.path()));
}
