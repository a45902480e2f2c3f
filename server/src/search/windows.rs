//! A query of several windows: how their scores become one, and the search for the best of it.

use reprise_index::{Filter, Hit, Hits, Mode, SpaceLevel, UnitVector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use crate::gallery::{Gallery, GalleryError};

/// Share of the mean over all windows in [`Aggregation::Coverage`].
const SHARE_OF_ALL: f32 = 0.05;

/// How the windows of a long text make one score. Measured in BENCHMARKS.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// The cosine with the mean of the windows' vectors.
    Mean,
    /// The best window alone.
    Max,
    /// The best window, and a twentieth of the mean over all: what decides may stand anywhere in the text, and
    /// every window counts.
    #[default]
    Coverage,
}

impl Aggregation {
    /// One score of a text's windows, from the cosine of each with one vector; -1 to 1. `cosines` is not empty.
    pub fn score(self, cosines: impl ExactSizeIterator<Item = f32>) -> f32 {
        let windows = cosines.len();
        let (best, sum) = cosines.fold((-1.0_f32, 0.0), |(best, sum), it| (best.max(it), sum + it));
        let mean = sum / windows as f32;
        match self {
            Aggregation::Mean => mean,
            Aggregation::Max => best,
            Aggregation::Coverage => (1.0 - SHARE_OF_ALL) * best + SHARE_OF_ALL * mean,
        }
    }
}

/// The vectors of a query in one space; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryVectors {
    windows: Vec<UnitVector>,
    aggregation: Aggregation,
}

impl QueryVectors {
    /// `None` without a vector.
    pub fn new(windows: Vec<UnitVector>, aggregation: Aggregation) -> Option<QueryVectors> {
        (!windows.is_empty()).then_some(QueryVectors { windows, aggregation })
    }

    /// The windows, in order of the text.
    pub fn windows(&self) -> &[UnitVector] {
        &self.windows
    }

    /// The direction of the mean of all windows; of one window itself. `None` where they cancel out.
    pub fn mean(&self) -> Option<UnitVector> {
        if let [only] = &self.windows[..] {
            return Some(only.clone());
        }
        let mut sum = vec![0_f32; self.windows[0].values().len()];
        for window in &self.windows {
            sum.iter_mut().zip(window.values()).for_each(|(sum, value)| *sum += value);
        }
        UnitVector::from_raw(&sum).map(|(mean, _)| mean)
    }

    /// The score of a vector, -1 to 1.
    pub fn score(&self, vector: &UnitVector) -> f32 {
        self.aggregation.score(self.windows.iter().map(|window| dot(window, vector)))
    }

    /// The `k` best live vectors that `filter` lets through: of those that are among the `k` nearest of a window. For
    /// threads that may block.
    pub(super) fn search(
        &self,
        gallery: &Gallery,
        at: SpaceLevel,
        k: usize,
        (filter, mode): (&Filter, Mode),
    ) -> Result<Hits, GalleryError> {
        let mut found = gallery.search(at, &self.windows[0], k, filter, mode)?;
        if self.windows.len() == 1 {
            return Ok(found);
        }
        let mut keys: BTreeSet<u32> = found.hits.iter().map(|hit| hit.key).collect();
        for window in &self.windows[1..] {
            let hits = gallery.search(at, window, k, filter, mode)?;
            keys.extend(hits.hits.iter().map(|hit| hit.key));
            found.exact &= hits.exact;
        }
        found.hits.clear();
        for key in keys {
            if let Some(vector) = gallery.vector(at, key)? {
                found.hits.push(Hit { key, score: self.score(&vector) });
            }
        }
        found.hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.key.cmp(&other.key)));
        found.hits.truncate(k);
        Ok(found)
    }
}

/// The cosine of two unit vectors.
pub fn dot(one: &UnitVector, other: &UnitVector) -> f32 {
    one.values().iter().zip(other.values()).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_index::{Level, Settings};

    fn unit(values: &[f32]) -> UnitVector {
        UnitVector::from_raw(values).unwrap().0
    }

    /// Scores of (1, 0), (0, 1) and (1, 1) for windows along the first axis, `others` times, and once along the
    /// second.
    #[track_caller]
    fn check(aggregation: Aggregation, others: usize, expected: [f32; 3]) {
        let mut windows = vec![unit(&[1.0, 0.0]); others];
        windows.push(unit(&[0.0, 1.0]));
        let query = QueryVectors::new(windows, aggregation).unwrap();
        let scores = [&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]].map(|it| query.score(&unit(it)));
        for (score, expected) in scores.iter().zip(expected) {
            assert!((score - expected).abs() < 1e-6, "{scores:?}");
        }
    }

    #[test]
    fn windows_make_one_score() {
        let half = std::f32::consts::FRAC_1_SQRT_2;
        check(Aggregation::Mean, 3, [0.75, 0.25, half]);
        check(Aggregation::Max, 3, [1.0, 1.0, half]);
        check(Aggregation::Coverage, 3, [0.9875, 0.9625, half]);
        check(Aggregation::Coverage, 0, [0.0, 1.0, half]);
    }

    #[tokio::test]
    async fn what_is_near_one_window_of_many_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = crate::catalog::open(&crate::catalog::embedded_url(folder.path())).await.unwrap();
        let gallery = Gallery::open(folder.path().join("index"), catalog, Vec::new(), Settings::default())
            .await
            .unwrap();
        let index = gallery.index();
        let at = SpaceLevel { space: 1, level: Level::Clip };
        for key in 0..200 {
            let angle = key as f32 * 0.01;
            index.insert(at, key, &unit(&[angle.cos(), angle.sin(), 0.01])).unwrap();
        }
        index.insert(at, 777, &unit(&[0.0, 0.1, 1.0])).unwrap();
        let windows = vec![unit(&[1.0, 0.0, 0.0]), unit(&[0.9, 0.4, 0.0]), unit(&[0.0, 0.1, 1.0])];
        for (aggregation, first) in [(Aggregation::Max, true), (Aggregation::Coverage, false)] {
            let query = QueryVectors::new(windows.clone(), aggregation).unwrap();
            let hits = query.search(&gallery, at, 5, (&Filter::default(), Mode::Auto)).unwrap().hits;
            assert_eq!(hits.len(), 5);
            assert_eq!(hits.iter().any(|hit| hit.key == 777), first, "{hits:?}");
            let all = query.search(&gallery, at, 300, (&Filter::default(), Mode::Exact)).unwrap().hits;
            assert_eq!(all.len(), 201);
            assert!(all.windows(2).all(|pair| pair[0].score >= pair[1].score));
        }
    }
}
