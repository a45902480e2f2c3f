//! Split points of clips that are too long.

use std::collections::VecDeque;

use super::pauses::Pauses;

/// How split points are chosen.
#[derive(Debug)]
pub(super) enum Split {
    /// Evenly, at the nearest frame: in halves, or at the maximum while the end is unknown.
    Evenly,
    /// At a pause between cues; without one, where the least moves.
    AtRest(Pauses),
}

/// A clip that is longer than the maximum.
#[derive(Debug, Clone, Copy)]
pub(super) struct TooLong {
    pub(super) from_ms: i64,
    /// Its end, or, if that is more than twice the maximum away, the time up to which frames have come.
    pub(super) until_ms: i64,
    pub(super) max_clip_ms: i64,
}

/// Frames of the open clip: time and moving area.
pub(super) type Frames = VecDeque<(i64, u16)>;

impl Split {
    /// The end of the first piece: after the start, before the end, and at most the maximum away.
    pub(super) fn point(&self, it: TooLong, frames: &Frames) -> i64 {
        match self {
            Split::Evenly => it.even(frames),
            Split::AtRest(pauses) => it.at_rest(pauses, frames),
        }
    }
}

/// Times between which a clip may be split; none if `low` is after `high`.
#[derive(Debug, Clone, Copy)]
struct Choice {
    low: i64,
    high: i64,
}

impl TooLong {
    fn end_is_near(self) -> bool {
        self.until_ms - self.from_ms <= self.max_clip_ms.saturating_mul(2)
    }

    fn latest(self) -> i64 {
        self.from_ms + self.max_clip_ms
    }

    fn even(self, frames: &Frames) -> i64 {
        let (wanted, earliest) = match self.end_is_near() {
            true => (self.from_ms + (self.until_ms - self.from_ms) / 2, self.until_ms - self.max_clip_ms),
            false => (self.latest(), self.from_ms + (self.max_clip_ms + 1) / 2),
        };
        let reachable = within(frames, earliest.max(self.from_ms + 1), self.latest());
        reachable.map(|(time, _)| time).min_by_key(|time| (time - wanted).abs()).unwrap_or(wanted)
    }

    fn at_rest(self, pauses: &Pauses, frames: &Frames) -> i64 {
        let (from, until, longest) = (self.from_ms, self.until_ms, self.max_clip_ms);
        let wanted = match self.end_is_near() {
            true => from + (until - from) / 2,
            false => self.latest(),
        };
        // No piece is a sliver. A time that needs one more piece is only the second choice.
        let sliver = longest / 4;
        let any = Choice {
            low: (from + sliver).max(from + 1),
            high: self.latest().min(until - sliver).min(until - 1),
        };
        let low = match self.end_is_near() {
            true => any.low.max(until - longest),
            false => any.low.max(from + longest / 2),
        };
        let first_choice = Choice { low, ..any };
        let spoken = [first_choice, any]
            .into_iter()
            .find_map(|it| (it.low <= it.high).then(|| pauses.best(it.low, it.high, wanted)).flatten());
        spoken.unwrap_or_else(|| least_motion(frames, first_choice, wanted))
    }
}

/// The frame with the least motion within a quarter of the range around `wanted`. Of equally quiet frames, the one
/// nearest to `wanted`; `wanted` itself if there is no frame.
fn least_motion(frames: &Frames, choice: Choice, wanted: i64) -> i64 {
    let Choice { low, high } = choice;
    let reach = (high - low).max(0) / 4;
    let wanted = wanted.clamp(low, high.max(low));
    let near = within(frames, low.max(wanted - reach), high.min(wanted + reach));
    near.min_by_key(|(time, moving)| (*moving, (time - wanted).abs())).map_or(wanted, |(time, _)| time)
}

fn within(frames: &Frames, earliest: i64, latest: i64) -> impl Iterator<Item = (i64, u16)> {
    let from = frames.partition_point(|frame| frame.0 < earliest);
    frames.range(from..).copied().take_while(move |frame| frame.0 <= latest)
}

#[cfg(test)]
mod tests {
    use super::super::ClipRange;
    use super::*;

    /// One frame per second; everything moves except at `rests`.
    fn frames(rests: &[i64]) -> Frames {
        (0..200).map(|at| (at * 1000, if rests.contains(&at) { 0 } else { 500 })).collect()
    }

    #[track_caller]
    fn check(split: &Split, rests: &[i64], until_ms: i64, expected: i64) {
        let too_long = TooLong { from_ms: 10_000, until_ms, max_clip_ms: 40_000 };
        assert_eq!(split.point(too_long, &frames(rests)), expected);
    }

    fn cues(cues: &[(i64, i64)]) -> Split {
        let ranges: Vec<ClipRange> =
            cues.iter().map(|&(start_ms, end_ms)| ClipRange { start_ms, end_ms }).collect();
        Split::AtRest(Pauses::between(&ranges))
    }

    #[test]
    fn evenly_is_in_halves_or_at_the_maximum() {
        check(&Split::Evenly, &[30], 70_000, 40_000);
        check(&Split::Evenly, &[30], 120_000, 50_000);
    }

    #[test]
    fn without_cues_the_quietest_frame_near_the_middle_is_taken() {
        check(&cues(&[]), &[36], 70_000, 36_000);
        check(&cues(&[]), &[36, 43], 70_000, 43_000);
        check(&cues(&[]), &[31, 69], 70_000, 40_000);
        check(&cues(&[]), &[], 70_000, 40_000);
        check(&cues(&[]), &[45], 120_000, 45_000);
    }

    #[test]
    fn with_cues_a_pause_is_taken() {
        check(&cues(&[(0, 35_000), (36_000, 90_000)]), &[45], 70_000, 36_000);
        check(&cues(&[(0, 24_000), (24_500, 90_000)]), &[45], 70_000, 24_500);
        check(&cues(&[(0, 100_000)]), &[45], 70_000, 45_000);
    }
}
