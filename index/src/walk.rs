//! Graph walks from near to nearer nodes, in sealed segments and in graphs under construction.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::codes::{Coder, Query};
use crate::plan::Width;

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

/// The best nodes of a walk, best first, and which of them are expanded.
#[derive(Default)]
pub(crate) struct Beam {
    candidates: Vec<Candidate>,
    width: usize,
    /// All nodes before this position are expanded.
    next: usize,
}

struct Candidate {
    found: Found,
    is_expanded: bool,
}

impl Beam {
    fn reset(&mut self, width: usize) {
        self.candidates.clear();
        self.width = width.max(1);
        self.next = 0;
    }

    #[inline]
    fn offer(&mut self, found: Found) {
        if self.candidates.len() == self.width {
            match self.candidates.last() {
                Some(worst) if found.score > worst.found.score => _ = self.candidates.pop(),
                _ => return,
            }
        }
        let place = self.candidates.partition_point(|other| other.found.score >= found.score);
        self.candidates.insert(place, Candidate { found, is_expanded: false });
        self.next = self.next.min(place);
    }

    fn leave_next(&mut self) -> Option<u32> {
        while self.candidates.get(self.next)?.is_expanded {
            self.next += 1;
        }
        let next = &mut self.candidates[self.next];
        next.is_expanded = true;
        Some(next.found.node)
    }

    /// The best node that is not yet expanded.
    fn peek(&self) -> Option<u32> {
        let left = self.candidates.get(self.next..)?.iter().find(|other| !other.is_expanded);
        left.map(|next| next.found.node)
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
    for layer in layers {
        loop {
            scratch.neighbours.clear();
            links.neighbours(layer, best.node, &mut scratch.neighbours, |_| true);
            let before = best.node;
            compare(goal, &scratch.neighbours, |found| best = best.max(found));
            if best.node == before {
                break;
            }
        }
    }
    best
}

/// Limits of a walk.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    pub(crate) width: Width,
    /// Largest number of nodes that the walk compares.
    pub(crate) most: usize,
}

/// The accepted nodes that a walk found, best first.
pub(crate) struct Walked {
    pub(crate) found: Vec<Found>,
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
        let Scratch { seen, beam, neighbours, found, .. } = self;
        seen.reset(links.nodes(layer));
        beam.reset(width);
        for &found in from {
            if seen.see(found.node) {
                beam.offer(found);
            }
        }
        while let Some(node) = beam.leave_next() {
            neighbours.clear();
            links.neighbours(layer, node, neighbours, |node| seen.see(node));
            if layer == 0
                && let Some(after) = beam.peek()
            {
                links.prefetch(after);
            }
            compare(goal, neighbours, |found| beam.offer(found));
        }
        found.clear();
        found.extend(beam.candidates.iter().map(|candidate| candidate.found));
        found
    }

    /// Finds approximately the nearest nodes of the bottom layer for which `accept` returns true, best first. Other
    /// nodes are expanded but not returned. `None` if the walk would compare too many nodes.
    pub(crate) fn nearest_accepted(
        &mut self,
        links: &impl Links,
        goal: Goal,
        from: Found,
        reach: Reach,
        accept: impl Fn(u32) -> bool,
    ) -> Option<Walked> {
        let (width, most) = (reach.width.candidates, reach.most);
        let Scratch { seen, neighbours, to_leave, .. } = self;
        seen.reset(links.nodes(0));
        to_leave.clear();
        let mut best: BinaryHeap<std::cmp::Reverse<Found>> = BinaryHeap::new();
        let take = |found: Found, best: &mut BinaryHeap<_>| {
            if accept(found.node) {
                best.push(std::cmp::Reverse(found));
                if best.len() > width {
                    best.pop();
                }
            }
        };
        seen.see(from.node);
        to_leave.push(from);
        take(from, &mut best);
        let (mut compared, mut passed) = (1, 0);
        while let Some(next) = to_leave.pop() {
            let is_full = best.len() >= width;
            if is_full && best.peek().is_some_and(|worst| next.score < worst.0.score) {
                break;
            }
            passed += 1;
            neighbours.clear();
            links.neighbours(0, next.node, neighbours, |node| seen.see(node));
            if let Some(after) = to_leave.peek() {
                links.prefetch(after.node);
            }
            compared += neighbours.len();
            if compared > most {
                return None;
            }
            compare(goal, neighbours, |found| {
                let is_full = best.len() >= width;
                if !is_full || best.peek().is_some_and(|worst| found.score > worst.0.score) {
                    to_leave.push(found);
                    take(found, &mut best);
                }
            });
        }
        Some(Walked { found: best.into_sorted_vec().into_iter().map(|found| found.0).collect(), passed })
    }
}

/// Compares nodes with the query; each row is prefetched some steps before.
#[inline]
fn compare(goal: Goal, nodes: &[u32], mut each: impl FnMut(Found)) {
    let rows = goal.rows;
    for &node in nodes.iter().take(AHEAD) {
        rows.coder.prefetch(rows.row(node));
    }
    for (at, &node) in nodes.iter().enumerate() {
        if let Some(&ahead) = nodes.get(at + AHEAD) {
            rows.coder.prefetch(rows.row(ahead));
        }
        each(Found { score: goal.score(node), node });
    }
}
