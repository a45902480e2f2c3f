//! Turns scores of gallery rows into ranked ids: masking, repeated ids, and ties.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::Hash;

/// The two readings of TF-CoVR's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The paper's protocol. Each gallery id counts once. The query's own id is left out. Ties go to the lower row.
    #[default]
    Clean,
    /// The released code's protocol. Rows count one by one, so an id may occur several times. Rows of the query's own
    /// id come last. Ties go to the higher row.
    Compat,
}

impl Protocol {
    /// The protocol's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Clean => "clean",
            Protocol::Compat => "compat",
        }
    }
}

/// The ids of a gallery's rows, best score first.
///
/// `rows` are (id, score). `query` is the id of the query's own video, which is never an answer. NaN scores rank last.
pub fn rank<Id: Clone + Eq + Hash>(rows: &[(Id, f32)], query: Option<&Id>, protocol: Protocol) -> Vec<Id> {
    let is_query = |row: usize| query == Some(&rows[row].0);
    let score = |row: usize| Some(rows[row].1).filter(|score| !score.is_nan()).unwrap_or(f32::NEG_INFINITY);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&a, &b| {
        let ties = match protocol {
            Protocol::Clean => a.cmp(&b),
            Protocol::Compat => b.cmp(&a),
        };
        let masked = is_query(a).cmp(&is_query(b));
        masked.then(score(b).partial_cmp(&score(a)).unwrap_or(Ordering::Equal)).then(ties)
    });
    let ids = order.iter().map(|&row| rows[row].0.clone());
    match protocol {
        Protocol::Compat => ids.collect(),
        Protocol::Clean => {
            let mut seen: HashSet<Id> = query.cloned().into_iter().collect();
            ids.filter(|id| seen.insert(id.clone())).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(rows: &[(u32, f32)], query: Option<u32>, clean: &[u32], compat: &[u32]) {
        assert_eq!(rank(rows, query.as_ref(), Protocol::Clean), clean);
        assert_eq!(rank(rows, query.as_ref(), Protocol::Compat), compat);
    }

    #[test]
    fn the_best_score_comes_first() {
        check(&[(7, 0.1), (8, 0.9), (9, -0.5)], None, &[8, 7, 9], &[8, 7, 9]);
        check(&[], None, &[], &[]);
    }

    #[test]
    fn an_id_counts_once_or_row_by_row() {
        check(&[(3, 0.9), (3, 0.8), (3, 0.7), (1, 0.6), (1, 0.5)], None, &[3, 1], &[3, 3, 3, 1, 1]);
        check(&[(3, 0.1), (1, 0.6), (3, 0.7)], None, &[3, 1], &[3, 1, 3]);
    }

    #[test]
    fn ties_go_to_the_lower_row_or_to_the_higher() {
        check(&[(1, 0.5), (2, 0.5), (3, 0.5)], None, &[1, 2, 3], &[3, 2, 1]);
        check(&[(1, 0.0), (2, -0.0)], None, &[1, 2], &[2, 1]);
    }

    #[test]
    fn the_query_itself_is_left_out_or_comes_last() {
        check(&[(1, 0.9), (2, 0.5), (3, 0.7)], Some(1), &[3, 2], &[3, 2, 1]);
        check(&[(1, 0.9), (1, 0.5), (3, -1.0)], Some(1), &[3], &[3, 1, 1]);
        check(&[(1, 0.9)], Some(5), &[1], &[1]);
    }

    #[test]
    fn a_score_that_is_no_number_ranks_last() {
        check(&[(1, f32::NAN), (2, -0.9), (3, 0.2)], None, &[3, 2, 1], &[3, 2, 1]);
    }

    proptest! {
        #[test]
        fn clean_is_compat_without_repetition_where_no_scores_tie(
            ids in prop::collection::vec(0_u32..9, 0..30), query in 0_u32..9,
        ) {
            let rows: Vec<(u32, f32)> =
                ids.iter().enumerate().map(|(row, &id)| (id, ((row * 37) % 101) as f32)).collect();
            let mut once = Vec::new();
            for id in rank(&rows, Some(&query), Protocol::Compat) {
                if id != query && !once.contains(&id) {
                    once.push(id);
                }
            }
            prop_assert_eq!(rank(&rows, Some(&query), Protocol::Clean), once);
        }
    }
}
