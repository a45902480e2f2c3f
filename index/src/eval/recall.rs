//! Recall at K over whole score matrices, and a model's bias between spatial and temporal captions (ReBias).
//!
//! Nothing is sorted: the rank of a query's best relevant row is one more than the number of rows before it. So a block
//! of scores is read once and can be dropped.

use std::collections::BTreeMap;

/// The rank, from 1, of the best relevant row in one query's `scores` of all gallery rows; `None` without relevant
/// rows. With several relevant rows, this is the rank that pass@k uses.
///
/// Ties go to the lower row, as in [`Protocol::Clean`](super::Protocol::Clean). NaN ranks below all other scores.
pub fn first_right(scores: &[f32], right: &[usize]) -> Option<usize> {
    let marks = right.iter().filter_map(|&row| Some(Mark::new(row, *scores.get(row)?)));
    let best = marks.reduce(Mark::better)?;
    Some(1 + best.beaten_by(scores, 0))
}

/// A relevant row and its score, against which other rows are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    row: usize,
    /// Never NaN.
    score: f32,
}

impl Mark {
    pub(super) fn new(row: usize, score: f32) -> Mark {
        Mark { row, score: if score.is_nan() { f32::NEG_INFINITY } else { score } }
    }

    /// The mark that ranks first. Of tied rows the lower one: then every tied row before it is not relevant.
    pub(super) fn better(self, other: Mark) -> Mark {
        let is_better = other.score > self.score || (other.score == self.score && other.row < self.row);
        if is_better { other } else { self }
    }

    /// The number of consecutive rows, from row `first` on, that rank before this mark.
    pub(super) fn beaten_by(self, scores: &[f32], first: usize) -> usize {
        let (before, after) = scores.split_at(self.row.saturating_sub(first).min(scores.len()));
        let above = |scores: &[f32]| count(scores, |score| score > self.score);
        if self.score == f32::NEG_INFINITY {
            // NaN ties with NaN.
            return before.len() + above(after);
        }
        count(before, |score| score >= self.score) + above(after)
    }
}

/// Counts in 32 bits, the width of a score: the compiler then vectorises the loop.
fn count(scores: &[f32], counts: impl Fn(f32) -> bool) -> usize {
    scores.iter().map(|&score| u32::from(counts(score))).sum::<u32>() as usize
}

/// Recall at each K: the percentage of queries whose best relevant row is among the first K. `None` without queries; a
/// query without relevant rows counts as not found.
pub fn recall_at(ranks: &[Option<usize>], cutoffs: &[usize]) -> Option<BTreeMap<usize, f64>> {
    if ranks.is_empty() {
        return None;
    }
    let passing = |k: usize| ranks.iter().flatten().filter(|rank| **rank <= k).count();
    let percent = |k: usize| 100.0 * passing(k) as f64 / ranks.len() as f64;
    Some(cutoffs.iter().map(|&k| (k, percent(k))).collect())
}

/// ReBias: the relative difference between a model's recall for spatial and for temporal captions, in percent. 0 is
/// no bias (CaReBench, arXiv 2501.00513, section 4).
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ReBias {
    /// `|1 - R_spatial / R_temporal|`: the values of the paper's Table 5.
    pub paper_table: f64,
    /// `|1 - R_temporal / R_spatial|`: the formula in the paper's text.
    pub paper_formula: f64,
}

impl ReBias {
    /// Computes ReBias from the recalls by spatial and by temporal captions: R@1, R@5 and R@10 in both directions.
    /// `None` without recalls, or if a mean is 0.
    pub fn of(spatial: &[f64], temporal: &[f64]) -> Option<ReBias> {
        let mean = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (mean > 0.0).then_some(mean)
        };
        let (spatial, temporal) = (mean(spatial)?, mean(temporal)?);
        Some(ReBias {
            paper_table: 100.0 * (1.0 - spatial / temporal).abs(),
            paper_formula: 100.0 * (1.0 - temporal / spatial).abs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(scores: &[f32], right: &[usize], expected: Option<usize>) {
        assert_eq!(first_right(scores, right), expected);
    }

    #[test]
    fn the_rank_is_one_more_than_the_rows_that_beat_the_right_one() {
        let scores = [0.1, 0.9, 0.5, -0.2];
        check(&scores, &[1], Some(1));
        check(&scores, &[2], Some(2));
        check(&scores, &[3], Some(4));
        check(&scores, &[3, 2], Some(2));
        check(&scores, &[0, 1, 2, 3], Some(1));
    }

    #[test]
    fn ties_go_to_the_lower_row() {
        check(&[0.5, 0.5, 0.5], &[0], Some(1));
        check(&[0.5, 0.5, 0.5], &[2], Some(3));
        check(&[0.5, 0.5, 0.5], &[2, 1], Some(2));
        check(&[-0.0, 0.0], &[1], Some(2));
    }

    #[test]
    fn what_is_no_number_or_not_there_is_never_found_early() {
        check(&[0.5, f32::NAN, -9.0], &[1], Some(3));
        check(&[f32::NAN, f32::NAN], &[1], Some(2));
        check(&[f32::NAN, 0.1], &[1], Some(1));
        check(&[0.5], &[], None);
        check(&[0.5], &[7], None);
        check(&[], &[0], None);
    }

    #[test]
    fn recall_is_the_share_of_queries_that_pass() {
        let ranks = [Some(1), Some(5), Some(6), None];
        let expected = BTreeMap::from([(1, 25.0), (5, 50.0), (10, 75.0), (20, 75.0)]);
        assert_eq!(recall_at(&ranks, &[1, 5, 10, 20]), Some(expected));
        assert_eq!(recall_at(&[], &[1]), None);
    }

    #[track_caller]
    fn check_bias(spatial: [f64; 6], temporal: [f64; 6], table: f64, formula: Option<f64>) {
        let bias = ReBias::of(&spatial, &temporal).unwrap();
        assert!((bias.paper_table - table).abs() < 0.015, "{bias:?}, not {table}");
        assert!(formula.is_none_or(|formula| (bias.paper_formula - formula).abs() < 0.015), "{bias:?}");
    }

    #[test]
    fn table_5_comes_out_of_its_own_recalls() {
        let clip_b16 = ([45.6, 79.0, 89.2, 47.6, 80.9, 90.8], [30.3, 65.1, 79.8, 35.8, 71.0, 85.8]);
        check_bias(clip_b16.0, clip_b16.1, 17.75, Some(15.08));
        let clip_l14 = ([49.0, 81.9, 91.4, 55.4, 85.6, 93.0], [33.5, 70.3, 84.0, 39.7, 76.2, 87.9]);
        check_bias(clip_l14.0, clip_l14.1, 16.52, None);
        let language_bind = ([64.7, 90.8, 96.8, 61.0, 87.2, 94.5], [39.8, 77.3, 90.5, 42.2, 77.6, 91.7]);
        check_bias(language_bind.0, language_bind.1, 18.10, None);
    }

    #[test]
    fn there_is_no_bias_of_nothing() {
        assert_eq!(ReBias::of(&[0.0; 6], &[1.0; 6]), None);
        assert_eq!(ReBias::of(&[], &[]), None);
        // The number of recalls on a side does not change its mean.
        assert_eq!(ReBias::of(&[40.0, 60.0], &[50.0]), Some(ReBias { paper_table: 0.0, paper_formula: 0.0 }));
    }

    /// Sorts the scores, as the papers' code does.
    fn by_sorting(scores: &[f32], right: &[usize]) -> Option<usize> {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        order.iter().position(|row| right.contains(row)).map(|at| at + 1)
    }

    proptest! {
        #[test]
        fn counting_gives_the_rank_that_sorting_gives(
            // Few distinct values, to test ties.
            scores in prop::collection::vec((-3_i8..4).prop_map(f32::from), 1..40),
            right in prop::collection::vec(0_usize..40, 0..5),
        ) {
            let right: Vec<usize> = right.into_iter().filter(|row| *row < scores.len()).collect();
            prop_assert_eq!(first_right(&scores, &right), by_sorting(&scores, &right));
        }
    }
}
