//! Attacks on a running server and trouble around it: each leaves the server at work and loses nothing.

mod clients;
mod decodes;
mod disk;
mod files;
mod pictures;

use std::path::PathBuf;

use reprise_tests::server::Server;
use tempfile::TempDir;

/// A server with its own folder.
struct Target {
    folder: TempDir,
    server: Server,
}

impl Target {
    fn start(more: &[&str]) -> Target {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        std::fs::create_dir(&data).expect("the folder can be written");
        let server = Server::start(&data, more);
        Target { folder, server }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
