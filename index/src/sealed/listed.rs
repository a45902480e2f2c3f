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
/// Groups of rows, times the number of rows that are looked for.
const GROUPS: usize = 4;
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
                for &low in low.iter() {
                    if let Some(at) = finder.find(u64::from(high) << 32 | u64::from(low)) {
                        rows.push(by_key[at]);
                    }
                }
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
        let scores = signs.compare(goal.query, listed);
        let best = best_of(listed, &scores, first);
        let by_signs = best.iter().fold(f32::INFINITY, |least, found| least.min(found.score));
        let by_codes = self.least_score(goal, &best, k)? - self.margin(&signs, goal.query);
        let least = by_signs.min(by_codes);
        let likely = listed.iter().zip(&scores).filter(|&(_, &score)| score >= least);
        Some(likely.map(|(&row, _)| row).collect())
    }

    /// The `k`-th best score by codes; `None` of fewer rows.
    fn least_score(&self, goal: Goal, rows: &[Found], k: usize) -> Option<f32> {
        let (nodes, mut scored): (Vec<u32>, _) = (rows.iter().map(|found| found.node).collect(), Vec::new());
        walk::compare(goal, &nodes, &mut scored);
        let at = k.checked_sub(1).filter(|&at| at < scored.len())?;
        Some(scored.select_nth_unstable_by_key(at, |&found| Reverse(found)).1.score)
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

/// At least `count` of the rows, with the best scores. Rows are dealt out to groups, and the `count`-th best of the groups'
/// best scores is the least: so a processor compares many at once.
fn best_of(rows: &[u32], scores: &[f32], count: usize) -> Vec<Found> {
    let mut of_groups = vec![f32::NEG_INFINITY; GROUPS * count];
    for scores in scores.chunks(GROUPS * count) {
        of_groups.iter_mut().zip(scores).for_each(|(best, &score)| *best = best.max(score));
    }
    let least = *of_groups.select_nth_unstable_by(count - 1, |one, other| other.total_cmp(one)).1;
    let found = rows.iter().zip(scores).map(|(&node, &score)| Found { score, node });
    found.filter(|found| found.score >= least).collect()
}
