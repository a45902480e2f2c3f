//! Keeps the best hits of a search.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::{Hit, SpanKey};

/// The best `k` of the offered hits.
pub(crate) struct Best {
    k: usize,
    heap: BinaryHeap<Reverse<Ranked>>,
}

impl Best {
    pub(crate) fn new(k: usize) -> Best {
        Best { k, heap: BinaryHeap::new() }
    }

    pub(crate) fn offer(&mut self, hit: Hit) {
        if self.heap.len() < self.k {
            self.heap.push(Reverse(Ranked(hit)));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && Ranked(hit) > worst.0
        {
            *worst = Reverse(Ranked(hit));
        }
    }

    /// The score of the `k`-th hit; `None` while there are fewer.
    pub(crate) fn worst(&self) -> Option<f32> {
        if self.heap.len() < self.k { None } else { self.heap.peek().map(|worst| worst.0.0.score) }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn into_hits(self) -> Vec<Hit> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(Ranked(hit))| hit).collect()
    }
}

/// A hit ordered by rank: the greater one comes first in an answer.
struct Ranked(Hit);

impl Ranked {
    fn rank(&self) -> (f32, Reverse<SpanKey>) {
        (self.0.score, Reverse(self.0.key))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        let ((score, key), (other_score, other_key)) = (self.rank(), other.rank());
        score.total_cmp(&other_score).then(key.cmp(&other_key))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(k: usize, offered: &[(SpanKey, f32)], expected: &[(SpanKey, f32)]) {
        let mut best = Best::new(k);
        for &(key, score) in offered {
            best.offer(Hit { key, score });
        }
        let got: Vec<_> = best.into_hits().into_iter().map(|hit| (hit.key, hit.score)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn the_best_come_first_and_ties_go_by_key() {
        check(2, &[(1, 0.1), (2, 0.9), (3, 0.5)], &[(2, 0.9), (3, 0.5)]);
        check(3, &[(9, 0.5), (2, 0.5), (5, 0.5), (1, 0.4)], &[(2, 0.5), (5, 0.5), (9, 0.5)]);
        check(2, &[(9, 0.5), (5, 0.5), (2, 0.5)], &[(2, 0.5), (5, 0.5)]);
    }

    #[test]
    fn fewer_than_k_come_back_when_there_are_fewer() {
        check(5, &[(1, -0.2)], &[(1, -0.2)]);
        check(0, &[(1, 0.3)], &[]);
        check(3, &[], &[]);
    }
}
