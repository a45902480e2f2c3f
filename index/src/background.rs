//! The background of a query: the scores of spans that have nothing to do with it. They tell how far a hit stands above
//! chance, which its score alone does not.

use serde::{Deserialize, Serialize};

/// Fewest spans with a background.
pub(crate) const FEWEST: usize = 50;
/// Number of best spans that count as the query's hits. They are no background.
const HITS: usize = 20;
/// Largest share of a sample that counts as hits.
const MOST_HITS: f64 = 0.05;
/// Smallest distance. Copies of the query are nearer.
const LEAST_DISTANCE: f32 = 1e-4;

/// Mean and standard deviation of a query's background, on the logarithm of the distance. A cosine of 1 has the distance 0,
/// so the same step of the score means more near 1. BENCHMARKS.md compares this with the score itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Background {
    mean: f32,
    deviation: f32,
    gallery: u64,
}

impl Background {
    /// Largest useful sample: number of spans.
    pub const SAMPLE: usize = 1000;

    /// The background of a query. `scores`: its scores over spans sampled from a gallery of `gallery` spans. The best
    /// scores are left out as hits: as many as the sample probably has of the gallery's best 20, at most 5 %.
    ///
    /// `None` under 50 spans, and if all score alike.
    pub fn of(mut scores: Vec<f32>, gallery: u64) -> Option<Background> {
        scores.retain(|score| score.is_finite());
        if scores.len() < FEWEST {
            return None;
        }
        let share = (scores.len() as f64 / gallery.max(1) as f64).min(1.0);
        let hits = (HITS as f64 * share).min(MOST_HITS * scores.len() as f64).round() as usize;
        scores.sort_unstable_by(f32::total_cmp);
        scores.truncate(scores.len() - hits);
        let count = scores.len() as f64;
        let near = || scores.iter().map(|score| f64::from(nearness(*score)));
        let mean = near().sum::<f64>() / count;
        let variance = near().map(|it| (it - mean).powi(2)).sum::<f64>() / count;
        let (mean, deviation) = (mean as f32, variance.sqrt() as f32);
        (deviation > f32::EPSILON).then_some(Background { mean, deviation, gallery })
    }

    /// Number of standard deviations by which a score stands above the background.
    pub fn z(&self, score: f32) -> f32 {
        (nearness(score) - self.mean) / self.deviation
    }

    /// The z that the best of the gallery's spans has by chance, if scores are normally distributed: `sqrt(2 ln n)`, the
    /// leading term of the expected maximum (Cramér, Mathematical Methods of Statistics, 1946, section 28.6). 2.8 for 50
    /// spans, 5.3 for a million.
    pub fn chance(&self) -> f32 {
        (2.0 * (self.gallery.max(2) as f64).ln()).sqrt() as f32
    }
}

/// The negative logarithm of the distance `1 - score`.
pub(crate) fn nearness(score: f32) -> f32 {
    -(1.0 - score).max(LEAST_DISTANCE).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scores` of a gallery of `gallery` spans. `expected`: mean and deviation.
    #[track_caller]
    fn check(scores: Vec<f32>, gallery: u64, expected: Option<[f32; 2]>) {
        let got = Background::of(scores, gallery);
        let near = |one: f32, other: f32| (one - other).abs() < 1e-5;
        match (got, expected) {
            (None, None) => {}
            (Some(got), Some([mean, deviation])) => {
                assert!(near(got.mean, mean) && near(got.deviation, deviation), "{got:?}");
            }
            _ => panic!("{got:?}, expected {expected:?}"),
        }
    }

    /// As many scores with the nearness -0.1 as with 0.1, then `hits` scores with 0.9.
    fn scores(of_each: usize, hits: usize) -> Vec<f32> {
        [vec![at(-0.1); of_each], vec![at(0.1); of_each], vec![at(0.9); hits]].concat()
    }

    /// The score with this nearness.
    fn at(nearness: f32) -> f32 {
        1.0 - (-nearness).exp()
    }

    #[test]
    fn hits_are_no_background() {
        check(scores(490, 20), 1000, Some([0.0, 0.1]));
        // 5 % of a small gallery.
        check(scores(50, 5), 105, Some([0.0, 0.1]));
    }

    #[test]
    fn a_sample_of_a_large_gallery_has_few_hits() {
        check(scores(500, 0), 1_000_000, Some([0.0, 0.1]));
        check(scores(499, 2), 10_000, Some([0.0, 0.1]));
    }

    #[test]
    fn few_or_equal_scores_have_no_background() {
        check(scores(24, 1), 49, None);
        check(scores(25, 0), 50, Some([-0.006_383, 0.099_796]));
        check(vec![0.5; 100], 100, None);
        check(vec![f32::NAN; 100], 100, None);
        check(Vec::new(), 0, None);
    }

    #[test]
    fn z_counts_deviations_above_the_mean() {
        let background = Background::of(scores(490, 20), 1000).unwrap();
        assert!((background.z(at(0.9)) - 9.0).abs() < 1e-4 && (background.z(at(-0.1)) + 1.0).abs() < 1e-4);
        assert!(
            background.z(1.0).is_finite() && background.z(1.5) == background.z(1.0),
            "a score may be above 1"
        );
    }

    #[test]
    fn the_best_of_more_spans_stands_higher_by_chance() {
        let of = |gallery| Background { mean: 0.0, deviation: 1.0, gallery }.chance();
        assert!((of(50) - 2.797).abs() < 1e-3 && (of(1_000_000) - 5.256).abs() < 1e-3);
        assert!(of(0).is_finite());
    }
}
