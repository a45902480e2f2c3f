//! Builds a segment: links rows, encodes them, and writes them to memory or to a file.
//!
//! The vectors stay where they are until the graph is done. A file gets them some thousand at a time, so that no second copy
//! of them is ever in memory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::blocks::Blocks;
use super::file::{self, Head, SegmentError, Writing};
use super::layout::Layout;
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
/// Rows that are encoded and written at once.
const ROWS_AT_ONCE: usize = 8_192;

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
    /// Bytes of the budget that the replaced segments give back.
    pub(crate) freed: u64,
    /// Receives the number of linked rows.
    pub(crate) report: &'a (dyn Fn(usize) + Sync),
}

/// A linked segment without codes, whose vectors still lie in their source.
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

/// The bytes that the core of `rows` rows takes without twins.
pub(crate) fn core_bytes(codes: Codes, dimension: usize, rows: usize) -> u64 {
    Layout::new(codes, dimension, rows, 0).core_bytes() as u64
}

/// Links rows of `dimension` values. Takes minutes for millions of rows.
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
    Ok(Linked { layout, coder, core, order, source, threads, freed })
}

impl<S: Source> Linked<'_, S> {
    /// The segment in memory, with a copy of its vectors.
    pub(crate) fn keep(mut self, budget: &Arc<Budget>) -> Result<Sealed, SegmentError> {
        let mut vectors = Pages::zeroed(self.layout.vector_bytes())?;
        let mut rest = vectors.bytes_mut();
        self.encode(&mut |some| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(some.len());
            now.copy_from_slice(some);
            rest = later;
            Ok(())
        })?;
        let taken = Some(budget.take(self.core.len() as u64));
        let core = Core { pages: self.core, taken };
        Ok(Sealed::from_parts(self.layout, self.coder, core, Blocks::own(vectors), None))
    }

    /// Writes the segment to `path`, syncs it, and maps its vectors from there; its core too, if the budget is spent.
    pub(crate) fn store(
        mut self,
        path: &Path,
        budget: &Arc<Budget>,
    ) -> Result<Sealed, Box<(Self, SegmentError)>> {
        let written = self.write(path).and_then(|checksum| {
            let file = File::open(path)?;
            let taken = budget.try_take(Demand { bytes: self.core.len() as u64, freed: self.freed });
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

    fn write(&mut self, path: &Path) -> Result<u32, SegmentError> {
        let mut to = Writing::begin(path, &self.layout)?;
        self.encode(&mut |some| to.vectors(some))?;
        to.end(Head { layout: &self.layout, coder: &self.coder, core: self.core.bytes() })
    }

    /// Writes codes and signs, and passes the vectors on in order. Each vector is read once: where they are more than memory
    /// holds, that is most of the work.
    fn encode(&mut self, pass_on: PassOn) -> Result<(), SegmentError> {
        let mut core = std::mem::replace(&mut self.core, Pages::Empty);
        let done = self.encode_into(core.bytes_mut(), pass_on);
        self.core = core;
        done
    }

    fn encode_into(&self, core: &mut [u8], pass_on: PassOn) -> Result<(), SegmentError> {
        let Layout { codes, dimension, rows, .. } = self.layout;
        let (before_signs, signs) = core.split_at_mut(self.layout.signs().start);
        let of_signs = signs::Strides::of(codes, dimension);
        let (heads, tails) = signs.split_at_mut(rows * of_signs.head);
        let (stride, apart) = (self.coder.stride(), self.coder.apart());
        let (codes_of_rows, numbers) = before_signs[self.layout.codes()].split_at_mut(rows * stride);
        let mut codes_of_rows = Slots { bytes: codes_of_rows, each: stride };
        let mut numbers = Slots { bytes: numbers, each: apart };
        let mut heads = Slots { bytes: heads, each: of_signs.head };
        let mut tails = Slots { bytes: tails, each: of_signs.tail };
        let mut copies = vec![0_f32; ROWS_AT_ONCE.min(rows) * dimension];
        for from in (0..rows).step_by(ROWS_AT_ONCE) {
            let now = ROWS_AT_ONCE.min(rows - from);
            let copies = &mut copies[..now * dimension];
            let piece = Encoded {
                vectors: Slots { bytes: memory::bytes_of_mut(copies), each: dimension * 4 },
                codes: codes_of_rows.take(now),
                numbers: numbers.take(now),
                heads: heads.take(now),
                tails: tails.take(now),
            };
            self.encode_rows(from, now, piece)?;
            pass_on(memory::bytes_of(copies))?;
        }
        Ok(())
    }

    /// Encodes `count` rows from `from` on, with several threads.
    fn encode_rows(&self, from: usize, count: usize, mut into: Encoded) -> Result<(), SegmentError> {
        let share = count.div_ceil(self.threads.max(1));
        std::thread::scope(|scope| {
            let parts = (0..count).step_by(share).map(|at| {
                let part = into.take(share.min(count - at));
                scope.spawn(move || self.encode_part(from + at, part))
            });
            let parts: Vec<_> = parts.collect();
            parts
                .into_iter()
                .try_for_each(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn encode_part(&self, from: usize, mut into: Encoded) -> Result<(), SegmentError> {
        let count = into.vectors.bytes.len() / into.vectors.each;
        for row in from..from + count {
            let vector = self.source.vector(self.order[row] as usize).ok_or(SegmentError::Unreadable)?;
            let Encoded { vectors, codes, numbers, heads, tails } = into.take(1);
            vectors.bytes.copy_from_slice(memory::bytes_of(vector));
            // A try that failed may have left something.
            codes.bytes.fill(0);
            self.coder.encode(vector, codes.bytes, numbers.bytes);
            if heads.each > 0 {
                heads.bytes.fill(0);
                tails.bytes.fill(0);
                let row = signs::Row { head: heads.bytes, tail: tails.bytes };
                signs::encode(&self.coder, vector, row);
            }
        }
        Ok(())
    }
}

/// Takes some vectors' bytes, in order.
type PassOn<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), SegmentError>;

/// Rows of bytes that are still to be filled.
struct Slots<'a> {
    bytes: &'a mut [u8],
    /// Bytes of a row.
    each: usize,
}

impl<'a> Slots<'a> {
    /// Takes the first `count` rows off.
    fn take(&mut self, count: usize) -> Slots<'a> {
        let (now, later) = std::mem::take(&mut self.bytes).split_at_mut(count * self.each);
        self.bytes = later;
        Slots { bytes: now, each: self.each }
    }
}

/// What is made of some vectors.
struct Encoded<'a> {
    vectors: Slots<'a>,
    codes: Slots<'a>,
    numbers: Slots<'a>,
    /// The heads and tails of signs.
    heads: Slots<'a>,
    tails: Slots<'a>,
}

impl<'a> Encoded<'a> {
    fn take(&mut self, count: usize) -> Encoded<'a> {
        Encoded {
            vectors: self.vectors.take(count),
            codes: self.codes.take(count),
            numbers: self.numbers.take(count),
            heads: self.heads.take(count),
            tails: self.tails.take(count),
        }
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
