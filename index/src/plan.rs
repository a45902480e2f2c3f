//! How a search is done: brute force where few vectors match, the graph where it is less work. Pure functions.

use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::collection::View;
use crate::{Filter, Settings};

/// Candidates kept during a walk, at least.
const EF_LEAST: u64 = 96;
/// Keys that may be looked up one by one while writers wait.
const LISTED_MOST: u64 = 16_384;

/// How a search is done; `L` is what lists the rows.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan<L> {
    /// Nothing matches or nothing is asked for.
    Nothing,
    /// Brute force over these rows.
    Listed(L),
    /// Brute force over all live rows.
    Scan,
    /// The graph, as long as `widths` lasts: a walk that finds too few goes on with the next.
    Walk(Widths),
}

impl<L> Plan<L> {
    /// The same plan with its rows listed.
    pub(crate) fn resolve<M>(self, list: impl FnOnce(L) -> M) -> Plan<M> {
        match self {
            Plan::Nothing => Plan::Nothing,
            Plan::Listed(listed) => Plan::Listed(list(listed)),
            Plan::Scan => Plan::Scan,
            Plan::Walk(widths) => Plan::Walk(widths),
        }
    }
}

/// How many of the nearest rows a walk gathers; each next one four times as many, as long as that is less work than
/// brute force over the matching rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Widths {
    next: u64,
    most: u64,
}

impl Iterator for Widths {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let width = self.next;
        self.next = width.saturating_mul(4);
        if width > self.most { None } else { usize::try_from(width).ok() }
    }
}

impl Widths {
    /// For `k` of the `matching` among `rows`: wide enough to hold k matching ones if they lie anywhere.
    pub(crate) fn new(k: usize, matching: u64, rows: u64, rows_per_step: u64) -> Widths {
        let next = u128::from(wanted(k)) * u128::from(rows) / u128::from(matching.max(1));
        Widths { next: u64::try_from(next).unwrap_or(u64::MAX), most: matching / rows_per_step.max(1) }
    }

    /// One walk of a width that suffices where every row matches.
    pub(crate) fn single(k: usize) -> Widths {
        let next = wanted(k);
        Widths { next, most: next }
    }
}

/// Candidates for a good choice of `k`.
fn wanted(k: usize) -> u64 {
    EF_LEAST.max((k as u64).saturating_mul(2))
}

/// The plan for `k` of `matching` live rows.
pub(crate) fn choose<'a>(
    k: usize,
    matching: u64,
    view: &View,
    settings: &Settings,
    filter: &'a Filter,
) -> Plan<&'a RoaringBitmap> {
    if k == 0 || matching == 0 {
        return Plan::Nothing;
    }
    let widths = Widths::new(k, matching, u64::from(view.rows.len()), settings.rows_per_step);
    if view.has_graph() && widths.clone().next().is_some() {
        return Plan::Walk(widths);
    }
    match filter.only.as_ref().map(Arc::as_ref) {
        Some(only) if matching <= LISTED_MOST && matching <= view.live.len() / 4 => Plan::Listed(only),
        _ => Plan::Scan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(k: usize, matching: u64, rows: u64, expected: &[usize]) {
        let rows_per_step = Settings::default().rows_per_step;
        assert_eq!(Widths::new(k, matching, rows, rows_per_step).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_walk_pays_where_many_match() {
        check(10, 1_000_000, 1_000_000, &[96, 384, 1_536, 6_144]);
        check(10, 500_000, 1_000_000, &[192, 768, 3_072]);
        check(10, 16_000, 16_000, &[96]);
    }

    #[test]
    fn a_walk_does_not_pay_where_few_match_or_much_is_wanted() {
        check(10, 10_000, 10_000, &[]);
        check(10, 100_000, 1_000_000, &[]);
        check(500, 100_000, 100_000, &[]);
        check(usize::MAX, u64::MAX, u64::MAX, &[]);
    }
}
