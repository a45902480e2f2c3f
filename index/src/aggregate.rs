//! Several query vectors, one score: how the cosines of a long text's chunks are combined.

use serde::{Deserialize, Serialize};

use crate::UnitVector;

/// Weight of the mean over all query vectors in [`Aggregation::Coverage`].
const MEAN_WEIGHT: f32 = 0.05;

/// Aggregation of several query vectors' cosines into one score. BENCHMARKS.md compares the three on long texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// The mean cosine over all query vectors.
    Mean,
    /// The best cosine alone.
    Max,
    /// 0.95 * the best cosine + 0.05 * the mean. The decisive chunk may stand anywhere in the text, and every chunk
    /// still counts.
    #[default]
    Coverage,
}

impl Aggregation {
    /// One score from the cosine of each query vector with one stored vector; -1 to 1. `cosines` must not be empty.
    pub fn score(self, cosines: impl ExactSizeIterator<Item = f32>) -> f32 {
        let count = cosines.len();
        let (best, sum) = cosines.fold((-1.0_f32, 0.0), |(best, sum), it| (best.max(it), sum + it));
        let mean = sum / count as f32;
        match self {
            Aggregation::Mean => mean,
            Aggregation::Max => best,
            Aggregation::Coverage => (1.0 - MEAN_WEIGHT) * best + MEAN_WEIGHT * mean,
        }
    }
}

/// The vectors of one query in one space; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryVectors {
    vectors: Vec<UnitVector>,
    aggregation: Aggregation,
}

impl QueryVectors {
    /// `None` without a vector.
    pub fn new(vectors: Vec<UnitVector>, aggregation: Aggregation) -> Option<QueryVectors> {
        (!vectors.is_empty()).then_some(QueryVectors { vectors, aggregation })
    }

    /// The vectors: one for each chunk of a text, one for everything else.
    pub fn vectors(&self) -> &[UnitVector] {
        &self.vectors
    }

    /// The direction of the mean of all vectors; a single vector itself. `None` if they cancel out.
    pub fn mean(&self) -> Option<UnitVector> {
        if let [only] = &self.vectors[..] {
            return Some(only.clone());
        }
        let mut sum = vec![0_f32; self.vectors[0].values().len()];
        for vector in &self.vectors {
            sum.iter_mut().zip(vector.values()).for_each(|(sum, value)| *sum += value);
        }
        UnitVector::from_raw(&sum).map(|(mean, _)| mean)
    }

    /// The score of a stored vector, -1 to 1.
    pub fn score(&self, stored: &UnitVector) -> f32 {
        self.aggregation.score(self.vectors.iter().map(|vector| vector.dot(stored)))
    }

    /// The score of a stored vector, given its cosine with each query vector.
    pub fn score_of(&self, cosines: &[f32]) -> f32 {
        self.aggregation.score(cosines.iter().copied())
    }
}

/// Default share of the mean of the negative examples that [`rocchio`] subtracts. BENCHMARKS.md compares shares.
pub const NEGATIVE_SHARE: f32 = 0.25;

/// Least norm of the difference of two means that has a direction of its own. Below it, rounding decides.
const LEAST_NORM: f32 = 1e-3;

/// One query vector from examples (Rocchio): the mean of the positive ones minus `share` times the mean of the negative
/// ones. Returns it with norm 1, and its norm before. `None` without a positive example, or if the examples cancel out.
///
/// All vectors must have the same length.
pub fn rocchio(positive: &[UnitVector], negative: &[UnitVector], share: f32) -> Option<(UnitVector, f32)> {
    if let ([only], []) = (positive, negative) {
        return Some((only.clone(), 1.0));
    }
    let mut sum = vec![0_f32; positive.first()?.values().len()];
    for (examples, weight) in [(positive, 1.0), (negative, -share)] {
        let each = weight / examples.len().max(1) as f32;
        for example in examples {
            sum.iter_mut().zip(example.values()).for_each(|(sum, value)| *sum += each * value);
        }
    }
    UnitVector::from_raw(&sum).filter(|(_, norm)| *norm >= LEAST_NORM)
}

/// Weight of [`late_interaction`]'s share of best-met query vectors.
const BEST_MET_WEIGHT: f32 = 0.1;

/// Late interaction: one score for each video, given for each video the best cosine of each query vector with one of its
/// clips. The score is the mean over query vectors, plus the share of query vectors that no other video meets better.
pub fn late_interaction(best: &[&[f32]]) -> Vec<f32> {
    let count = best.first().map_or(0, |best| best.len());
    let top = |at: usize| best.iter().map(|it| it[at]).fold(-1.0, f32::max);
    let top: Vec<f32> = (0..count).map(top).collect();
    let score = |best: &&[f32]| {
        let mean = best.iter().sum::<f32>() / count.max(1) as f32;
        let best_met = best.iter().zip(&top).filter(|(best, top)| best >= top).count();
        let share = best_met as f32 / count.max(1) as f32;
        (mean + BEST_MET_WEIGHT * share) / (1.0 + BEST_MET_WEIGHT)
    };
    best.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(values: &[f32]) -> UnitVector {
        UnitVector::from_raw(values).unwrap().0
    }

    /// Scores of (1, 0), (0, 1) and (1, 1) for query vectors along the first axis, `others` times, and once along the
    /// second.
    #[track_caller]
    fn check(aggregation: Aggregation, others: usize, expected: [f32; 3]) {
        let mut vectors = vec![unit(&[1.0, 0.0]); others];
        vectors.push(unit(&[0.0, 1.0]));
        let query = QueryVectors::new(vectors, aggregation).unwrap();
        let stored = [&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]].map(|it| unit(it));
        let cosines = |of: &UnitVector| query.vectors().iter().map(|it| it.dot(of)).collect::<Vec<f32>>();
        for scores in [
            stored.each_ref().map(|of| query.score(of)),
            stored.each_ref().map(|of| query.score_of(&cosines(of))),
        ] {
            for (score, expected) in scores.iter().zip(expected) {
                assert!((score - expected).abs() < 1e-6, "{scores:?}");
            }
        }
    }

    #[test]
    fn several_query_vectors_make_one_score() {
        let half = std::f32::consts::FRAC_1_SQRT_2;
        check(Aggregation::Mean, 3, [0.75, 0.25, half]);
        check(Aggregation::Max, 3, [1.0, 1.0, half]);
        check(Aggregation::Coverage, 3, [0.9875, 0.9625, half]);
        check(Aggregation::Coverage, 0, [0.0, 1.0, half]);
    }

    #[test]
    fn vectors_that_cancel_out_have_no_mean() {
        let query = |raws: &[[f32; 2]]| {
            QueryVectors::new(raws.iter().map(|raw| unit(raw)).collect(), Aggregation::Mean)
        };
        assert_eq!(query(&[]), None);
        assert_eq!(query(&[[1.0, 0.0], [-1.0, 0.0]]).unwrap().mean(), None);
        assert_eq!(query(&[[0.6, 0.8]]).unwrap().mean(), Some(unit(&[0.6, 0.8])));
    }

    /// The scores that `positive` and `negative` examples give to (1, 0), (0, 1) and (-1, 0).
    #[track_caller]
    fn check_examples(positive: &[[f32; 2]], negative: &[[f32; 2]], expected: Option<[f32; 3]>) {
        let units = |raws: &[[f32; 2]]| raws.iter().map(|raw| unit(raw)).collect::<Vec<_>>();
        let query = rocchio(&units(positive), &units(negative), NEGATIVE_SHARE).map(|(query, _)| query);
        let scores = query.map(|query| [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]].map(|it| query.dot(&unit(&it))));
        let near = |got: [f32; 3], expected: [f32; 3]| {
            got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-6)
        };
        assert!(scores.zip(expected).is_none_or(|(got, expected)| near(got, expected)), "{scores:?}");
        assert_eq!(scores.is_some(), expected.is_some());
    }

    #[test]
    fn positive_examples_attract_and_negative_ones_repel() {
        let (half, norm) = (std::f32::consts::FRAC_1_SQRT_2, (1.0 + NEGATIVE_SHARE * NEGATIVE_SHARE).sqrt());
        check_examples(&[[1.0, 0.0]], &[], Some([1.0, 0.0, -1.0]));
        check_examples(&[[1.0, 0.0], [0.0, 1.0]], &[], Some([half, half, -half]));
        check_examples(&[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], &[], Some([1.0, 0.0, -1.0]));
        check_examples(&[[1.0, 0.0]], &[[0.0, 1.0]], Some([1.0 / norm, -NEGATIVE_SHARE / norm, -1.0 / norm]));
        // The number of examples on a side does not change its weight.
        check_examples(
            &[[1.0, 0.0]],
            &[[0.0, 1.0], [0.0, 1.0]],
            Some([1.0 / norm, -NEGATIVE_SHARE / norm, -1.0 / norm]),
        );
        check_examples(&[[1.0, 0.0]], &[[1.0, 0.0]], Some([1.0, 0.0, -1.0]));
    }

    #[test]
    fn examples_without_a_direction_make_no_query() {
        check_examples(&[], &[[1.0, 0.0]], None);
        check_examples(&[[1.0, 0.0], [-1.0, 0.0]], &[], None);
        check_examples(&[[1.0, 0.0], [-1.0, 1e-5]], &[], None);
    }

    /// Best cosines by query vector for videos 0, 1, ...; their scores.
    #[track_caller]
    fn check_late(best: &[&[f32]], expected: &[f32]) {
        let scores = late_interaction(best);
        assert_eq!(scores.len(), expected.len());
        let are_near = scores.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-5);
        assert!(are_near, "{scores:?}, expected {expected:?}");
    }

    #[test]
    fn the_video_that_meets_all_query_vectors_comes_before_one_that_meets_a_single_one_best() {
        check_late(&[&[0.6, 0.6, 0.6], &[0.9, 0.1, 0.1]], &[0.606_061, 0.363_636]);
        check_late(&[&[0.8, 0.2], &[0.5, 0.6]], &[0.5, 0.545_455]);
    }

    #[test]
    fn of_two_equal_means_the_video_that_meets_more_query_vectors_best_comes_first() {
        check_late(&[&[0.7, 0.7, 0.5], &[0.6, 0.6, 0.7]], &[0.636_364, 0.606_061]);
        check_late(&[&[1.0], &[1.0], &[-1.0]], &[1.0, 1.0, -0.909_091]);
        check_late(&[], &[]);
        check_late(&[&[]], &[0.0]);
    }
}
