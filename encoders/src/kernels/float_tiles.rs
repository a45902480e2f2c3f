//! Products of f32 rows with packed panels in the tile registers of AMX: sums of products of bytes.
//!
//! Each number is three slices of eight bits. A product of two numbers is then six products of bytes; the three smallest of
//! nine are about as small as the rounding to 24 bits. Sums are exact (Ootomo, Ozaki and Yokota, "DGEMM on integer matrix
//! multiplication unit", 2024). Weights are sliced once, at load: they take three bytes instead of four.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::Cores;
use super::amx::{self, Registers};
use super::blocking::{self, Piece};
use super::elementwise::Moments;
use super::finish::{Finish, Sums, TilePosition};
use super::lanes::{Lanes, Work};
use super::matrix::{Aligned, PANEL, Target};
use super::norm::Input;
use super::slices::{STEP_BYTES, STEP_VALUES, SlicePanels, slice_row};
use super::tiles::{SliceTile, Word};
use super::walk::{Operands, Walk};

/// The most values of a depth block.
const DEPTH: usize = 16 * STEP_VALUES;
/// The worth of a slice in that of the next higher one.
const LOWER: f32 = 1.0 / 256.0;

/// The sliced rows of a block.
struct Block {
    bytes: Aligned<u8>,
    scales: Vec<f32>,
    moments: Vec<Moments>,
    /// A part of one normalised row before it is sliced.
    row: Vec<f32>,
}

thread_local! {
    static BLOCK_ROWS: RefCell<Block> = RefCell::new(Block {
        bytes: Aligned::zeros(0),
        scales: Vec::new(),
        moments: Vec::new(),
        row: Vec::new(),
    });
}

/// Writes `input * panels` with the epilogue to `target`, as [`super::float::multiply`] does; for processors with AMX.
///
/// # Panics
/// If the shapes do not fit, a row has no values, or the processor lacks the instructions.
pub(super) fn multiply(
    cores: Cores,
    input: Input<'_>,
    panels: &SlicePanels,
    target: Target,
    finish: Finish<'_>,
) {
    let Cores { processor, threads } = cores;
    let rows = input.rows();
    assert_eq!((rows.columns, rows.rows, panels.columns), (panels.depth, target.rows, target.columns));
    assert!(panels.depth > 0 && processor.has_amx());
    let depths = blocking::even_steps(panels.depth, panels.depth.div_ceil(DEPTH), STEP_VALUES);
    let most = depths.iter().map(|(from, to)| to - from).max().unwrap_or(0);
    let stride = amx::stride(most.div_ceil(STEP_VALUES) * STEP_BYTES);
    let blocks = amx::blocks(rows.rows, threads, stride);
    let product = Product { input, panels, target, finish, depths, stride };
    let run = |part: Piece| {
        BLOCK_ROWS.with_borrow_mut(|block| {
            let rows = part.rows.1 - part.rows.0;
            block.bytes.reserve(rows.next_multiple_of(amx::ROWS) * stride);
            block.scales.resize(rows, 0.0);
            block.moments.resize(rows, Moments::default());
            block.row.resize(most, 0.0);
            processor.run_wide(PartOf { product: &product, part, block });
        });
    };
    let parts = blocking::parts(rows.rows, panels.count(), threads, blocks);
    match threads {
        0 | 1 => parts.into_iter().for_each(run),
        _ => parts.into_par_iter().for_each(run),
    }
}

struct Product<'a> {
    input: Input<'a>,
    panels: &'a SlicePanels,
    target: Target,
    finish: Finish<'a>,
    /// The values of each part of a row.
    depths: Vec<(usize, usize)>,
    /// Bytes from one copied row to the next.
    stride: usize,
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
        let Product { target, finish, .. } = *product;
        let rows = part.rows.0..part.rows.1;
        // SAFETY: the processor has the instructions of `L`, as the caller promises, and tile registers, which `multiply`
        // checked. The block has `stride` bytes for each row of a tile, as many as a part of a row needs. The caller of
        // `multiply` holds the target, and no other part has these rows and panels.
        unsafe {
            let registers = Registers::configure();
            product.input.measure::<L>(rows.clone(), &mut block.moments);
            for (at, (from, to)) in product.depths.iter().enumerate() {
                product.copy::<L>(rows.clone(), *from..*to, block);
                let (is_first, is_last) = (*from == 0, *to == product.panels.depth);
                let walk = Walk { target, finish, part, is_first, is_last };
                walk.run::<L, _>(&registers, &Depth { product, part, block, at });
            }
        }
    }
}

impl Product<'_> {
    /// Copies some values of some rows, sliced, into the block.
    ///
    /// # Safety
    /// The processor has the instructions of `L` and AVX-512 F and BW.
    #[inline(always)]
    unsafe fn copy<L: Lanes>(&self, rows: Range<usize>, columns: Range<usize>, block: &mut Block) {
        let values = &mut block.row[..columns.len()];
        let copies = block.bytes.values_mut().chunks_exact_mut(self.stride);
        for (((row, moments), scale), bytes) in rows.zip(&block.moments).zip(&mut block.scales).zip(copies) {
            // SAFETY: as the caller promises.
            *scale = unsafe {
                match self.input {
                    Input::Plain(rows) => slice_row(&rows.row(row)[columns.clone()], bytes),
                    Input::Normalised(..) => {
                        self.input.read::<L>(row, columns.clone(), *moments, values);
                        slice_row(values, bytes)
                    }
                }
            };
        }
    }
}

/// One depth block of a walk.
struct Depth<'a> {
    product: &'a Product<'a>,
    part: Piece,
    block: &'a Block,
    /// The depth block's index.
    at: usize,
}

impl Operands for Depth<'_> {
    type Buffer = SliceTile;
    type Sums<'a>
        = TileOfSlices<'a>
    where
        Self: 'a;

    fn word(&self) -> Word {
        Word::Slices
    }

    #[inline(always)]
    fn panel(&self, panel: usize) -> &[u32] {
        let (from, to) = self.product.depths[self.at];
        self.product.panels.lines(panel, from, to)
    }

    #[inline(always)]
    fn next(&self, panel: usize) -> &[u32] {
        let Product { panels, depths, .. } = self.product;
        let next = blocking::after(self.part, panel, depths, self.at);
        next.map_or(&[], |(panel, (from, to))| panels.lines(panel, from, to))
    }

    #[inline(always)]
    fn rows(&self, top: usize) -> (*const u8, usize) {
        let stride = self.product.stride;
        (self.block.bytes.values()[top * stride..].as_ptr(), stride)
    }

    #[inline(always)]
    fn sums<'a>(&'a self, tile: &'a SliceTile, top: usize, place: TilePosition) -> TileOfSlices<'a> {
        let rows = &self.block.scales[top..][..place.rows];
        let columns = &self.product.panels.scales[place.panel * PANEL..][..PANEL];
        TileOfSlices { sums: tile, rows, columns }
    }
}

/// Sums of a tile's slices, with the scales of its rows and columns.
struct TileOfSlices<'a> {
    sums: &'a SliceTile,
    rows: &'a [f32],
    columns: &'a [f32],
}

impl Sums for TileOfSlices<'_> {
    #[inline(always)]
    unsafe fn plus<L: Lanes>(&self, row: usize, column: usize, others: L) -> L {
        // SAFETY: as the caller promises; there is a scale for each row and column.
        unsafe {
            let smaller = L::splat(LOWER);
            let upper = L::load_whole(self.sums.at(0, row, column).cast());
            let middle = L::load_whole(self.sums.at(1, row, column).cast());
            let lower = L::load_whole(self.sums.at(2, row, column).cast());
            let value = lower.times_plus(smaller, middle).times_plus(smaller, upper);
            let scale = *self.rows.as_ptr().add(row);
            value.times(L::load(self.columns.as_ptr().add(column))).times_plus(L::splat(scale), others)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Processor;
    use super::super::elementwise::Activation;
    use super::super::matrix::{Rows, filled};
    use super::super::slices::LARGEST;
    use super::*;

    fn detected() -> Option<Processor> {
        let found = Processor::detect().filter(|processor| processor.has_amx());
        if found.is_none() {
            println!("skipped: the processor has no AMX");
        }
        found
    }

    /// Numbers of 24 bits, -1 to 1.
    fn noise(count: usize, salt: usize) -> Vec<f32> {
        (0..count).map(|at| ((at * 7919 + salt * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
    }

    fn product(cores: Cores, a: &[f32], panels: &SlicePanels, finish: Finish<'_>) -> Vec<f32> {
        let rows = a.len() / panels.depth;
        let input = Input::Plain(Rows::new(a, rows, panels.depth, panels.depth));
        filled(rows, panels.columns, |target| multiply(cores, input, panels, target, finish))
    }

    /// Compares with sums in f64.
    fn check(rows: usize, depth: usize, columns: usize) {
        let Some(processor) = detected() else { return };
        let (a, b) = (noise(rows * depth, 1), noise(depth * columns, 2));
        let (bias, residual) = (noise(columns, 3), noise(rows * columns, 4));
        let panels = SlicePanels::new(processor, &b, depth, columns);
        let finish = Finish {
            bias: Some(&bias),
            activation: Some(Activation::Relu),
            residual: Some(Rows::new(&residual, rows, columns, columns)),
            ..Finish::default()
        };
        for threads in [1, 2] {
            let got = product(Cores { processor, threads }, &a, &panels, finish);
            for (at, got) in got.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let one = |k| f64::from(a[row * depth + k]) * f64::from(b[k * columns + column]);
                let sum = (0..depth).map(one).sum::<f64>() + f64::from(bias[column]);
                let expected = sum.max(0.0) + f64::from(residual[at]);
                let bound = 2e-6 * (depth as f64).sqrt().max(4.0);
                assert!((f64::from(*got) - expected).abs() < bound, "{row}, {column}: {got} for {expected}");
            }
        }
    }

    #[test]
    fn products_of_the_shapes_of_towers_are_right() {
        check(1, 1, 1);
        check(16, 512, 48);
        check(50, 3072, 33);
        check(117, 801, 100);
        check(300, 1025, 32);
        check(3, 4099, 70);
        check(0, 5, 7);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn products_of_any_shape_are_right(rows in 1_usize..130, depth in 1_usize..100, columns in 1_usize..100) {
            check(rows, depth, columns);
        }
    }

    /// Slices with all signs, and sums that are exact.
    #[test]
    fn integers_of_24_bits_are_multiplied_by_small_ones_exactly() {
        let Some(processor) = detected() else { return };
        let largest = LARGEST as i32;
        for integer in [largest, -largest, 0x7f_7f77, -0x7f_7f77, 128, -128, 32_768, -32_769, 0x12_3456, 1, 0]
        {
            // The row and the column have the scale 1, as their largest numbers meet zeros. The slices of 65,536 are 1, 0, 0.
            let panels = SlicePanels::new(processor, &[65_536.0, LARGEST, 0.0], 3, 1);
            let row = [integer as f32, 0.0, LARGEST];
            let got = product(Cores { processor, threads: 1 }, &row, &panels, Finish::default());
            assert_eq!(got, [integer as f32 * 65_536.0], "{integer}");
        }
    }

    #[test]
    fn rows_and_columns_of_any_size_keep_their_precision() {
        let Some(processor) = detected() else { return };
        let values = noise(640, 5);
        for (row, column) in [(1e-28, 1e20), (1e25, 1e-25), (1e30, 1e6), (1.0, 1.0)] {
            let a: Vec<f32> = values.iter().map(|value| value * row).collect();
            let b: Vec<f32> = values.iter().map(|value| value * column).collect();
            let panels = SlicePanels::new(processor, &b, 640, 1);
            let got = product(Cores { processor, threads: 1 }, &a, &panels, Finish::default());
            let expected: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            assert!(
                (f64::from(got[0]) / expected - 1.0).abs() < 1e-6,
                "{row}, {column}: {got:?} for {expected}"
            );
        }
    }

    /// One value in a row that is a thousand times the others: what is lost stays below the rounding of that one.
    #[test]
    fn small_values_beside_a_large_one_are_rounded_like_the_large_one() {
        let Some(processor) = detected() else { return };
        let (mut a, b) = (noise(768, 1), noise(768 * 33, 2));
        a[100] = 1000.0;
        let panels = SlicePanels::new(processor, &b, 768, 33);
        let got = product(Cores { processor, threads: 1 }, &a, &panels, Finish::default());
        for (column, got) in got.iter().enumerate() {
            let expected: f64 = (0..768).map(|k| f64::from(a[k]) * f64::from(b[k * 33 + column])).sum();
            let bound = 1000.0 * 768_f64.sqrt() / f64::from(1 << 24);
            assert!((f64::from(*got) - expected).abs() < bound, "{column}: {got} for {expected}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_give_nan_in_their_row_or_column_alone() {
        let Some(processor) = detected() else { return };
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let with =
                |at: usize| -> Vec<f32> { (0..6).map(|it| if it == at { wrong } else { 1.0 }).collect() };
            let one = vec![1.0; 6];
            for (a, b, nan) in [
                (with(4), one.clone(), [false, false, true, true]),
                (one, with(1), [false, true, false, true]),
            ] {
                let panels = SlicePanels::new(processor, &b, 3, 2);
                let got = product(Cores { processor, threads: 1 }, &a, &panels, Finish::default());
                let got: Vec<bool> = got.iter().map(|value| value.is_nan()).collect();
                assert_eq!(got, nan, "{wrong}");
            }
        }
    }

    #[test]
    fn a_row_has_the_same_product_alone_and_in_a_batch() {
        let Some(processor) = detected() else { return };
        let (rows, depth, columns) = (117, 2051, 45);
        let a = noise(rows * depth, 1);
        let panels = SlicePanels::new(processor, &noise(depth * columns, 2), depth, columns);
        let cores = Cores { processor, threads: 1 };
        let batch = product(cores, &a, &panels, Finish::default());
        for (row, expected) in a.chunks_exact(depth).zip(batch.chunks_exact(columns)) {
            assert_eq!(product(cores, row, &panels, Finish::default()), expected);
        }
    }
}
