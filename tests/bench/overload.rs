//! Ten times more concurrent searches than the server admits, mixed with uploads: goodput, waiting times and memory, beside
//! those at capacity.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use reqwest::StatusCode;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::cpu::percentile;
use super::report::Report;
use super::search;
use super::seeded::{self, VIT_B_32};

/// Searches that the server admits at once, its default.
const CAPACITY: usize = 64;
/// A client that was refused waits as long as the answer's Retry-After asks.
const PAUSE: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_secs(20);
const UPLOADERS: usize = 2;

/// What the clients of one trial saw.
#[derive(Default)]
struct Seen {
    /// Milliseconds until 200.
    admitted: Vec<f64>,
    /// Milliseconds until 429.
    refused: Vec<f64>,
    /// Answers of any other status.
    other: Vec<StatusCode>,
    uploads: usize,
}

/// The numbers of one trial.
pub(crate) struct Trial {
    pub(crate) clients: usize,
    pub(crate) goodput: f64,
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) refused: usize,
    pub(crate) refused_p99: f64,
    pub(crate) uploads: usize,
    /// Resident memory of the server at the trial's end and at its highest, in MiB.
    pub(crate) memory: f64,
    pub(crate) memory_peak: f64,
}

pub(crate) async fn measure(folder: &Path, minutes: f64, report: &mut Report) {
    let (data, model) = (folder.join("overload"), folder.join("vit-b-32"));
    std::fs::create_dir_all(&data).unwrap();
    seeded::write(&model, &VIT_B_32);
    let model = model.to_str().unwrap();
    search::fill(&data, model, search::VIDEOS).await;
    let server = Arc::new(Server::start(&data, &["--model", model]));
    give_cores(&server);
    let film = film(folder, "film", &["testsrc2", "smptebars"], Store::Web);
    let length = Duration::from_secs_f64(minutes * 60.0);
    trial(&server, CAPACITY, WARM_UP, &film).await;
    let calm = trial(&server, CAPACITY, length / 5, &film).await;
    report.overload("at capacity", &calm);
    let overloaded = trial(&server, 10 * CAPACITY, length, &film).await;
    report.overload("ten times more", &overloaded);
    report.note(&format!(
        "Under overload: goodput {:.0} % of that at capacity; p95 of admitted searches {:.2} times as long.",
        100.0 * overloaded.goodput / calm.goodput,
        overloaded.p95 / calm.p95
    ));
}

/// The first core for the server and its decoders, the second for the clients, so that these do not slow the server.
fn give_cores(server: &Server) {
    let one = |core| {
        let mut cores = CpuSet::new();
        cores.set(core);
        cores
    };
    // A thread inherits the cores of the one that starts it, so threads of before are set too.
    for entry in std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap() {
        let thread: i32 = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        sched_setaffinity(Pid::from_raw(thread), &one(0)).unwrap();
    }
    for entry in std::fs::read_dir("/proc/self/task").unwrap() {
        let thread: i32 = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        sched_setaffinity(Pid::from_raw(thread), &one(1)).unwrap();
    }
}

async fn trial(server: &Arc<Server>, clients: usize, length: Duration, film: &Path) -> Trial {
    let (seen, ended) = (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicBool::new(false)));
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        tasks.spawn(search_on(Arc::clone(server), Arc::clone(&seen), Arc::clone(&ended), number as u64));
    }
    for _ in 0..UPLOADERS {
        tasks.spawn(upload_on(Arc::clone(server), Arc::clone(&seen), Arc::clone(&ended), film.to_owned()));
    }
    let started = Instant::now();
    let mut memory_peak: f64 = 0.0;
    while started.elapsed() < length {
        tokio::time::sleep(Duration::from_millis(500)).await;
        memory_peak = memory_peak.max(resident_mib(server));
    }
    let seconds = started.elapsed().as_secs_f64();
    let good = seen.lock().await.admitted.len();
    ended.store(true, Ordering::Relaxed);
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let mut seen = std::mem::take(&mut *seen.lock().await);
    assert!(seen.other.is_empty(), "neither 200 nor 429: {:?}", seen.other);
    Trial {
        clients,
        goodput: good as f64 / seconds,
        p50: percentile(&mut seen.admitted, 50),
        p95: percentile(&mut seen.admitted, 95),
        refused: seen.refused.len(),
        refused_p99: if seen.refused.is_empty() { 0.0 } else { percentile(&mut seen.refused, 99) },
        uploads: seen.uploads,
        memory: resident_mib(server),
        memory_peak,
    }
}

async fn search_on(server: Arc<Server>, seen: Arc<Mutex<Seen>>, ended: Arc<AtomicBool>, seed: u64) {
    let mut random = search::Random(seed);
    while !ended.load(Ordering::Relaxed) {
        let body = json!({"query": {"text": search::words(&mut random)}, "limit": 20});
        let started = Instant::now();
        let status = server.post("/v1/search", &body).await.0;
        let took = started.elapsed().as_secs_f64() * 1000.0;
        let mut seen = seen.lock().await;
        match status {
            StatusCode::OK => seen.admitted.push(took),
            StatusCode::TOO_MANY_REQUESTS => {
                seen.refused.push(took);
                drop(seen);
                tokio::time::sleep(PAUSE).await;
            }
            other => seen.other.push(other),
        }
    }
}

/// Uploads a film, waits for its job and deletes it, again and again.
async fn upload_on(server: Arc<Server>, seen: Arc<Mutex<Seen>>, ended: Arc<AtomicBool>, film: PathBuf) {
    while !ended.load(Ordering::Relaxed) {
        let copy = distinct(&film);
        let (status, answer) = server.upload(&copy, &[]).await;
        std::fs::remove_file(copy).unwrap();
        if status != StatusCode::ACCEPTED {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        server.job_end(answer["job"]["id"].as_str().unwrap()).await;
        server.delete(&format!("/v1/videos/{}", answer["video"]["id"].as_str().unwrap())).await;
        seen.lock().await.uploads += 1;
    }
}

/// A copy of an MP4 file with bytes of its own, since the server keeps equal files once: it ends with an empty box.
pub(crate) fn distinct(film: &Path) -> PathBuf {
    let id = uuid::Uuid::now_v7();
    let mut bytes = std::fs::read(film).unwrap();
    bytes.extend_from_slice(&24_u32.to_be_bytes());
    bytes.extend_from_slice(b"free");
    bytes.extend_from_slice(id.as_bytes());
    let copy = film.with_file_name(format!("{id}.mp4"));
    std::fs::write(&copy, bytes).unwrap();
    copy
}

/// Resident memory of the server, in MiB.
pub(crate) fn resident_mib(server: &Server) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap() / 1024.0
}
