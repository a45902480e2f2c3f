//! Decides which parts of a collection a job should merge into one: pure functions of the parts' sizes.

use crate::Settings;

/// With fewer dead rows, rewriting a part does not pay.
const DEAD_MOST: u64 = 1_024;
/// A job of at least this many times [`Settings::seal_from`] rows is large.
const LARGE: u64 = 16;
/// Inserts wait while a seal runs and at least this many times [`Settings::seal_from`] rows are growing.
const FLOOD: u64 = 2;

/// A kind of background job. One job of each kind runs at a time, so that a long one delays no short one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Builds a segment from grown rows.
    Seal,
    /// Builds one segment from several, or rewrites one that is half dead.
    Merge,
    /// A seal or a merge of many rows.
    Large,
}

impl Kind {
    /// In the order of choice: large jobs first, because merges could take a part of them.
    pub(crate) const ALL: [Kind; 3] = [Kind::Seal, Kind::Large, Kind::Merge];
}

/// The sizes of a part that decide about jobs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) id: u64,
    pub(crate) live: u64,
    pub(crate) dead: u64,
    pub(crate) state: Growth,
}

/// A part's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// New rows are appended.
    Grows,
    /// Frozen rows, searched by brute force: too few for a segment, or their seal failed.
    Rows,
    /// A segment with a graph.
    Sealed,
}

/// The ids of the parts that the next job of `kind` should merge; empty if no job is due. `busy` are the kinds of the
/// running jobs.
pub(crate) fn due(kind: Kind, parts: &[Size], busy: &[Kind], settings: &Settings) -> Vec<u64> {
    let large = settings.seal_from.saturating_mul(LARGE);
    let (unsealed, mut rest): (Vec<Size>, Vec<Size>) =
        parts.iter().copied().partition(|part| part.is_unsealed(settings));
    let is_large = unsealed.iter().map(|part| part.live).sum::<u64>() >= large;
    rest.retain(|part| part.state != Growth::Grows);
    rest.sort_by_key(|part| part.live);
    let picked = match kind {
        // While a large job runs, a seal takes large parts too; else the part would grow until that job ends.
        Kind::Seal if !is_large || busy.contains(&Kind::Large) => &unsealed[..],
        Kind::Large if is_large => &unsealed[..],
        Kind::Seal => &[],
        Kind::Merge => merged(&rest, large),
        Kind::Large => Some(merged(&rest, u64::MAX)).filter(|all| live(all) >= large).unwrap_or_default(),
    };
    picked.iter().map(|part| part.id).collect()
}

/// Whether inserts should wait for a running [`Kind::Seal`], because brute force over the growing rows would take long.
/// Rows of [`crate::Index::fill`] do not count: their caller seals them at once.
pub(crate) fn is_flooded(growing: u64, settings: &Settings) -> bool {
    let (from, large) = (settings.seal_from.saturating_mul(FLOOD), settings.seal_from.saturating_mul(LARGE));
    (from..large).contains(&growing)
}

/// The first of `parts`, ordered by live rows, that should be merged. A part joins if it is not much larger than the
/// smaller parts together: so sizes differ widely and parts stay few. A half-dead part is rewritten alone.
fn merged(parts: &[Size], most: u64) -> &[Size] {
    for (start, first) in parts.iter().enumerate() {
        let mut live = first.live;
        let more = parts[start + 1..].iter().take_while(|part| {
            let belongs = part.live <= live + live / 2 && live + part.live < most;
            live += part.live;
            belongs
        });
        let count = 1 + more.count();
        if first.live < most && (count > 1 || first.is_half_dead()) {
            return &parts[start..start + count];
        }
    }
    &[]
}

/// Whether these counts of live and dead rows justify rewriting a part.
pub(crate) fn is_half_dead(live: u64, dead: u64) -> bool {
    dead >= DEAD_MOST && dead >= live
}

fn live(parts: &[Size]) -> u64 {
    parts.iter().map(|part| part.live).sum()
}

impl Size {
    fn is_half_dead(&self) -> bool {
        is_half_dead(self.live, self.dead)
    }

    /// Whether the part has grown enough for a segment.
    fn is_unsealed(&self, settings: &Settings) -> bool {
        match self.state {
            Growth::Grows => self.live + self.dead >= settings.seal_from || self.is_half_dead(),
            Growth::Rows => self.live >= settings.segment_from,
            Growth::Sealed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SETTINGS: Settings = Settings {
        segment_from: 100,
        seal_from: 400,
        codes: crate::Codes::Int8,
        memory: None,
        build_threads: 1,
    };

    fn sized(live: u64, dead: u64, state: Growth) -> Size {
        Size { id: live, live, dead, state }
    }

    fn segments(live: &[u64]) -> Vec<Size> {
        live.iter().map(|&live| sized(live, 0, Growth::Sealed)).collect()
    }

    /// Parts are named by the number of their live rows.
    #[track_caller]
    fn check(parts: &[Size], seal: &[u64], merge: &[u64], large: &[u64]) {
        let of = |kind| due(kind, parts, &[], &SETTINGS);
        assert_eq!(
            (of(Kind::Seal), of(Kind::Merge), of(Kind::Large)),
            (seal.to_vec(), merge.to_vec(), large.to_vec())
        );
    }

    #[test]
    fn what_has_grown_is_sealed() {
        check(&[sized(399, 0, Growth::Grows)], &[], &[], &[]);
        check(&[sized(400, 0, Growth::Grows)], &[400], &[], &[]);
        check(&[sized(300, 100, Growth::Grows)], &[300], &[], &[]);
        check(&[sized(99, 0, Growth::Rows), sized(0, 0, Growth::Grows)], &[], &[], &[]);
        check(&[sized(100, 0, Growth::Rows), sized(500, 0, Growth::Grows)], &[100, 500], &[], &[]);
        check(&[sized(6_400, 0, Growth::Grows)], &[], &[], &[6_400]);
        assert_eq!(due(Kind::Seal, &[sized(6_400, 0, Growth::Grows)], &[Kind::Large], &SETTINGS), [6_400]);
    }

    #[test]
    fn segments_of_like_sizes_are_merged() {
        check(&segments(&[400]), &[], &[], &[]);
        check(&segments(&[400, 601]), &[], &[], &[]);
        check(&segments(&[800, 400, 401]), &[], &[400, 401, 800], &[]);
        check(&segments(&[10, 400, 401]), &[], &[400, 401], &[]);
        // A large job waits for no small one, and takes its parts too.
        check(&segments(&[3_000, 3_001, 5_000]), &[], &[3_000, 3_001], &[3_000, 3_001, 5_000]);
        check(&segments(&[5_000, 5_001]), &[], &[], &[5_000, 5_001]);
        check(&[sized(50, 0, Growth::Rows), sized(60, 0, Growth::Rows)], &[], &[50, 60], &[]);
    }

    #[test]
    fn what_is_half_dead_is_rewritten() {
        check(&[sized(1_100, 1_023, Growth::Sealed)], &[], &[], &[]);
        check(&[sized(1_024, 1_024, Growth::Sealed)], &[], &[1_024], &[]);
        check(&[sized(0, 1_024, Growth::Sealed)], &[], &[0], &[]);
        check(&[sized(7_000, 7_000, Growth::Sealed)], &[], &[], &[7_000]);
        check(&[sized(10, 1_100, Growth::Grows)], &[10], &[], &[]);
    }

    #[test]
    fn a_flood_is_more_than_a_seal_takes_and_less_than_a_bulk() {
        for (growing, expected) in [(799, false), (800, true), (6_399, true), (6_400, false)] {
            assert_eq!(is_flooded(growing, &SETTINGS), expected, "{growing}");
        }
    }

    proptest! {
        #[test]
        fn what_is_done_until_nothing_is_due_leaves_few_segments(sizes in proptest::collection::vec(0..9_000_u64, 0..40)) {
            let mut parts = segments(&sizes);
            parts.iter_mut().zip(0..).for_each(|(part, id)| part.id = id);
            let all = live(&parts);
            let mut next = 1_000;
            while let Some(job) = Kind::ALL.iter().map(|kind| due(*kind, &parts, &[], &SETTINGS)).find(|job| !job.is_empty()) {
                prop_assert!(job.len() > 1, "nothing is dead here");
                let made = parts.iter().filter(|part| job.contains(&part.id)).map(|part| part.live).sum();
                parts.retain(|part| !job.contains(&part.id));
                parts.push(Size { id: next, live: made, dead: 0, state: Growth::Sealed });
                next += 1;
            }
            prop_assert_eq!(live(&parts), all);
            // Each part has at least one and a half times the rows of the next smaller one.
            prop_assert!(parts.iter().filter(|part| part.live > 0).count() <= 28);
        }
    }
}
