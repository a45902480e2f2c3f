//! Ranks full videos by late interaction: every query vector against every clip of the best videos.
//!
//! One vector for an hour of video describes no single minute well (LoVR, arXiv 2505.13928, pools all frames this way).
//! Candidates are the videos with the nearest pooled vectors, and the videos of the clips nearest to each query vector.
//! Each video's score uses its best clip for each query vector. BENCHMARKS.md compares this with pooled vectors.

use std::collections::HashMap;

use uuid::Uuid;

use super::error::SearchError;
use super::query_vectors;
use crate::app::Authorized;
use crate::catalog::Span;
use crate::terms::{Collection, KeySet, Level, QueryVectors, SpanKey, UnitVector, late_interaction};
use crate::vectors::{Allowed, Ask, EngineError, Hit, Hits, Scored, Vectors};

/// Least number of pooled candidates.
const CANDIDATES: usize = 200;
/// Clips per query vector whose videos become candidates.
const CLIPS_PER_VECTOR: usize = 20;

/// The best full videos with their scores.
pub(super) struct Videos {
    pub(super) hits: Hits,
    /// Pooled score and peak of each hit, by the key of its full-video span.
    pub(super) more: HashMap<SpanKey, OfVideo>,
}

/// Pooled score and peak of a full video.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfVideo {
    /// Cosine of the mean query vector and the video's own vector.
    pub(super) pooled: f32,
    /// Score of a clip as near to each query vector as the nearest one.
    pub(super) nearest: f32,
    /// Middle of the clip with the best cosine for any query vector.
    pub(super) peak_ms: Option<i64>,
}

/// Returns the best full videos of a space.
pub(super) async fn search(
    app: &Authorized,
    space: u32,
    query: &QueryVectors,
    ask: &Ask,
) -> Result<Videos, SearchError> {
    let visible = app.view().keys_allowed(None).await?.map(Allowed::keys);
    let first = candidates(&app.vectors, Collections { space, visible }, query, ask).await?;
    let keys: Vec<SpanKey> = first.pooled.hits.iter().chain(&first.clips).map(|hit| hit.key).collect();
    let spans = app.view().spans_beside(&keys, false).await?;
    let met = meetings(&app.vectors, space, query, allowed(&spans, ask)).await?;
    Ok(ranked(met, first.pooled, ask.k))
}

/// The collections of a space, as the caller sees them.
struct Collections {
    space: u32,
    /// `None`: the caller sees every clip.
    visible: Option<Allowed>,
}

/// Candidates by pooled vectors, and clips near single query vectors.
struct Candidates {
    pooled: Hits,
    clips: Vec<Hit>,
}

async fn candidates(
    vectors: &Vectors,
    Collections { space, visible }: Collections,
    query: &QueryVectors,
    ask: &Ask,
) -> Result<Candidates, EngineError> {
    let at = |level| Collection { space, level };
    let of_videos = Ask { k: ask.k.max(CANDIDATES), ..ask.clone() };
    let mean = query.mean().and_then(|mean| QueryVectors::new(vec![mean], Default::default()));
    let pooled =
        query_vectors::search(vectors, at(Level::Video), mean.as_ref().unwrap_or(query), &of_videos).await?;
    let of_clips = Ask { k: CLIPS_PER_VECTOR, only: visible, exact: false };
    let clips = vectors.search(at(Level::Clip), query.vectors(), &of_clips).await?;
    Ok(Candidates { pooled, clips: clips.into_iter().flat_map(|found| found.hits).collect() })
}

/// A full video and its clips.
struct Candidate<'a> {
    video: SpanKey,
    clips: Vec<&'a Span>,
}

/// The full videos of `spans` that the filter allows, with their clips.
fn allowed<'a>(spans: &'a [Span], ask: &Ask) -> Vec<Candidate<'a>> {
    let may = |key| ask.only.as_ref().is_none_or(|only| only.keys.contains(key));
    let full = spans.iter().filter(|span| span.level == Level::Video && may(span.key));
    let mut found: HashMap<Uuid, Candidate> =
        full.map(|span| (span.video, Candidate { video: span.key, clips: Vec::new() })).collect();
    for clip in spans.iter().filter(|span| span.level == Level::Clip) {
        if let Some(candidate) = found.get_mut(&clip.video) {
            candidate.clips.push(clip);
        }
    }
    found.into_values().collect()
}

/// Cosines of a full video with the query.
struct Met {
    video: SpanKey,
    /// For each query vector, the best cosine with one of the video's clips.
    best: Vec<f32>,
    more: OfVideo,
}

/// Compares the candidates with the query. Videos without a live vector are left out.
async fn meetings(
    vectors: &Vectors,
    space: u32,
    query: &QueryVectors,
    candidates: Vec<Candidate<'_>>,
) -> Result<Vec<Met>, EngineError> {
    let at = |level| Collection { space, level };
    let clips: KeySet = candidates.iter().flat_map(|it| &it.clips).map(|clip| clip.key).collect();
    let of_clips = by_key(vectors.scores(at(Level::Clip), &clips, query.vectors()).await?);
    let mean = query.mean();
    let asked: Vec<UnitVector> = mean.iter().cloned().chain(query.vectors().iter().cloned()).collect();
    let videos: KeySet = candidates.iter().map(|it| it.video).collect();
    let of_videos = by_key(vectors.scores(at(Level::Video), &videos, &asked).await?);
    let pooled = |cosines: &Vec<f32>| if mean.is_some() { cosines[0] } else { query.score_of(cosines) };
    let met = candidates.iter().filter_map(|it| {
        let pooled = pooled(of_videos.get(&it.video)?);
        let mut best = vec![-1.0_f32; query.vectors().len()];
        let mut peak: Option<(f32, i64)> = None;
        for clip in &it.clips {
            for (best, cosine) in best.iter_mut().zip(of_clips.get(&clip.key).into_iter().flatten()) {
                *best = best.max(*cosine);
                if peak.is_none_or(|(score, _)| score < *cosine) {
                    peak = Some((*cosine, clip.start_ms.midpoint(clip.end_ms)));
                }
            }
        }
        let (nearest, peak_ms) = (query.score_of(&best), peak.map(|(_, middle)| middle));
        Some(Met { video: it.video, best, more: OfVideo { pooled, nearest, peak_ms } })
    });
    Ok(met.collect())
}

fn by_key(scored: Vec<Scored>) -> HashMap<SpanKey, Vec<f32>> {
    scored.into_iter().map(|it| (it.key, it.cosines)).collect()
}

fn ranked(met: Vec<Met>, pooled: Hits, k: usize) -> Videos {
    let more = met.iter().map(|met| (met.video, met.more)).collect();
    let best: Vec<&[f32]> = met.iter().map(|met| &met.best[..]).collect();
    let scored = met.iter().zip(late_interaction(&best));
    let mut hits: Vec<Hit> = scored.map(|(met, score)| Hit { key: met.video, score }).collect();
    Hit::sort(&mut hits);
    let complete = pooled.complete && hits.len() <= k;
    hits.truncate(k);
    Videos { hits: Hits { hits, complete, exact: pooled.exact }, more }
}
