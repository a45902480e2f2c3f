//! Mean metrics over the queries of a benchmark, in percent.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;

use serde::Serialize;

use super::{average_precision_as_listed, passes};

/// The cutoffs K of TF-CoVR's mAP@K.
pub const CUTOFFS: [usize; 4] = [5, 10, 25, 50];

/// One query's ranking and its relevant ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged<Id: Eq + Hash> {
    /// Ids, best first.
    pub ranked: Vec<Id>,
    /// Relevant ids.
    pub relevant: HashSet<Id>,
    /// Divisor of average precision, capped at K: the number of relevant ids. For the released code: the length of
    /// its list of relevant ids, which may repeat an id.
    pub listed: usize,
}

/// Metrics over all queries, in percent, by cutoff K.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// mAP@K.
    pub map: BTreeMap<usize, f64>,
    /// pass@K: the share of queries with a relevant id in the first K.
    pub recall: BTreeMap<usize, f64>,
    /// Number of queries.
    pub queries: usize,
}

impl Figures {
    /// Computes mAP at the cutoffs `map` and pass@K at the cutoffs `recall`. `None` without queries: the mean of
    /// nothing is not 0.
    pub fn of<Id: Eq + Hash>(judged: &[Judged<Id>], map: &[usize], recall: &[usize]) -> Option<Figures> {
        if judged.is_empty() {
            return None;
        }
        let percent = |sum: f64| 100.0 * sum / judged.len() as f64;
        let precision = |k| judged.iter().map(|it| precision_of(it, k)).sum();
        let passing = |k| judged.iter().filter(|it| passes(&it.ranked, &it.relevant, k)).count();
        Some(Figures {
            map: map.iter().map(|&k| (k, percent(precision(k)))).collect(),
            recall: recall.iter().map(|&k| (k, percent(passing(k) as f64))).collect(),
            queries: judged.len(),
        })
    }
}

fn precision_of<Id: Eq + Hash>(judged: &Judged<Id>, k: usize) -> f64 {
    average_precision_as_listed(&judged.ranked, &judged.relevant, judged.listed, k)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ranked: &[u32], relevant: &[u32]) -> Judged<u32> {
        let (ranked, listed) = (ranked.to_vec(), relevant.len());
        Judged { ranked, relevant: relevant.iter().copied().collect(), listed }
    }

    #[track_caller]
    fn check(judged: &[Judged<u32>], k: usize, map: f64, recall: f64) {
        let figures = Figures::of(judged, &[k], &[k]).unwrap();
        assert!((figures.map[&k] - map).abs() < 1e-9, "{figures:?}");
        assert!((figures.recall[&k] - recall).abs() < 1e-9, "{figures:?}");
        assert_eq!(figures.queries, judged.len());
    }

    #[test]
    fn figures_are_means_over_queries_in_percent() {
        let (perfect, second, lost) = (judged(&[1, 2], &[1]), judged(&[1, 2], &[2]), judged(&[1], &[9]));
        check(std::slice::from_ref(&perfect), 5, 100.0, 100.0);
        check(&[perfect.clone(), lost.clone()], 5, 50.0, 50.0);
        check(&[perfect, second, lost.clone(), lost], 1, 25.0, 25.0);
    }

    #[test]
    fn no_queries_give_no_figures() {
        assert_eq!(Figures::of::<u32>(&[], &CUTOFFS, &[1]), None);
    }
}
