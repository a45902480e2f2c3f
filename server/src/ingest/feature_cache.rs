//! The feature cache of one video in one space during an ingest. Features of an earlier attempt are reused, and new
//! features are checkpointed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reprise_encoders::Space;

use super::assemble::Feature;
use super::progress::JobProgress;
use crate::storage::features::{Features, FeaturesError, file_of};

/// Longest time range of video between two checkpoints, in milliseconds.
const CHECKPOINT_MS: i64 = 20_000;

/// The features of one video in one space.
pub(super) struct FeatureCache {
    features: Features,
    /// Final path of the features, once all frames are encoded. `None`: the file is complete.
    complete: Option<PathBuf>,
    /// Time of the newest frame that is synced to disk.
    synced_ms: i64,
    progress: Arc<JobProgress>,
}

/// Whether the file of all frames' features exists, undamaged.
pub(super) fn is_complete(folder: &Path, space: &Space) -> bool {
    Features::is_whole(&file_of(folder, &space.id), space.frame_stage.unwrap_or_default())
}

impl FeatureCache {
    /// Opens an existing file or creates one. A damaged file is replaced.
    ///
    /// Later checkpoints count as the job's progress.
    pub(super) fn open(
        folder: &Path,
        space: &Space,
        progress: &Arc<JobProgress>,
    ) -> Result<FeatureCache, FeaturesError> {
        let progress = Arc::clone(progress);
        let (path, width) = (file_of(folder, &space.id), space.frame_stage.unwrap_or_default());
        if Features::is_whole(&path, width) {
            let features = Features::open(&path, width, false)?;
            return Ok(FeatureCache { features, complete: None, synced_ms: 0, progress });
        }
        std::fs::create_dir_all(folder)?;
        let begun = path.with_extension("part");
        let features = Features::open(&begun, width, true).or_else(|_| Features::create(&begun, width))?;
        let synced_ms = features.last_ms().unwrap_or_default();
        Ok(FeatureCache { features, complete: Some(path), synced_ms, progress })
    }

    /// The features of the frames at `times`. `None` for a frame that is not cached.
    pub(super) fn find(&mut self, times: &[i64]) -> Vec<Option<Feature>> {
        let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
        // Frames with damaged features are encoded again.
        let mut rows = self.features.rows(*first..last + 1).unwrap_or_default().into_iter().peekable();
        let mut row_at = |time: &i64| {
            while rows.next_if(|(at, _)| at < time).is_some() {}
            rows.next_if(|(at, _)| at == time).map(|(_, row)| Arc::from(row))
        };
        times.iter().map(&mut row_at).collect()
    }

    /// The next block of frames from `from_ms` on, in order. Empty after the last frame.
    pub(super) fn next(&mut self, from_ms: i64) -> Result<Vec<(i64, Feature)>, FeaturesError> {
        let Some(until_ms) = self.features.end_of_block_after(from_ms) else { return Ok(Vec::new()) };
        let rows = self.features.rows(from_ms..until_ms + 1)?;
        Ok(rows.into_iter().map(|(time_ms, row)| (time_ms, Arc::from(row))).collect())
    }

    /// Appends the features of frames after the last cached one. Earlier frames are skipped.
    pub(super) fn keep(&mut self, rows: &[(i64, Feature)]) -> Result<(), FeaturesError> {
        if self.complete.is_none() {
            return Ok(());
        }
        let last_ms = self.features.last_ms().unwrap_or(i64::MIN);
        let new = rows.iter().filter(|(time_ms, _)| last_ms < *time_ms);
        let mut new: Vec<(i64, &[f32])> = new.map(|(time_ms, row)| (*time_ms, &row[..])).collect();
        new.dedup_by_key(|(time_ms, _)| *time_ms);
        self.features.add(&new)?;
        let newest_ms = self.features.last_ms().unwrap_or_default();
        if newest_ms - self.synced_ms >= CHECKPOINT_MS {
            self.features.sync()?;
            self.synced_ms = newest_ms;
            self.progress.kept();
        }
        Ok(())
    }

    /// Marks the file as complete, after the last frame.
    pub(super) fn finish(&mut self) -> Result<(), FeaturesError> {
        match self.complete.take() {
            Some(path) => {
                self.features.rename(&path)?;
                self.progress.kept();
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_encoders::video::sample::Sampler;
    use reprise_encoders::{Abilities, FrameSize, TrainedOn};

    fn space() -> Space {
        Space {
            id: "0123456789abcdef0123".to_owned(),
            name: "small-012345".to_owned(),
            model: "small".to_owned(),
            family: "clip".to_owned(),
            dim: 2,
            sampler: Sampler::PerSecond { rate: 1.0, at_most: 64 },
            scaling: FrameSize::ShortEdge(32).into(),
            max_text_tokens: 16,
            temporal: false,
            frame_stage: Some(2),
            can: Abilities { text: true, frames: true, composed: false },
            composed_frames: None,
            trained_on: TrainedOn::Nothing,
            precision: reprise_encoders::Precision::F32,
        }
    }

    fn row(time_ms: i64) -> (i64, Feature) {
        (time_ms, Feature::from(vec![time_ms as f32 / 1024.0, 0.5]))
    }

    /// Each attempt caches its frames and then dies. `expected`: which frames at `times` the next attempt finds.
    #[track_caller]
    fn check(attempts: &[&[i64]], times: &[i64], expected: &[bool]) {
        let folder = tempfile::tempdir().unwrap();
        for attempt in attempts {
            let mut kept =
                FeatureCache::open(folder.path(), &space(), &Arc::new(JobProgress::new())).unwrap();
            for time_ms in *attempt {
                kept.keep(&[row(*time_ms)]).unwrap();
            }
        }
        let mut kept = FeatureCache::open(folder.path(), &space(), &Arc::new(JobProgress::new())).unwrap();
        let found = kept.find(times);
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), expected);
        assert!(!is_complete(folder.path(), &space()), "nothing is complete before it was finished");
        kept.finish().unwrap();
        assert!(is_complete(folder.path(), &space()));
        assert_eq!(
            FeatureCache::open(folder.path(), &space(), &Arc::new(JobProgress::new()))
                .unwrap()
                .find(times)
                .len(),
            times.len()
        );
    }

    #[test]
    fn what_an_attempt_that_died_has_kept_is_found_by_the_next() {
        check(&[&[0, 1000, 2000]], &[0, 1000, 2000, 3000], &[true, true, true, false]);
        check(&[&[0, 1000], &[0, 1000, 2000]], &[0, 2000], &[true, true]);
        check(&[], &[0], &[false]);
    }

    #[test]
    fn a_frame_that_comes_twice_is_kept_once() {
        check(&[&[0, 1000, 1000, 500]], &[500, 1000], &[false, true]);
    }
}
