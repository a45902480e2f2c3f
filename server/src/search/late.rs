//! Full videos by late interaction: every window of the query against every clip of the best videos.
//!
//! One vector for an hour of video says little of any minute of it (LoVR, arXiv 2505.13928, pools all frames so). The
//! pooled vectors, and the clips nearest to each window, name the candidates; their order is by how well each window is
//! met by a clip of the video. Measured against pooled vectors in BENCHMARKS.md.

use std::collections::HashMap;
use std::sync::Arc;

use reprise_index::{Filter, Hit, Hits, Level, Mode, SpaceLevel, UnitVector};
use roaring::RoaringBitmap;

use super::error::SearchError;
use super::windows::{QueryVectors, dot};
use crate::app::App;
use crate::catalog::Span;
use crate::gallery::{Gallery, GalleryError};

/// Full videos that are looked at more closely, at least.
const CANDIDATES: usize = 200;
/// Clips near each window whose videos are looked at too.
const CLIPS_PER_WINDOW: usize = 20;
/// What it is worth that all windows are met by this video and no other.
const COVERAGE_WEIGHT: f32 = 0.1;

/// The best full videos with their scores.
pub(super) struct Videos {
    pub(super) hits: Hits,
    /// By key: the cosine with the video's own vector, and the middle of the clip that meets a window best.
    pub(super) more: HashMap<u32, (f32, Option<i64>)>,
}

/// The `wanted` best full videos of a space that `only` lets through.
pub(super) async fn search(
    app: &App,
    space: u32,
    query: &QueryVectors,
    (wanted, only): (usize, Option<Arc<RoaringBitmap>>),
    mode: Mode,
) -> Result<Videos, SearchError> {
    let gallery = Arc::clone(&app.gallery);
    let (searched, filter) = (query.clone(), Filter { only: only.clone() });
    let first = blocking(move || candidates(&gallery, space, &searched, (wanted, &filter), mode)).await??;
    let keys: Vec<u32> = first.pooled.hits.iter().chain(&first.clips).map(|hit| hit.key).collect();
    let spans = app.catalog.spans_beside(&keys, false).await?;
    let (gallery, searched) = (Arc::clone(&app.gallery), query.clone());
    let videos =
        blocking(move || ranked(&gallery, space, &searched, spans, first, (wanted, only.as_deref()))).await?;
    Ok(videos?)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SearchError> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

/// What the pooled vectors and the single windows point at.
struct Candidates {
    pooled: Hits,
    clips: Vec<Hit>,
}

fn candidates(
    gallery: &Gallery,
    space: u32,
    query: &QueryVectors,
    (wanted, filter): (usize, &Filter),
    mode: Mode,
) -> Result<Candidates, GalleryError> {
    let at = |level| SpaceLevel { space, level };
    let count = wanted.max(CANDIDATES);
    let pooled = match query.mean() {
        Some(mean) => gallery.search(at(Level::Video), &mean, count, filter, mode)?,
        None => query.search(gallery, at(Level::Video), count, (filter, mode))?,
    };
    let mut clips = Vec::new();
    for window in query.windows() {
        let near =
            gallery.search(at(Level::Clip), window, CLIPS_PER_WINDOW, &Filter::default(), Mode::Auto)?;
        clips.extend(near.hits);
    }
    Ok(Candidates { pooled, clips })
}

/// For each window, the best cosine with a clip of one video.
struct Met {
    video: u32,
    best: Vec<f32>,
    /// The best of all, and the middle of its clip.
    peak: Option<(f32, i64)>,
}

fn ranked(
    gallery: &Gallery,
    space: u32,
    query: &QueryVectors,
    spans: Vec<Span>,
    first: Candidates,
    (wanted, only): (usize, Option<&RoaringBitmap>),
) -> Result<Videos, GalleryError> {
    let full = spans.iter().filter(|span| span.level == Level::Video);
    let mut met: HashMap<uuid::Uuid, Met> = full
        .filter(|span| only.is_none_or(|keys| keys.contains(span.key)))
        .map(|span| {
            (span.video, Met { video: span.key, best: vec![-1.0; query.windows().len()], peak: None })
        })
        .collect();
    let at = SpaceLevel { space, level: Level::Clip };
    for clip in spans.iter().filter(|span| span.level == Level::Clip) {
        let Some(met) = met.get_mut(&clip.video) else { continue };
        let Some(vector) = gallery.vector(at, clip.key)? else { continue };
        for (best, window) in met.best.iter_mut().zip(query.windows()) {
            let cosine = dot(window, &vector);
            *best = best.max(cosine);
            if met.peak.is_none_or(|(score, _)| score < cosine) {
                met.peak = Some((cosine, clip.start_ms.midpoint(clip.end_ms)));
            }
        }
    }
    let at = SpaceLevel { space, level: Level::Video };
    let mut own: HashMap<u32, UnitVector> = HashMap::new();
    for video in met.values().map(|met| met.video) {
        own.extend(gallery.vector(at, video)?.map(|vector| (video, vector)));
    }
    let met: Vec<Met> = met.into_values().filter(|met| own.contains_key(&met.video)).collect();
    let mean = query.mean();
    let pooled = |vector| mean.as_ref().map_or_else(|| query.score(vector), |mean| dot(mean, vector));
    let of_video = |met: &Met| (met.video, (pooled(&own[&met.video]), met.peak.map(|(_, middle)| middle)));
    let more = met.iter().map(of_video).collect();
    let best: Vec<&[f32]> = met.iter().map(|met| &met.best[..]).collect();
    let scored = met.iter().zip(scores(&best));
    let mut hits: Vec<Hit> = scored.map(|(met, score)| Hit { key: met.video, score }).collect();
    hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.key.cmp(&other.key)));
    hits.truncate(wanted);
    Ok(Videos { hits: Hits { hits, ..first.pooled }, more })
}

/// One score for each video, given for each of its windows the best cosine with one of its clips: the mean over windows,
/// and the share of the windows that no other video meets better.
pub fn scores(best: &[&[f32]]) -> Vec<f32> {
    let windows = best.first().map_or(0, |best| best.len());
    let top = |window: usize| best.iter().map(|it| it[window]).fold(-1.0, f32::max);
    let top: Vec<f32> = (0..windows).map(top).collect();
    let score = |best: &&[f32]| {
        let mean = best.iter().sum::<f32>() / windows.max(1) as f32;
        let covered = best.iter().zip(&top).filter(|(best, top)| best >= top).count();
        let share = covered as f32 / windows.max(1) as f32;
        (mean + COVERAGE_WEIGHT * share) / (1.0 + COVERAGE_WEIGHT)
    };
    best.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Best clips by window for videos 0, 1, …; which is first.
    #[track_caller]
    fn check(best: &[&[f32]], expected: usize) {
        let scores = scores(best);
        assert!(scores.iter().all(|score| (-1.0..=1.0).contains(score)), "{scores:?}");
        let first = (0..best.len()).max_by(|one, other| scores[*one].total_cmp(&scores[*other]));
        assert_eq!(first, Some(expected), "{scores:?}");
    }

    #[test]
    fn the_video_that_meets_all_windows_comes_before_one_that_meets_one_of_them_best() {
        check(&[&[0.6, 0.6, 0.6], &[0.9, 0.1, 0.1]], 0);
        check(&[&[0.8, 0.2], &[0.5, 0.6]], 1);
    }

    #[test]
    fn of_two_that_meet_the_windows_alike_the_one_that_meets_more_of_them_best_comes_first() {
        check(&[&[0.7, 0.7, 0.5], &[0.6, 0.6, 0.7]], 0);
    }
}
