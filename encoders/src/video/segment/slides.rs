//! Slide changes: an area of a still picture that changes and is still again.
//!
//! A new line of text changes a few per cent of the pixels, far below the content score of a cut. Two properties
//! distinguish it from movement. The area is at rest before and after (measured by [`super::still`]), and few other
//! areas start to move within seconds of it. In footage, areas come to rest all the time, but others keep starting to
//! move. A lecturer who never stands still does not count: those areas are already moving.

use std::collections::VecDeque;

use super::scores::{FrameScores, Settled};
use super::still::{STILL_MS, TOGETHER_MS, TRANSITION_MS};

/// Time before and after a change in which restlessness is measured.
const BEFORE_MS: i64 = 3000;
const AFTER_MS: i64 = LATEST_MS + TOGETHER_MS;
/// Length of a step, the unit in which restlessness is measured.
const STEP_MS: i64 = 200;
/// A step is restless if at least this fraction (one in ten) of the changed area starts to move in it.
const RESTLESS: u32 = 10;
/// The largest share of restless steps around a slide change: two of five.
const MOST_RESTLESS: (usize, usize) = (2, 5);
/// The largest median of moving area around a slide change, in units of 1 / [`super::scores::WHOLE`]. A lecturer in a
/// corner stays below it, a change of the whole picture does not.
const MOST_MOVING: u16 = 800;
/// A change is reported at most this long after it began.
const LATEST_MS: i64 = TRANSITION_MS + STILL_MS;

/// Takes scores in order; returns slide changes.
#[derive(Debug)]
pub(super) struct SlideChanges {
    least_area: u32,
    /// In order of time, at least [`TOGETHER_MS`] apart.
    open: VecDeque<Change>,
    /// The latest frames, as far back as a change needs them.
    frames: VecDeque<FrameMotion>,
    now_ms: i64,
}

/// Motion of one frame, kept for later changes.
#[derive(Debug, Clone, Copy)]
struct FrameMotion {
    time_ms: i64,
    began: u16,
    moving: u16,
}

/// Areas that began to change together and settle one by one.
#[derive(Debug)]
struct Change {
    first_ms: i64,
    area: u32,
    largest: Settled,
}

impl SlideChanges {
    /// Finds changes of at least `least_area`, in units of 1 / [`super::scores::WHOLE`].
    pub(super) fn new(least_area: u16) -> SlideChanges {
        SlideChanges {
            least_area: u32::from(least_area.max(1)),
            open: VecDeque::new(),
            frames: VecDeque::new(),
            now_ms: 0,
        }
    }

    /// Takes the next frame; returns the changes that are now certain. Each time is the start of the largest area.
    pub(super) fn push(&mut self, scores: &FrameScores) -> Vec<i64> {
        self.now_ms = scores.time_ms;
        self.see(scores);
        if let Some(settled) = scores.settled {
            self.add(settled);
        }
        let until = self.undecided_ms();
        let over = self.open.iter().take_while(|change| change.first_ms < until).count();
        let over: Vec<Change> = self.open.drain(..over).collect();
        self.large(over)
    }

    /// Ends the video; returns the remaining changes.
    pub(super) fn finish(&mut self) -> Vec<i64> {
        let over = self.open.drain(..).collect();
        self.large(over)
    }

    /// Every later report is of a change that began at or after this time.
    pub(super) fn undecided_ms(&self) -> i64 {
        self.now_ms - LATEST_MS - TOGETHER_MS
    }

    fn add(&mut self, settled: Settled) {
        let area = u32::from(settled.area);
        let near = |change: &&mut Change| (settled.began_ms - change.first_ms).abs() <= TOGETHER_MS;
        if let Some(change) = self.open.iter_mut().find(near) {
            change.area += area;
            change.first_ms = change.first_ms.min(settled.began_ms);
            if settled.area > change.largest.area {
                change.largest = settled;
            }
            return;
        }
        let at = self.open.partition_point(|change| change.first_ms < settled.began_ms);
        self.open.insert(at, Change { first_ms: settled.began_ms, area, largest: settled });
    }

    fn see(&mut self, scores: &FrameScores) {
        self.frames.push_back(FrameMotion {
            time_ms: scores.time_ms,
            began: scores.began,
            moving: scores.moving,
        });
        let needed_ms = self.undecided_ms().min(self.open.front().map_or(i64::MAX, |it| it.first_ms));
        let passed = self.frames.partition_point(|it| it.time_ms < needed_ms - BEFORE_MS - STEP_MS);
        self.frames.drain(..passed);
    }

    fn large(&self, over: Vec<Change>) -> Vec<i64> {
        let is_large = |it: &Change| it.area >= self.least_area;
        let large = over.into_iter().filter(|it| is_large(it) && self.is_quiet(it) && !self.is_restless(it));
        large.map(|change| change.largest.began_ms).collect()
    }

    /// Whether little moves before and after a change.
    fn is_quiet(&self, change: &Change) -> bool {
        let usually = |from_ms: i64, until_ms: i64| {
            let within = self.frames.iter().filter(|it| (from_ms..until_ms).contains(&it.time_ms));
            let mut moving: Vec<u16> = within.map(|it| it.moving).collect();
            moving.sort_unstable();
            moving.get(moving.len() / 2).copied().unwrap_or(0)
        };
        let (first, after) = (change.first_ms, change.first_ms + TRANSITION_MS);
        usually(first - BEFORE_MS, first) <= MOST_MOVING && usually(after, first + AFTER_MS) <= MOST_MOVING
    }

    /// Whether areas keep starting to move around a change. Then the change is movement.
    fn is_restless(&self, change: &Change) -> bool {
        let of_change = change.first_ms - STEP_MS..change.first_ms + TOGETHER_MS + 1;
        let (from, until) = (of_change.start - BEFORE_MS, change.first_ms + AFTER_MS + TOGETHER_MS);
        let (mut all, mut restless, mut step_ms, mut began) = (0, 0, i64::MIN, 0);
        let around =
            |it: &&FrameMotion| (from..until).contains(&it.time_ms) && !of_change.contains(&it.time_ms);
        for seen in self.frames.iter().filter(around) {
            if seen.time_ms >= step_ms.saturating_add(STEP_MS) {
                (all, step_ms, began) = (all + 1, seen.time_ms, 0);
            }
            let before = began;
            began += u32::from(seen.began) * RESTLESS;
            restless += usize::from(before < change.area && change.area <= began);
        }
        restless * MOST_RESTLESS.1 > all * MOST_RESTLESS.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Areas as (settled at, area, began). Checks that every change is reported, and in time.
    #[track_caller]
    fn check(settled: &[(i64, u16, i64)], expected: &[i64]) {
        let mut changes = SlideChanges::new(100);
        let mut found = Vec::new();
        for time_ms in (0..20_000).step_by(100) {
            let settled = settled.iter().find(|it| it.0 == time_ms);
            let settled = settled.map(|&(_, area, began_ms)| Settled { area, began_ms });
            let before = changes.undecided_ms();
            let new = changes.push(&FrameScores { time_ms, settled, ..FrameScores::default() });
            assert!(new.iter().all(|at| *at >= before), "{new:?} before {before}");
            found.extend(new);
        }
        found.extend(changes.finish());
        assert_eq!(found, expected);
    }

    #[test]
    fn a_change_has_the_time_of_its_first_frame() {
        check(&[(5900, 300, 5000)], &[5000]);
        check(&[(19_900, 300, 19_000)], &[19_000]);
    }

    #[test]
    fn where_something_always_begins_to_move_nothing_is_a_slide() {
        for (every_ms, expected) in [(100, vec![]), (400, vec![]), (1000, vec![5000])] {
            let mut changes = SlideChanges::new(100);
            let mut found = Vec::new();
            for time_ms in (0..20_000).step_by(100) {
                let settled = (time_ms == 5900).then_some(Settled { area: 300, began_ms: 5000 });
                let began = if time_ms % every_ms == 0 { 100 } else { 0 };
                found.extend(changes.push(&FrameScores {
                    time_ms,
                    began,
                    settled,
                    ..FrameScores::default()
                }));
            }
            assert_eq!(found, expected, "every {every_ms} ms");
        }
    }

    #[test]
    fn where_much_moves_nothing_is_a_slide() {
        for (moving, until_ms, expected) in [
            (1000, 20_000, vec![]),
            (700, 20_000, vec![5000]),
            (1000, 5000, vec![]),
            (1000, 3000, vec![5000]),
        ] {
            let mut changes = SlideChanges::new(100);
            let mut found = Vec::new();
            for time_ms in (0..20_000).step_by(100) {
                let settled = (time_ms == 5900).then_some(Settled { area: 300, began_ms: 5000 });
                let moving = if time_ms < until_ms { moving } else { 0 };
                found.extend(changes.push(&FrameScores {
                    time_ms,
                    moving,
                    settled,
                    ..FrameScores::default()
                }));
            }
            assert_eq!(found, expected, "{moving} until {until_ms} ms");
        }
    }

    #[test]
    fn a_pointer_is_no_slide() {
        check(&[(5900, 70, 5000)], &[]);
    }

    #[test]
    fn parts_that_began_together_are_one_change() {
        check(&[(5900, 60, 5000), (6200, 70, 5200)], &[5200]);
        check(&[(5900, 60, 5000), (6900, 70, 6000)], &[]);
    }

    #[test]
    fn changes_that_follow_each_other_are_several() {
        check(&[(5900, 300, 5000), (7000, 400, 6100)], &[5000, 6100]);
        check(&[(7300, 300, 5600), (7400, 400, 5000)], &[5000, 5600]);
    }
}
