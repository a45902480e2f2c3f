//! A receiver of webhooks, as a program: it verifies deliveries with the Python package of Standard Webhooks.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use reqwest::Client;
use serde_json::Value;

/// A running `tests/contract/receiver.py`; killed when dropped.
pub struct Receiver {
    program: Child,
    base: String,
    client: Client,
}

impl Receiver {
    /// Starts a receiver; `None` after [`crate::skip`] without its Python packages.
    ///
    /// # Panics
    /// If it does not start.
    #[track_caller]
    pub fn start() -> Option<Receiver> {
        let Some(tools) = crate::contract_tools() else {
            crate::skip("the receiver's Python packages are not installed; run scripts/contract.sh");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("contract/receiver.py");
        let mut command = Command::new(tools.join("python/bin/python"));
        command.arg(script).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut program = command.spawn().expect("Python starts");
        let mut lines = BufReader::new(program.stdout.take().expect("stdout is piped")).lines();
        let base = lines.next().and_then(Result::ok).expect("the receiver says its address");
        let client = reprise_server::https::client().no_proxy().build().expect("a client");
        Some(Receiver { program, base, client })
    }

    /// The address of a path; `receiver.py` says how each path answers.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Lets deliveries to a path be verified with this secret.
    ///
    /// # Panics
    /// If the receiver does not answer.
    pub async fn trust(&self, path: &str, secret: &str) {
        let put = self.client.put(self.url(path)).body(secret.to_owned());
        assert!(put.send().await.expect("the receiver answers").status().is_success());
    }

    /// What came to a path, oldest first. Each delivery was signed well.
    ///
    /// # Panics
    /// If a signature is wrong, or the receiver does not answer.
    pub async fn received(&self, path: &str) -> Vec<Value> {
        let answer = self.client.get(self.url("/")).send().await.expect("the receiver answers");
        let all: Vec<Value> = answer.json().await.expect("a list");
        let here: Vec<Value> = all.into_iter().filter(|it| it["path"] == path).collect();
        for delivery in &here {
            assert_eq!(delivery["fault"], Value::Null, "{delivery}");
            assert_eq!(delivery["type"], "application/json", "{delivery}");
        }
        here
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
