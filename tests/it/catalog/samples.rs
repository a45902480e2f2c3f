//! Sample videos, vectors and job results for a catalog.

use std::time::Duration;

use super::ALL;
use crate::faults::bed::until;
use reprise_server::catalog::{
    Added, Catalog, Filled, GivenClip, Ingested, IngestedSpan, Job, JobName, Leased, MediaFacts, NewSpace,
    NewVector, NewVideo, Segmentation, SpaceRow, Video,
};
use reprise_server::terms::{Level, UnitVector};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// A video with a content hash made from `name`.
pub(crate) fn video(name: &str) -> NewVideo {
    let hash: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    NewVideo {
        id: Uuid::now_v7(),
        content_hash: format!("{hash:0>64}"),
        file: format!("media/{name}.mp4"),
        file_name: format!("{name}.mp4"),
        bytes: 1000,
        title: name.to_owned(),
        metadata: json!({}),
        tags: Default::default(),
        folder: Default::default(),
        recorded_at: None,
        segmentation: Segmentation::content(30.0),
        given: vec![],
        subtitles: vec![],
        added_by: None,
        probed_ms: 0,
        upload: None,
    }
}

pub(crate) fn clip(start_ms: i64, end_ms: i64, metadata: Value) -> GivenClip {
    GivenClip { start_ms, end_ms, metadata }
}

pub(crate) async fn add(catalog: &Catalog, video: NewVideo) -> (Video, Job) {
    match catalog.view(ALL).add_video(video, None).await.unwrap() {
        Added::New(video, job) => (*video, *job),
        Added::Duplicate(..) => panic!("a new video was called a duplicate"),
    }
}

pub(crate) async fn space(catalog: &Catalog, name: &str, dim: usize) -> SpaceRow {
    let space =
        NewSpace { id: format!("{name:0>64}"), name: name.to_owned(), model: "builtin:tiny".to_owned(), dim };
    catalog.register_space(&space).await.unwrap()
}

/// A unit vector for this seed, and the norm of its raw vector.
pub(crate) fn vector(seed: u32, dim: usize) -> (UnitVector, f32) {
    let mut state = u64::from(seed) * 2 + 1;
    let raw: Vec<f32> = (0..dim)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    UnitVector::from_raw(&raw).unwrap()
}

pub(crate) fn facts(duration_ms: i64) -> MediaFacts {
    MediaFacts {
        duration_ms,
        frame_rate: 25.0,
        frames: u64::try_from(duration_ms).unwrap() / 40,
        width: 320,
        height: 180,
        codec: "h264".to_owned(),
        variable_frame_rate: false,
        media_offset_ms: 1075,
        plays_in_browsers: true,
        seek_is_safe: true,
        probe: json!({"format": "mp4", "é\"'": [1, 2.5]}),
    }
}

/// One span for the video and `clips` clip spans of one second, each with a vector in each of `spaces`.
pub(crate) fn ingested(clips: u32, spaces: &[&SpaceRow]) -> Ingested {
    let duration_ms = i64::from(clips) * 1000;
    let vectors = |seed| -> Vec<_> {
        let vector_in = |space: &&SpaceRow| {
            let (unit, norm) = vector(seed, space.space.dim);
            (space.key, unit, norm)
        };
        spaces.iter().map(vector_in).collect()
    };
    let span = |level, start_ms, end_ms, seed| IngestedSpan {
        given: None,
        level,
        start_ms,
        end_ms,
        vectors: vectors(seed),
    };
    let mut spans = vec![span(Level::Video, 0, duration_ms, 0)];
    spans.extend((0..clips).map(|number| {
        let start_ms = i64::from(number) * 1000;
        span(Level::Clip, start_ms, start_ms + 1000, number + 1)
    }));
    Ingested { facts: facts(duration_ms), warnings: vec!["truncated".to_owned()], spans }
}

/// The result of a fill job without moments.
pub(crate) fn filled(vectors: Vec<NewVector>) -> Filled {
    Filled { vectors, ..Filled::default() }
}

/// Leases the next job; there must be one. On Postgres a refused change may hold the job's row for a moment after its
/// answer, and a lease passes over rows that are held.
pub(crate) async fn lease(catalog: &Catalog) -> Leased {
    let next = async || catalog.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap();
    until("a job is waiting", next).await
}

/// Adds a video and ingests it with [`ingested`].
pub(crate) async fn add_ready(catalog: &Catalog, new: NewVideo, clips: u32, spaces: &[&SpaceRow]) -> Video {
    let (video, _) = add(catalog, new).await;
    let leased = lease(catalog).await;
    assert_eq!(leased.job.video, Some(video.id));
    catalog.finish_ingest(&leased.lease, ingested(clips, spaces)).await.unwrap();
    catalog.view(ALL).video(video.id).await.unwrap().unwrap()
}
