//! Figures of an evaluation: recall, mean average precision, ranks and durations of each space, and comparisons of two.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::judge::{Change, Found, change};
use super::settings::Settings;
use crate::terms::{average_precision, recall_at};

/// The figures of an evaluation. All shares are 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Number of queries that every space was asked.
    pub asked: usize,
    /// Number of queries that a space could not be asked. They count in no figure.
    pub failed: usize,
    /// One for each space, in the order of the settings.
    pub spaces: Vec<SpaceFigures>,
    /// One for each pair of spaces.
    pub comparisons: Vec<Comparison>,
}

/// The figures of one space.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpaceFigures {
    /// Its readable name.
    pub space: String,
    /// Figures at each K.
    pub at: Vec<Cutoff>,
    /// Number of queries with a relevant range among the hits.
    pub found: usize,
    /// Median rank of the first relevant range over all queries. `None` if half of them or more have none among the hits.
    pub median_rank: Option<f64>,
    /// Mean rank of the first relevant range, over the queries that have one.
    pub mean_rank: Option<f64>,
    /// Median duration of a search, in milliseconds.
    pub median_ms: f64,
    /// Duration that 95 of 100 searches keep, in milliseconds.
    pub p95_ms: f64,
    /// Whether every search compared every vector.
    pub exact: bool,
}

/// Recall and mean average precision at K.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cutoff {
    /// The K.
    pub k: u32,
    /// Share of queries with a relevant range among the first K hits.
    pub recall: f64,
    /// Mean average precision of the first K hits.
    pub map: f64,
}

/// How many queries fare better or worse in one space than in another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Readable name of the space that is compared.
    pub space: String,
    /// Readable name of the space that it is compared with.
    pub baseline: String,
    /// Number of queries whose first relevant range comes earlier.
    pub better: usize,
    /// Number of queries whose first relevant range comes later, or not at all.
    pub worse: usize,
    /// Number of all others.
    pub same: usize,
}

/// What the spaces found for one query.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    /// Number of its relevant ranges.
    pub(super) relevant: usize,
    /// One for each space.
    pub(super) found: Vec<Found>,
}

impl Report {
    pub(super) fn of(settings: &Settings, all: &[Answered]) -> Report {
        let asked: Vec<&Answered> =
            all.iter().filter(|it| it.found.iter().all(|found| found.trouble.is_none())).collect();
        let space = |(place, space): (usize, &super::AskedSpace)| {
            let found: Vec<(usize, &Found)> =
                asked.iter().filter_map(|it| Some((it.relevant, it.found.get(place)?))).collect();
            SpaceFigures { space: space.name.clone(), ..figures(&settings.cutoffs, &found) }
        };
        let places = 0..settings.spaces.len();
        let pairs = places.clone().flat_map(|one| (one + 1..places.end).map(move |other| (one, other)));
        Report {
            asked: asked.len(),
            failed: all.len() - asked.len(),
            spaces: settings.spaces.iter().enumerate().map(space).collect(),
            comparisons: pairs.map(|(one, other)| compare(settings, &asked, [one, other])).collect(),
        }
    }
}

fn figures(cutoffs: &[u32], found: &[(usize, &Found)]) -> SpaceFigures {
    let ranks: Vec<Option<usize>> =
        found.iter().map(|(_, found)| found.rank().map(|rank| rank as usize)).collect();
    let known: Vec<f64> = ranks.iter().flatten().map(|rank| *rank as f64).collect();
    let places: Vec<usize> = cutoffs.iter().map(|k| *k as usize).collect();
    let recalls = recall_at(&ranks, &places).unwrap_or_default();
    let at = |k: &u32| {
        let sum: f64 = found.iter().map(|(relevant, found)| precision(*relevant, found, *k as usize)).sum();
        let recall = recalls.get(&(*k as usize)).copied().unwrap_or_default() / 100.0;
        Cutoff { k: *k, recall, map: sum / found.len().max(1) as f64 }
    };
    let mut missing_last: Vec<f64> =
        ranks.iter().map(|rank| rank.map_or(f64::INFINITY, |rank| rank as f64)).collect();
    let mut times: Vec<f64> = found.iter().map(|(_, found)| found.ms).collect();
    SpaceFigures {
        space: String::new(),
        at: cutoffs.iter().map(at).collect(),
        found: known.len(),
        median_rank: median(&mut missing_last).filter(|rank| rank.is_finite()),
        mean_rank: (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64),
        median_ms: median(&mut times).unwrap_or_default(),
        p95_ms: times.get((times.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default(),
        exact: found.iter().all(|(_, found)| found.exact),
    }
}

/// Average precision of the first `k` hits. A hit is an id: that of the range which it finds, or one of its own.
fn precision(relevant: usize, found: &Found, k: usize) -> f64 {
    let deepest = found.ranks.last().map_or(0, |rank| *rank as usize).min(k);
    let mut ranked: Vec<usize> = (relevant..relevant + deepest).collect();
    for (id, rank) in found.ranks.iter().enumerate() {
        if let Some(place) = ranked.get_mut((*rank as usize).saturating_sub(1)) {
            *place = id;
        }
    }
    average_precision(&ranked, &(0..relevant).collect::<HashSet<usize>>(), k)
}

/// Sorts the values. The mean of the two in the middle if their number is even.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle).copied()?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

fn compare(settings: &Settings, asked: &[&Answered], [one, other]: [usize; 2]) -> Comparison {
    let changes = asked.iter().filter_map(|it| Some(change(it.found.get(one)?, it.found.get(other)?)));
    let changes: Vec<Change> = changes.collect();
    let count = |wanted: Change| changes.iter().filter(|change| **change == wanted).count();
    Comparison {
        space: settings.spaces[other].name.clone(),
        baseline: settings.spaces[one].name.clone(),
        better: count(Change::Better),
        worse: count(Change::Worse),
        same: count(Change::Same),
    }
}

#[cfg(test)]
mod tests {
    use super::super::AskedSpace;
    use super::*;
    use crate::search::Levels;

    fn settings(spaces: usize) -> Settings {
        let space = |number: usize| AskedSpace { id: format!("{number}"), name: format!("space {number}") };
        Settings {
            spaces: (0..spaces).map(space).collect(),
            levels: Levels::Clip,
            min_iou: 0.5,
            cutoffs: vec![1, 5],
            depth: 10,
            exact: true,
            is_from_log: false,
            left_out: 0,
        }
    }

    fn found(ranks: &[u32]) -> Found {
        Found { ranks: ranks.to_vec(), ms: 1.0, exact: true, trouble: None }
    }

    /// `queries`: number of relevant ranges and ranks found. `expected`: recall at 1 and 5, mAP at 1 and 5, median, mean.
    #[track_caller]
    fn check(queries: &[(usize, &[u32])], expected: (f64, f64, f64, f64, Option<f64>, Option<f64>)) {
        let all: Vec<Answered> = queries
            .iter()
            .map(|(relevant, ranks)| Answered { relevant: *relevant, found: vec![found(ranks)] })
            .collect();
        let figures = Report::of(&settings(1), &all).spaces.remove(0);
        let got = [figures.at[0].recall, figures.at[1].recall, figures.at[0].map, figures.at[1].map];
        for (got, expected) in got.iter().zip([expected.0, expected.1, expected.2, expected.3]) {
            assert!((got - expected).abs() < 1e-9, "{figures:?}");
        }
        assert_eq!((figures.median_rank, figures.mean_rank), (expected.4, expected.5));
    }

    #[test]
    fn figures_are_means_over_queries() {
        check(&[(1, &[1])], (1.0, 1.0, 1.0, 1.0, Some(1.0), Some(1.0)));
        check(&[(1, &[1]), (1, &[])], (0.5, 0.5, 0.5, 0.5, None, Some(1.0)));
        check(
            &[(1, &[1]), (1, &[4]), (1, &[])],
            (1.0 / 3.0, 2.0 / 3.0, 1.0 / 3.0, 1.25 / 3.0, Some(4.0), Some(2.5)),
        );
        check(&[(2, &[2, 4])], (0.0, 1.0, 0.0, 0.5, Some(2.0), Some(2.0)));
        check(&[(1, &[7])], (0.0, 0.0, 0.0, 0.0, Some(7.0), Some(7.0)));
        check(&[], (0.0, 0.0, 0.0, 0.0, None, None));
    }

    #[test]
    fn a_query_that_one_space_was_not_asked_counts_nowhere() {
        let broken = Answered { relevant: 1, found: vec![found(&[1]), Found::nothing("gone".to_owned())] };
        let better = Answered { relevant: 1, found: vec![found(&[3]), found(&[1])] };
        let worse = Answered { relevant: 1, found: vec![found(&[3]), found(&[])] };
        let report = Report::of(&settings(2), &[broken, better.clone(), worse, better]);
        assert_eq!((report.asked, report.failed), (3, 1));
        let Comparison { better, worse, same, .. } = report.comparisons[0];
        assert_eq!((better, worse, same), (2, 1, 0));
        assert_eq!(report.spaces[0].found, 3);
    }
}
