//! Slide changes: a part of a still picture that shows something new and stands still again.
//!
//! A new line of text changes a few per cent of the pixels, far below what a cut does to the content
//! score. What tells it from movement is that what changed was at rest before and is afterwards (measured
//! by [`super::still`]), and that little else begins to move in the seconds around: in footage something
//! always comes to rest somewhere, but something always begins to move, too. A lecturer in a corner who
//! never stands still doesn't begin.

use std::collections::VecDeque;

use super::scores::{FrameScores, Settled};
use super::still::{STILL_MS, TOGETHER_MS, TRANSITION_MS};

/// How long before and after a change the picture is looked at for restlessness.
const BEFORE_MS: i64 = 3000;
const AFTER_MS: i64 = LATEST_MS + TOGETHER_MS;
/// In steps of this.
const STEP_MS: i64 = 200;
/// A step is restless if this part of what changed with the slide begins to move in it.
const RESTLESS: u32 = 10;
/// Between slide changes at most two steps of five are.
const MOST_RESTLESS: (usize, usize) = (2, 5);
/// No change that is still to be heard of began longer ago than this.
const LATEST_MS: i64 = TRANSITION_MS + STILL_MS;

/// Takes scores in order; says when slides changed.
#[derive(Debug)]
pub(super) struct SlideChanges {
    least_area: u32,
    /// In order of time, each at least [`TOGETHER_MS`] after the one before.
    open: VecDeque<Change>,
    /// Start of each step, and how much began to move in it.
    steps: VecDeque<(i64, u32)>,
    now_ms: i64,
}

/// Parts that began to change together and settle one by one.
#[derive(Debug)]
struct Change {
    first_ms: i64,
    area: u32,
    largest: Settled,
}

impl SlideChanges {
    /// Changes of at least `least_area`, in parts of [`super::scores::WHOLE`].
    pub(super) fn new(least_area: u16) -> SlideChanges {
        SlideChanges {
            least_area: u32::from(least_area.max(1)),
            open: VecDeque::new(),
            steps: VecDeque::new(),
            now_ms: 0,
        }
    }

    /// Takes the next frame; returns the times of the changes that are certain now: those of their first
    /// frame.
    pub(super) fn push(&mut self, scores: &FrameScores) -> Vec<i64> {
        self.now_ms = scores.time_ms;
        self.step(scores);
        if let Some(settled) = scores.settled {
            self.add(settled);
        }
        let until = self.undecided_ms();
        let over = self.open.iter().take_while(|change| change.first_ms < until).count();
        let over: Vec<Change> = self.open.drain(..over).collect();
        self.large(over)
    }

    /// The video is over: the remaining changes.
    pub(super) fn finish(&mut self) -> Vec<i64> {
        let over = self.open.drain(..).collect();
        self.large(over)
    }

    /// Changes that are still to come, or to be judged, begin here or later.
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

    fn step(&mut self, scores: &FrameScores) {
        let began = u32::from(scores.began);
        match self.steps.back_mut() {
            Some((start_ms, sum)) if scores.time_ms < *start_ms + STEP_MS => *sum += began,
            _ => self.steps.push_back((scores.time_ms, began)),
        }
        let needed_ms = self.undecided_ms().min(self.open.front().map_or(i64::MAX, |it| it.first_ms));
        let passed = self.steps.partition_point(|step| step.0 < needed_ms - BEFORE_MS);
        self.steps.drain(..passed);
    }

    fn large(&self, over: Vec<Change>) -> Vec<i64> {
        let large = over.into_iter().filter(|it| it.area >= self.least_area && !self.is_restless(it));
        large.map(|change| change.largest.began_ms).collect()
    }

    /// Whether, around a change, something begins to move all the time: then it is movement itself.
    fn is_restless(&self, change: &Change) -> bool {
        let (first, last) = (change.first_ms - STEP_MS, change.first_ms + TOGETHER_MS);
        let around = self.steps.iter().filter(|(start_ms, _)| {
            (first - BEFORE_MS..last + AFTER_MS).contains(start_ms)
                && !(first < *start_ms && *start_ms <= last)
        });
        let (mut all, mut restless) = (0, 0);
        for (_, began) in around {
            all += 1;
            restless += usize::from(began * RESTLESS >= change.area);
        }
        restless * MOST_RESTLESS.1 > all * MOST_RESTLESS.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts as (settled at, area, began); every change is told, and before its time is past.
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
