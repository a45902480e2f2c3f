//! Merges cuts that follow each other too closely: flashes, strobe lights, fast fades.
//!
//! The rule is the mode MERGE of PySceneDetect's FlashFilter. A cut that comes at least the minimum
//! length after the last frame over the threshold stands at once. Cuts that come sooner are merged: the
//! last frame over the threshold becomes the cut once it is followed by the minimum length of calm
//! and the merged stretch is itself that long.

use super::content::MinSceneLen;

/// The first frame of a new scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Its number, from 0.
    pub frame: u64,
    /// Its time.
    pub time_ms: i64,
}

#[derive(Debug)]
pub(super) struct FlashFilter {
    min_scene_len: MinSceneLen,
    last_above: Option<Cut>,
    /// Merging begins only after a first cut.
    any_cut: bool,
    merging_since: Option<Cut>,
}

impl MinSceneLen {
    /// Whether the stretch from `a` to `b` is at least this long.
    pub(super) fn is_met(self, a: Cut, b: Cut) -> bool {
        match self {
            MinSceneLen::Frames(frames) => b.frame.saturating_sub(a.frame) >= frames,
            MinSceneLen::Millis(ms) => b.time_ms.saturating_sub(a.time_ms) >= ms,
        }
    }

    fn is_zero(self) -> bool {
        matches!(self, MinSceneLen::Frames(0) | MinSceneLen::Millis(i64::MIN..=0))
    }
}

impl FlashFilter {
    pub(super) fn new(min_scene_len: MinSceneLen) -> FlashFilter {
        FlashFilter { min_scene_len, last_above: None, any_cut: false, merging_since: None }
    }

    /// Takes the next frame and whether it is over the threshold; returns a cut that is certain now.
    pub(super) fn push(&mut self, at: Cut, above: bool) -> Option<Cut> {
        if self.min_scene_len.is_zero() {
            return above.then_some(at);
        }
        let last_above = *self.last_above.get_or_insert(at);
        let calm_long_enough = self.min_scene_len.is_met(last_above, at);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames at 25 per second; `above` lists those over the threshold.
    #[track_caller]
    fn check(min_scene_len: MinSceneLen, above: &[u64], frames: u64, expected: &[u64]) {
        let mut filter = FlashFilter::new(min_scene_len);
        let found: Vec<u64> = (0..frames)
            .filter_map(|frame| {
                filter.push(Cut { frame, time_ms: frame as i64 * 40 }, above.contains(&frame))
            })
            .map(|cut| cut.frame)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn cuts_far_apart_all_stand() {
        check(MinSceneLen::Frames(15), &[30, 45, 90], 200, &[30, 45, 90]);
        check(MinSceneLen::Millis(600), &[30, 45, 90], 200, &[30, 45, 90]);
    }

    #[test]
    fn a_cut_too_near_the_start_is_no_cut() {
        check(MinSceneLen::Frames(15), &[10, 40], 200, &[40]);
        check(MinSceneLen::Frames(15), &[10, 24, 60], 200, &[60]);
    }

    #[test]
    fn a_burst_becomes_its_last_cut_if_it_is_long_enough() {
        check(MinSceneLen::Frames(15), &[30, 35, 40, 45, 50, 55], 200, &[30, 55]);
        check(MinSceneLen::Frames(15), &[30, 35, 40], 200, &[30]);
    }

    #[test]
    fn without_a_minimum_every_frame_over_the_threshold_is_a_cut() {
        check(MinSceneLen::Frames(0), &[1, 2, 3], 10, &[1, 2, 3]);
        check(MinSceneLen::Millis(0), &[1, 2, 3], 10, &[1, 2, 3]);
    }
}
