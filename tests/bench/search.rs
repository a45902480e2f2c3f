//! Searches over HTTP in a catalog of 10,000 clips, and the rows of catalogs of any size.

use std::path::Path;
use std::time::{Duration, Instant};

use reprise_encoders::ModelName;
use reprise_index::{Level, UnitVector};
use reprise_server::catalog::{
    self, Added, Catalog, Ingested, IngestedSpan, JobName, MediaFacts, NewSpace, NewVideo, Segmentation,
    Visibility,
};
use reprise_tests::server::Server;
use serde_json::{Value, json};
use uuid::Uuid;

use super::cpu::{Meter, percentile};
use super::report::Report;

/// Videos of a catalog of 10,000 clips.
pub(crate) const VIDEOS: u32 = 100;
pub(crate) const CLIPS_PER_VIDEO: u32 = 100;
/// Number of kinds of clips; clips of one kind look alike.
const KINDS: usize = 200;
const QUERIES: usize = 1000;
const WARM_UP: usize = 100;
const CLIP_MS: i64 = 4000;
const WORDS: [&str; 12] =
    ["a", "diver", "turns", "twice", "above", "the", "blue", "water", "while", "people", "watch", "slowly"];

pub(crate) async fn measure(folder: &Path, report: &mut Report) {
    let data = folder.join("search");
    std::fs::create_dir_all(&data).unwrap();
    fill(&data, "builtin:tiny", VIDEOS).await;
    let server = Server::start(&data, &[]);
    let clips = first_clips(&server).await;
    wait_for_graph(&server).await;
    let mut random = Random(7);
    for exact in [false, true] {
        let text = |random: &mut Random| json!({"text": words(random)});
        one(&server, report, "text", exact, |_| text(&mut random)).await;
        one(&server, report, "clip_id", exact, |query| json!({"clip_id": clips[query * 7 % clips.len()]}))
            .await;
    }
}

async fn one(
    server: &Server,
    report: &mut Report,
    kind: &str,
    exact: bool,
    mut query: impl FnMut(usize) -> Value,
) {
    let mut times = Vec::with_capacity(QUERIES);
    let mut meter = Meter::of(server.pid().to_string());
    let mut was_exact = 0;
    for number in 0..WARM_UP + QUERIES {
        if number == WARM_UP {
            meter = Meter::of(server.pid().to_string());
            times.clear();
        }
        let body = json!({"query": query(number), "exact": exact, "limit": 20});
        let started = Instant::now();
        let answer = server.search(&body).await;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
        assert_eq!(answer["results"].as_array().map(Vec::len), Some(20), "{answer}");
        was_exact += usize::from(answer["index"]["exact"] == true);
    }
    let way = match (exact, was_exact) {
        (true, _) => "exact",
        (false, 0) => "default: graph",
        (false, all) if all == WARM_UP + QUERIES => "default: scan",
        (false, _) => "default: graph and scan",
    };
    let cpu = meter.read().cpu * 1000.0 / QUERIES as f64;
    report.search(kind, way, percentile(&mut times, 50), percentile(&mut times, 95), cpu);
}

/// Fills the catalog with the rows of an ingest of `videos` films by `model`, without the films.
pub(crate) async fn fill(data: &Path, model: &str, videos: u32) {
    let space = reprise_encoders::load(&model.parse::<ModelName>().unwrap(), 1).unwrap().space;
    let catalog = catalog::open(&catalog::embedded_url(data)).await.unwrap();
    let new = NewSpace { id: space.id, name: space.name, model: space.model, dim: space.dim };
    let key = catalog.register_space(&new).await.unwrap().key;
    let mut random = Random(1);
    let kinds: Vec<Vec<f32>> = (0..KINDS).map(|_| random.vector(space.dim)).collect();
    for number in 0..videos {
        let mut spans = vec![span(Level::Video, 0, key, &mut random, &kinds)];
        spans.extend((0..CLIPS_PER_VIDEO).map(|clip| span(Level::Clip, clip, key, &mut random, &kinds)));
        add(&catalog, number, spans).await;
    }
    catalog.close().await;
}

fn span(level: Level, number: u32, space: u32, random: &mut Random, kinds: &[Vec<f32>]) -> IngestedSpan {
    let kind = &kinds[random.next() as usize % kinds.len()];
    let noise = random.vector(kind.len());
    let raw: Vec<f32> = kind.iter().zip(&noise).map(|(kind, noise)| kind + 0.5 * noise).collect();
    let (unit, norm) = UnitVector::from_raw(&raw).unwrap();
    let start_ms = i64::from(number) * CLIP_MS;
    let end_ms = match level {
        Level::Video => i64::from(CLIPS_PER_VIDEO) * CLIP_MS,
        _ => start_ms + CLIP_MS,
    };
    IngestedSpan { given: None, level, start_ms, end_ms, vectors: vec![(space, unit, norm)] }
}

async fn add(catalog: &Catalog, number: u32, spans: Vec<IngestedSpan>) {
    let video = NewVideo {
        id: Uuid::now_v7(),
        content_hash: format!("{number:064x}"),
        file: format!("videos/{number}.mp4"),
        file_name: format!("{number}.mp4"),
        bytes: 1,
        title: format!("film {number}"),
        metadata: json!({"number": number}),
        tags: Default::default(),
        folder: Default::default(),
        recorded_at: None,
        segmentation: Segmentation::content(30.0),
        given: Vec::new(),
        subtitles: vec![],
        added_by: None,
        probed_ms: 0,
        upload: None,
    };
    let added = catalog.view(&Visibility::All).add_video(video, None).await.unwrap();
    assert!(matches!(added, Added::New(..)));
    let leased =
        catalog.lease_job(Uuid::now_v7(), &JobName::ALL, Duration::from_secs(60)).await.unwrap().unwrap();
    let facts = MediaFacts {
        duration_ms: i64::from(CLIPS_PER_VIDEO) * CLIP_MS,
        frame_rate: 25.0,
        frames: u64::from(CLIPS_PER_VIDEO) * 100,
        width: 320,
        height: 180,
        codec: "h264".to_owned(),
        variable_frame_rate: false,
        media_offset_ms: 0,
        plays_in_browsers: true,
        seek_is_safe: true,
        probe: json!({}),
    };
    let ingested = Ingested { facts, warnings: Vec::new(), spans };
    catalog.finish_ingest(&leased.lease, ingested).await.unwrap();
}

/// The clips of the oldest [`VIDEOS`] videos.
pub(crate) async fn first_clips(server: &Server) -> Vec<String> {
    let mut ids = Vec::new();
    let (_, videos) = server.get(&format!("/v1/videos?limit={VIDEOS}")).await;
    for video in videos["items"].as_array().unwrap() {
        let path = format!("/v1/videos/{}/clips?limit=1000", video["id"].as_str().unwrap());
        let (_, clips) = server.get(&path).await;
        ids.extend(clips["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(ids.len(), (VIDEOS * CLIPS_PER_VIDEO) as usize);
    ids
}

/// Waits at most 20 minutes until a search uses the graph, which the server builds in the background. A collection of
/// 10,000 vectors has one.
pub(crate) async fn wait_for_graph(server: &Server) {
    for _ in 0..2400 {
        let answer = server.search(&json!({"query": {"text": "water"}, "limit": 20})).await;
        if answer["index"]["exact"] == false {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

pub(crate) fn words(random: &mut Random) -> String {
    let count = 3 + random.next() as usize % 6;
    let word = |_| WORDS[random.next() as usize % WORDS.len()];
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// A splitmix64 generator: the same numbers in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A vector of about normal values, each the sum of four uniform numbers.
    pub(crate) fn vector(&mut self, dim: usize) -> Vec<f32> {
        let uniform = |random: &mut Random| (random.next() >> 40) as f32 / (1 << 23) as f32 - 1.0;
        (0..dim).map(|_| (0..4).map(|_| uniform(self)).sum()).collect()
    }
}
