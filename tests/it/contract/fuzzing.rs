//! Schemathesis: requests made up from the file, valid and invalid. The answers must be those of the file.

use std::process::Command;

use super::library::{KEY, Library};
use super::{run, source, tools};

/// Operations that remove what the others need.
const REMOVING: &str = "^(deleteVideo|deleteClip|deleteSubtitles|deleteUpload|revokeApiKey|deleteWebhook|deleteAlert|deleteEvaluation)$";

#[tokio::test]
async fn made_up_requests_are_answered_as_the_contract_says() {
    let Some(tools) = tools() else { return };
    let library = Library::start().await;
    let examples = if reprise_tests::is_full() { "40" } else { "3" };
    for selected in ["--exclude-operation-id-regex", "--include-operation-id-regex"] {
        let mut command = Command::new(tools.join("python/bin/schemathesis"));
        command.arg("--config-file").arg(source("schemathesis.toml")).arg("run");
        command.args([selected, REMOVING, "--max-examples", examples, "--header"]);
        command.arg(format!("Authorization: Bearer {KEY}"));
        command.env("SCHEMATHESIS_HOOKS", source("schemathesis_hooks.py"));
        command.arg(format!("{}/openapi.json", library.server.base()));
        // It keeps what it found in its folder.
        let folder = tempfile::tempdir().unwrap();
        run(command.current_dir(folder.path()));
    }
}
