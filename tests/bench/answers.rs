//! What parts of an answer cost: searches over 10,000 and a million clips with each part switched on and off, in turns.
//! And what a map of these clips costs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use reprise_index::{Background, UnitVector};
use reprise_tests::server::Server;
use serde_json::{Value, json};

use super::cpu::{Meter, percentile, used};
use super::overload::resident_mib;
use super::report::Report;
use super::search::{CLIPS_PER_VIDEO, Random, fill, first_clips, wait_for_graph, words};

/// Searches of one variant in a row.
const BLOCK: usize = 50;
/// Blocks of each variant. The first one warms up.
const BLOCKS: usize = 21;

/// A way to search.
struct Variant {
    name: &'static str,
    /// Whether the server logs searches.
    logged: bool,
    /// Fields of the request.
    more: Value,
    times: Vec<f64>,
    cpu: f64,
}

impl Variant {
    fn new(name: &'static str, logged: bool, more: Value) -> Variant {
        Variant { name, logged, more, times: Vec::new(), cpu: 0.0 }
    }
}

fn variants() -> Vec<Variant> {
    let facets = json!([{"field": "metadata.number"}, {"by": "video"}, {"by": "day"}]);
    vec![
        Variant::new("nothing: overlaps kept, no query log", false, json!({"overlaps": "keep"})),
        Variant::new("overlaps folded", false, json!({})),
        Variant::new("overlaps folded, query log", true, json!({})),
        Variant::new("... and near duplicates folded", true, json!({"near_duplicates": "fold"})),
        Variant::new("... and diversity 0.3", true, json!({"diversity": 0.3})),
        Variant::new("... and three facets", true, json!({"facets": facets})),
    ]
}

/// Numbers of clips, as they are written in the table.
const SIZES: [(u32, &str); 2] = [(10_000, "10,000"), (1_000_000, "1,000,000")];
/// Values of a vector of `builtin:tiny`.
const MAP_DIM: usize = 64;
/// Times that the background of one query is measured.
const BACKGROUNDS: usize = 1000;

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    for (clips, size) in SIZES {
        let data = folder.join(size);
        std::fs::create_dir_all(&data).unwrap();
        fill(&data, "builtin:tiny", clips / CLIPS_PER_VIDEO).await;
        of_size(&data, size, report).await;
        std::fs::remove_dir_all(&data).unwrap();
    }
    for dim in [512, 3072] {
        report.background(dim, background(dim));
    }
}

/// Microseconds of a query's background: its scores over a sample of as many spans as a search uses, and what `z` needs
/// of them.
fn background(dim: usize) -> f64 {
    let mut random = Random(3);
    let mut unit = || UnitVector::from_raw(&random.vector(dim)).unwrap().0;
    let sample: Vec<UnitVector> = (0..Background::SAMPLE).map(|_| unit()).collect();
    let mut times: Vec<f64> = (0..BACKGROUNDS)
        .map(|_| {
            let query = unit();
            let started = Instant::now();
            let scores = sample.iter().map(|span| query.dot(span)).collect();
            assert!(std::hint::black_box(Background::of(scores, 1_000_000)).is_some());
            started.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    percentile(&mut times, 50)
}

/// Measures all variants in a filled library. One server logs searches, the other does not; they take turns.
async fn of_size(data: &Path, size: &str, report: &mut Report) {
    let copy = data.with_extension("logged");
    let copied = Command::new("cp").arg("-r").arg(data).arg(&copy).status().unwrap();
    assert!(copied.success());
    let silent = Server::start(data, &["--query-log", "off"]);
    wait_for_graph(&silent).await;
    let logged = Server::start(&copy, &["--query-log", "full"]);
    wait_for_graph(&logged).await;
    let clips = first_clips(&silent).await;
    for kind in ["text", "clip_id"] {
        let mut variants = variants();
        let mut random = Random(7);
        for block in 0..BLOCKS {
            // The same texts for all, and each variant comes first in turn.
            let texts: Vec<String> = (0..BLOCK).map(|_| words(&mut random)).collect();
            let count = variants.len();
            for turn in 0..count {
                let variant = &mut variants[(block + turn) % count];
                let server = if variant.logged { &logged } else { &silent };
                let query = |at: usize| match kind {
                    "text" => json!({"text": texts[at]}),
                    _ => json!({"clip_id": clips[(block * BLOCK + at) * 7 % clips.len()]}),
                };
                run(server, variant, query, block > 0).await;
            }
        }
        // The first variant does the least.
        let mut least = None;
        for variant in &mut variants {
            let cpu = variant.cpu * 1000.0 / variant.times.len() as f64;
            let [p50, p95] = [50, 95].map(|percent| percentile(&mut variant.times, percent));
            let least = *least.get_or_insert(p95);
            report.answer(&format!("{size} | {kind} | {}", variant.name), [p50, p95, p95 / least, cpu]);
        }
    }
    drop(logged);
    std::fs::remove_dir_all(&copy).unwrap();
    report.note(&format!("The map of {size} clips of {MAP_DIM} values: {}", map(&silent).await));
}

/// Has a map of all clips made, then reads all of it. Says what both cost.
async fn map(server: &Server) -> String {
    let idle = resident_mib(server);
    let (meter, mut most) = (Meter::of(server.pid().to_string()), idle);
    loop {
        let (_, map) = server.get("/v1/map?limit=1").await;
        assert!(map["problem"].is_null(), "{map}");
        if !map["made_at"].is_null() {
            break;
        }
        most = most.max(resident_mib(server));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (made, reading) = (meter.read(), Instant::now());
    let (mut spans, mut cursor) = (0, String::new());
    loop {
        let (_, page) = server.get(&format!("/v1/map?limit=20000{cursor}")).await;
        spans += page["ids"].as_array().unwrap().len();
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    format!(
        "made in {:.0} s with {:.0} CPU s and {:.0} MiB of memory beside the {idle:.0} MiB of the idle server; \
         its {spans} points read in {:.1} s, 20,000 a page.",
        made.wall,
        made.cpu,
        most - idle,
        reading.elapsed().as_secs_f64()
    )
}

/// Runs a block of searches. `counts`: whether their times count.
async fn run(server: &Server, variant: &mut Variant, query: impl Fn(usize) -> Value, counts: bool) {
    let process = server.pid().to_string();
    let before = used(&process);
    for at in 0..BLOCK {
        let mut body = json!({"query": query(at), "limit": 20});
        body.as_object_mut().unwrap().extend(variant.more.as_object().unwrap().clone());
        let started = Instant::now();
        let answer = server.search(&body).await;
        let time = started.elapsed().as_secs_f64() * 1000.0;
        assert!(answer["results"].as_array().is_some_and(|hits| !hits.is_empty()), "{answer}");
        if counts {
            variant.times.push(time);
        }
    }
    if counts {
        variant.cpu += used(&process) - before;
    }
}
