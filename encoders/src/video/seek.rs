//! Checks that seeking in a file gives the same pictures as decoding in order.

use std::path::Path;

use super::decode::{Event, Request, decode};
use super::pass::{Branch, Picture, Plan, Scale, Which};
use super::{Limits, Probe, VideoError};
use crate::Frame;

/// The largest mean difference, of 255, between pictures of the same time.
const SAME_PICTURE: f64 = 2.0;
/// The range that [`seek_is_safe`] checks, in milliseconds: long enough for several key frames, short enough to be
/// cheap.
const LOOK_WITHIN_MS: i64 = 30_000;
/// Frames are kept from this long before a moment: most key frames are nearer to each other.
const KEPT_MS: i64 = 12_000;
/// Time between two kept frames.
const APART_MS: i64 = 1000;

/// Small frames of a decode in order, before a few moments of the video. A seek to a moment begins at a key frame before it,
/// and the first kept frame behind that is compared, so that little is decoded.
#[derive(Debug, Clone, Default)]
pub struct References {
    moments: Vec<i64>,
    /// The frames of each moment that was reached, in order of time. The last one is at the moment or behind it.
    looks: Vec<Vec<Frame>>,
    reached: usize,
}

impl References {
    /// Before the first frame. `moments`: in milliseconds, in any order.
    #[must_use]
    pub fn near(mut moments: Vec<i64>) -> References {
        moments.sort_unstable();
        References { moments, looks: Vec::new(), reached: 0 }
    }

    /// Takes the next frame of [`Event::Detect`]. Keeps about one a second, at most 13 a moment.
    pub fn push(&mut self, frame: &Frame) {
        let Some(&moment) = self.moments.get(self.reached) else { return };
        if frame.time_ms < moment.saturating_sub(KEPT_MS) {
            return;
        }
        if self.looks.len() == self.reached {
            self.looks.push(Vec::new());
        }
        let kept = &mut self.looks[self.reached];
        let is_apart = kept.last().is_none_or(|last| last.time_ms + APART_MS <= frame.time_ms);
        let is_last = frame.time_ms >= moment;
        if is_apart || is_last {
            kept.push(frame.clone());
        }
        self.reached += usize::from(is_last);
    }

    /// Whether every moment was reached.
    #[must_use]
    pub fn are_complete(&self) -> bool {
        self.reached == self.moments.len()
    }
}

/// Whether seeking gives the same pictures as decoding in order, at three times in the first half minute. Blocks.
/// [`seek_agrees_with`] checks the whole file.
///
/// # Errors
/// As [`decode`].
pub fn seek_is_safe(path: &Path, probe: &Probe, limits: &Limits) -> Result<bool, VideoError> {
    let within = probe.duration_ms.min(LOOK_WITHIN_MS);
    let mut references = References::near(vec![within / 4, within / 2, within * 9 / 10]);
    let request = Request { detect_width: Some(128), outputs: Vec::new() };
    for event in decode(path, probe, request, limits)? {
        if let Event::Detect(frame) = event? {
            references.push(&frame);
        }
        if references.are_complete() {
            break;
        }
    }
    seek_agrees_with(path, probe, &references, limits)
}

/// Whether seeking to the references' moments gives their pictures. About three moments suffice, spread over the file.
/// Moments that the video did not reach are not looked at; if it reached none, the answer is no. Blocks.
///
/// # Errors
/// As [`decode`].
pub fn seek_agrees_with(
    path: &Path,
    probe: &Probe,
    references: &References,
    limits: &Limits,
) -> Result<bool, VideoError> {
    for kept in &references.looks[..references.reached] {
        let Some(last) = kept.last() else { continue };
        let Some(seek_ms) = probe.seek_for(last.time_ms) else { continue };
        let branches = [Branch { which: Which::Every, scale: Scale::Rough(last.width, last.height) }];
        let plan = Plan {
            path,
            probe,
            seek_ms: Some(seek_ms),
            until_ms: Some(last.time_ms + 1),
            branches: &branches,
        };
        let mut pass = plan.start(limits)?;
        let mut look = Look { probe, kept, begins_ms: None };
        let same = std::iter::from_fn(|| pass.next_picture()).find_map(|picture| look.compare(&picture));
        // What is left of the span is not decoded.
        if same.is_none()
            && let Some(error) = pass.finish().over_limit(limits)
        {
            return Err(error);
        }
        if same != Some(true) {
            return Ok(false);
        }
    }
    Ok(references.reached > 0)
}

/// One seek.
struct Look<'a> {
    probe: &'a Probe,
    kept: &'a [Frame],
    /// Time of the first picture.
    begins_ms: Option<i64>,
}

impl Look<'_> {
    /// Compares a picture with the kept frame of its time. `None` if there is none, or if it is too near to the beginning: a
    /// seek aims that far before the frames that it is for.
    fn compare(&mut self, picture: &Picture) -> Option<bool> {
        let time_ms = self.probe.clock.ms(picture.at);
        let begins_ms = *self.begins_ms.get_or_insert(time_ms);
        let at = self.kept.binary_search_by_key(&time_ms, |frame| frame.time_ms).ok()?;
        let is_settled = time_ms >= begins_ms.saturating_add(self.probe.seek_margin_ms());
        let is_last = at + 1 == self.kept.len();
        (is_settled || is_last).then(|| difference(&picture.rgb, &self.kept[at].rgb) <= SAME_PICTURE)
    }
}

/// The mean absolute difference; infinite for pictures of different size.
fn difference(a: &[u8], b: &[u8]) -> f64 {
    if a.len() != b.len() || a.is_empty() {
        return f64::INFINITY;
    }
    let sum: u64 = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / a.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes frames every `spacing_ms` of a video of `duration_ms`, and checks the times of the kept ones of each moment.
    #[track_caller]
    fn check(moments: &[i64], spacing_ms: usize, duration_ms: i64, expected: &[&[i64]]) {
        let mut references = References::near(moments.to_vec());
        for time_ms in (0..duration_ms).step_by(spacing_ms) {
            references.push(&Frame { time_ms, width: 1, height: 1, rgb: vec![0; 3].into() });
        }
        let times = |look: &Vec<Frame>| look.iter().map(|frame| frame.time_ms).collect::<Vec<i64>>();
        let kept: Vec<Vec<i64>> = references.looks.iter().map(times).collect();
        assert_eq!(kept, expected);
        let reached = expected
            .iter()
            .zip(references.moments.iter())
            .filter(|(look, moment)| look.last() >= Some(moment));
        assert_eq!(references.reached, reached.count());
    }

    #[test]
    fn a_frame_a_second_is_kept_until_the_moment_is_reached() {
        check(&[2010], 40, 10_000, &[&[0, 1000, 2000, 2040]]);
        check(&[900, 0], 400, 10_000, &[&[0], &[400, 1200]]);
        check(&[], 40, 10_000, &[]);
    }

    #[test]
    fn frames_long_before_a_moment_are_not_kept() {
        let last: Vec<i64> = (0..13).map(|number| 48_000 + 1000 * number).collect();
        check(&[60_000], 500, 70_000, &[&last]);
    }

    #[test]
    fn a_moment_that_the_video_does_not_reach_is_not_complete() {
        check(&[500, 5000], 500, 3000, &[&[0, 500], &[1000, 2000]]);
    }
}
