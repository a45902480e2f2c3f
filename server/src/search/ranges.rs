//! The vector of a stored time range without decoding it: from the cache of ranges, or from kept features of its frames.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use reprise_encoders::video::sample::{Sampler, spread};
use uuid::Uuid;

use super::error::SearchError;
use super::types::Origin;
use crate::app::Authorized;
use crate::catalog::{RangeBounds, RangeOf, Video};
use crate::models::LoadedSpace;
use crate::storage::features::{Features, FeaturesError, file_of};

/// Bounds of the cache in the catalog: as many ranges as a busy team's alerts and saved searches have, many times over.
const BOUNDS: RangeBounds = RangeBounds { most: 10_000, most_bytes: 64 << 20 };

/// The raw vector of a range that a query has asked for before. An unreadable cache is as good as an empty one.
pub(super) async fn cached(app: &Authorized, space: &LoadedSpace, range: Origin) -> Option<Vec<f32>> {
    match app.view().range_vector(&of(space, range)).await {
        Ok(raw) => raw.filter(|raw| raw.len() == space.space.dim),
        Err(error) => {
            tracing::warn!(%error, "the cached vector of a range can't be read");
            None
        }
    }
}

/// Keeps the raw vector of a range. A search does not fail if the catalog can't be written.
pub(super) async fn keep(app: &Authorized, space: &LoadedSpace, range: Origin, raw: &[f32]) {
    if let Err(error) = app.catalog.keep_range_vector(&of(space, range), raw, BOUNDS).await {
        tracing::warn!(%error, "the vector of a range can't be kept");
    }
}

fn of(space: &LoadedSpace, range: Origin) -> RangeOf {
    let Origin { video, start_ms, end_ms } = range;
    RangeOf { space: space.key, video, start_ms, end_ms }
}

/// The kept features of a range's frames, as the encoder takes them. `None` if they are not kept, or if none of the kept
/// frames lies in the range: then it must be decoded.
pub(super) async fn features(
    app: &Authorized,
    space: &LoadedSpace,
    video: &Video,
    range: Range<i64>,
) -> Result<Option<Vec<Arc<[f32]>>>, SearchError> {
    let duration_ms = video.facts.as_ref().map_or(0, |facts| facts.duration_ms);
    let Some(width) = space.space.frame_stage.filter(|_| range.start < duration_ms) else { return Ok(None) };
    let file = KeptFrames { path: path(app, space, video.id), width, sampler: space.space.sampler };
    match tokio::task::spawn_blocking(move || file.of_range(range)).await? {
        Ok(features) => Ok(Some(features).filter(|features| !features.is_empty())),
        // A damaged file is written again by the next segmentation. Until then the range is decoded.
        Err(error) => {
            tracing::debug!(%error, "a range is decoded, because the features of its frames can't be read");
            Ok(None)
        }
    }
}

fn path(app: &Authorized, space: &LoadedSpace, video: Uuid) -> PathBuf {
    file_of(&app.storage.features(video), &space.space.id)
}

/// The stored features of a video's frames.
struct KeptFrames {
    path: PathBuf,
    /// Values per feature.
    width: usize,
    sampler: Sampler,
}

impl KeptFrames {
    /// Reads the times of all frames in the range, and the features of the picked ones only.
    fn of_range(&self, range: Range<i64>) -> Result<Vec<Arc<[f32]>>, FeaturesError> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let mut kept = Features::open(&self.path, self.width, false)?;
        let times = kept.times(range.clone())?;
        let picked = match self.sampler {
            // Kept frames are those at the sampler's rate, counted from the video's start: all are a clip's sample.
            Sampler::PerSecond { at_most, .. } => spread(times.len(), at_most.clamp(1, times.len().max(1))),
            // Every frame is kept. In a range in which none begins, the one before is on the screen.
            _ if times.is_empty() => return Ok(kept.last_before(range.start)?.into_iter().collect()),
            _ => self.sampler.pick(&times, range.start),
        };
        let wanted: Vec<i64> = picked.into_iter().filter_map(|place| times.get(place).copied()).collect();
        kept.rows_at(&wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Features of frames at `times`, whose only value is their time in seconds.
    #[track_caller]
    fn check(sampler: Sampler, times: &[i64], range: Range<i64>, expected: &[f32]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features");
        let mut features = Features::create(&path, 1).unwrap();
        for block in times.chunks(3) {
            let rows: Vec<(i64, [f32; 1])> =
                block.iter().map(|time| (*time, [*time as f32 / 1000.0])).collect();
            features.add(&rows.iter().map(|(time, row)| (*time, &row[..])).collect::<Vec<_>>()).unwrap();
        }
        let kept = KeptFrames { path, width: 1, sampler };
        let got: Vec<f32> = kept.of_range(range).unwrap().iter().map(|row| row[0]).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn frames_at_a_rate_are_all_taken_or_thinned_evenly() {
        let sampler = Sampler::PerSecond { rate: 2.0, at_most: 2 };
        let times = [0, 500, 1000, 1500, 2000, 2500, 3000];
        check(sampler, &times, 500..1500, &[0.5, 1.0]);
        check(sampler, &times, 0..4000, &[0.5, 2.5]);
        check(sampler, &times, 600..900, &[]);
        check(sampler, &[], 0..1000, &[]);
    }

    #[test]
    fn of_every_frame_the_sampler_picks_as_it_does_while_decoding() {
        let times: Vec<i64> = (0..10).map(|frame| 250 * frame).collect();
        check(Sampler::Spread { frames: 2 }, &times, 0..2000, &[0.5, 1.5]);
        check(Sampler::Spread { frames: 3 }, &times, 500..750, &[0.5, 0.5, 0.5]);
        check(Sampler::Stride { frames: 3 }, &times, 250..2000, &[0.25, 1.0, 1.75]);
        // No frame begins in the range.
        check(Sampler::Spread { frames: 2 }, &times, 1010..1011, &[1.0]);
        check(Sampler::Spread { frames: 2 }, &times[4..], 10..20, &[]);
    }

    #[test]
    fn a_file_that_is_not_there_has_no_features() {
        let kept = KeptFrames {
            path: PathBuf::from("/nowhere/at/all"),
            width: 1,
            sampler: Sampler::Stride { frames: 1 },
        };
        assert!(kept.of_range(0..1000).unwrap().is_empty());
    }
}
