//! Chooses how a search runs by estimated selectivity: key lookups, brute force, or a graph walk. Pure functions.

/// The fewest candidates of a walk.
const EF_LEAST: u64 = 96;

/// Up to this many rows, the fewest candidates are enough.
const LARGE: u64 = 1 << 17;
/// Keys that are looked up, and their codes compared, in the time of passing one node.
pub(crate) const CODES_PER_NODE: u64 = 7;
/// The same where signs are compared first.
pub(crate) const SIGNS_PER_NODE: u64 = 20;
/// A walk with this many times `k` candidates looks up to twice as far as the `k`-th best. Measured: with 4 `k`, recall
/// at 10 is about 0.99, and 0.996 with ten.
const SLACK_SHARE: f32 = 50.0;
/// Extra candidates beyond `k`: without any, the last hit might hide a better one.
pub(crate) const SPARE: usize = 8;

/// How a search is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Plan {
    /// Nothing matches, or `k` is 0.
    Nothing,
    /// The codes of all matching keys, looked up one by one, and the best ones compared again.
    Listed,
    /// Brute force over all live rows.
    Scan,
    /// Graph walks.
    Walk(Width),
}

/// How far a walk looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Width {
    /// Candidates, all matching.
    pub(crate) candidates: usize,
    /// The fewest nodes to pass, matching or not.
    pub(crate) passed: usize,
    /// See [`Stop`](crate::walk::Stop); `None`: the walk expands all that it keeps.
    pub(crate) slack: Option<f32>,
}

/// The slack of a walk for the best `k` with `candidates` candidates: the more candidates, the farther it looks. So a
/// search that keeps many is thorough, and one whose neighbours lie close together ends early.
pub(crate) fn slack(k: usize, candidates: usize) -> Option<f32> {
    Some(candidates as f32 / (SLACK_SHARE * k.max(1) as f32))
}

/// The plan for the best `k` of `matching` rows among `rows`. `listed` is for a search with a filter: the keys that are
/// looked up and compared in the time of passing one node.
///
/// A walk with `width` matching candidates passes about `width * rows / matching` nodes and compares about sixteen
/// neighbours of each.
pub(crate) fn choose(k: usize, matching: u64, rows: u64, listed: Option<u64>) -> Plan {
    if k == 0 || matching == 0 {
        return Plan::Nothing;
    }
    let wanted = wanted(k, rows);
    let width = if listed.is_some() { narrowed(k, wanted, [matching, rows]) } else { wanted };
    let passed = u128::from(width) * u128::from(rows) / u128::from(matching);
    let compared = passed.saturating_mul(u128::from(listed.unwrap_or(1)));
    match (compared >= u128::from(matching), listed.is_some(), usize::try_from(width)) {
        (true, true, _) => Plan::Listed,
        (true, false, _) | (false, _, Err(_)) => Plan::Scan,
        (false, _, Ok(candidates)) => {
            let passed = usize::try_from(wanted).unwrap_or(candidates);
            Plan::Walk(Width { candidates, passed, slack: slack(k, candidates) })
        }
    }
}

/// The candidates of a filtered walk. Where one of `n` nodes matches, a walk passes `n` nodes for each candidate, and
/// knows the neighbourhood better than one without a filter that keeps as many. So fewer give the same recall.
fn narrowed(k: usize, wanted: u64, [matching, rows]: [u64; 2]) -> u64 {
    let by_share = wanted as f64 * (matching as f64 / rows.max(1) as f64).sqrt();
    let least = (k as u64).saturating_add(k as u64 / 2).saturating_add(SPARE as u64).max(wanted / 3);
    (by_share as u64).clamp(least.min(wanted), wanted)
}

/// Number of candidates for good recall of `k` among `rows`. Each doubling of the rows beyond `LARGE` takes half as many
/// again, because distances of neighbours then differ less. Measured at `k` of 10: 0.99 among a million, 0.97 among ten
/// million.
pub(crate) fn wanted(k: usize, rows: u64) -> u64 {
    let least = EF_LEAST.max((k as u64).saturating_mul(2));
    let doublings = (rows / LARGE).max(1).ilog2();
    (least as f64 * 1.5_f64.powf(f64::from(doublings))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: Option<u64> = Some(CODES_PER_NODE);
    const SIGNS: Option<u64> = Some(SIGNS_PER_NODE);

    #[track_caller]
    fn check(k: usize, matching: u64, rows: u64, listed: Option<u64>, expected: Plan) {
        assert_eq!(choose(k, matching, rows, listed), expected);
    }

    #[test]
    fn a_walk_pays_where_many_match() {
        let walk = |candidates, passed, slack| Plan::Walk(Width { candidates, passed, slack: Some(slack) });
        check(10, 1_000_000, 1_000_000, None, walk(216, 216, 0.432));
        check(10, 1_000_000, 1_000_000, CODES, walk(216, 216, 0.432));
        check(10, 500_000, 1_000_000, CODES, walk(152, 216, 0.304));
        check(10, 30_000, 1_000_000, CODES, walk(72, 216, 0.144));
        check(10, 4_000_000, 4_000_000, None, walk(486, 486, 0.972));
        check(10, 10_000_000, 10_000_000, None, walk(1093, 1093, 2.186));
        check(100, 100_000, 100_000, None, walk(200, 200, 0.04));
        check(100, 50_000, 100_000, CODES, walk(158, 200, 0.0316));
    }

    #[test]
    fn a_walk_does_not_pay_where_few_match_or_much_is_wanted() {
        check(10, 20_000, 1_000_000, CODES, Plan::Listed);
        check(10, 9_000, 1_000_000, CODES, Plan::Listed);
        check(10, 90, 100_000, CODES, Plan::Listed);
        check(
            10,
            40_000,
            1_000_000,
            SIGNS,
            Plan::Walk(Width { candidates: 72, passed: 216, slack: Some(0.144) }),
        );
        check(10, 30_000, 1_000_000, SIGNS, Plan::Listed);
        check(10, 90, 90, None, Plan::Scan);
        check(60_000, 100_000, 100_000, None, Plan::Scan);
        check(usize::MAX, u64::MAX, u64::MAX, None, Plan::Scan);
        check(0, 10, 10, None, Plan::Nothing);
        check(10, 0, 10, CODES, Plan::Nothing);
    }
}
