//! Chooses the waiting inputs of the next batch: a pure function.

use std::collections::VecDeque;

/// Limits of one forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of inputs.
    pub inputs: usize,
    /// Highest total cost: the number of inputs times the highest cost among them.
    pub cost: usize,
}

/// Takes items from the front of `queue` until the next one would exceed a limit.
///
/// Padding makes every input as long as the longest, so each counts at the highest cost. Returns at least one item of a
/// non-empty queue: an item over the limit goes alone.
pub fn take<T>(queue: &mut VecDeque<T>, limits: Limits, cost: impl Fn(&T) -> usize) -> Vec<T> {
    let mut count = 0;
    let mut dearest = 0;
    for item in queue.iter() {
        dearest = dearest.max(cost(item));
        let full = limits.inputs <= count || limits.cost < dearest.saturating_mul(count + 1);
        if full && count > 0 {
            break;
        }
        count += 1;
    }
    queue.drain(..count).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn batches(costs: &[usize], limits: Limits) -> Vec<Vec<usize>> {
        let mut queue: VecDeque<usize> = costs.iter().copied().collect();
        let mut batches = Vec::new();
        while !queue.is_empty() {
            batches.push(take(&mut queue, limits, |cost| *cost));
        }
        batches
    }

    #[track_caller]
    fn check(costs: &[usize], (inputs, cost): (usize, usize), expected: &[&[usize]]) {
        assert_eq!(batches(costs, Limits { inputs, cost }), expected);
    }

    #[test]
    fn an_empty_queue_gives_an_empty_batch() {
        assert!(take(&mut VecDeque::<usize>::new(), Limits { inputs: 1, cost: 1 }, |cost| *cost).is_empty());
    }

    #[test]
    fn fills_up_to_the_cost() {
        check(&[2, 2, 2], (8, 4), &[&[2, 2], &[2]]);
    }

    #[test]
    fn bills_padding() {
        check(&[1, 1, 4], (8, 8), &[&[1, 1], &[4]]);
    }

    #[test]
    fn stops_at_the_count() {
        check(&[1, 1, 1], (2, 99), &[&[1, 1], &[1]]);
    }

    #[test]
    fn an_oversized_item_goes_alone() {
        check(&[1, 9, 1], (8, 4), &[&[1], &[9], &[1]]);
    }

    #[test]
    fn limits_of_zero_still_make_progress() {
        check(&[3, 0], (0, 0), &[&[3], &[0]]);
    }

    #[test]
    fn a_cost_near_the_largest_number_does_not_overflow() {
        check(&[usize::MAX, usize::MAX], (8, 4), &[&[usize::MAX], &[usize::MAX]]);
    }

    proptest! {
        #[test]
        fn every_item_goes_once_in_order_and_no_larger_batch_breaks_a_limit(
            costs in prop::collection::vec(0_usize..50, 0..60), inputs in 0_usize..10, cost in 0_usize..120,
        ) {
            let batches = batches(&costs, Limits { inputs, cost });
            prop_assert_eq!(batches.concat(), costs);
            for batch in batches.iter().filter(|batch| batch.len() > 1) {
                prop_assert!(batch.len() <= inputs);
                prop_assert!(batch.iter().max().unwrap() * batch.len() <= cost);
            }
        }
    }
}
