//! How one search is done, by estimated selectivity: looked up one by one, brute force, or a walk. Pure functions.

/// Candidates kept during a walk, at least.
const EF_LEAST: u64 = 96;
/// Rows that brute force looks at in the time in which a walk through hnsw_rs's graph gathers one candidate.
const ROWS_PER_STEP: u64 = 160;

/// How a search is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing matches or nothing is asked for.
    Nothing,
    /// Brute force over the matching keys, looked up one by one.
    Listed,
    /// Brute force over all live rows.
    Scan,
    /// The graphs, with so many candidates, of which all match.
    Walk(usize),
}

/// The plan for `k` of the `matching` among `rows`.
///
/// A walk that keeps `width` matching candidates passes about `width * rows / matching` nodes and compares some sixteen
/// neighbours of each; looking up a key and comparing its vector costs about as much as passing one node.
pub(crate) fn choose(k: usize, matching: u64, rows: u64, is_filtered: bool) -> Plan {
    if k == 0 || matching == 0 {
        return Plan::Nothing;
    }
    let width = wanted(k);
    let passed = u128::from(width) * u128::from(rows) / u128::from(matching);
    match (passed >= u128::from(matching), is_filtered, usize::try_from(width)) {
        (true, true, _) => Plan::Listed,
        (true, false, _) | (false, _, Err(_)) => Plan::Scan,
        (false, _, Ok(width)) => Plan::Walk(width),
    }
}

/// Candidates for a good choice of `k`.
pub(crate) fn wanted(k: usize) -> u64 {
    EF_LEAST.max((k as u64).saturating_mul(2))
}

/// How many of the nearest rows a walk through a growing graph gathers; each next one four times as many, as long as
/// that is less work than brute force over the rows.
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
    /// Wide enough to hold `width` of the `matching` among `rows` if they lie anywhere.
    pub(crate) fn new(width: usize, matching: u64, rows: u64) -> Widths {
        let next = width as u128 * u128::from(rows) / u128::from(matching.max(1));
        let most = (rows / ROWS_PER_STEP).max(4 * width as u64);
        Widths { next: u64::try_from(next).unwrap_or(u64::MAX), most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(k: usize, matching: u64, rows: u64, is_filtered: bool, expected: Plan) {
        assert_eq!(choose(k, matching, rows, is_filtered), expected);
    }

    #[test]
    fn a_walk_pays_where_many_match() {
        check(10, 1_000_000, 1_000_000, false, Plan::Walk(96));
        check(10, 500_000, 1_000_000, true, Plan::Walk(96));
        check(10, 10_000, 1_000_000, true, Plan::Walk(96));
        check(100, 100_000, 100_000, false, Plan::Walk(200));
    }

    #[test]
    fn a_walk_does_not_pay_where_few_match_or_much_is_wanted() {
        check(10, 9_000, 1_000_000, true, Plan::Listed);
        check(10, 90, 100_000, true, Plan::Listed);
        check(10, 90, 90, false, Plan::Scan);
        check(60_000, 100_000, 100_000, false, Plan::Scan);
        check(usize::MAX, u64::MAX, u64::MAX, false, Plan::Scan);
        check(0, 10, 10, false, Plan::Nothing);
        check(10, 0, 10, true, Plan::Nothing);
    }

    #[test]
    fn a_growing_graph_is_searched_wider_until_brute_force_is_cheaper() {
        let widths = |matching, rows| Widths::new(96, matching, rows).collect::<Vec<_>>();
        assert_eq!(widths(16_000, 16_000), [96, 384]);
        assert_eq!(widths(64_000, 128_000), [192, 768]);
        assert_eq!(widths(100, 32_000), [0_usize; 0]);
    }
}
