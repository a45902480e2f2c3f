//! A sealed segment: immutable vectors with a graph and codes laid out for fast walks.
//!
//! Rows are ordered by the layers of the graph. The core (keys, links, codes, signs) lies in the process's memory. The
//! original vectors are mapped from the segment's file, if it has one; each block is verified when first read. A
//! segment knows no removals: the caller passes the live rows.

mod blocks;
mod file;
mod layout;
mod listed;
mod sorted_keys;

use std::path::PathBuf;

use parking_lot::Mutex;
use roaring::RoaringBitmap;

use crate::build::{self, Exact};
use crate::codes::{self, Coder, Codes, signs};
use crate::exact::Best;
use crate::memory::{self, Pages};
use crate::plan::Width;
use crate::vector::cosine;
use crate::walk::{self, BOTTOM_LINKS, Goal, LINKS, Limits, Links, Rows, Scratch, Stop, Walked};
use crate::{Hit, SpanKey};
use blocks::Blocks;
pub(crate) use file::{PARTIAL, SegmentError};
use layout::{Layout, PAGE};

/// Pairs of rows from which the codes' error is estimated.
const ERROR_PAIRS: u32 = 256;
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
    core: Pages,
    vectors: Blocks,
    scratch: Mutex<Vec<Scratch>>,
    /// Set once a snapshot has stored the segment.
    stored: Mutex<Option<Stored>>,
}

/// The file of a segment and its identity: the checksum of its checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) path: PathBuf,
    pub(crate) checksum: u32,
}

/// The rows from which a segment is built.
pub(crate) trait Source: Sync {
    fn len(&self) -> usize;
    fn key(&self, row: usize) -> SpanKey;
    /// `None` if it cannot be read.
    fn vector(&self, row: usize) -> Option<&[f32]>;
}

/// How a segment is built.
#[derive(Clone, Copy)]
pub(crate) struct Making<'a> {
    pub(crate) codes: Codes,
    pub(crate) threads: usize,
    /// Receives the number of linked rows.
    pub(crate) report: &'a (dyn Fn(usize) + Sync),
}

impl Sealed {
    /// Builds a segment in memory. Takes minutes for millions of rows.
    pub(crate) fn make(
        source: &impl Source,
        dimension: usize,
        making: Making,
    ) -> Result<Sealed, SegmentError> {
        let readable: Vec<usize> = (0..source.len()).filter(|&row| source.vector(row).is_some()).collect();
        if readable.len() < source.len() {
            return Err(SegmentError::Unreadable);
        }
        let order = order_by_layer(source.len());
        let vector_of = |row: &u32| source.vector(*row as usize).unwrap_or_default();
        let linking = Coder::learn(making.codes.linking(), dimension, order.iter().map(vector_of));
        let mut vectors = Pages::zeroed((order.len() * dimension * 4).next_multiple_of(PAGE))?;
        let write = |vectors: &mut Pages, order: &[u32]| {
            let written = &mut vectors.bytes_mut()[..order.len() * dimension * 4];
            fill(written, dimension * 4, making.threads, &|at, row| {
                memory::cast_mut(row).copy_from_slice(vector_of(&order[at]));
            });
        };
        write(&mut vectors, &order);
        let vector = |row: u32| -> &[f32] {
            &memory::cast(vectors.bytes())[row as usize * dimension..(row as usize + 1) * dimension]
        };
        let mut codes = Pages::zeroed(codes::bytes(linking.codes(), dimension, order.len()))?;
        encode(&linking, codes.bytes_mut(), making.threads, &|at| vector(at as u32));
        let rows = Rows::new(&linking, codes.bytes());
        let exact = |left, right| cosine(vector(left), vector(right));
        let exact = Exact { cosine: &exact, error: error_of(&rows, order.len(), &exact) };
        let linked = build::link(&rows, order.len(), making.threads, exact, making.report);
        drop(codes);
        let near = linked.order();
        let (linked, order) =
            (linked.ordered(&near), near.iter().map(|&at| order[at as usize]).collect::<Vec<u32>>());
        write(&mut vectors, &order);
        let layout = Layout::new(making.codes, dimension, order.len(), linked.twins.len());
        let mut core = Pages::zeroed(layout.core_bytes())?;
        layout.write_keys(core.bytes_mut(), order.iter().map(|&row| source.key(row as usize)));
        layout.write_links(core.bytes_mut(), &linked);
        let coder = Coder::with_mean(making.codes, linking.mean().to_vec());
        let vector = |row: usize| &memory::cast(vectors.bytes())[row * dimension..(row + 1) * dimension];
        encode(&coder, &mut core.bytes_mut()[layout.codes()], making.threads, &vector);
        let row_of_signs = signs::stride(making.codes, dimension);
        fill(&mut core.bytes_mut()[layout.signs()], row_of_signs, making.threads, &|at, row| {
            signs::encode(&coder, vector(at), row);
        });
        Ok(Sealed::from_parts(layout, coder, core, Blocks::own(vectors), None))
    }

    fn from_parts(
        layout: Layout,
        coder: Coder,
        core: Pages,
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

/// Rows ordered by layer, the highest layer first. Within a layer the order stays: neighbours in time are often
/// neighbours in space.
fn order_by_layer(rows: usize) -> Vec<u32> {
    let mut counts = build::upper_counts(rows);
    counts.insert(0, rows);
    let mut order: Vec<u32> = (0..rows as u32).collect();
    // Ordered by a hash, so that the upper layers are a fair sample for any order of insertion.
    order.sort_unstable_by_key(|&row| spread(row));
    let (mut ordered, mut from) = (Vec::with_capacity(rows), 0);
    for &count in counts.iter().rev() {
        let part = &mut order[from..count];
        part.sort_unstable();
        ordered.extend_from_slice(part);
        from = count;
    }
    ordered
}

/// The largest error of the codes among some pairs of rows.
fn error_of(rows: &Rows, count: usize, exact: &dyn Fn(u32, u32) -> f32) -> f32 {
    let mut query = rows.coder.empty();
    let pairs = (0..ERROR_PAIRS).map(|pair| {
        let row = |at: u32| (spread(2 * pair + at) % count as u64) as u32;
        (row(0), row(1))
    });
    let errors = pairs.map(|(left, right)| {
        rows.take(left, &mut query);
        (rows.score(&query, right) - exact(left, right)).abs()
    });
    errors.fold(0.0, f32::max)
}

/// A hash of the row number.
fn spread(row: u32) -> u64 {
    let mut state = u64::from(row).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// Writes the codes of all rows with several threads.
fn encode<'a>(coder: &Coder, codes: &mut [u8], threads: usize, vector: &(dyn Fn(usize) -> &'a [f32] + Sync)) {
    let (stride, apart) = (coder.stride(), coder.apart());
    let count = codes.len() / (stride + apart);
    let (rows, numbers) = codes.split_at_mut(count * stride);
    let share = count.div_ceil(threads.max(1)).max(1);
    // Without numbers apart, the slices of them are empty.
    let mut numbers = numbers.chunks_mut((share * apart).max(1));
    std::thread::scope(|scope| {
        for (thread, rows) in rows.chunks_mut(share * stride).enumerate() {
            let numbers = numbers.next().unwrap_or_default();
            scope.spawn(move || {
                for (at, row) in rows.chunks_exact_mut(stride).enumerate() {
                    let numbers = &mut numbers[at * apart..(at + 1) * apart];
                    coder.encode(vector(thread * share + at), row, numbers);
                }
            });
        }
    });
}

/// Fills rows of `each` bytes with several threads.
fn fill(bytes: &mut [u8], each: usize, threads: usize, write: &(dyn Fn(usize, &mut [u8]) + Sync)) {
    if bytes.is_empty() {
        return;
    }
    let rows = bytes.len() / each;
    let share = rows.div_ceil(threads.max(1));
    std::thread::scope(|scope| {
        for (thread, part) in bytes.chunks_mut(share * each).enumerate() {
            scope.spawn(move || {
                part.chunks_exact_mut(each).enumerate().for_each(|(at, row)| write(thread * share + at, row));
            });
        }
    });
}
