//! Chooses the gradual transitions among the stretches that may be one, and tells cuts from flashes and fast movement.

use std::collections::VecDeque;

use super::blend::{FLASH_MS, LONGEST_MS};
use super::detector::DetectorSettings;
use super::scores::{Blend, FrameScores};

/// The middles of two transitions have at least this distance and the longer one's length between them.
const APART_MS: i64 = 960;
/// A stretch waits this long for better ones, however many follow each other.
const PATIENCE_MS: i64 = 8000;
/// Frames on either side of a cut that are compared with it.
const BESIDE: usize = 2;
/// A cut changes the picture this many times as much as the frames beside it. In a whip pan they change as much.
const STANDS_OUT: f64 = 1.8;
/// Mean brightness below which hue and saturation are noise, so that nothing stands out.
const DARK: f32 = 16.0;

/// Takes scores in order; returns transitions once no later stretch can be a better account of the same frames.
#[derive(Debug)]
pub(super) struct GradualTransitions {
    detector: DetectorSettings,
    open: Vec<Blend>,
    last: Option<Blend>,
    now_ms: i64,
    /// Recent interruptions: the first time of each, and the time at which the picture was back.
    interruptions: VecDeque<(i64, i64)>,
    /// The changes of recent frames.
    changes: VecDeque<Change>,
}

#[derive(Debug, Clone, Copy)]
struct Change {
    time_ms: i64,
    score: f64,
    brightness: f32,
}

impl GradualTransitions {
    /// Judges the cuts of a detector.
    pub(super) fn new(detector: DetectorSettings) -> GradualTransitions {
        GradualTransitions {
            detector,
            open: Vec::new(),
            last: None,
            now_ms: 0,
            interruptions: VecDeque::new(),
            changes: VecDeque::new(),
        }
    }

    /// Takes the next frame; returns the transitions that are now certain.
    pub(super) fn push(&mut self, scores: &FrameScores) -> Vec<Blend> {
        self.now_ms = scores.time_ms;
        let (score, brightness) = (self.detector.score(scores).0, scores.brightness);
        self.changes.push_back(Change { time_ms: scores.time_ms, score, brightness });
        if let Some(from_ms) = scores.back_from_ms {
            self.interruptions.push_back((from_ms, scores.time_ms));
        }
        let is_new = |it: &Blend| self.last.is_none_or(|last| !overlap(&last, it));
        self.open.extend(scores.blend.filter(is_new));
        self.choose(self.now_ms - LONGEST_MS)
    }

    /// Ends the video; returns the remaining transitions.
    pub(super) fn finish(&mut self) -> Vec<Blend> {
        self.choose(i64::MAX)
    }

    /// Every later report begins at or after this time.
    pub(super) fn undecided_ms(&self) -> i64 {
        let open = self.open.iter().map(|it| it.began_ms).min();
        open.unwrap_or(i64::MAX).min(self.now_ms - LONGEST_MS)
    }

    /// Whether a cut of the detector is none: a flash, after which the picture is back at once, or fast movement.
    pub(super) fn is_no_cut(&self, time_ms: i64) -> bool {
        self.is_interruption(time_ms) || self.is_movement(time_ms, DARK)
    }

    /// Whether the frames beside a cut change as much as it does, though none is darker than `dark`. False as long as
    /// too few frames have followed.
    pub(super) fn is_movement(&self, time_ms: i64, dark: f32) -> bool {
        let at = self.changes.partition_point(|it| it.time_ms < time_ms);
        let (Some(from), false) = (at.checked_sub(BESIDE), self.detector.is_of_brightness()) else {
            return false;
        };
        let around: Vec<Change> = self.changes.range(from..).take(2 * BESIDE + 1).copied().collect();
        let (true, Some(cut)) = (around.len() > 2 * BESIDE, around.get(BESIDE)) else { return false };
        let beside = (around.iter().map(|it| it.score).sum::<f64>() - cut.score) / (2 * BESIDE) as f64;
        cut.score < STANDS_OUT * beside && around.iter().all(|it| it.brightness >= dark)
    }

    /// The time of the frame that [`Self::is_movement`] can judge since the last frame.
    pub(super) fn newly_judged_ms(&self) -> Option<i64> {
        let at = self.changes.len().checked_sub(BESIDE + 1)?;
        self.changes.get(at).map(|it| it.time_ms)
    }

    fn is_interruption(&self, time_ms: i64) -> bool {
        // Only a few can contain it, however many there are: each is short, and they are in order of their ends.
        let first = self.interruptions.partition_point(|it| it.1 < time_ms);
        let near = self.interruptions.range(first..).take_while(|it| it.1 - time_ms <= FLASH_MS);
        near.into_iter().any(|it| it.0 <= time_ms)
    }

    /// Forgets what was before the start of the open clip.
    pub(super) fn forget_before(&mut self, time_ms: i64) {
        while self.interruptions.front().is_some_and(|it| it.1 < time_ms) {
            self.interruptions.pop_front();
        }
        let passed = self.changes.partition_point(|it| it.time_ms < time_ms).saturating_sub(BESIDE);
        self.changes.drain(..passed);
    }

    /// Takes the stretches that have no better rival and can't get one: those of later frames lie after `until_ms`.
    fn choose(&mut self, until_ms: i64) -> Vec<Blend> {
        let mut chosen = Vec::new();
        while let Some(best) = self.undisputed(until_ms).or_else(|| self.overdue(until_ms)) {
            self.open.retain(|it| !overlap(&best, it));
            self.last =
                Some(self.last.map_or(best, |it| if it.middle_ms > best.middle_ms { it } else { best }));
            chosen.push(best);
        }
        chosen.sort_by_key(|it| it.middle_ms);
        chosen
    }

    fn undisputed(&self, until_ms: i64) -> Option<Blend> {
        let is_known = |it: &&Blend| it.middle_ms + apart_ms(LONGEST_MS) <= until_ms;
        let has_better =
            |it: &Blend| self.open.iter().any(|other| rank(other) < rank(it) && overlap(other, it));
        self.open.iter().filter(is_known).find(|it| !has_better(it)).copied()
    }

    /// The best rival of a stretch that has waited too long.
    fn overdue(&self, until_ms: i64) -> Option<Blend> {
        let oldest = self.open.iter().min_by_key(|it| it.middle_ms)?;
        let rivals = self.open.iter().filter(|it| overlap(oldest, it));
        rivals.min_by_key(|it| rank(it)).filter(|_| oldest.middle_ms + PATIENCE_MS <= until_ms).copied()
    }
}

/// The least comes first.
fn rank(it: &Blend) -> (u16, i64, i64) {
    (it.misfit, it.middle_ms, it.began_ms)
}

/// Whether two stretches can't both be a transition.
fn overlap(a: &Blend, b: &Blend) -> bool {
    let longer_ms = (a.ended_ms - a.began_ms).max(b.ended_ms - b.began_ms);
    (a.middle_ms - b.middle_ms).abs() < apart_ms(longer_ms)
}

fn apart_ms(length_ms: i64) -> i64 {
    APART_MS + length_ms.clamp(0, LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches as (frame at which it is reported, middle, half of its length, misfit), in steps of 100 ms.
    #[track_caller]
    fn check(stretches: &[(i64, i64, i64, u16)], expected: &[i64]) {
        let mut transitions = GradualTransitions::new(DetectorSettings::default());
        let mut found = Vec::new();
        for at in 0..400 {
            let blend = stretches.iter().find(|it| it.0 == at).map(|&(_, middle, half, misfit)| Blend {
                began_ms: (middle - half) * 100,
                middle_ms: middle * 100,
                ended_ms: (middle + half) * 100,
                misfit,
            });
            let before_ms = transitions.undecided_ms();
            let new = transitions.push(&FrameScores { time_ms: at * 100, blend, ..FrameScores::default() });
            assert!(new.iter().all(|it| it.began_ms >= before_ms), "{new:?} before {before_ms}");
            found.extend(new);
        }
        found.extend(transitions.finish());
        let middles: Vec<i64> = found.iter().map(|it| it.middle_ms / 100).collect();
        assert_eq!(middles, expected);
    }

    #[test]
    fn of_stretches_that_overlap_the_best_is_the_transition() {
        check(&[(60, 50, 3, 40)], &[50]);
        check(&[(60, 50, 3, 40), (61, 52, 3, 30), (62, 53, 3, 50)], &[52]);
        check(&[(60, 50, 3, 40), (76, 66, 3, 30)], &[50, 66]);
        check(&[(60, 50, 3, 40), (75, 65, 20, 30)], &[65]);
        // One that has waited for long does not hurry those behind it.
        check(&[(60, 50, 3, 90), (140, 130, 3, 40), (143, 131, 4, 30)], &[50, 131]);
    }

    #[test]
    fn the_last_ones_come_at_the_end() {
        check(&[(395, 390, 3, 40), (398, 391, 3, 50)], &[390]);
    }

    #[test]
    fn a_row_of_ever_better_stretches_does_not_wait_for_ever() {
        let mut transitions = GradualTransitions::new(DetectorSettings::default());
        for at in 0..1000_i64 {
            let time_ms = at * 40;
            let (middle_ms, misfit) = (time_ms - 400, 2000 - at as u16);
            let blend = Blend { began_ms: middle_ms - 200, middle_ms, ended_ms: middle_ms + 200, misfit };
            transitions.push(&FrameScores { time_ms, blend: Some(blend), ..FrameScores::default() });
            assert!(time_ms - transitions.undecided_ms() <= PATIENCE_MS + 2 * LONGEST_MS, "{time_ms}");
        }
    }

    #[test]
    fn an_interruption_is_remembered_until_its_clip_ends() {
        let mut transitions = GradualTransitions::new(DetectorSettings::default());
        transitions.push(&FrameScores { time_ms: 1000, back_from_ms: Some(900), ..FrameScores::default() });
        let found = [899, 900, 1000, 1001].map(|it| transitions.is_no_cut(it));
        assert_eq!(found, [false, true, true, false]);
        transitions.forget_before(1001);
        assert!(!transitions.is_no_cut(950));
    }

    /// Scores of frames 0 to 8, with a cut at frame 4 that the detector found.
    #[track_caller]
    fn check_movement(scores: [f32; 9], brightness: f32, expected: bool) {
        let mut transitions = GradualTransitions::new(DetectorSettings::default());
        for (at, hue) in scores.into_iter().enumerate() {
            let (saturation, value) = (hue, hue);
            let frame = FrameScores { hue, saturation, value, brightness, ..FrameScores::default() };
            transitions.push(&FrameScores { time_ms: at as i64 * 40, ..frame });
        }
        assert_eq!(transitions.is_no_cut(160), expected);
    }

    #[test]
    fn a_cut_in_a_whip_pan_is_none() {
        check_movement([1.0, 1.0, 1.0, 1.0, 60.0, 1.0, 1.0, 1.0, 1.0], 90.0, false);
        check_movement([1.0, 20.0, 20.0, 30.0, 60.0, 30.0, 20.0, 1.0, 1.0], 90.0, false);
        check_movement([1.0, 20.0, 40.0, 50.0, 60.0, 50.0, 40.0, 20.0, 1.0], 90.0, true);
        check_movement([1.0, 20.0, 40.0, 50.0, 60.0, 50.0, 40.0, 20.0, 1.0], 9.0, false);
    }
}
