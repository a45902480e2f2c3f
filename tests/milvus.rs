//! Milvus Lite servers for the tests, from the environment of `scripts/engines.sh`.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const START_WITHIN: Duration = Duration::from_secs(60);

/// A server with its own folder; killed when dropped.
pub struct Lite {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    child: Child,
}

impl Lite {
    /// Starts a server; `None`, after printing the reason, if none is installed.
    ///
    /// # Panics
    /// If the server does not start.
    pub async fn start() -> Option<Lite> {
        let program = crate::engines().map(|engines| engines.join("bin/milvus-lite"));
        let Some(program) = program.filter(|program| program.is_file()) else {
            crate::skip("Milvus Lite is not installed (scripts/engines.sh installs it)");
            return None;
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it has an address").port();
        drop(listener);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let child = spawn(&program, &folder, port);
        let lite = Lite { program, folder, port, child };
        lite.wait_until_ready().await;
        Some(lite)
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Kills the server (SIGKILL).
    ///
    /// # Panics
    /// If there is no such process.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is alive");
        self.child.wait().expect("it ends");
    }

    /// Starts the server again after [`Lite::kill`], and waits until it listens.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_again(&mut self) {
        self.child = spawn(&self.program, &self.folder, self.port);
        self.wait_until_ready().await;
    }

    async fn wait_until_ready(&self) {
        let end = Instant::now() + START_WITHIN;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < end, "Milvus Lite does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Lite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &PathBuf, folder: &TempDir, port: u16) -> Child {
    let log = File::options().create(true).append(true).open(folder.path().join("log")).expect("a log");
    let mut command = Command::new(program);
    command.args(["server", "--host", "127.0.0.1", "--port", &port.to_string(), "--data-dir"]);
    command.arg(folder.path().join("data"));
    // With its default of 128 MB it keeps small sets unindexed, and never walks a graph.
    command.env("MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES", "100000");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("milvus-lite runs")
}
