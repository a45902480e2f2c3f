//! What parts of an answer cost: searches over 10,000 clips with each part switched on and off, in turns.

use std::path::Path;
use std::time::Instant;

use reprise_tests::server::Server;
use serde_json::{Value, json};

use super::cpu::{percentile, used};
use super::report::Report;
use super::search::{Random, all_clips, fill, wait_for_graph, words};

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

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    let start = async |name: &str, mode: &str| {
        let data = folder.join(name);
        std::fs::create_dir_all(&data).unwrap();
        fill(&data, "builtin:tiny").await;
        let server = Server::start(&data, &["--query-log", mode]);
        wait_for_graph(&server).await;
        server
    };
    let (logged, silent) = (start("logged", "full").await, start("silent", "off").await);
    // The libraries hold the same vectors under ids of their own.
    let clips = [all_clips(&silent).await, all_clips(&logged).await];
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
                let clips = &clips[usize::from(variant.logged)];
                let query = |at: usize| match kind {
                    "text" => json!({"text": texts[at]}),
                    _ => json!({"clip_id": clips[(block * BLOCK + at) * 7 % clips.len()]}),
                };
                run(server, variant, query, block > 0).await;
            }
        }
        for variant in &mut variants {
            let cpu = variant.cpu * 1000.0 / variant.times.len() as f64;
            let [p50, p95] = [50, 95].map(|percent| percentile(&mut variant.times, percent));
            report.search(kind, variant.name, p50, p95, cpu);
        }
    }
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
