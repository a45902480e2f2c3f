//! The metrics as Prometheus reads them, and what alerts and dashboard ask for.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use reprise_tests::film::{Store, film};
use reprise_tests::program;
use reprise_tests::server::Server;
use serde_json::json;

use crate::faults::bed::until;

/// Metrics of alerts and dashboard that a server may lack, with the reason.
const CONDITIONAL: [(&str, &str); 5] = [
    ("reprise_index_mended_total", "comes with the first damage of the index's files"),
    ("reprise_index_recall_at_10", "is measured where a graph is walked: from thousands of vectors on"),
    ("reprise_frames_total", "comes with models that encode frames one by one"),
    ("up", "Prometheus makes it"),
    ("scrape_duration_seconds", "Prometheus makes it"),
];

fn docker(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docker").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of metrics in rules and queries: ours by their prefix, and the names that Prometheus makes.
fn names_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let is_metric = |word: &&str| {
        word.starts_with("reprise_")
            || word.starts_with("process_")
            || CONDITIONAL[3..].iter().any(|it| it.0 == *word)
    };
    words.filter(is_metric).map(str::to_owned).collect()
}

/// The name under which a histogram's series are described.
fn family(name: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

/// A server that has ingested a video, answered a search and checked its index.
async fn served() -> String {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let server = Server::start(&data, &["--index-check-seconds", "0.05"]);
    server.ingest(&film(folder.path(), "one", &["testsrc2"], Store::Web)).await;
    server.search(&json!({"query": {"text": "x"}})).await;
    until("the index is checked", async || server.metric("reprise_index_keys_equal").await).await;
    server.request("GET", "/metrics").send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn whatever_alerts_and_dashboard_ask_for_is_served() {
    let served = served().await;
    let described: BTreeSet<&str> =
        served.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let asked = names_in(&(docker("prometheus/alerts.yml") + &docker("grafana/reprise.json")));
    assert!(asked.len() > 15, "{asked:?}");
    for name in &asked {
        let is_conditional = CONDITIONAL.iter().any(|it| it.0 == name);
        assert!(is_conditional || described.contains(family(name)), "{name} is not served");
    }
    for (name, why) in CONDITIONAL {
        assert!(asked.contains(name), "nobody asks for {name}, which {why}");
    }
    if cfg!(target_os = "linux") {
        for name in [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_open_fds",
            "process_threads",
        ] {
            assert!(described.contains(name), "{name} is not served");
        }
    }
}

#[tokio::test]
async fn prometheus_finds_no_fault_with_the_metrics() {
    let Some(promtool) = program("promtool") else { return };
    let mut check = Command::new(&promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(served().await.as_bytes()).unwrap();
    let said = check.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout) + String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && text.is_empty(), "{text}");
}

#[test]
fn the_alerts_are_rules_that_fire() {
    let Some(promtool) = program("promtool") else { return };
    for (what, file) in [("check", "alerts.yml"), ("test", "alerts_test.yml")] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docker/prometheus");
        let said = Command::new(&promtool).args([what, "rules", file]).current_dir(folder).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    }
}
