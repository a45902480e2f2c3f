//! An hour of 720p through a model of real size: cost of an ingest beyond decoding and encoding, processor usage, and
//! memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use reprise_encoders::video::{self, Event, Limits, Output, Request};
use reprise_encoders::{Frame, Input, ModelName};
use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::Server;

use super::cpu::{Cost, Meter};
use super::report::Report;
use super::seeded;

const MINUTES: usize = 60;
/// Number of frames for measuring encoding alone.
const FRAMES: usize = 600;
const PER_BATCH: usize = 32;

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    let model = folder.join("clip-b-32");
    seeded::write(&model, &seeded::VIT_B_32);
    let film = film(folder);
    let decode = {
        let meter = Meter::own();
        run(ffmpeg().arg("-i").arg(&film).args(["-an", "-f", "null", "-"]));
        meter.read()
    };
    let encode = encode(&model, &film).per(FRAMES as f64 / (60 * MINUTES) as f64);
    let ingested = ingest(folder, &model, &film).await;
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let floor = decode.cpu + encode.cpu;
    let Ingested { cost, busy, idle, peak } = ingested;
    report.long("decode alone (`ffmpeg -f null`)", decode, floor);
    report.long(&format!("encode alone ({FRAMES} frames, scaled up)"), encode, floor);
    report.long("**ingest** (server and its ffmpeg)", cost, floor);
    report.note(&format!(
        "Processors busy: {:.0} % of {cores} over the whole ingest, {:.0} % while frames were decoded or encoded. \
         Resident memory of the server: {idle} MiB idle with the model loaded, {peak} MiB at most ({} more).",
        100.0 * cost.cpu / (cores * cost.wall),
        100.0 * busy,
        peak - idle
    ));
}

/// An hour of video: a minute of moving pictures with grain, repeated.
fn film(folder: &Path) -> PathBuf {
    let (minute, film) = (folder.join("minute.mp4"), folder.join("hour.mp4"));
    let source = "testsrc2=s=1280x720:r=25:d=60,hue=h=67*floor(t/7),noise=alls=12:allf=t";
    run(ffmpeg()
        .args(["-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p"])
        .args(["-c:v", "libx264", "-preset", "veryfast", "-crf", "26"])
        .arg(&minute));
    let times = (MINUTES - 1).to_string();
    run(ffmpeg().args(["-stream_loop", &times, "-i"]).arg(&minute).args(["-c", "copy"]).arg(&film));
    film
}

/// Encodes the first frames in batches, as an ingest does.
fn encode(model: &Path, film: &Path) -> Cost {
    let name: ModelName = model.to_str().unwrap().parse().unwrap();
    let mut loaded = reprise_encoders::load(&name, 1).unwrap();
    let probe = video::probe(film, &Limits::default()).unwrap();
    let output = Output { scaling: loaded.space.scaling, per_second: Some(1.0) };
    let request = Request { detect_width: None, outputs: vec![output] };
    let mut frames: Vec<Frame> = Vec::new();
    for event in video::decode(film, &probe, request, &Limits::default()).unwrap() {
        if let Event::Sampled { frame, .. } = event.unwrap() {
            frames.push(frame);
        }
        if frames.len() == FRAMES {
            break;
        }
    }
    let inputs: Vec<Input> = frames.into_iter().map(Input::Frame).collect();
    let mut pass = |inputs: &[Input]| {
        inputs.chunks(PER_BATCH).for_each(|batch| drop(loaded.encoders[0].encode(batch).unwrap()));
    };
    pass(&inputs[..2 * PER_BATCH]);
    let meter = Meter::own();
    pass(&inputs);
    meter.read()
}

struct Ingested {
    cost: Cost,
    /// Used share of all processors' time during the job, without its first and last tenth.
    busy: f64,
    /// Resident memory of the idle server, in MiB.
    idle: u64,
    peak: u64,
}

async fn ingest(folder: &Path, model: &Path, film: &Path) -> Ingested {
    let data = folder.join("long");
    fs::create_dir_all(&data).unwrap();
    let arguments = ["--model", model.to_str().unwrap(), "--frames-per-second", "1", "--runners", "1"];
    let server = Server::start(&data, &arguments);
    let idle = resident(server.pid());
    let (peak, over) = (Arc::new(AtomicU64::new(idle)), Arc::new(AtomicBool::new(false)));
    let watch = std::thread::spawn({
        let (peak, over, pid) = (Arc::clone(&peak), Arc::clone(&over), server.pid());
        move || {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(resident(pid), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    });
    let meter = Meter::of(server.pid().to_string());
    let (_, answer) = server.upload(film, &[]).await;
    let job = answer["job"]["id"].as_str().unwrap().to_owned();
    let busy = busy(&server, &job).await;
    let ended = server.job_end(&job).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let cost = meter.read();
    over.store(true, Ordering::Relaxed);
    watch.join().unwrap();
    Ingested { cost, busy, idle, peak: peak.load(Ordering::Relaxed) }
}

/// Used share of all processors' time, from one tenth to nine tenths of the job.
async fn busy(server: &Server, job: &str) -> f64 {
    let reached = async |share: f64| loop {
        let (_, job) = server.get(&format!("/v1/jobs/{job}")).await;
        if job["progress"].as_f64() >= Some(share) || job["state"] == "succeeded" || job["state"] == "failed"
        {
            return processors();
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let (from, to) = (reached(0.1).await, reached(0.9).await);
    let [used, all] = [0, 1].map(|at| to[at] - from[at]);
    used / all
}

/// Busy ticks and all ticks of all processors. Neither includes time stolen by the host.
fn processors() -> [f64; 2] {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<f64> = stat
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .skip(1)
        .take(8)
        .map(|it| it.parse().unwrap())
        .collect();
    let all: f64 = ticks.iter().sum();
    [all - ticks[3] - ticks[4], all]
}

/// Resident memory of a process, in MiB.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}
