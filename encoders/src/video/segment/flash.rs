//! Merges or drops cuts that are too close together: flashes, strobe lights, fast fades.
//!
//! The rules are the two modes of PySceneDetect's FlashFilter. Both accept a cut that comes at least the minimum length
//! after the last one; the video's start counts as a cut. They differ in the treatment of cuts that come sooner.

use serde::{Deserialize, Serialize};

use super::cut::{Cut, MinSceneLen};

/// Treatment of frames over the threshold that are too close together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterMode {
    /// They are merged. The last of them becomes the cut once calm of the minimum length follows, if the merged range
    /// is itself that long.
    #[default]
    Merge,
    /// They are dropped until the minimum length has passed since the last cut.
    Suppress,
}

#[derive(Debug)]
pub(super) struct FlashFilter {
    mode: FilterMode,
    min_scene_len: MinSceneLen,
    last_above: Option<Cut>,
    /// Merging begins only after the first cut.
    any_cut: bool,
    merging_since: Option<Cut>,
}

impl FlashFilter {
    pub(super) fn new(mode: FilterMode, min_scene_len: MinSceneLen) -> FlashFilter {
        FlashFilter { mode, min_scene_len, last_above: None, any_cut: false, merging_since: None }
    }

    /// Takes the next frame, and whether it is over the threshold; returns a cut that is now certain.
    pub(super) fn push(&mut self, at: Cut, above: bool) -> Option<Cut> {
        if self.min_scene_len.is_zero() {
            return above.then_some(at);
        }
        let last_above = *self.last_above.get_or_insert(at);
        let calm_long_enough = self.min_scene_len.is_met(last_above, at);
        match self.mode {
            FilterMode::Merge => self.merge(at, above, last_above, calm_long_enough),
            FilterMode::Suppress => (above && calm_long_enough).then(|| {
                self.last_above = Some(at);
                at
            }),
        }
    }

    fn merge(&mut self, at: Cut, above: bool, last_above: Cut, calm_long_enough: bool) -> Option<Cut> {
        if above {
            self.last_above = Some(at);
        }
        if let Some(since) = self.merging_since {
            let done = !above && calm_long_enough && self.min_scene_len.is_met(since, last_above);
            return done.then(|| {
                self.merging_since = None;
                last_above
            });
        }
        if above && calm_long_enough {
            self.any_cut = true;
            return Some(at);
        }
        if above && self.any_cut {
            self.merging_since = Some(at);
        }
        None
    }

    /// The earliest past frame that may still become a cut; `None` if none may.
    pub(super) fn undecided(&self) -> Option<Cut> {
        self.merging_since.and(self.last_above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames at 25 per second; `above` lists those over the threshold.
    #[track_caller]
    fn check(mode: FilterMode, min_scene_len: MinSceneLen, above: &[u64], expected: &[u64]) {
        let mut filter = FlashFilter::new(mode, min_scene_len);
        let found: Vec<u64> = (0..200)
            .filter_map(|frame| {
                filter.push(Cut { frame, time_ms: frame as i64 * 40 }, above.contains(&frame))
            })
            .map(|cut| cut.frame)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn cuts_far_apart_all_stand() {
        for mode in [FilterMode::Merge, FilterMode::Suppress] {
            check(mode, MinSceneLen::Frames(15), &[30, 45, 90], &[30, 45, 90]);
            check(mode, MinSceneLen::Seconds(0.6), &[30, 45, 90], &[30, 45, 90]);
        }
    }

    #[test]
    fn a_cut_too_near_the_start_is_no_cut() {
        check(FilterMode::Merge, MinSceneLen::Frames(15), &[10, 40], &[40]);
        check(FilterMode::Merge, MinSceneLen::Frames(15), &[10, 24, 60], &[60]);
        check(FilterMode::Suppress, MinSceneLen::Frames(15), &[10, 24, 60], &[24, 60]);
    }

    #[test]
    fn a_burst_becomes_its_last_cut_if_it_is_long_enough() {
        check(FilterMode::Merge, MinSceneLen::Frames(15), &[30, 35, 40, 45, 50, 55], &[30, 55]);
        check(FilterMode::Merge, MinSceneLen::Frames(15), &[30, 35, 40], &[30]);
    }

    #[test]
    fn of_a_burst_every_cut_stands_that_is_long_after_the_last() {
        check(FilterMode::Suppress, MinSceneLen::Frames(15), &[30, 35, 40, 45, 50, 55], &[30, 45]);
    }

    #[test]
    fn without_a_minimum_every_frame_over_the_threshold_is_a_cut() {
        check(FilterMode::Merge, MinSceneLen::Frames(0), &[1, 2, 3], &[1, 2, 3]);
        check(FilterMode::Suppress, MinSceneLen::Seconds(0.0), &[1, 2, 3], &[1, 2, 3]);
    }
}
