//! Metrics of one query: average precision and recall at a cutoff.

use std::collections::HashSet;
use std::hash::Hash;

/// Average precision at `k` with several relevant ids, as CIRCO (arXiv 2303.15247) and TF-CoVR define it: the sum of
/// the precisions at the ranks of relevant ids, divided by `min(relevant, k)`.
///
/// The range is 0 to 1 if no id repeats in `ranked`. With repeated ids it can exceed 1, as in the released code
/// ([`Protocol::Compat`](super::Protocol::Compat)). 0 without relevant ids or with `k` 0.
///
/// Rows of equal scores: [`rank`](super::rank) decides their order, the lower row first, in `Protocol::Compat` the higher.
pub fn average_precision<Id: Eq + Hash>(ranked: &[Id], relevant: &HashSet<Id>, k: usize) -> f64 {
    average_precision_as_listed(ranked, relevant, relevant.len(), k)
}

/// As [`average_precision`], but divided by `min(listed, k)`. The released code divides by the length of its list of
/// relevant ids, which may repeat an id.
pub fn average_precision_as_listed<Id: Eq + Hash>(
    ranked: &[Id],
    relevant: &HashSet<Id>,
    listed: usize,
    k: usize,
) -> f64 {
    let possible = listed.min(k);
    if possible == 0 {
        return 0.0;
    }
    let mut hits = 0_usize;
    let mut sum = 0.0;
    for (at, id) in ranked.iter().take(k).enumerate() {
        if relevant.contains(id) {
            hits += 1;
            sum += hits as f64 / (at + 1) as f64;
        }
    }
    sum / possible as f64
}

/// pass@k: whether a relevant id is among the first `k`. With one relevant id, this is the papers' R@k of one query.
pub fn passes<Id: Eq + Hash>(ranked: &[Id], relevant: &HashSet<Id>, k: usize) -> bool {
    ranked.iter().take(k).any(|id| relevant.contains(id))
}

/// The share of the relevant ids among the first `k`, 0 to 1; 0 without relevant ids.
pub fn recall<Id: Eq + Hash>(ranked: &[Id], relevant: &HashSet<Id>, k: usize) -> f64 {
    if relevant.is_empty() {
        return 0.0;
    }
    let found: HashSet<&Id> = ranked.iter().take(k).filter(|id| relevant.contains(id)).collect();
    found.len() as f64 / relevant.len() as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Protocol, rank};
    use super::*;

    fn set(ids: &[u32]) -> HashSet<u32> {
        ids.iter().copied().collect()
    }

    /// Checks average precision, recall and pass at `k`.
    #[track_caller]
    fn check(ranked: &[u32], relevant: &[u32], k: usize, expected: (f64, f64, bool)) {
        let relevant = set(relevant);
        let precision = average_precision(ranked, &relevant, k);
        assert!((precision - expected.0).abs() < 1e-6, "average precision {precision}, not {}", expected.0);
        let share = recall(ranked, &relevant, k);
        assert!((share - expected.1).abs() < 1e-6, "recall {share}, not {}", expected.1);
        assert_eq!(passes(ranked, &relevant, k), expected.2);
    }

    const PREDICTION: [u32; 10] = [7, 3, 9, 1, 4, 8, 2, 6, 5, 0];

    #[test]
    fn the_protocols_example_has_its_figures() {
        check(&PREDICTION, &[3, 1, 5], 5, (0.333_333, 2.0 / 3.0, true));
        check(&PREDICTION, &[3, 1, 5], 10, (0.444_444, 1.0, true));
    }

    #[test]
    fn a_single_relevant_id_counts_by_its_rank() {
        check(&PREDICTION, &[7], 5, (1.0, 1.0, true));
        check(&PREDICTION, &[9], 5, (1.0 / 3.0, 1.0, true));
        check(&PREDICTION, &[9], 2, (0.0, 0.0, false));
    }

    #[test]
    fn fewer_places_than_relevant_ids_can_still_be_perfect() {
        check(&[1, 2, 3, 4], &[1, 2, 3, 4], 2, (1.0, 0.5, true));
    }

    #[test]
    fn nothing_asked_or_nothing_relevant_is_zero() {
        check(&PREDICTION, &[], 5, (0.0, 0.0, false));
        check(&PREDICTION, &[7], 0, (0.0, 0.0, false));
        check(&[], &[7], 5, (0.0, 0.0, false));
    }

    #[test]
    fn repeated_gallery_rows_pass_one_as_released_and_not_as_meant() {
        let rows = [(3, 0.9), (3, 0.8), (3, 0.7), (1, 0.6), (1, 0.5)];
        let at_5 = |protocol| average_precision(&rank(&rows, None, protocol), &set(&[1, 3]), 5);
        assert!((at_5(Protocol::Compat) - 2.5).abs() < 1e-9);
        assert!((at_5(Protocol::Clean) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_list_with_repeats_divides_by_its_length_as_released() {
        let at = |listed, k| average_precision_as_listed(&PREDICTION, &set(&[3, 1, 5]), listed, k);
        assert!((at(3, 10) - 0.444_444).abs() < 1e-6);
        assert!((at(6, 10) - 0.222_222).abs() < 1e-6);
        assert!((at(6, 5) - 0.2).abs() < 1e-6, "no more than k places");
    }

    #[test]
    fn a_masked_query_frees_the_first_rank() {
        let rows = [(1, 0.9), (2, 0.5), (3, 0.1)];
        for protocol in [Protocol::Clean, Protocol::Compat] {
            let ranked = rank(&rows, Some(&1), protocol);
            assert!((average_precision(&ranked, &set(&[2]), 5) - 1.0).abs() < 1e-9, "{}", protocol.name());
        }
    }

    proptest! {
        #[test]
        fn figures_lie_between_0_and_1_and_recall_grows_with_k(
            order in Just((0_u32..20).collect::<Vec<_>>()).prop_shuffle(),
            relevant in prop::collection::hash_set(0_u32..25, 1..8),
            k in 1_usize..25,
        ) {
            let precision = average_precision(&order, &relevant, k);
            prop_assert!((0.0..=1.0 + 1e-12).contains(&precision));
            prop_assert!(recall(&order, &relevant, k) <= recall(&order, &relevant, k + 1));
            prop_assert_eq!(passes(&order, &relevant, k), precision > 0.0);
        }

        #[test]
        fn moving_a_relevant_id_up_never_lowers_the_average_precision(
            order in Just((0_u32..12).collect::<Vec<_>>()).prop_shuffle(),
            relevant in prop::collection::hash_set(0_u32..12, 1..6),
            at in 1_usize..12,
            k in 1_usize..15,
        ) {
            let mut better = order.clone();
            if relevant.contains(&order[at]) {
                better.swap(at, at - 1);
            }
            let (before, after) =
                (average_precision(&order, &relevant, k), average_precision(&better, &relevant, k));
            prop_assert!(after >= before - 1e-12);
        }
    }
}
