//! Scores a query over the time of one video: from stored features of its frames, or else from the vectors of its clips
//! and moments.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use uuid::Uuid;

use super::admit::admit;
use super::encode::QueryEncoder;
use super::error::SearchError;
use super::types::{Match, Request};
use crate::app::Authorized;
use crate::catalog::Video;
use crate::models::LoadedSpace;
use crate::storage::features::{Features, FeaturesError, file_of};
use crate::terms::{Collection, KeySet, Level, QueryVectors, SpanKey, UnitVector};

/// Hits per page whose peak is computed from frames.
const PEAKS: usize = 50;

/// The unit that a timeline scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Sampled frames.
    Frames,
    /// Moments and clips.
    Spans,
}

/// A query's score over the time of one video.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// The space's readable name.
    pub space: String,
    /// The unit that was scored.
    pub of: Grain,
    /// Milliseconds per step.
    pub step_ms: i64,
    /// The best raw cosine in each step. `None` where no vector is stored.
    pub scores: Vec<Option<f32>>,
}

/// Scores a query over `video`, in at most `points` steps of at least half a second.
///
/// # Errors
/// See [`SearchError`]. [`SearchError::SpaceCannot`] if no loaded model compares the query with frames.
pub async fn timeline(
    app: &Authorized,
    video: &Video,
    request: Request,
    points: usize,
) -> Result<Timeline, SearchError> {
    let admitted = admit(app, &request)?;
    let (space, Some(permit)) = (admitted.space, admitted.permit) else {
        return Err(SearchError::cannot("/query", "no loaded model compares this query with frames"));
    };
    let query =
        QueryEncoder::new(app, &space, permit).request(&request).await?.into_vectors(request.aggregation)?;
    let duration_ms = video.facts.as_ref().map_or(0, |facts| facts.duration_ms);
    let by_frame = match frames_file(app, &space, video.id) {
        // An unreadable file is written again by the next segmentation. Until then spans serve.
        Some(file) => frame_scores(file, query.clone(), 0..duration_ms).await.ok(),
        None => None,
    };
    let (of, scored) = match by_frame {
        Some(scored) => (Grain::Frames, scored),
        None => (Grain::Spans, span_scores(app, &space, video.id, &query).await?),
    };
    let step_ms = step_of(duration_ms, points);
    let scores = steps(&scored, duration_ms, step_ms);
    Ok(Timeline { space: space.space.name.clone(), of, step_ms, scores })
}

/// Sets the peak of each match to its best frame, if the stored features of frames are vectors of the space. Opens the
/// file of each video once.
pub(super) async fn find_peaks(
    app: &Authorized,
    space: &LoadedSpace,
    query: &QueryVectors,
    matches: impl Iterator<Item = &mut Match>,
) {
    let mut by_video: HashMap<Uuid, Vec<&mut Match>> = HashMap::new();
    let lack = matches.filter(|found| found.peak_ms.is_none()).take(PEAKS);
    for found in lack.filter(|found| found.span.span.level != Level::Video) {
        by_video.entry(found.span.span.video).or_default().push(found);
    }
    for (video, matches) in by_video {
        let Some(file) = frames_file(app, space, video) else { continue };
        let range = |found: &&mut Match| found.span.span.start_ms..found.span.span.end_ms;
        let (ranges, query) = (matches.iter().map(range).collect(), query.clone());
        // Peaks are left out where they can't be found: that must not fail the answer. A task for each video: the next one
        // does not begin if nobody waits any more.
        let found = tokio::task::spawn_blocking(move || peaks(&file, ranges, &query)).await;
        for (found, peak) in matches.into_iter().zip(found.unwrap_or_default()) {
            found.peak_ms = peak;
        }
    }
}

/// The start of the best frame in each range; `None` without one, or if the file is unreadable.
fn peaks(file: &FramesFile, ranges: Vec<Range<i64>>, query: &QueryVectors) -> Vec<Option<i64>> {
    let Ok(mut features) = Features::open(&file.path, file.width, false) else { return Vec::new() };
    let peak = |range| {
        let scores = scores_in(&mut features, query, range).unwrap_or_default();
        scores.into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).map(|(range, _)| range.start)
    };
    ranges.into_iter().map(peak).collect()
}

/// The stored features of a video's frames.
struct FramesFile {
    path: PathBuf,
    /// Values per feature.
    width: usize,
}

/// The stored features of a video, if a frame's feature is a vector of the space.
fn frames_file(app: &Authorized, space: &LoadedSpace, video: Uuid) -> Option<FramesFile> {
    let width = space.space.frame_stage.filter(|_| !space.space.temporal)?;
    let path = file_of(&app.storage.features(video), &space.space.id);
    path.exists().then_some(FramesFile { path, width })
}

/// A time range in milliseconds and its score.
type Scored = (Range<i64>, f32);

/// Scores the frames in a time range.
async fn frame_scores(
    file: FramesFile,
    query: QueryVectors,
    range: Range<i64>,
) -> Result<Vec<Scored>, SearchError> {
    let read = move || Ok(scores_in(&mut Features::open(&file.path, file.width, false)?, &query, range)?);
    tokio::task::spawn_blocking(read).await?
}

/// Scores the frames in a time range. Each frame lasts until the next.
fn scores_in(
    features: &mut Features,
    query: &QueryVectors,
    range: Range<i64>,
) -> Result<Vec<Scored>, FeaturesError> {
    let rows = features.rows(range.clone())?;
    let ends = rows.iter().skip(1).map(|(time_ms, _)| *time_ms).chain([range.end]).collect::<Vec<_>>();
    let scored = rows.iter().zip(ends).filter_map(|((time_ms, row), end)| {
        let (vector, _) = UnitVector::from_raw(row)?;
        Some((*time_ms..end, query.score(&vector)))
    });
    Ok(scored.collect())
}

/// Scores the clips and moments of a video.
async fn span_scores(
    app: &Authorized,
    space: &LoadedSpace,
    video: Uuid,
    query: &QueryVectors,
) -> Result<Vec<Scored>, SearchError> {
    let first = app.view().clips(video, None, 1).await?;
    let keys: Vec<SpanKey> = first.iter().map(|clip| clip.key).collect();
    let spans = app.view().spans_beside(&keys, space.space.temporal).await?;
    let mut scored = Vec::new();
    for level in [Level::Clip, Level::Moment] {
        let of_level = spans.iter().filter(|span| span.level == level);
        let ranges: HashMap<SpanKey, Range<i64>> =
            of_level.map(|span| (span.key, span.start_ms..span.end_ms)).collect();
        let keys: KeySet = ranges.keys().copied().collect();
        let at = Collection { space: space.key, level };
        for it in app.vectors.scores(at, &keys, query.vectors()).await? {
            scored.extend(ranges.get(&it.key).map(|range| (range.clone(), query.score_of(&it.cosines))));
        }
    }
    Ok(scored)
}

/// The length of a step, so that no more than `points` make up the video.
fn step_of(duration_ms: i64, points: usize) -> i64 {
    (duration_ms / points.max(1) as i64 + 1).max(500)
}

/// The best score in each step.
fn steps(scored: &[Scored], duration_ms: i64, step_ms: i64) -> Vec<Option<f32>> {
    let count = usize::try_from((duration_ms + step_ms - 1) / step_ms).unwrap_or_default();
    let mut steps: Vec<Option<f32>> = vec![None; count];
    for (range, score) in scored {
        let first = usize::try_from(range.start / step_ms).unwrap_or_default();
        let end = usize::try_from((range.end + step_ms - 1) / step_ms).unwrap_or_default();
        for step in steps.iter_mut().take(end).skip(first) {
            *step = Some(step.map_or(*score, |best| best.max(*score)));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scored: &[(Range<i64>, f32)], duration_ms: i64, expected: &[Option<f32>]) {
        assert_eq!(steps(scored, duration_ms, 500), expected);
    }

    #[test]
    fn a_step_has_the_best_score_of_the_ranges_that_it_meets() {
        check(&[(0..1000, 0.2), (500..1500, 0.4)], 2000, &[Some(0.2), Some(0.4), Some(0.4), None]);
        check(&[(250..260, 0.7)], 900, &[Some(0.7), None]);
        check(&[(0..5000, 0.1)], 600, &[Some(0.1), Some(0.1)]);
        check(&[], 0, &[]);
    }

    #[test]
    fn a_video_has_as_many_steps_as_are_asked_for_at_most() {
        for duration_ms in [0, 1, 9_999, 10_000, 10_001, 7_200_000] {
            for points in [1, 7, 1000, 9_999] {
                let made = steps(&[], duration_ms, step_of(duration_ms, points)).len();
                assert!(made <= points, "{made} for {points} in {duration_ms} ms");
            }
        }
    }
}
