//! Int8 products: weights quantised per output channel, activations per row at run time, sums in 32-bit integers that
//! never overflow.
//!
//! A row is quantised as `(byte - zero) * scale`, with the scale and zero point of its minimum and maximum. A column's
//! weights are quantised as `byte * scale`. The integer sums then exceed the result by `zero` times the sum of the
//! column's bytes. That sum is computed at load, and subtracted at the end.

use std::cell::RefCell;

use rayon::prelude::*;

use super::Cores;
use super::amx::{self, Registers};
use super::blocking::{self, Ahead, Blocks, Piece};
use super::bytes::{self, Factors, GROUP};
use super::elementwise::{Moments, range_with_zero};
use super::finish::{Finish, Sums, TilePosition};
use super::float::TILE;
use super::lanes::{Lanes, Work};
use super::matrix::{Aligned, PANEL, Target};
use super::norm::Input;
use super::tiles::{Tile, Word};
use super::walk::{Operands, Walk};

/// Without AMX, the most rows of a block, and the most bytes that their copies should take: they stay in the L2 cache.
const BLOCK: usize = 8 * TILE;
const BLOCK_BYTES: usize = 480 * 1024;

/// Int8 weights of shape (depth, columns) in panels. A panel holds groups of [`GROUP`] rows; in a group, column follows
/// column. Padding is zero.
#[derive(Debug, Clone)]
pub(super) struct BytePanels {
    values: Aligned<i8>,
    /// The scale of each column, padded to whole panels.
    scales: Vec<f32>,
    /// The sum of the bytes of each column, padded as well, as [`halves`].
    totals: Vec<i32>,
    pub(super) depth: usize,
    pub(super) columns: usize,
}

impl BytePanels {
    /// The largest depth whose sums cannot overflow 32 bits, nor those of a column the range of [`halves`].
    pub(super) const DEEPEST: usize = 1 << 15;

    /// Quantises and packs `weight` of shape (depth, columns), row after row.
    ///
    /// # Panics
    /// If the number of values differs, or the depth exceeds [`BytePanels::DEEPEST`].
    pub(super) fn new(weight: &[f32], depth: usize, columns: usize) -> Self {
        assert!(weight.len() == depth * columns && depth <= Self::DEEPEST);
        let mut largest = vec![0_f32; columns];
        for row in weight.chunks_exact(columns) {
            largest.iter_mut().zip(row).for_each(|(most, value)| *most = most.max(value.abs()));
        }
        largest.resize(columns.next_multiple_of(PANEL), 0.0);
        let scales: Vec<f32> =
            largest.iter().map(|most| if *most > 0.0 { most / 127.0 } else { 1.0 }).collect();
        let groups = depth.div_ceil(GROUP);
        let mut values = Aligned::zeros(columns.div_ceil(PANEL) * groups * PANEL * GROUP);
        let mut totals = vec![0_i32; columns.next_multiple_of(PANEL)];
        for (row, weights) in weight.chunks_exact(columns).enumerate() {
            for (column, value) in weights.iter().enumerate() {
                let byte = (value / scales[column]).round() as i8;
                let (panel, inside) = (column / PANEL, column % PANEL);
                let at = ((panel * groups + row / GROUP) * PANEL + inside) * GROUP + row % GROUP;
                values.values_mut()[at] = byte;
                totals[column] += i32::from(byte);
            }
        }
        let totals = totals.into_iter().map(halves).collect();
        BytePanels { values, scales, totals, depth, columns }
    }

    fn count(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    /// The bytes of the panel after `panel`, if the part has it.
    fn after(&self, panel: usize, part: Piece) -> &[i8] {
        if panel + 1 < part.panels.1 { self.panel(panel + 1) } else { &[] }
    }

    /// The groups of a panel as words.
    fn words(&self, panel: usize) -> &[u32] {
        let bytes = self.panel(panel);
        // SAFETY: panels are aligned to cache lines, and any bytes are words.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / GROUP) }
    }

    /// Sums of a panel and of rows that have these `readings`.
    #[inline(always)]
    fn tile<'a>(&'a self, sums: &'a Tile, readings: &'a [Reading], panel: usize) -> TileOfBytes<'a> {
        let column = panel * PANEL;
        let (scales, totals) = (&self.scales[column..][..PANEL], &self.totals[column..][..PANEL]);
        TileOfBytes { sums, readings, scales, totals }
    }

    /// The bytes of a panel.
    fn panel(&self, panel: usize) -> &[i8] {
        let bytes = self.depth.div_ceil(GROUP) * PANEL * GROUP;
        &self.values.values()[panel * bytes..][..bytes]
    }
}

/// An integer of up to 23 bits as two of 16: its lowest seven bits, and the others. The product with a byte is then one
/// instruction.
fn halves(whole: i32) -> i32 {
    (whole & 127) | (whole >> 7) << 16
}

/// A row's quantisation: the scale, and the zero point as it multiplies [`halves`].
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    scale: f32,
    zero: i32,
}

/// The quantised rows of a block.
struct Block {
    bytes: Aligned<u8>,
    readings: Vec<Reading>,
    /// One row before quantisation.
    row: Vec<f32>,
}

thread_local! {
    static BLOCK_ROWS: RefCell<Block> = RefCell::new(Block {
        bytes: Aligned::zeros(0),
        readings: Vec::new(),
        row: Vec::new(),
    });
}

/// Writes `input * panels` with the epilogue to `target`, as [`super::float::multiply`] does.
///
/// # Panics
/// If the shapes do not fit, or a row has no values.
pub(super) fn multiply(
    cores: Cores,
    input: Input<'_>,
    panels: &BytePanels,
    target: Target,
    finish: Finish<'_>,
) {
    let (processor, threads) = (bytes::processor_for_bytes(cores.processor), cores.threads);
    assert!(panels.depth > 0);
    let rows = input.rows();
    assert_eq!((rows.columns, rows.rows, panels.columns), (panels.depth, target.rows, target.columns));
    let has_amx = processor.has_amx();
    let across = amx::stride(panels.depth * bytes::bytes_of_a_value(processor));
    let product = Product { input, panels, target, finish, across, has_amx };
    let blocks = match has_amx {
        true => amx::blocks(rows.rows, threads, across),
        false => Blocks { most: (BLOCK_BYTES / across).clamp(TILE, BLOCK), step: 1 },
    };
    let parts = blocking::parts(rows.rows, panels.count(), threads, blocks);
    let run = |part: Piece| {
        BLOCK_ROWS.with_borrow_mut(|block| {
            let rows = part.rows.1 - part.rows.0;
            block.bytes.reserve(rows.next_multiple_of(amx::ROWS) * across);
            block.readings.resize(rows, Reading::default());
            block.row.resize(panels.depth, 0.0);
            processor.run(PartOf { product: &product, part, block });
        });
    };
    match threads {
        0 | 1 => parts.into_iter().for_each(run),
        _ => parts.into_par_iter().for_each(run),
    }
}

struct Product<'a> {
    input: Input<'a>,
    panels: &'a BytePanels,
    target: Target,
    finish: Finish<'a>,
    /// Bytes from one quantised row to the next.
    across: usize,
    has_amx: bool,
}

struct PartOf<'a> {
    product: &'a Product<'a>,
    part: Piece,
    block: &'a mut Block,
}

impl Work for PartOf<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let PartOf { product, part, block } = self;
        let across = product.across;
        let copies = (part.rows.0..part.rows.1).zip(block.bytes.values_mut().chunks_exact_mut(across));
        // SAFETY: the processor has the instructions of `L`, as the caller promises, and VNNI if `L` has 16 lanes, as
        // `processor_for_bytes` says. The block has `across` bytes for each row of a tile; one value per row of the panel
        // is filled. The caller of `multiply` holds the target, and no other part has these rows and panels.
        unsafe {
            for ((row, bytes), reading) in copies.zip(&mut block.readings) {
                *reading = read::<L>(&product.input, row, &mut block.row, bytes);
            }
            match product.has_amx {
                true => {
                    let Product { panels, target, finish, .. } = *product;
                    let walk = Walk { target, finish, part, is_first: true, is_last: true };
                    walk.run::<L, _>(&Registers::configure(), &InTiles { panels, part, block });
                }
                false => product.multiply::<L>(part, block),
            }
        }
    }
}

impl Product<'_> {
    /// Multiplies the rows of a part, which the block holds.
    ///
    /// # Safety
    /// The processor has the instructions of `L`, and VNNI if it has 16 lanes. Nothing else writes the part's results.
    #[inline(always)]
    unsafe fn multiply<L: Lanes>(&self, part: Piece, block: &Block) {
        let Product { panels, target, finish, across, .. } = *self;
        let (first, last) = part.rows;
        let tiles = blocking::even(last - first, (last - first).div_ceil(L::TILE));
        let mut sums = Tile::ZEROS;
        for panel in part.panels.0..part.panels.1 {
            let next = panels.after(panel, part);
            for (tile, (top, bottom)) in tiles.iter().enumerate() {
                let place = TilePosition::whole(first + top, bottom - top, panel);
                let epilogue = finish.of(target, place);
                epilogue.prefetch::<L>(epilogue.rows());
                let factors = Factors {
                    rows: block.bytes.values()[top * across..].as_ptr(),
                    stride: across,
                    panel: panels.panel(panel),
                    into: &mut sums,
                    ahead: Ahead::share(next, tile, tiles.len()),
                };
                // SAFETY: as the caller promises.
                unsafe {
                    factors.multiply::<L>(place.rows);
                    let sums = panels.tile(&sums, &block.readings[*top..*bottom], panel);
                    epilogue.store::<L>(&sums, epilogue.rows());
                }
            }
        }
    }
}

/// A block of rows on its walk in tile registers.
struct InTiles<'a> {
    panels: &'a BytePanels,
    part: Piece,
    block: &'a Block,
}

impl Operands for InTiles<'_> {
    type Buffer = Tile;
    type Sums<'a>
        = TileOfBytes<'a>
    where
        Self: 'a;

    fn word(&self) -> Word {
        Word::Bytes
    }

    #[inline(always)]
    fn panel(&self, panel: usize) -> &[u32] {
        self.panels.words(panel)
    }

    #[inline(always)]
    fn next(&self, panel: usize) -> &[u32] {
        if panel + 1 < self.part.panels.1 { self.panels.words(panel + 1) } else { &[] }
    }

    #[inline(always)]
    fn rows(&self, top: usize) -> (*const u8, usize) {
        let across = amx::stride(self.panels.depth);
        (self.block.bytes.values()[top * across..].as_ptr(), across)
    }

    #[inline(always)]
    fn sums<'a>(&'a self, tile: &'a Tile, top: usize, place: TilePosition) -> TileOfBytes<'a> {
        self.panels.tile(tile, &self.block.readings[top..][..place.rows], place.panel)
    }
}

/// Quantises a row; returns its scale and zero point.
#[inline(always)]
unsafe fn read<L: Lanes>(input: &Input<'_>, row: usize, copy: &mut [f32], bytes: &mut [u8]) -> Reading {
    // SAFETY: as the caller promises.
    unsafe {
        let values = match input {
            Input::Plain(rows) => rows.row(row),
            Input::Normalised(..) => {
                let mut moments = [Moments::default()];
                input.measure::<L>(row..row + 1, &mut moments);
                input.read::<L>(row, 0..copy.len(), moments[0], copy);
                copy
            }
        };
        let (low, high) = range_with_zero::<L>(values);
        let scale = if high > low { (high - low) / 255.0 } else { 1.0 };
        let zero = (-low / scale).round();
        bytes::quantise::<L>(values, bytes, 1.0 / scale, zero);
        let zero = zero as i32;
        Reading { scale, zero: zero | zero << 23 }
    }
}

/// Integer sums of a tile, with the quantisation of its rows and columns.
struct TileOfBytes<'a> {
    sums: &'a Tile,
    readings: &'a [Reading],
    /// The scales of the panel's columns.
    scales: &'a [f32],
    /// The byte sums of the panel's columns.
    totals: &'a [i32],
}

impl Sums for TileOfBytes<'_> {
    #[inline(always)]
    unsafe fn plus<L: Lanes>(&self, row: usize, column: usize, others: L) -> L {
        // SAFETY: as the caller promises; there is a reading for each row, and `tile` checked the columns.
        unsafe {
            let Reading { scale, zero } = *self.readings.as_ptr().add(row);
            let sums = self.sums.at(row, column).cast();
            let sums = L::load_whole_less(sums, zero, self.totals.as_ptr().add(column));
            sums.times(L::load(self.scales.as_ptr().add(column))).times_plus(L::splat(scale), others)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Processor;
    use super::super::matrix::{Rows, filled};
    use super::*;

    fn product(cores: Cores, a: &[f32], panels: &BytePanels, finish: Finish<'_>) -> Vec<f32> {
        let rows = a.len() / panels.depth;
        let input = Input::Plain(Rows::new(a, rows, panels.depth, panels.depth));
        filled(rows, panels.columns, |target| multiply(cores, input, panels, target, finish))
    }

    /// Checks that the error stays within the rounding of rows and columns to bytes.
    #[track_caller]
    fn check(rows: usize, depth: usize, columns: usize, shift: f32) {
        let value = |at: usize, salt: usize| ((at * 7919 + salt * 104_729) % 2003) as f32 / 1001.0 - 1.0;
        let a: Vec<f32> = (0..rows * depth).map(|at| value(at, 1) + shift).collect();
        let b: Vec<f32> = (0..depth * columns).map(|at| value(at, 2)).collect();
        let bias: Vec<f32> = (0..columns).map(|at| value(at, 3)).collect();
        let panels = BytePanels::new(&b, depth, columns);
        for (processor, threads) in Processor::all().into_iter().flat_map(|it| [(it, 1), (it, 2)]) {
            let finish = Finish { bias: Some(&bias), ..Finish::default() };
            let got = product(Cores { processor, threads }, &a, &panels, finish);
            // A step of a row is (2 + shift) / 255, of a column 1 / 127; errors of half a step add up like noise.
            let step = f64::from((2.0 + shift.abs()) / 255.0).hypot(f64::from(1.0 + shift.abs()) / 127.0);
            let bound = 5.0 * step * 0.3 * (depth as f64).sqrt() + 1e-5;
            for (at, got) in got.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let product = |k: usize| f64::from(a[row * depth + k]) * f64::from(b[k * columns + column]);
                let expected = (0..depth).map(product).sum::<f64>() + f64::from(bias[column]);
                assert!((f64::from(*got) - expected).abs() < bound, "{row}, {column}: {got} for {expected}");
            }
        }
    }

    #[test]
    fn products_of_bytes_are_near_those_of_floats() {
        check(1, 1, 1, 0.0);
        check(50, 64, 48, 0.0);
        check(50, 63, 48, 0.5);
        check(30, 3072, 33, -0.5);
        check(120, 3075, 40, 0.0);
        check(3, 7000, 32, 2.0);
        check(40, 20_000, 32, 0.0);
    }

    #[test]
    fn whole_numbers_that_bytes_hold_are_multiplied_exactly() {
        // The steps of rows and columns are 1: nothing is rounded.
        let a: Vec<f32> = (0..2 * 8).map(|at| [0.0, 255.0, 3.0, 7.0][at % 4]).collect();
        let b: Vec<f32> = (0..8 * 3).map(|at| [127.0, -127.0, 5.0, 0.0, -1.0][at % 5]).collect();
        let panels = BytePanels::new(&b, 8, 3);
        let sum = |row: usize, column: usize| (0..8).map(|k| a[row * 8 + k] * b[k * 3 + column]).sum::<f32>();
        let largest = |column: usize| (0..8).map(|k| b[k * 3 + column].abs()).fold(0.0, f32::max);
        assert!((0..3).all(|column| largest(column) == 127.0), "the columns' steps are 1");
        let expected = [0, 1].map(|row| [0, 1, 2].map(|column| sum(row, column))).concat();
        for processor in Processor::all() {
            let got = product(Cores { processor, threads: 1 }, &a, &panels, Finish::default());
            assert_eq!(got, expected, "{processor:?}");
        }
    }

    #[test]
    fn the_largest_sums_and_zero_points_fit() {
        // The zero point is 255, and all bytes of rows are 0: the results come from the columns' sums alone.
        let depth = BytePanels::DEEPEST;
        let a = vec![-255.0; depth];
        let b: Vec<f32> = (0..2 * depth).map(|at| if at % 2 == 0 { -127.0 } else { 127.0 }).collect();
        let panels = BytePanels::new(&b, depth, 2);
        let sum = 255.0 * 127.0 * depth as f32;
        for processor in Processor::all() {
            let got = product(Cores { processor, threads: 1 }, &a, &panels, Finish::default());
            assert_eq!(got, [sum, -sum], "{processor:?}");
        }
    }

    #[test]
    fn every_kernel_gives_the_same_sums() {
        for (rows, depth, columns) in [(77, 770, 70), (1, 63, 33), (33, 4096, 32), (300, 65, 5)] {
            let value = |at: usize, salt: usize| ((at * 7919 + salt * 104_729) % 2003) as f32 / 1001.0 - 1.0;
            let a: Vec<f32> = (0..rows * depth).map(|at| value(at, 1)).collect();
            let b: Vec<f32> = (0..depth * columns).map(|at| value(at, 2)).collect();
            let panels = BytePanels::new(&b, depth, columns);
            let all = Processor::all()
                .into_iter()
                .map(|processor| product(Cores { processor, threads: 1 }, &a, &panels, Finish::default()));
            let all: Vec<_> = all.collect();
            assert!(all.windows(2).all(|two| two[0] == two[1]), "{rows}, {depth}, {columns}");
        }
    }
}
