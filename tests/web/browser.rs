//! A private headless Chromium, driven by a private chromedriver.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use hyper::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::Url;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Browsers at once in this process: each takes most of a core and some hundred megabytes.
static BROWSERS: Semaphore = Semaphore::const_new(4);

/// Longest wait for the driver to stop its browsers.
const STOP: Duration = Duration::from_secs(10);

/// A browser. Closing or dropping it stops the process.
pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Driver,
    _profile: TempDir,
    _one_of_few: SemaphorePermit<'static>,
}

/// A command of Chromium's own protocol, for what WebDriver lacks: media features, network conditions.
#[derive(Debug)]
pub(crate) struct DevTools {
    pub(crate) name: &'static str,
    pub(crate) parameters: Value,
}

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, <Url as std::str::FromStr>::Err> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({"cmd": self.name, "params": self.parameters}).to_string()))
    }
}

/// The chromedriver process. On a regular stop it also stops its browsers.
struct Driver {
    child: Child,
    /// Kept open: a driver that cannot print exits.
    stdout: BufReader<ChildStdout>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + STOP;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    pub(crate) async fn start(phone: bool) -> Browser {
        let one_of_few = BROWSERS.acquire().await.expect("never closed");
        let profile = tempfile::tempdir().expect("a temporary folder");
        let (driver, port) = start_driver(profile.path());
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities(&profile, phone))
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("a browser session");
        Browser { client, driver, _profile: profile, _one_of_few: one_of_few }
    }

    pub(crate) async fn close(self) {
        // Fails if the browser has already exited; stopping the driver removes the rest.
        let _ = self.client.close().await;
        drop(self.driver);
    }
}

/// Attempts to start a driver. It picks a free port and binds it later, so another process can take the port between.
const STARTS: usize = 5;

/// Starts a driver. `scratch` is the folder for files that killed browsers leave behind.
fn start_driver(scratch: &Path) -> (Driver, u16) {
    let mut refused = String::new();
    for _ in 0..STARTS {
        match try_to_start_driver(scratch) {
            Ok(started) => return started,
            Err(output) => refused = output,
        }
    }
    panic!("chromedriver named no port:\n{refused}");
}

/// The driver and its port, or its output if it exits without a port.
fn try_to_start_driver(scratch: &Path) -> Result<(Driver, u16), String> {
    let mut child = Command::new("chromedriver")
        .arg("--port=0")
        .env("TMPDIR", scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver starts");
    let stdout = BufReader::new(child.stdout.take().expect("its output"));
    let mut driver = Driver { child, stdout };
    let mut said = String::new();
    loop {
        let mut line = String::new();
        let read = driver.stdout.read_line(&mut line).expect("its output is text");
        said.push_str(&line);
        if let Some(port) = line.split("successfully on port ").nth(1) {
            let port = port.trim().trim_end_matches('.').parse().expect("a port");
            return Ok((driver, port));
        }
        if read == 0 {
            return Err(said);
        }
    }
}

fn capabilities(profile: &TempDir, phone: bool) -> Map<String, Value> {
    let profile = format!("--user-data-dir={}", profile.path().display());
    let arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1280,900",
        &profile,
    ];
    let mut options = json!({"args": arguments});
    if phone {
        options["mobileEmulation"] =
            json!({"deviceMetrics": {"width": 390, "height": 844, "pixelRatio": 2.0, "touch": true}});
    }
    let wanted = json!({
        "goog:chromeOptions": options,
        "goog:loggingPrefs": {"browser": "ALL"},
        "timeouts": {"script": 60_000, "pageLoad": 60_000, "implicit": 0},
    });
    wanted.as_object().cloned().expect("an object")
}
