//! Raw vectors from the models, pooled over clips and normalised for the catalog.

use std::collections::BTreeMap;

use reprise_encoders::EncodeError;
use reprise_encoders::video::segment::ClipRange;
use uuid::Uuid;

use super::pass::Target;
use crate::catalog::IngestedSpan;
use crate::terms::{Level, UnitVector};

/// A span's raw vector in one space, and the number of its frames.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RawVector {
    pub(super) space: u32,
    pub(super) values: Vec<f32>,
    pub(super) frames: usize,
}

/// Raw vectors by span and its `(start_ms, end_ms)`.
pub(super) type Spans = BTreeMap<(Target, (i64, i64)), Vec<RawVector>>;

/// The raw full-video vector of each space: the mean over all frames of `clips`, as LoVR pools (arXiv 2505.13928). A
/// clip weighs by its number of frames, so that the result equals a mean over all frames.
pub(super) fn pooled<'a>(clips: impl Iterator<Item = &'a RawVector>) -> Vec<RawVector> {
    let mut sums: BTreeMap<u32, RawVector> = BTreeMap::new();
    for clip in clips {
        let zero = || RawVector { space: clip.space, values: vec![0.0; clip.values.len()], frames: 0 };
        let sum = sums.entry(clip.space).or_insert_with(zero);
        sum.frames += clip.frames;
        let weight = clip.frames as f32;
        sum.values.iter_mut().zip(&clip.values).for_each(|(sum, value)| *sum += weight * value);
    }
    let mean = |mut sum: RawVector| {
        let frames = sum.frames.max(1) as f32;
        sum.values.iter_mut().for_each(|value| *value /= frames);
        sum
    };
    sums.into_values().map(mean).collect()
}

/// A span to store. `given`: the id of the user's clip.
pub(super) fn span(
    given: Option<Uuid>,
    level: Level,
    at: ClipRange,
    vectors: &[RawVector],
) -> Result<IngestedSpan, EncodeError> {
    let vectors = vectors.iter().map(|raw| unit(raw).map(|(unit, norm)| (raw.space, unit, norm)));
    let vectors = vectors.collect::<Result<Vec<_>, _>>()?;
    Ok(IngestedSpan { given, level, start_ms: at.start_ms, end_ms: at.end_ms, vectors })
}

/// A moment to store. `None` if the window ends after the video.
pub(super) fn moment(
    at: ClipRange,
    duration_ms: i64,
    vectors: &[RawVector],
) -> Result<Option<IngestedSpan>, EncodeError> {
    if duration_ms < at.end_ms {
        return Ok(None);
    }
    span(None, Level::Moment, at, vectors).map(Some)
}

/// The unit vector and norm of a raw vector.
pub(super) fn unit(raw: &RawVector) -> Result<(UnitVector, f32), EncodeError> {
    let failed = || EncodeError::Failed("a clip's vector is zero or not finite".into());
    UnitVector::from_raw(&raw.values).ok_or_else(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(clips: &[(u32, [f32; 2], usize)], expected: &[(u32, [f32; 2], usize)]) {
        let raw =
            |it: &(u32, [f32; 2], usize)| RawVector { space: it.0, values: it.1.to_vec(), frames: it.2 };
        let clips: Vec<RawVector> = clips.iter().map(raw).collect();
        assert_eq!(pooled(clips.iter()), expected.iter().map(raw).collect::<Vec<_>>());
    }

    #[test]
    fn a_full_video_is_the_mean_over_its_frames_per_space() {
        check(&[(1, [1.0, 0.0], 3), (1, [0.0, 1.0], 1)], &[(1, [0.75, 0.25], 4)]);
        check(&[(1, [1.0, 0.0], 2), (2, [0.0, 1.0], 5)], &[(1, [1.0, 0.0], 2), (2, [0.0, 1.0], 5)]);
        check(&[], &[]);
    }
}
