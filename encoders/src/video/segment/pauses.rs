//! Pauses in speech: the gaps between cues, and the best one for a cut.

use super::ClipRange;

/// Pauses in order of time. Cues that touch have a pause of length 0, overlapping cues have none.
#[derive(Debug, Default)]
pub(super) struct Pauses(Vec<Pause>);

/// From the end of a cue to the start of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pause {
    from_ms: i64,
    until_ms: i64,
}

/// Beyond this length, a longer pause is no better.
const LONG_MS: i64 = 1500;
/// Extra length that makes up for the whole range as distance from the wanted time.
const WORTH_MS: i64 = 1000;

impl Pauses {
    /// The pauses of cues in any order, with the silence before the first and after the last.
    pub(super) fn between(cues: &[ClipRange]) -> Pauses {
        let mut cues: Vec<&ClipRange> = cues.iter().filter(|cue| cue.start_ms < cue.end_ms).collect();
        cues.sort_unstable_by_key(|cue| cue.start_ms);
        if cues.is_empty() {
            return Pauses::default();
        }
        let (mut pauses, mut from_ms) = (Vec::new(), 0);
        for cue in cues {
            if cue.start_ms >= from_ms {
                pauses.push(Pause { from_ms, until_ms: cue.start_ms });
            }
            from_ms = from_ms.max(cue.end_ms);
        }
        pauses.push(Pause { from_ms, until_ms: i64::MAX });
        Pauses(pauses)
    }

    /// The starts of cues after a pause of at least `pause_ms`. A pause as long as a clip is itself a clip, so its
    /// start is a boundary too.
    pub(super) fn boundaries(&self, pause_ms: i64, min_clip_ms: i64) -> Vec<i64> {
        let mut boundaries = Vec::new();
        for pause in self.0.iter().filter(|pause| pause.length() >= pause_ms.max(1)) {
            if pause.length() >= min_clip_ms.max(2 * pause_ms) {
                boundaries.push(pause.from_ms);
            }
            boundaries.extend(Some(pause.until_ms).filter(|until| *until < i64::MAX));
        }
        boundaries
    }

    /// The best time between `earliest` and `latest`: a long pause near `wanted`, if possible at the start of a cue.
    /// `None` if speech fills the whole range.
    pub(super) fn best(&self, earliest: i64, latest: i64, wanted: i64) -> Option<i64> {
        let from = self.0.partition_point(|pause| pause.until_ms < earliest);
        let reach = (latest - earliest).max(1);
        let places = self.0[from..].iter().take_while(|pause| pause.from_ms <= latest).map(|pause| {
            let place = match pause.until_ms <= latest {
                true => pause.until_ms,
                false => wanted.clamp(pause.from_ms.max(earliest), latest),
            };
            let worth = pause.length().min(LONG_MS) - (place - wanted).abs() * WORTH_MS / reach;
            (worth, place)
        });
        // Of two equally good pauses, the earlier one.
        places.min_by_key(|(worth, _)| -worth).map(|(_, place)| place)
    }
}

impl Pause {
    fn length(self) -> i64 {
        self.until_ms.saturating_sub(self.from_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(cues: &[(i64, i64)]) -> Pauses {
        let ranges: Vec<ClipRange> =
            cues.iter().map(|&(start_ms, end_ms)| ClipRange { start_ms, end_ms }).collect();
        Pauses::between(&ranges)
    }

    const TALK: [(i64, i64); 5] =
        [(1000, 4000), (4000, 7000), (7800, 9000), (8500, 12_000), (20_000, 22_000)];

    #[track_caller]
    fn check(cues: &[(i64, i64)], (earliest, latest, wanted): (i64, i64, i64), expected: Option<i64>) {
        assert_eq!(pauses(cues).best(earliest, latest, wanted), expected);
    }

    #[test]
    fn a_piece_begins_with_a_cue_after_a_pause() {
        check(&TALK, (2000, 9000, 5000), Some(7800));
        check(&TALK, (2000, 7000, 5000), Some(7000));
        check(&TALK, (3000, 6000, 5000), Some(4000));
    }

    #[test]
    fn silence_can_be_cut_anywhere() {
        check(&TALK, (13_000, 18_000, 15_000), Some(15_000));
        check(&TALK, (30_000, 40_000, 31_000), Some(31_000));
        check(&TALK, (9500, 14_000, 10_000), Some(12_000));
    }

    #[test]
    fn there_may_be_no_pause() {
        check(&TALK, (8600, 11_000, 9000), None);
        check(&[], (0, 10_000, 5000), None);
    }

    #[test]
    fn boundaries_lie_after_pauses_and_around_long_ones() {
        assert_eq!(pauses(&TALK).boundaries(500, 5000), [1000, 7800, 12_000, 20_000, 22_000]);
        assert_eq!(pauses(&TALK).boundaries(2000, 20_000), [20_000, 22_000]);
        assert_eq!(pauses(&[(5, 5), (9, 3)]).boundaries(500, 5000), [] as [i64; 0]);
    }
}
