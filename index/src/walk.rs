//! Graph walks from near to nearer nodes, in sealed segments and in graphs under construction.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::codes::{Coder, Query};
use crate::kernels::prefetch;

/// Links of a node in the upper layers.
pub(crate) const LINKS: usize = 16;
/// Links of a node in the bottom layer.
pub(crate) const BOTTOM_LINKS: usize = 2 * LINKS;
/// Marks the end of a node's links.
pub(crate) const NONE: u32 = u32::MAX;
/// Rows prefetched ahead of the comparison.
const AHEAD: usize = 4;

/// The links of a graph.
pub(crate) trait Links {
    /// Number of layers above the bottom one.
    fn upper_layers(&self) -> usize;
    /// Number of nodes in a layer (0: the bottom).
    fn nodes(&self, layer: usize) -> usize;
    /// Appends the neighbours of a node in a layer (0: the bottom) for which `wanted` returns true, in order.
    fn neighbours(&self, layer: usize, node: u32, into: &mut Vec<u32>, wanted: impl FnMut(u32) -> bool);
    /// Prefetches a node's bottom links.
    fn prefetch(&self, node: u32);
}

/// Appends the links up to the first [`NONE`] for which `wanted` returns true. Half of a node's neighbours are known
/// already, in no order that a processor could guess; so there is no branch on it.
#[inline]
pub(crate) fn gather(
    links: impl Iterator<Item = u32>,
    into: &mut Vec<u32>,
    mut wanted: impl FnMut(u32) -> bool,
) {
    let (mut taken, mut count) = ([0; BOTTOM_LINKS], 0);
    for link in links.take_while(|&link| link != NONE).take(BOTTOM_LINKS) {
        taken[count % BOTTOM_LINKS] = link;
        count += usize::from(wanted(link));
    }
    into.extend_from_slice(&taken[..count]);
}

/// The codes by which nodes are compared.
pub(crate) struct Rows<'a> {
    pub(crate) coder: &'a Coder,
    rows: &'a [u8],
    /// The numbers that lie behind all rows.
    numbers: &'a [u8],
    stride: usize,
    apart: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(coder: &'a Coder, codes: &'a [u8]) -> Rows<'a> {
        let (stride, apart) = (coder.stride(), coder.apart());
        let (rows, numbers) = codes.split_at(codes.len() / (stride + apart) * stride);
        Rows { coder, rows, numbers, stride, apart }
    }

    #[inline]
    fn row(&self, node: u32) -> &'a [u8] {
        let from = node as usize * self.stride;
        &self.rows[from..from + self.stride]
    }

    /// Prefetches what a comparison with the node reads.
    #[inline]
    fn prefetch(&self, node: u32) {
        self.coder.prefetch(self.row(node));
        prefetch(self.numbers(node), 1);
    }

    #[inline]
    fn numbers(&self, node: u32) -> &'a [u8] {
        let from = node as usize * self.apart;
        &self.numbers[from..from + self.apart]
    }

    #[inline]
    pub(crate) fn score(&self, query: &Query, node: u32) -> f32 {
        self.coder.score(query, self.row(node), self.numbers(node))
    }

    /// Decodes a row into a query.
    pub(crate) fn take(&self, node: u32, query: &mut Query) {
        self.coder.take_row(self.row(node), self.numbers(node), query);
    }
}

/// The query of a walk and the rows that it compares.
#[derive(Clone, Copy)]
pub(crate) struct Goal<'a> {
    pub(crate) rows: &'a Rows<'a>,
    pub(crate) query: &'a Query,
}

impl Goal<'_> {
    #[inline]
    fn score(&self, node: u32) -> f32 {
        self.rows.score(self.query, node)
    }
}

/// A node and its approximate cosine with the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) score: f32,
    pub(crate) node: u32,
}

/// Ordered by score; equal scores by node, the smaller one first.
impl Ord for Found {
    fn cmp(&self, other: &Found) -> Ordering {
        self.score.total_cmp(&other.score).then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Found) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Found {}

/// When a walk ends before it has expanded all that it keeps: the next node is probably no better than the `k`-th best,
/// and nor are its neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    pub(crate) k: usize,
    /// How much farther from the query than the `k`-th best a node may be: a share of that distance (1 - cosine).
    pub(crate) slack: f32,
    /// The least difference of scores, which the codes' errors ask for.
    pub(crate) least: f32,
}

/// The best nodes of a walk, best first, and which of them are expanded.
#[derive(Default)]
pub(crate) struct Beam {
    candidates: Vec<Candidate>,
    width: usize,
    stop: Option<Stop>,
    /// Nodes of this score or a lower one are not kept.
    bound: f32,
    /// All nodes before this position are expanded.
    next: usize,
}

struct Candidate {
    found: Found,
    is_expanded: bool,
}

impl Beam {
    fn reset(&mut self, width: usize, stop: Option<Stop>) {
        self.candidates.clear();
        (self.width, self.stop, self.bound, self.next) = (width.max(1), stop, f32::NEG_INFINITY, 0);
    }

    #[inline]
    fn offer(&mut self, found: Found) {
        if found.score > self.bound {
            self.take(found);
        }
    }

    fn take(&mut self, found: Found) {
        if self.candidates.len() == self.width {
            self.candidates.pop();
        }
        let place = self.candidates.partition_point(|other| other.found.score >= found.score);
        self.candidates.insert(place, Candidate { found, is_expanded: false });
        self.next = self.next.min(place);
        self.bound = self.by_width().max(self.by_distance());
    }

    fn by_width(&self) -> f32 {
        let worst = self.candidates.get(self.width - 1);
        worst.map_or(f32::NEG_INFINITY, |worst| worst.found.score)
    }

    fn by_distance(&self) -> f32 {
        let Some(stop) = self.stop else { return f32::NEG_INFINITY };
        let kth = stop.k.checked_sub(1).and_then(|at| self.candidates.get(at));
        kth.map_or(f32::NEG_INFINITY, |kth| {
            let score = kth.found.score;
            score - (stop.slack * (1.0 - score)).max(stop.least)
        })
    }

    /// The best node that is not yet expanded, which is expanded now; `None` if none is left that is worth it.
    fn leave_next(&mut self) -> Option<u32> {
        while self.candidates.get(self.next)?.is_expanded {
            self.next += 1;
        }
        let next = &mut self.candidates[self.next];
        if next.found.score < self.bound {
            return None;
        }
        next.is_expanded = true;
        Some(next.found.node)
    }

    /// The best node that is not yet expanded.
    fn peek(&self) -> Option<u32> {
        let left = self.candidates.get(self.next..)?.iter().find(|other| !other.is_expanded);
        left.map(|next| next.found.node)
    }

    fn walked(&self, passed: usize) -> Walked {
        let is_cut = self.candidates.len() == self.width && self.by_width() > self.by_distance();
        Walked { found: self.found().collect(), bound: self.bound, is_cut, passed }
    }

    fn found(&self) -> impl Iterator<Item = Found> + '_ {
        self.candidates.iter().map(|candidate| candidate.found)
    }
}

/// The visited nodes of a walk, marked with the walk's number.
#[derive(Default)]
struct VisitedNodes {
    marks: Vec<u8>,
    walk: u8,
}

impl VisitedNodes {
    fn reset(&mut self, nodes: usize) {
        self.walk = self.walk.wrapping_add(1);
        if self.walk == 0 {
            self.marks.fill(0);
            self.walk = 1;
        }
        if self.marks.len() < nodes {
            self.marks.resize(nodes, 0);
        }
    }

    /// Marks a node as visited; returns whether it was new.
    #[inline]
    fn see(&mut self, node: u32) -> bool {
        let mark = &mut self.marks[node as usize];
        let is_new = *mark != self.walk;
        *mark = self.walk;
        is_new
    }
}

/// Buffers that walks reuse.
#[derive(Default)]
pub(crate) struct Scratch {
    seen: VisitedNodes,
    /// The nodes that a descent through the upper layers has compared. Most nodes are in none of those.
    seen_above: VisitedNodes,
    beam: Beam,
    neighbours: Vec<u32>,
    found: Vec<Found>,
    to_leave: BinaryHeap<Found>,
}

/// The nearest node that a greedy walk reaches from `from` through `layers`, downwards.
pub(crate) fn descend(
    links: &impl Links,
    goal: Goal,
    from: u32,
    layers: impl Iterator<Item = usize>,
    scratch: &mut Scratch,
) -> Found {
    let mut best = Found { score: goal.score(from), node: from };
    if links.upper_layers() == 0 {
        return best;
    }
    let Scratch { seen_above: seen, neighbours, found, .. } = scratch;
    seen.reset(links.nodes(1));
    seen.see(from);
    for layer in layers {
        loop {
            neighbours.clear();
            // A node that was compared before, also in a layer above, is no better than the best one.
            links.neighbours(layer, best.node, neighbours, |node| seen.see(node));
            let before = best.node;
            compare(goal, neighbours, found);
            best = found.iter().fold(best, |best, &found| best.max(found));
            if best.node == before {
                break;
            }
        }
    }
    best
}

/// Limits of a walk.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The most nodes to keep.
    pub(crate) width: usize,
    pub(crate) stop: Option<Stop>,
    /// Largest number of nodes that a walk with a filter compares.
    pub(crate) most: usize,
}

/// The accepted nodes that a walk found, best first.
pub(crate) struct Walked {
    pub(crate) found: Vec<Found>,
    /// Accepted nodes of this score or a lower one were not kept.
    pub(crate) bound: f32,
    /// Whether nodes were dropped because of the width alone.
    pub(crate) is_cut: bool,
    /// Number of nodes that it passed, accepted or not.
    pub(crate) passed: usize,
}

impl Scratch {
    /// Finds approximately the `width` nearest nodes of a layer, best first.
    pub(crate) fn nearest(
        &mut self,
        links: &impl Links,
        goal: Goal,
        layer: usize,
        from: &[Found],
        width: usize,
    ) -> &[Found] {
        self.beam.reset(width, None);
        self.expand(links, goal, layer, from);
        self.found.clear();
        self.found.extend(self.beam.found());
        &self.found
    }

    /// Finds approximately the nearest nodes of the bottom layer.
    pub(crate) fn nearest_any(
        &mut self,
        links: &impl Links,
        goal: Goal,
        from: Found,
        limits: Limits,
    ) -> Walked {
        self.beam.reset(limits.width, limits.stop);
        let passed = self.expand(links, goal, 0, &[from]);
        self.beam.walked(passed)
    }

    /// Expands nodes until the beam has none left; returns how many.
    fn expand(&mut self, links: &impl Links, goal: Goal, layer: usize, from: &[Found]) -> usize {
        let Scratch { seen, beam, neighbours, found, .. } = self;
        seen.reset(links.nodes(layer));
        for &found in from {
            if seen.see(found.node) {
                beam.offer(found);
            }
        }
        let mut passed = 0;
        while let Some(node) = beam.leave_next() {
            passed += 1;
            neighbours.clear();
            links.neighbours(layer, node, neighbours, |node| seen.see(node));
            if layer == 0
                && let Some(after) = beam.peek()
            {
                links.prefetch(after);
            }
            compare(goal, neighbours, found);
            found.iter().for_each(|&found| beam.offer(found));
        }
        passed
    }

    /// Finds approximately the nearest nodes of the bottom layer for which `accept` returns true, best first. Other
    /// nodes are expanded but not returned. `None` if the walk would compare too many nodes.
    pub(crate) fn nearest_accepted(
        &mut self,
        links: &impl Links,
        goal: Goal,
        from: Found,
        limits: Limits,
        accept: impl Fn(u32) -> bool,
    ) -> Option<Walked> {
        let Scratch { seen, beam, neighbours, found, to_leave, .. } = self;
        seen.reset(links.nodes(0));
        beam.reset(limits.width, limits.stop);
        to_leave.clear();
        seen.see(from.node);
        to_leave.push(from);
        if accept(from.node) {
            beam.offer(from);
        }
        let (mut compared, mut passed) = (1, 0);
        while let Some(next) = to_leave.pop() {
            if next.score < beam.bound {
                break;
            }
            passed += 1;
            neighbours.clear();
            links.neighbours(0, next.node, neighbours, |node| seen.see(node));
            if let Some(after) = to_leave.peek() {
                links.prefetch(after.node);
            }
            compared += neighbours.len();
            if compared > limits.most {
                return None;
            }
            compare(goal, neighbours, found);
            for &found in found.iter() {
                if found.score > beam.bound {
                    to_leave.push(found);
                    if accept(found.node) {
                        beam.offer(found);
                    }
                }
            }
        }
        Some(beam.walked(passed))
    }
}

/// Compares nodes with the query. Each row is prefetched some steps before; nothing depends on a score yet, so that the
/// processor reads several rows at once.
#[inline]
pub(crate) fn compare(goal: Goal, nodes: &[u32], found: &mut Vec<Found>) {
    let rows = goal.rows;
    nodes.iter().take(AHEAD).for_each(|&node| rows.prefetch(node));
    found.clear();
    for (at, &node) in nodes.iter().enumerate() {
        if let Some(&ahead) = nodes.get(at + AHEAD) {
            rows.prefetch(ahead);
        }
        found.push(Found { score: goal.score(node), node });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scores that a beam of four nodes keeps of the offered ones, its bound, and how many of them it expands.
    #[track_caller]
    fn check(stop: Option<Stop>, offered: &[f32], kept: &[f32], bound: f32, expanded: usize) {
        let mut beam = Beam::default();
        beam.reset(4, stop);
        offered.iter().zip(0..).for_each(|(&score, node)| beam.offer(Found { score, node }));
        let scores: Vec<f32> = beam.found().map(|found| found.score).collect();
        assert_eq!(scores, kept);
        assert!(beam.bound == bound || (beam.bound - bound).abs() < 1e-6, "{} is not {bound}", beam.bound);
        assert_eq!(std::iter::from_fn(|| beam.leave_next()).count(), expanded);
    }

    #[test]
    fn a_walk_ends_at_its_width_or_where_nodes_are_too_far_behind_the_kth() {
        let none = f32::NEG_INFINITY;
        let stop = |k, slack, least| Some(Stop { k, slack, least });
        check(None, &[0.1, 0.3, 0.2], &[0.3, 0.2, 0.1], none, 3);
        check(None, &[0.1, 0.3, 0.2, 0.5, 0.4, 0.1], &[0.5, 0.4, 0.3, 0.2], 0.2, 4);
        check(stop(2, 0.1, 0.0), &[0.6], &[0.6], none, 1);
        // The second best is 0.5 from the query: nodes more than 0.05 farther are no use.
        check(stop(2, 0.1, 0.0), &[0.6, 0.4, 0.5, 0.44, 0.46], &[0.6, 0.5, 0.46, 0.4], 0.45, 3);
        check(stop(2, 0.1, 0.2), &[0.6, 0.4, 0.5, 0.2], &[0.6, 0.5, 0.4], 0.3, 3);
        check(stop(2, 1.0, 0.0), &[0.6, 0.4, 0.5, 0.45, 0.42], &[0.6, 0.5, 0.45, 0.42], 0.42, 4);
        // The errors of codes ask for room among equal vectors.
        check(stop(2, 0.5, 0.0), &[1.0, 1.0, 1.0, 0.999], &[1.0, 1.0], 1.0, 2);
        check(stop(2, 0.5, 0.01), &[1.0, 1.0, 1.0, 0.999], &[1.0, 1.0, 1.0, 0.999], 0.999, 4);
        check(stop(0, 0.1, 0.0), &[0.6, f32::NAN], &[0.6], none, 1);
    }
}
