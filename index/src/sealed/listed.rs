//! Search among listed rows: by their signs, the likely ones by their codes, the best ones by their vectors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use roaring::RoaringTreemap;

use super::sorted_keys::Finder;
use super::{ERRORS_LEAST, Errors, SURPLUS, Sealed};
use crate::Hit;
use crate::codes::Query;
use crate::codes::signs::Signs;
use crate::exact::Best;
use crate::vector::cosine;
use crate::walk::{self, Found, Goal, Rows};

/// Rows with the best signs that are compared by their codes in any case, times `k`. Of them the `k`-th best says which
/// of the others are likely.
const FIRST: usize = 4;
/// Signs are looked at where the first rows are at most one of this many.
const FIRST_SHARE: usize = 4;
/// Expected errors of signs and codes by which a row's signs must say less than the `k`-th best row's codes, so that it is
/// left out.
const ERRORS_APART: f32 = 2.5;
/// Keys that are taken out of a filter at once.
const KEYS_AT_ONCE: usize = 256;

impl Sealed {
    /// Whether its codes have signs.
    pub(crate) fn has_signs(&self) -> bool {
        !self.layout.signs().is_empty()
    }

    /// The rows of these keys; keys that it does not hold are left out.
    pub(crate) fn find_all(&self, keys: &RoaringTreemap) -> Vec<u32> {
        let (mut finder, by_key) = (Finder::new(self.sorted_keys()), self.by_key());
        let (mut rows, mut some) = (Vec::new(), [0; KEYS_AT_ONCE]);
        for (high, keys) in keys.bitmaps() {
            let mut keys = keys.iter();
            loop {
                let low = keys.next_many(&mut some);
                if low.is_empty() {
                    break;
                }
                let keys = low.iter().map(|&low| u64::from(high) << 32 | u64::from(low));
                rows.extend(keys.filter_map(|key| finder.find(key)).map(|at| by_key[at]));
            }
        }
        rows
    }

    /// Offers about the best `k` hits among these rows: all are compared by their signs or codes, and the best ones again by
    /// their original vectors, until the next one is probably worse than the k-th hit.
    pub(crate) fn search_listed(&self, query: &[f32], listed: Vec<u32>, k: usize, best: &mut Best) {
        let rows = Rows::new(&self.coder, &self.core[self.layout.codes()]);
        let coded = self.coder.query(query);
        let goal = Goal { rows: &rows, query: &coded };
        let mut likely = self.likely(goal, &listed, k).unwrap_or(listed);
        // So that memory is read in order.
        likely.sort_unstable();
        let mut scored = Vec::with_capacity(likely.len());
        walk::compare(goal, &likely, &mut scored);
        let hits = self.compare_listed(query, BinaryHeap::from(scored), k);
        hits.into_hits().into_iter().for_each(|hit| best.offer(hit));
    }

    /// The rows that may be among the best `k`, given their signs; `None` where signs would save nothing.
    fn likely(&self, goal: Goal, listed: &[u32], k: usize) -> Option<Vec<u32>> {
        let first = k.saturating_mul(FIRST);
        if k == 0 || first > listed.len() / FIRST_SHARE {
            return None;
        }
        let signs = Signs::new(&self.coder, &self.core[self.layout.signs()])?;
        let scores = signs.compare(goal.query, listed).into_iter();
        let mut by_signs: Vec<Found> =
            scores.zip(listed).map(|(score, &node)| Found { score, node }).collect();
        by_signs.select_nth_unstable_by_key(first, |&found| Reverse(found));
        let least = self.least_score(goal, &by_signs[..first], k) - self.margin(&signs, goal.query);
        let rest = by_signs[first..].iter().filter(|found| found.score >= least);
        Some(by_signs[..first].iter().chain(rest).map(|found| found.node).collect())
    }

    /// The `k`-th best score by codes of more than `k` rows.
    fn least_score(&self, goal: Goal, first: &[Found], k: usize) -> f32 {
        let (nodes, mut scored): (Vec<u32>, _) = (first.iter().map(|found| found.node).collect(), Vec::new());
        walk::compare(goal, &nodes, &mut scored);
        scored.select_nth_unstable_by_key(k - 1, |&found| Reverse(found)).1.score
    }

    /// How much lower the score by signs of a row may be than the `k`-th best by codes.
    fn margin(&self, signs: &Signs, query: &Query) -> f32 {
        ERRORS_APART * signs.error(query).hypot(self.coder.error(query))
    }

    /// Compares rows by their original vectors, those with the best codes first, until the next one is probably worse.
    fn compare_listed(&self, query: &[f32], mut scored: BinaryHeap<Found>, k: usize) -> Best {
        let (mut best, mut errors, mut before) = (Best::new(k), Errors::default(), None);
        let enough = (k + SURPLUS).max(ERRORS_LEAST);
        while let Some(next) = scored.pop() {
            if errors.count >= enough
                && best.worst().is_some_and(|worst| next.score + 3.0 * errors.standard() < worst)
            {
                break;
            }
            if let Some(ahead) = scored.peek() {
                self.prefetch(ahead.node);
            }
            if let Some(vector) = self.vector(next.node) {
                let score = cosine(query, vector);
                // Equal vectors have equal codes and the same error, which says nothing of the next one's.
                if before.replace(next.score) != Some(next.score) {
                    errors.add(score - next.score);
                }
                best.offer(Hit { key: self.key(next.node), score });
            }
        }
        best
    }
}
