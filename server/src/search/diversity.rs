//! Spreads the best hits over what differs: maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).

use std::collections::HashMap;

use super::types::Match;
use crate::terms::{SpanKey, UnitVector};

/// Number of best entries that are reordered, for pages of `limit`: ten pages, 100 to 1,000. The same on all pages.
pub(super) fn depth(limit: usize) -> usize {
    limit.saturating_mul(10).clamp(100, 1000)
}

/// Reorders the best `depth` entries of a ranking, best first. The first stays. Each next one is the entry with the highest
/// `(1 - diversity) * relevance - diversity * likeness`; of equal ones the better.
///
/// Relevance is the score, from 0 for the worst of these entries to 1 for the best. Likeness is the highest cosine with an
/// entry before it, from 0 for the mean cosine of these entries, or less, to 1. So both have the same range in any space.
/// An entry without a vector is like no other.
pub(super) fn spread(
    mut ranking: Vec<Match>,
    units: &HashMap<SpanKey, UnitVector>,
    diversity: f32,
    depth: usize,
) -> Vec<Match> {
    let deeper = ranking.split_off(depth.min(ranking.len()));
    let of_entries: Vec<Option<&UnitVector>> =
        ranking.iter().map(|it| units.get(&it.span.span.key)).collect();
    let order = order(&relevances(&ranking), &of_entries, diversity);
    let mut entries: Vec<Option<Match>> = ranking.into_iter().map(Some).collect();
    let mut spread: Vec<Match> = order.into_iter().filter_map(|at| entries[at].take()).collect();
    spread.extend(deeper);
    spread
}

fn relevances(ranking: &[Match]) -> Vec<f32> {
    let scores = || ranking.iter().map(|it| it.score);
    let (least, most) = (scores().fold(f32::INFINITY, f32::min), scores().fold(f32::NEG_INFINITY, f32::max));
    let range = (most - least).max(f32::MIN_POSITIVE);
    scores().map(|score| (score - least) / range).collect()
}

/// The places of the entries in their new order.
fn order(relevances: &[f32], units: &[Option<&UnitVector>], diversity: f32) -> Vec<usize> {
    let mean = mean_cosine(units);
    let likeness = |one: usize, other: usize| match (units[one], units[other]) {
        (Some(one), Some(other)) => {
            ((one.dot(other) - mean) / (1.0 - mean).max(f32::EPSILON)).clamp(0.0, 1.0)
        }
        _ => 0.0,
    };
    let mut likest = vec![0.0_f32; units.len()];
    let mut left: Vec<usize> = (0..units.len()).collect();
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let worth = |at: usize| (1.0 - diversity) * relevances[at] - diversity * likest[at];
        let best =
            (1..left.len()).fold(0, |best, it| if worth(left[it]) > worth(left[best]) { it } else { best });
        // The first is the best hit, whatever the diversity.
        let chosen = left.remove(best);
        left.iter().for_each(|at| likest[*at] = likest[*at].max(likeness(*at, chosen)));
        order.push(chosen);
    }
    order
}

/// The mean cosine of two entries: from the length of the mean vector.
fn mean_cosine(units: &[Option<&UnitVector>]) -> f32 {
    let known: Vec<&[f32]> = units.iter().flatten().map(|unit| unit.values()).collect();
    let (Some(first), count) = (known.first(), known.len() as f64) else { return 0.0 };
    let mut sum = vec![0.0_f64; first.len()];
    for values in &known {
        sum.iter_mut().zip(*values).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let squares: f64 = sum.iter().map(|it| it * it).sum();
    // Without the cosines of entries with themselves.
    let pairs = count * (count - 1.0);
    if pairs > 0.0 { ((squares - count) / pairs) as f32 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::fuse::tests::found;
    use super::*;

    /// `hits`: scores, best first, and angles in degrees. `expected`: their places in the new order.
    #[track_caller]
    fn check(hits: &[(f32, f32)], diversity: f32, depth: usize, expected: &[u64]) {
        let (mut ranking, mut units) = (Vec::new(), HashMap::new());
        for (place, (score, degrees)) in hits.iter().enumerate() {
            let found = found(1, place as i64, place as i64 + 1, *score);
            let (sin, cos) = degrees.to_radians().sin_cos();
            units.insert(found.span.span.key, UnitVector::from_raw(&[cos, sin]).unwrap().0);
            ranking.push(found);
        }
        let spread = spread(ranking, &units, diversity, depth);
        assert_eq!(spread.iter().map(|it| it.span.span.key.number()).collect::<Vec<_>>(), expected);
    }

    const HITS: &[(f32, f32)] = &[(0.9, 0.0), (0.89, 1.0), (0.88, 2.0), (0.7, 80.0), (0.6, 81.0)];

    #[test]
    fn what_differs_comes_before_more_of_the_same() {
        check(HITS, 0.0, 100, &[0, 1, 2, 3, 4]);
        check(HITS, 0.5, 100, &[0, 3, 1, 2, 4]);
        check(HITS, 1.0, 100, &[0, 3, 2, 4, 1]);
    }

    #[test]
    fn only_the_best_entries_are_reordered() {
        check(HITS, 1.0, 3, &[0, 2, 1, 3, 4]);
        check(HITS, 1.0, 0, &[0, 1, 2, 3, 4]);
        check(&[], 1.0, 100, &[]);
        check(&[(0.5, 3.0)], 1.0, 100, &[0]);
    }

    #[test]
    fn equal_vectors_and_equal_scores_keep_their_order() {
        check(&[(0.5, 9.0); 4], 0.7, 100, &[0, 1, 2, 3]);
    }

    #[test]
    fn ten_pages_are_reordered_within_bounds() {
        assert_eq!([1, 20, 1000].map(depth), [100, 200, 1000]);
    }
}
