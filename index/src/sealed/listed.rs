//! Search among listed rows: by the heads of their signs, the likely ones by all signs, of these the likely ones by their
//! codes, the best ones by their vectors.

use std::collections::BinaryHeap;

use roaring::RoaringTreemap;

use super::sorted_keys::Finder;
use super::{ERRORS_LEAST, Errors, SURPLUS, Sealed};
use crate::Hit;
use crate::codes::signs::Signs;
use crate::exact::Best;
use crate::vector::cosine;
use crate::walk::{self, Found, Goal, Rows};

/// Rows with the best scores of a step that the next step compares in any case, times `k`. Of them the `k`-th best says
/// which of the others are likely.
const FIRST: usize = 4;
/// Signs are looked at where the first rows are at most one of this many.
const FIRST_SHARE: usize = 4;
/// Groups of rows, times the number of rows that are looked for.
const GROUPS: usize = 4;
/// Expected errors of both steps by which a step must say less of a row than the next one of the `k`-th best row, so that
/// it is left out.
const ERRORS_APART: f32 = 3.0;
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
        if k == 0 || k.saturating_mul(FIRST) > listed.len() / FIRST_SHARE {
            return None;
        }
        let signs = Signs::new(&self.coder, &self.core[self.layout.signs()])?;
        let query = signs.query(goal.query);
        let by_signs = |some: &Scored| signs.with_tails(&query, &some.rows, &some.scores);
        let (of_heads, of_signs) = (signs.error_of_heads(goal.query), signs.error(goal.query));
        let heads = Scored { rows: listed.to_vec(), scores: signs.heads(&query, listed) };
        let likely = heads.likely(k, of_heads.hypot(of_signs), by_signs)?;
        let whole = Scored { scores: by_signs(&likely), rows: likely.rows };
        let likely = whole.likely(k, of_signs.hypot(self.coder.error(goal.query)), |some| {
            let mut scored = Vec::with_capacity(some.rows.len());
            walk::compare(goal, &some.rows, &mut scored);
            scored.iter().map(|found| found.score).collect()
        });
        Some(likely?.rows)
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

/// The `k`-th best score; `None` of fewer.
fn kth(mut scores: Vec<f32>, k: usize) -> Option<f32> {
    let at = k.checked_sub(1).filter(|&at| at < scores.len())?;
    Some(*scores.select_nth_unstable_by(at, |one, other| other.total_cmp(one)).1)
}

/// Rows and their scores.
struct Scored {
    rows: Vec<u32>,
    scores: Vec<f32>,
}

impl Scored {
    /// The rows that may be among the best `k` by the next step, whose scores and these differ by about `error`.
    fn likely(&self, k: usize, error: f32, next: impl FnOnce(&Scored) -> Vec<f32>) -> Option<Scored> {
        let best = self.best(k * FIRST);
        let sure = kth(next(&best), k)? - ERRORS_APART * error;
        let least_of_best = best.scores.into_iter().fold(f32::INFINITY, f32::min);
        Some(self.at_least(sure.min(least_of_best)))
    }

    /// At least `count` of the rows, those with the best scores. Rows are dealt out to groups, and the `count`-th best of
    /// the groups' best scores is the least: so a processor compares many at once.
    fn best(&self, count: usize) -> Scored {
        let mut of_groups = vec![f32::NEG_INFINITY; GROUPS * count];
        for scores in self.scores.chunks(GROUPS * count) {
            of_groups.iter_mut().zip(scores).for_each(|(best, &score)| *best = best.max(score));
        }
        let least = *of_groups.select_nth_unstable_by(count - 1, |one, other| other.total_cmp(one)).1;
        self.at_least(least)
    }

    /// The rows with at least this score.
    fn at_least(&self, least: f32) -> Scored {
        let (mut rows, mut scores) = (vec![0; self.rows.len()], vec![0.0; self.rows.len()]);
        let mut count = 0;
        // No processor could guess which rows are taken; so there is no branch on it.
        for (&row, &score) in self.rows.iter().zip(&self.scores) {
            (rows[count], scores[count]) = (row, score);
            count += usize::from(score >= least);
        }
        rows.truncate(count);
        scores.truncate(count);
        Scored { rows, scores }
    }
}
