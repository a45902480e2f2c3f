//! Folds hits that show nearly the same picture into one entry: a slide that is shown again, a replay.

use std::collections::HashMap;

use super::types::Match;
use crate::terms::{SpanKey, UnitVector};

/// Number of best entries that are compared with each other. Deeper ones stand for themselves. Two thousand entries of
/// 1,024 values cost two million cosines and 8 MB.
pub(super) const DEPTH: usize = 2000;

/// Folds a ranking, best first. `units`: vectors of the entries' best hits; an entry without one stays as it is. `least`:
/// the least cosine of near duplicates. `within_videos`: only hits of the same video are folded.
///
/// An entry goes into the nearest better entry that was not folded itself, so a chain of small changes does not join its
/// ends. Later entries do not change how earlier ones are folded.
pub(super) fn fold(
    ranking: Vec<Match>,
    units: &HashMap<SpanKey, UnitVector>,
    least: f32,
    within_videos: bool,
) -> Vec<Match> {
    let mut entries: Vec<Match> = Vec::with_capacity(ranking.len());
    let mut compared: Vec<(usize, &UnitVector)> = Vec::new();
    for (place, mut found) in ranking.into_iter().enumerate() {
        let Some(unit) = units.get(&found.span.span.key).filter(|_| place < DEPTH) else {
            entries.push(found);
            continue;
        };
        let video = found.span.span.video;
        let may = |at: usize| !within_videos || entries[at].span.span.video == video;
        let near = compared.iter().filter(|(at, _)| may(*at)).map(|(at, other)| (*at, unit.dot(other)));
        // Of equally near ones the best: the first.
        let nearest =
            near.filter(|it| it.1 >= least).reduce(|one, other| if other.1 > one.1 { other } else { one });
        match nearest {
            Some((at, cosine)) => {
                found.similarity = Some(cosine);
                entries[at].duplicates.push(found);
            }
            None => {
                compared.push((entries.len(), unit));
                entries.push(found);
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fuse::tests::found;
    use super::*;

    /// A hit by its video, and the angle of its vector in degrees.
    type Hit = (u128, f32);

    fn ranking(hits: &[Hit]) -> (Vec<Match>, HashMap<SpanKey, UnitVector>) {
        let (mut ranking, mut units) = (Vec::new(), HashMap::new());
        for (place, (video, degrees)) in hits.iter().enumerate() {
            let found = found(*video, place as i64, place as i64 + 1, 1.0 - place as f32 * 0.001);
            let (sin, cos) = degrees.to_radians().sin_cos();
            units.insert(found.span.span.key, UnitVector::from_raw(&[cos, sin]).unwrap().0);
            ranking.push(found);
        }
        (ranking, units)
    }

    fn places(entries: &[Match]) -> Vec<Vec<u64>> {
        let key = |found: &Match| found.span.span.key.number();
        entries.iter().map(|it| [vec![key(it)], it.duplicates.iter().map(key).collect()].concat()).collect()
    }

    /// `expected`: the places of each entry's best hit and of its near duplicates. Hits within 10 degrees are near.
    #[track_caller]
    fn check(hits: &[Hit], within_videos: bool, expected: &[&[u64]]) {
        let (ranking, units) = ranking(hits);
        assert_eq!(places(&fold(ranking, &units, 10_f32.to_radians().cos(), within_videos)), expected);
    }

    #[test]
    fn near_duplicates_of_any_video_are_one_entry() {
        check(&[(1, 0.0), (2, 40.0), (2, 5.0), (3, 47.0), (1, 80.0)], false, &[&[0, 2], &[1, 3], &[4]]);
        check(&[(1, 0.0), (2, 40.0), (2, 5.0), (2, 47.0), (1, 8.0)], true, &[&[0, 4], &[1, 3], &[2]]);
    }

    #[test]
    fn a_hit_belongs_to_the_nearest_entry_and_a_chain_does_not_join_its_ends() {
        check(&[(1, 0.0), (1, 12.0), (1, 7.0)], false, &[&[0], &[1, 2]]);
        check(&[(1, 0.0), (1, 8.0), (1, 16.0), (1, 24.0)], false, &[&[0, 1], &[2, 3]]);
    }

    #[test]
    fn hits_without_a_vector_and_deep_ones_stand_for_themselves() {
        let (hits, mut units) = ranking(&[(1, 0.0); 3]);
        units.remove(&SpanKey::new(1));
        assert_eq!(places(&fold(hits, &units, 0.9, false)), [vec![0, 2], vec![1]]);
        let (hits, units) = ranking(&vec![(1, 0.0); DEPTH + 2]);
        let entries = fold(hits, &units, 0.9, false);
        assert_eq!((entries.len(), entries[0].duplicates.len()), (3, DEPTH - 1));
    }

    proptest! {
        #[test]
        fn a_longer_ranking_has_the_same_entries_first(hits in proptest::collection::vec((1_u128..4, 0_f32..90.0), 0..40), cut in 0_usize..40) {
            let folded = |hits: &[Hit]| {
                let (ranking, units) = ranking(hits);
                places(&fold(ranking, &units, 0.98, false))
            };
            let (all, first) = (folded(&hits), folded(&hits[..cut.min(hits.len())]));
            for (longer, shorter) in all.iter().zip(&first) {
                prop_assert_eq!(&longer[..shorter.len()], &shorter[..]);
            }
            prop_assert_eq!(all.iter().map(Vec::len).sum::<usize>(), hits.len());
        }
    }
}
