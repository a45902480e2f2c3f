//! Builds a segment: links rows, encodes them, and writes them to memory or to a file.
//!
//! The vectors stay where they are until the graph is done. A file gets them one by one, so that no second copy of them is
//! ever in memory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::blocks::Blocks;
use super::file::{self, SegmentError};
use super::layout::{Layout, PAGE};
use super::{Core, Sealed, Stored};
use crate::SpanKey;
use crate::budget::{Budget, Demand};
use crate::build::{self, Exact};
use crate::codes::{self, Coder, Codes, signs};
use crate::memory::{self, Pages};
use crate::vector::cosine;
use crate::walk::Rows;

/// Pairs of rows from which the codes' error is estimated.
const ERROR_PAIRS: u32 = 256;

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
    /// Bytes of the budget that the segments give back which it replaces.
    pub(crate) freed: u64,
    /// Receives the number of linked rows.
    pub(crate) report: &'a (dyn Fn(usize) + Sync),
}

/// A linked segment whose vectors still lie in their source.
pub(crate) struct Linked<'a, S> {
    layout: Layout,
    coder: Coder,
    core: Pages,
    /// The source's row of each row.
    order: Vec<u32>,
    source: &'a S,
    threads: usize,
    freed: u64,
}

/// Bytes of links and codes of so many rows, but for what twins add.
pub(crate) fn core_bytes(codes: Codes, dimension: usize, rows: usize) -> u64 {
    Layout::new(codes, dimension, rows, 0).core_bytes() as u64
}

/// Links and encodes rows of `dimension` values. Takes minutes for millions of rows.
pub(crate) fn link<'a, S: Source>(
    source: &'a S,
    dimension: usize,
    making: Making,
) -> Result<Linked<'a, S>, SegmentError> {
    if !(0..source.len()).all(|row| source.vector(row).is_some()) {
        return Err(SegmentError::Unreadable);
    }
    let Making { codes, threads, freed, report } = making;
    let order = order_by_layer(source.len());
    let vector = |row: u32| source.vector(order[row as usize] as usize).unwrap_or_default();
    let rows = 0..order.len() as u32;
    let linking = Coder::learn(codes.linking(), dimension, rows.map(vector));
    let mut bytes = Pages::zeroed(codes::bytes(linking.codes(), dimension, order.len()))?;
    encode(&linking, bytes.bytes_mut(), threads, &|at| vector(at as u32));
    let rows = Rows::new(&linking, bytes.bytes());
    let exact = |left, right| cosine(vector(left), vector(right));
    let exact = Exact { cosine: &exact, error: error_of(&rows, order.len(), &exact) };
    let linked = build::link(&rows, order.len(), threads, exact, report);
    drop(bytes);
    let near = linked.order();
    let (linked, order) =
        (linked.ordered(&near), near.iter().map(|&at| order[at as usize]).collect::<Vec<u32>>());
    let layout = Layout::new(codes, dimension, order.len(), linked.twins.len());
    let mut core = Pages::zeroed(layout.core_bytes())?;
    layout.write_keys(core.bytes_mut(), order.iter().map(|&row| source.key(row as usize)));
    layout.write_links(core.bytes_mut(), &linked);
    drop(linked);
    let coder = Coder::with_mean(codes, linking.mean().to_vec());
    let mut linked = Linked { layout, coder, core, order, source, threads, freed };
    linked.encode();
    Ok(linked)
}

impl<S: Source> Linked<'_, S> {
    /// Writes the codes and signs of all rows.
    fn encode(&mut self) {
        let (codes, signs) = (self.layout.codes(), self.layout.signs());
        let mut core = std::mem::replace(&mut self.core, Pages::Empty);
        // Each was read before.
        let vector = |row| self.vector(row).unwrap_or_default();
        encode(&self.coder, &mut core.bytes_mut()[codes], self.threads, &vector);
        let row_of_signs = signs::stride(self.layout.codes, self.layout.dimension);
        fill(&mut core.bytes_mut()[signs], row_of_signs, self.threads, &|at, row| {
            signs::encode(&self.coder, vector(at), row);
        });
        self.core = core;
    }

    fn vector(&self, row: usize) -> Result<&[f32], SegmentError> {
        self.source.vector(self.order[row] as usize).ok_or(SegmentError::Unreadable)
    }

    /// The segment in memory, with a copy of its vectors.
    pub(crate) fn keep(self, budget: &Arc<Budget>) -> Result<Sealed, SegmentError> {
        let mut vectors = Pages::zeroed(self.layout.vector_bytes())?;
        let each = self.layout.dimension * 4;
        let bytes = &mut vectors.bytes_mut()[..self.layout.rows * each];
        for (row, to) in bytes.chunks_exact_mut(each).enumerate() {
            memory::cast_mut(to).copy_from_slice(self.vector(row)?);
        }
        let taken = Some(budget.take(self.core.len() as u64));
        let core = Core { pages: self.core, taken };
        Ok(Sealed::from_parts(self.layout, self.coder, core, Blocks::own(vectors), None))
    }

    /// Writes the segment to `path`, syncs it, and maps its vectors from there; its core too, if the budget is spent.
    pub(crate) fn store(
        self,
        path: &Path,
        budget: &Arc<Budget>,
    ) -> Result<Sealed, Box<(Self, SegmentError)>> {
        let written = self.write(path).and_then(|checksum| {
            let file = File::open(path)?;
            let demand = Demand { bytes: self.core.len() as u64, freed: self.freed };
            let taken = budget.try_take(demand);
            let mapped = taken.is_none().then(|| file::map_core(&file, &self.layout)).transpose()?;
            Ok((checksum, taken, mapped, file::map_vectors(&file, &self.layout)?))
        });
        match written {
            Ok((checksum, taken, mapped, vectors)) => {
                let core = Core { pages: mapped.unwrap_or(self.core), taken };
                let stored = Some(Stored { path: path.to_owned(), checksum });
                Ok(Sealed::from_parts(self.layout, self.coder, core, Blocks::own(vectors), stored))
            }
            Err(error) => Err(Box::new((self, error))),
        }
    }

    fn write(&self, path: &Path) -> Result<u32, SegmentError> {
        let (layout, coder, core) = (&self.layout, &self.coder, self.core.bytes());
        let rows = (0..layout.rows).map(|row| self.vector(row).map(memory::bytes_of));
        let padding = [0; PAGE];
        let padded = layout.vector_bytes() - layout.rows * layout.dimension * 4;
        let vectors = rows.chain(std::iter::once(Ok(&padding[..padded])));
        file::write(path, file::Head { layout, coder, core }, vectors)
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
