//! Merges adjacent hits with similar scores.

use super::types::Match;

/// A hit is merged only if it scores at least this share of the best.
const MERGE_SHARE: f32 = 0.9;

/// Merges adjacent hits near the best score. A merged hit is at most `max_clip_ms` long.
pub(super) fn merge(matches: Vec<Match>, max_clip_ms: i64) -> Vec<Match> {
    let Some(best) = matches.first().map(|best| best.score) else { return matches };
    let is_good = |it: &Match| best > 0.0 && MERGE_SHARE * best <= it.score;
    let joins = |it: &Match, found: &Match| touches(it, found) && joined_ms(it, found) <= max_clip_ms;
    let (good, others): (Vec<Match>, Vec<Match>) = matches.into_iter().partition(is_good);
    let mut merged: Vec<Match> = Vec::new();
    for mut found in good {
        let mut place = merged.len();
        // A hit between two merged ones joins both. The best one keeps its place.
        while let Some(at) = merged.iter().position(|it| joins(it, &found)) {
            found = join(merged.remove(at), found);
            place = place.min(at);
        }
        merged.insert(place.min(merged.len()), found);
    }
    merged.extend(others);
    merged
}

fn touches(one: &Match, other: &Match) -> bool {
    let (one, other) = (&one.span.span, &other.span.span);
    one.video == other.video && (one.end_ms == other.start_ms || other.end_ms == one.start_ms)
}

fn joined_ms(one: &Match, other: &Match) -> i64 {
    let (one, other) = (&one.span.span, &other.span.span);
    one.end_ms.max(other.end_ms) - one.start_ms.min(other.start_ms)
}

/// The better hit grows and keeps its score and rank. The original hits stay inside, ordered by rank.
fn join(one: Match, other: Match) -> Match {
    let (mut better, worse) = if one.rank <= other.rank { (one, other) } else { (other, one) };
    let (start_ms, end_ms) = (worse.span.span.start_ms, worse.span.span.end_ms);
    let mut inside = [originals(better.clone()), originals(worse)].concat();
    inside.sort_by_key(|it| it.rank);
    better.merged = inside;
    let span = &mut better.span.span;
    span.start_ms = span.start_ms.min(start_ms);
    span.end_ms = span.end_ms.max(end_ms);
    better
}

fn originals(found: Match) -> Vec<Match> {
    if found.merged.is_empty() { vec![found] } else { found.merged }
}

#[cfg(test)]
mod tests {
    use super::super::fuse::tests::found;
    use super::*;

    /// `hits`: (video, start, end, score), best first. `expected`, merged up to 10 s: (rank, start, end, hits inside).
    #[track_caller]
    fn check(hits: &[(u128, i64, i64, f32)], expected: &[(usize, i64, i64, usize)]) {
        let ranked = |(index, it): (usize, &(u128, i64, i64, f32))| Match {
            rank: index + 1,
            ..found(it.0, it.1, it.2, it.3)
        };
        let matches: Vec<Match> = hits.iter().enumerate().map(ranked).collect();
        let merged = merge(matches, 10_000);
        let got: Vec<_> = merged
            .iter()
            .map(|it| (it.rank, it.span.span.start_ms, it.span.span.end_ms, it.merged.len()))
            .collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn neighbours_are_joined_in_whatever_order_they_rank() {
        check(&[(1, 0, 2000, 0.5), (1, 2000, 4000, 0.49)], &[(1, 0, 4000, 2)]);
        check(&[(1, 2000, 4000, 0.5), (1, 0, 2000, 0.49)], &[(1, 0, 4000, 2)]);
    }

    #[test]
    fn what_lies_between_two_hits_joins_both() {
        check(
            &[(2, 0, 1000, 0.5), (1, 0, 2000, 0.5), (1, 4000, 6000, 0.5), (1, 2000, 4000, 0.49)],
            &[(1, 0, 1000, 0), (2, 0, 6000, 3)],
        );
    }

    #[test]
    fn hits_that_score_under_nine_tenths_of_the_best_stay_alone() {
        check(&[(1, 0, 2000, 0.5), (1, 2000, 4000, 0.44)], &[(1, 0, 2000, 0), (2, 2000, 4000, 0)]);
        check(&[(1, 0, 2000, -0.1), (1, 2000, 4000, -0.1)], &[(1, 0, 2000, 0), (2, 2000, 4000, 0)]);
    }

    #[test]
    fn nothing_is_joined_past_the_longest_clip_or_across_a_gap_or_two_videos() {
        check(&[(1, 0, 6000, 0.5), (1, 6000, 12_000, 0.5)], &[(1, 0, 6000, 0), (2, 6000, 12_000, 0)]);
        check(&[(1, 0, 2000, 0.5), (1, 2001, 4000, 0.5)], &[(1, 0, 2000, 0), (2, 2001, 4000, 0)]);
        check(&[(1, 0, 2000, 0.5), (2, 2000, 4000, 0.5)], &[(1, 0, 2000, 0), (2, 2000, 4000, 0)]);
    }
}
