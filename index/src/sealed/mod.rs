//! A sealed segment: immutable vectors with a graph and codes laid out for fast walks.
//!
//! Rows are ordered by the layers of the graph. The core (keys, links, codes, signs) lies in the process's memory, or
//! is mapped from the segment's file where the budget is spent. The original vectors are mapped from the segment's file,
//! if it has one; each block is verified when first read. A segment knows no removals: the caller passes the live rows.

mod blocks;
mod file;
mod layout;
mod listed;
mod making;
mod opening;
mod sorted_keys;

use std::ops::Deref;
use std::path::PathBuf;

use parking_lot::Mutex;
use roaring::{RoaringBitmap, RoaringTreemap};

use crate::budget::Taken;
use crate::codes::Coder;
use crate::exact::Best;
use crate::memory::{self, Pages};
use crate::plan::Width;
use crate::vector::cosine;
use crate::walk::{self, BOTTOM_LINKS, Goal, LINKS, Limits, Links, Rows, Scratch, Stop, Walked};
use crate::{Hit, SpanKey};
use blocks::Blocks;
pub(crate) use file::SegmentError;
use layout::Layout;
pub(crate) use making::{Linked, Making, Source, core_bytes, link};

/// The factor by which a repeated walk is wider.
const WIDER: usize = 4;
/// Candidates beyond `k` that are compared exactly even where the codes' errors are small.
const SURPLUS: usize = 2;
/// The fewest errors from which a standard error is estimated.
const ERRORS_LEAST: usize = 12;
/// Vectors prefetched ahead of the exact comparison.
const VECTORS_AHEAD: usize = 4;
/// Expected errors of the codes by which a node's score must be lower than the `k`-th best, so that it is left out.
const ERRORS_APART: f32 = 3.0;
/// A walk with at least this many candidates is not repeated.
const WIDEST: usize = 4_096;

/// How far a search looks.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    pub(crate) width: Width,
    /// Largest number of nodes that a walk with a filter compares.
    pub(crate) most: usize,
}

/// An immutable set of keys and vectors with a graph.
pub(crate) struct Sealed {
    layout: Layout,
    coder: Coder,
    /// Keys, links, codes and signs.
    core: Core,
    vectors: Blocks,
    scratch: Mutex<Vec<Scratch>>,
    /// Set once a snapshot has stored the segment.
    stored: Mutex<Option<Stored>>,
}

/// The part of a segment that every walk reads.
struct Core {
    pages: Pages,
    /// What it takes of the budget; nothing if it is mapped from the segment's file.
    taken: Option<Taken>,
}

impl Deref for Core {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.pages
    }
}

/// The file of a segment and its identity: the checksum of its checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) path: PathBuf,
    pub(crate) checksum: u32,
}

impl Sealed {
    fn from_parts(
        layout: Layout,
        coder: Coder,
        core: Core,
        vectors: Blocks,
        stored: Option<Stored>,
    ) -> Sealed {
        Sealed { layout, coder, core, vectors, scratch: Mutex::default(), stored: Mutex::new(stored) }
    }

    /// Number of rows, live or dead.
    pub(crate) fn len(&self) -> u32 {
        self.layout.rows as u32
    }

    /// Bytes of memory, including mapped ones.
    pub(crate) fn bytes(&self) -> u64 {
        (self.core.len() + self.vectors.len()) as u64
    }

    /// Bytes of the budget that it takes.
    pub(crate) fn taken(&self) -> u64 {
        self.core.taken.as_ref().map_or(0, Taken::bytes)
    }

    /// The segment's file; `None` if it exists only in memory.
    pub(crate) fn stored(&self) -> Option<Stored> {
        self.stored.lock().clone()
    }

    /// Records the file of a copy.
    pub(crate) fn is_stored(&self, stored: Stored) {
        *self.stored.lock() = Some(stored);
    }

    fn keys(&self) -> &[SpanKey] {
        memory::cast(&self.core[self.layout.keys()])
    }

    fn sorted_keys(&self) -> &[SpanKey] {
        memory::cast(&self.core[self.layout.sorted_keys()])
    }

    fn by_key(&self) -> &[u32] {
        memory::cast(&self.core[self.layout.by_key()])
    }

    pub(crate) fn key(&self, row: u32) -> SpanKey {
        self.keys()[row as usize]
    }

    /// The keys of the `live` rows. They come in order: a set of millions is made many times as fast so.
    pub(crate) fn live_keys(&self, live: &RoaringBitmap) -> RoaringTreemap {
        let are_all_live = live.len() == u64::from(self.len());
        let rows = self.sorted_keys().iter().zip(self.by_key());
        let keys = rows.filter(|&(_, &row)| are_all_live || live.contains(row)).map(|(&key, _)| key);
        let mut found = RoaringTreemap::new();
        // Every segment's keys are in order: made so, or checked when its file was opened.
        let is_in_order = found.append(keys).is_ok();
        debug_assert!(is_in_order);
        found
    }

    /// The row of a key.
    pub(crate) fn find(&self, key: SpanKey) -> Option<u32> {
        let at = self.sorted_keys().binary_search(&key).ok()?;
        Some(self.by_key()[at])
    }

    /// The original vector of a row; `None` if its block of the file is damaged.
    pub(crate) fn vector(&self, row: u32) -> Option<&[f32]> {
        let each = self.layout.dimension * 4;
        self.vectors.read(row as usize * each, each).map(memory::cast)
    }

    /// Rows whose vectors are known to be damaged.
    pub(crate) fn unreadable(&self) -> RoaringBitmap {
        let each = self.layout.dimension * 4;
        let mut rows = RoaringBitmap::new();
        for damaged in self.vectors.damaged() {
            let (first, end) = (damaged.start / each, damaged.end.div_ceil(each).min(self.layout.rows));
            rows.insert_range(first as u32..end as u32);
        }
        rows
    }

    /// Verifies every block that is not yet verified; then [`Sealed::unreadable`] is complete.
    pub(crate) fn verify(&self) {
        self.vectors.verify();
    }

    /// The rows that share a node.
    fn twins(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let twins: &[u32] = memory::cast(&self.core[self.layout.twins()]);
        let (pairs, _) = twins.as_chunks::<2>();
        let from = pairs.partition_point(|pair| pair[0] < node);
        pairs[from..].iter().take_while(move |pair| pair[0] == node).map(|pair| pair[1])
    }

    /// Offers about the best `k` hits among the rows in `accept` (`None`: all rows), with at least the reach's
    /// candidates. Returns `false` and offers nothing if the walk would compare too many nodes.
    ///
    /// A filter lets a walk keep few candidates, because it passes many more nodes; where most nodes are accepted, it is
    /// repeated. Codes cannot order a group of nearly equal vectors. If a node that was left out might be better than the
    /// k-th hit, given the codes' error, the walk is repeated with more candidates, all of which it expands.
    pub(crate) fn search(
        &self,
        query: &[f32],
        reach: Reach,
        accept: Option<&dyn Fn(u32) -> bool>,
        k: usize,
        best: &mut Best,
    ) -> bool {
        let mut scratch = self.scratch.lock().pop().unwrap_or_default();
        let mut reach = reach;
        let hits = loop {
            let Some(walked) = self.walk(query, reach, accept, k, &mut scratch) else {
                break None;
            };
            let Width { candidates, passed: least, .. } = reach.width;
            if walked.is_cut && walked.passed < least && candidates < least {
                reach.width.candidates = least;
                continue;
            }
            let (hits, is_settled) = self.compare_again(query, &walked, accept, k);
            if is_settled || candidates >= WIDEST {
                break Some(hits);
            }
            reach.width.slack = None;
            reach.width.candidates *= WIDER;
            if reach.width.candidates > self.layout.rows / WIDER {
                break None;
            }
        };
        self.scratch.lock().push(scratch);
        let is_done = hits.is_some();
        hits.into_iter().flat_map(Best::into_hits).for_each(|hit| best.offer(hit));
        is_done
    }

    /// Compares the best candidates by their original vectors. Returns whether every other row is probably worse.
    fn compare_again(
        &self,
        query: &[f32],
        walked: &Walked,
        accept: Option<&dyn Fn(u32) -> bool>,
        k: usize,
    ) -> (Best, bool) {
        let found = &walked.found;
        let (mut best, mut errors) = (Best::new(k), Errors::default());
        let enough = (k + SURPLUS).max(ERRORS_LEAST);
        let is_accepted = |row: &u32| accept.is_none_or(|accept| accept(*row));
        found.iter().take(VECTORS_AHEAD).for_each(|ahead| self.prefetch(ahead.node));
        for (at, node) in found.iter().enumerate() {
            if errors.count >= enough
                && best.worst().is_some_and(|worst| node.score + 3.0 * errors.standard() < worst)
            {
                return (best, true);
            }
            if let Some(ahead) = found.get(at + VECTORS_AHEAD) {
                self.prefetch(ahead.node);
            }
            let rows = std::iter::once(node.node).chain(self.twins(node.node));
            let mut error = None;
            for row in rows.filter(is_accepted) {
                if let Some(vector) = self.vector(row) {
                    let score = cosine(query, vector);
                    error = Some(score - node.score);
                    best.offer(Hit { key: self.key(row), score });
                }
            }
            // One a node: a thousand equal vectors have the same error, and say nothing of the next node's.
            error.into_iter().for_each(|error| errors.add(error));
        }
        let missed = walked.bound + 2.0 * errors.standard();
        let is_settled = !self.coder.codes().are_coarse()
            || walked.bound == f32::NEG_INFINITY
            || best.worst().is_some_and(|worst| missed < worst);
        (best, is_settled)
    }

    /// Prefetches a row's original vector.
    pub(crate) fn prefetch(&self, row: u32) {
        let each = self.layout.dimension * 4;
        self.vectors.prefetch(row as usize * each, each);
    }

    /// Candidates, best first; `None` if the walk would compare too many nodes.
    fn walk(
        &self,
        query: &[f32],
        reach: Reach,
        accept: Option<&dyn Fn(u32) -> bool>,
        k: usize,
        scratch: &mut Scratch,
    ) -> Option<Walked> {
        let graph = Graph::of(self);
        let rows = Rows::new(&self.coder, &self.core[self.layout.codes()]);
        let query = self.coder.query(query);
        let goal = Goal { rows: &rows, query: &query };
        let layers = (1..=graph.upper_layers()).rev();
        let entry = walk::descend(&graph, goal, 0, layers, scratch);
        let least = ERRORS_APART * self.coder.error(&query);
        let stop = reach.width.slack.map(|slack| Stop { k, slack, least });
        let limits = Limits { width: reach.width.candidates, stop, most: reach.most };
        match accept {
            None => Some(scratch.nearest_any(&graph, goal, entry, limits)),
            Some(accept) => {
                let accept_node = |node| accept(node) || self.twins(node).any(accept);
                scratch.nearest_accepted(&graph, goal, entry, limits, accept_node)
            }
        }
    }
}

/// The errors of the codes that a search has seen, one for each compared node.
#[derive(Default)]
struct Errors {
    squares: f32,
    count: usize,
}

impl Errors {
    fn add(&mut self, error: f32) {
        self.squares += error * error;
        self.count += 1;
    }

    /// The standard error; the largest of twenty errors is about twice as large.
    fn standard(&self) -> f32 {
        (self.squares / self.count.max(1) as f32).sqrt()
    }
}

struct Graph<'a> {
    bottom: &'a [u32],
    upper: Vec<&'a [u32]>,
}

impl<'a> Graph<'a> {
    fn of(sealed: &'a Sealed) -> Graph<'a> {
        let links = |range| memory::cast(&sealed.core[range]);
        let layout = &sealed.layout;
        let upper = (0..layout.upper_layers()).map(|layer| links(layout.upper(layer))).collect();
        Graph { bottom: links(layout.bottom()), upper }
    }
}

impl Links for Graph<'_> {
    fn upper_layers(&self) -> usize {
        self.upper.len()
    }

    fn nodes(&self, layer: usize) -> usize {
        match layer {
            0 => self.bottom.len() / BOTTOM_LINKS,
            upper => self.upper[upper - 1].len() / LINKS,
        }
    }

    #[inline]
    fn neighbours(&self, layer: usize, node: u32, into: &mut Vec<u32>, wanted: impl FnMut(u32) -> bool) {
        let (links, each) = match layer {
            0 => (self.bottom, BOTTOM_LINKS),
            upper => (self.upper[upper - 1], LINKS),
        };
        let links = &links[node as usize * each..(node as usize + 1) * each];
        walk::gather(links.iter().copied(), into, wanted);
    }

    #[inline]
    fn prefetch(&self, node: u32) {
        let from = node as usize * BOTTOM_LINKS;
        crate::kernels::prefetch(memory::bytes_of(&self.bottom[from..from + BOTTOM_LINKS]), 2);
    }
}
