//! Vector engines side by side on 100,000 vectors of 512 values: build, recall, searches, bytes.
//!
//! Milvus is left out: Milvus Lite keeps one folder for one process and is no measure of a Milvus.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use reprise_server::catalog;
use reprise_server::terms::{Collection, Level, SpaceInfo, SpanKey, UnitVector, VideoNumber};
use reprise_server::vectors::builtin::{Builtin, Settings};
use reprise_server::vectors::{Ask, Batch, HnswRs, Pgvector, Put, VectorIndex};
use reprise_tests::postgres::Mortal;
use tokio_util::sync::CancellationToken;

use super::cpu::{Cost, Meter, used};
use super::report::Report;

/// Names of the engines on the command line.
const ENGINES: [&str; 3] = ["builtin", "hnsw_rs", "pgvector"];
const VECTORS: u64 = 100_000;
const DIM: usize = 512;
const SPACE: u32 = 1;
const AT: Collection = Collection { space: SPACE, level: Level::Clip };
const PER_BATCH: u64 = 2_000;
const QUERIES: u64 = 500;
/// A build has ended when hardly any CPU time was used for so long; this time counts as a part of the build.
const QUIET: Duration = Duration::from_secs(2);
/// Clusters of the vectors. Real embeddings are neither uniform nor centred.
const CLUSTERS: u64 = 1_000;

/// A row of the table.
pub(crate) struct Row {
    pub(crate) engine: &'static str,
    pub(crate) build: Cost,
    /// CPU seconds of the engine's own server during the build.
    pub(crate) build_outside: f64,
    pub(crate) recall: f64,
    /// One query, of the engine and of its server.
    pub(crate) query: Cost,
    pub(crate) query_outside: f64,
    pub(crate) bytes_per_vector: f64,
}

/// Measures each engine, or the named ones.
pub(crate) async fn measure(names: &[String], report: &mut Report) {
    let wanted = |name: &str| {
        !names.iter().any(|it| ENGINES.contains(&it.as_str())) || names.iter().any(|it| it == name)
    };
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog::open(&catalog::embedded_url(folder.path())).await.unwrap();
    if wanted("builtin") {
        let index = folder.path().join("index");
        let builtin = Builtin::open(index, catalog.clone(), &[], Settings::default()).await.unwrap();
        report.engine(&of_engine("builtin, int8", Arc::new(builtin), None).await);
    }
    if wanted("hnsw_rs") {
        report.engine(&of_engine("hnsw_rs, f32", Arc::new(HnswRs::default()), None).await);
    }
    let server = if wanted("pgvector") { Mortal::start().await } else { None };
    let Some(server) = server else { return };
    let library = catalog.library_id().await.unwrap();
    let pgvector = Pgvector::open(&server.url(), library).await.unwrap();
    report.engine(&of_engine("pgvector 0.8, f32", Arc::new(pgvector), Some(server.id())).await);
}

async fn of_engine(name: &'static str, engine: Arc<dyn VectorIndex>, server: Option<u32>) -> Row {
    let outside = || server.map_or(0.0, tree);
    engine.create(&SpaceInfo { key: SPACE, id: "bench".to_owned(), dim: DIM }).await.unwrap();
    let closing = CancellationToken::new();
    let (meter, before) = (Meter::own(), outside());
    let (kept, until) = (Arc::clone(&engine), closing.clone());
    let keeper = tokio::spawn(async move { kept.maintain(until).await });
    fill(&engine, &outside).await;
    let (build, build_outside) = (meter.read(), outside() - before);
    let ask = Ask { k: 10, only: None, exact: false };
    let (mut found, mut wall) = (0, Vec::new());
    let (meter, before) = (Meter::own(), outside());
    let mut answers = Vec::new();
    for number in 0..QUERIES {
        let query = [vector(VECTORS + number)];
        let started = std::time::Instant::now();
        answers.push(engine.search(AT, &query, &ask).await.unwrap().remove(0));
        wall.push(started.elapsed().as_secs_f64());
    }
    let (cost, query_outside) = (meter.read(), (outside() - before) / QUERIES as f64);
    for (number, answer) in answers.iter().enumerate() {
        let query = [vector(VECTORS + number as u64)];
        let right = engine.search(AT, &query, &Ask { exact: true, ..ask.clone() }).await.unwrap().remove(0);
        let right: HashMap<SpanKey, f32> = right.hits.iter().map(|hit| (hit.key, hit.score)).collect();
        found += answer.hits.iter().filter(|hit| right.contains_key(&hit.key)).count();
    }
    let status = engine.status().await.unwrap();
    closing.cancel();
    keeper.await.unwrap();
    engine.close().await;
    let query = Cost { cpu: cost.cpu / QUERIES as f64, wall: super::cpu::percentile(&mut wall, 50) };
    let recall = found as f64 / (10 * QUERIES) as f64;
    let bytes_per_vector = status.collections[0].bytes as f64 / VECTORS as f64;
    Row { engine: name, build, build_outside, recall, query, query_outside, bytes_per_vector }
}

/// Applies all vectors, and waits for the graph and the end of all work in the background.
async fn fill(engine: &Arc<dyn VectorIndex>, outside: &dyn Fn() -> f64) {
    for from in (0..VECTORS).step_by(PER_BATCH as usize) {
        let put = (from..from + PER_BATCH).map(|key| Put {
            at: AT,
            key: SpanKey::new(key),
            video: VideoNumber::new(1 + key / 100),
            unit: vector(key),
        });
        let seq = i64::try_from(from + PER_BATCH).ok();
        engine.apply(Batch { put: put.collect(), seq, ..Batch::default() }).await.unwrap();
        engine.ready().await;
    }
    loop {
        let status = engine.status().await.unwrap();
        if status.collections.iter().any(|held| held.graph && held.live == VECTORS) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    loop {
        let before = used("self") + outside();
        tokio::time::sleep(QUIET).await;
        if used("self") + outside() - before < 0.05 {
            return;
        }
    }
}

/// A vector in one of the clusters.
fn vector(seed: u64) -> UnitVector {
    let raw: Vec<f32> =
        (0..DIM).map(|at| 0.3 + noise(u64::MAX - seed % CLUSTERS, at) + 0.6 * noise(seed, at)).collect();
    UnitVector::from_raw(&raw).unwrap().0
}

/// A pseudo-random value in -0.5 .. 0.5, a function of its arguments.
fn noise(seed: u64, at: usize) -> f32 {
    let mut state = (seed << 20 ^ at as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((state ^ (state >> 31)) >> 40) as f32 / (1 << 24) as f32 - 0.5
}

/// CPU seconds of a process, its ended children, and its living children.
fn tree(id: u32) -> f64 {
    let parent = |process: &str| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let children = names.filter(|name| parent(name) == Some(id));
    used(&id.to_string()) + children.map(|child| used(&child)).sum::<f64>()
}
