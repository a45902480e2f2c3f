//! Clients that are generated from the file: they compile, and they upload, wait, search, page, list and delete.

use std::path::Path;
use std::process::Command;

use reprise_tests::film::{Store, film};

use super::library::{KEY, Library};
use super::{contract, run, source, tools};

#[tokio::test]
async fn a_generated_python_client_works() {
    let Some(tools) = tools() else { return };
    let folder = prepared(&["client.py", "generator.yaml", "mypy.ini"]);
    let bin = tools.join("python/bin");
    let generated = run(Command::new(bin.join("openapi-python-client"))
        .args(["generate", "--path", "openapi.json", "--output-path", "reprise_client", "--meta", "none"])
        .args(["--config", "generator.yaml"])
        .env("PATH", with(&bin))
        .current_dir(folder.path()));
    assert!(!generated.contains("WARNING") && !generated.contains("rror"), "{generated}");
    run(Command::new(bin.join("mypy")).args(["client.py", "reprise_client"]).current_dir(folder.path()));
    let library = Library::start().await;
    let mut client = Command::new(bin.join("python"));
    uses(client.arg("client.py").current_dir(folder.path()), &library);
}

#[tokio::test]
async fn a_generated_typescript_client_works() {
    let Some(tools) = tools() else { return };
    let Some(node) = reprise_tests::program("node") else { return };
    let folder = prepared(&["client.ts", "package.json", "tsconfig.json"]);
    let modules = tools.join("node/node_modules");
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).unwrap();
    let script = |name: &str| {
        let mut command = Command::new(&node);
        command.arg(modules.join(name)).current_dir(folder.path());
        command
    };
    run(script("openapi-typescript/bin/cli.js").args(["openapi.json", "-o", "schema.ts"]));
    run(&mut script("typescript/bin/tsc"));
    let library = Library::start().await;
    let mut client = Command::new(&node);
    uses(client.arg("built/client.js").current_dir(folder.path()), &library);
}

/// A folder with the contract and these files.
fn prepared(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("openapi.json"), contract().to_string()).unwrap();
    for file in files {
        std::fs::copy(source(file), folder.path().join(file)).unwrap();
    }
    folder
}

/// The PATH with this folder first.
fn with(folder: &Path) -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([folder.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap()
}

/// Runs a client against the library. It uploads a film of its own content.
fn uses(client: &mut Command, library: &Library) {
    let folder = tempfile::tempdir().unwrap();
    let film = film(folder.path(), "client", &["smptebars", "color=c=blue"], Store::Web);
    let said = run(client.args([library.server.base(), KEY]).arg(film));
    assert!(said.contains("done"), "{said}");
}
