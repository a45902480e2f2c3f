//! Products of f32 rows with packed panels.
//!
//! A block of rows is copied to where it stays in the nearest caches; each panel passes over it; the tiles of sums of
//! a few rows by one panel stay in registers (Goto and van de Geijn, "Anatomy of high-performance matrix
//! multiplication", 2008, with the packing of one side done at load).

use std::cell::RefCell;

use rayon::prelude::*;

use super::Processor;
use super::elementwise::{Activation, activate};
use super::matrix::{Aligned, PANEL, Panels, Rows, Target};

/// Depth of a block, at most: a panel of it fits into the second cache beside the rows.
const DEPTH: usize = 768;
/// Values from one copied row to the next: the rows of a tile must not all compete for one set of the first cache.
const STRIDE: usize = DEPTH + 16;
/// Rows of a tile, at most: 28 of 32 registers hold sums of 14 rows by 32 columns.
const TILE: usize = 14;
/// Rows of a block: their copies take 344 KiB.
const BLOCK: usize = 8 * TILE;

/// Sums of the rows of a tile by the columns of a panel.
type Sums = [[f32; PANEL]; TILE];

/// What happens to sums when they are complete, in this order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Finish<'a> {
    /// Added to every row.
    pub(super) bias: Option<&'a [f32]>,
    pub(super) activation: Option<Activation>,
    /// Added row by row.
    pub(super) residual: Option<Rows<'a>>,
}

/// A part of a product that one thread computes: some rows by some panels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) rows: (usize, usize),
    pub(super) panels: (usize, usize),
}

/// `rows * panels`, finished, into `target`; on the threads of the current pool if there are `threads` of them.
///
/// # Panics
/// If the shapes don't fit.
pub(super) fn multiply(
    processor: Processor,
    rows: Rows<'_>,
    panels: &Panels,
    target: Target,
    finish: Finish<'_>,
    threads: usize,
) {
    assert_eq!((rows.columns, rows.rows, panels.columns), (panels.depth, target.rows, target.columns));
    let product = Product { rows, panels, target, finish };
    let parts = parts(rows.rows, panels.count(), threads, BLOCK);
    match threads {
        0 | 1 => parts.into_iter().for_each(|part| product.run(processor, part)),
        _ => parts.into_par_iter().for_each(|part| product.run(processor, part)),
    }
}

/// Cuts a product into enough parts for all threads, by rows if there are enough of them; none has more than `most`
/// rows.
pub(super) fn parts(rows: usize, panels: usize, threads: usize, most: usize) -> Vec<Part> {
    let blocks: Vec<(usize, usize)> = even(rows, rows.div_ceil(most));
    let across =
        if threads < 2 { 1 } else { (2 * threads).div_ceil(blocks.len().max(1)).clamp(1, panels.max(1)) };
    let columns = even(panels, across);
    blocks
        .into_iter()
        .flat_map(|rows| columns.iter().map(move |panels| Part { rows, panels: *panels }))
        .collect()
}

/// `0..count` in `pieces` of about the same length.
pub(super) fn even(count: usize, pieces: usize) -> Vec<(usize, usize)> {
    (0..pieces).map(|piece| (piece * count / pieces, (piece + 1) * count / pieces)).collect()
}

struct Product<'a> {
    rows: Rows<'a>,
    panels: &'a Panels,
    target: Target,
    finish: Finish<'a>,
}

thread_local! {
    /// Copies of the rows of a block.
    static BLOCK_ROWS: RefCell<Aligned<f32>> = RefCell::new(Aligned::zeros(0));
}

impl Product<'_> {
    fn run(&self, processor: Processor, part: Part) {
        BLOCK_ROWS.with_borrow_mut(|block| {
            block.reserve(BLOCK * STRIDE);
            match processor {
                // SAFETY: the processor has what the functions ask for; a `Processor` says so.
                #[cfg(target_arch = "x86_64")]
                Processor::Avx512 { .. } => unsafe { self.run_512(part, block.values_mut()) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Processor::Avx2 => unsafe { self.run_256(part, block.values_mut()) },
                #[cfg(not(target_arch = "x86_64"))]
                _ => unreachable!("there is no Processor here"),
            }
        });
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    fn run_512(&self, part: Part, block: &mut [f32]) {
        self.run_with::<14>(part, block, x86::tile_512);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn run_256(&self, part: Part, block: &mut [f32]) {
        self.run_with::<6>(part, block, x86::tile_256);
    }

    /// `tile` makes the sums of at most `MOST` rows.
    #[inline(always)]
    fn run_with<const MOST: usize>(
        &self,
        part: Part,
        block: &mut [f32],
        tile: unsafe fn(usize, *const f32, &[f32], &mut Sums),
    ) {
        let (first, last) = part.rows;
        let tiles = even(last - first, (last - first).div_ceil(MOST));
        let depths = even(self.panels.depth, self.panels.depth.div_ceil(DEPTH));
        let mut sums: Sums = [[0.0; PANEL]; TILE];
        for (from, to) in &depths {
            for (row, copy) in (first..last).zip(block.chunks_exact_mut(STRIDE)) {
                copy[..to - from].copy_from_slice(&self.rows.row(row)[*from..*to]);
            }
            for panel in part.panels.0..part.panels.1 {
                let values = self.panels.rows(panel, *from, *to);
                for (top, bottom) in &tiles {
                    let rows = &block[top * STRIDE..];
                    // SAFETY: the processor has what the function asks for, and the block has `STRIDE` values for
                    // each row of the tile, of which as many as the panel has rows are copied.
                    unsafe { tile(bottom - top, rows.as_ptr(), values, &mut sums) };
                    let place = Place {
                        row: first + top,
                        panel,
                        is_first: *from == 0,
                        is_last: *to == self.panels.depth,
                    };
                    self.store(&sums[..bottom - top], place);
                }
            }
        }
    }

    #[inline(always)]
    fn store(&self, sums: &[[f32; PANEL]], place: Place) {
        // Of a whole panel the compiler knows the length, and makes vectors of it without a rest.
        match self.panels.columns - place.panel * PANEL {
            PANEL.. => self.store_columns(sums, place, PANEL),
            fewer => self.store_columns(sums, place, fewer),
        }
    }

    #[inline(always)]
    fn store_columns(&self, sums: &[[f32; PANEL]], place: Place, count: usize) {
        let column = place.panel * PANEL;
        for (row, sums) in (place.row..).zip(sums) {
            // SAFETY: the caller of `multiply` holds the target, and no other part has these rows and panels.
            let to = unsafe { self.target.part(row, column, count) };
            match place.is_first {
                true => to[..count].copy_from_slice(&sums[..count]),
                false => to[..count].iter_mut().zip(&sums[..count]).for_each(|(to, sum)| *to += sum),
            }
            if place.is_last {
                let residual = self.finish.residual.map(|rows| &rows.row(row)[column..][..count]);
                let bias = self.finish.bias.map(|bias| &bias[column..][..count]);
                finish(&mut to[..count], bias, self.finish.activation, residual);
            }
        }
    }
}

/// Where a tile of sums goes, and which of the blocks in depth it is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) row: usize,
    pub(super) panel: usize,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

#[inline(always)]
pub(super) fn finish(
    to: &mut [f32],
    bias: Option<&[f32]>,
    activation: Option<Activation>,
    residual: Option<&[f32]>,
) {
    if let Some(bias) = bias {
        to.iter_mut().zip(bias).for_each(|(to, bias)| *to += bias);
    }
    if let Some(activation) = activation {
        activate(to, activation);
    }
    if let Some(residual) = residual {
        to.iter_mut().zip(residual).for_each(|(to, residual)| *to += residual);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{PANEL, STRIDE, Sums};

    /// Runs `$tile` for the number of rows that there are.
    macro_rules! by_rows {
        ($tile:ident, $rows:expr, $arguments:tt, [$($count:literal)+]) => {
            match $rows {
                $($count => $tile::<$count> $arguments,)+
                _ => unreachable!("a tile has as many rows as registers allow"),
            }
        };
    }

    /// The sums of `count` (1 to 14) rows, `STRIDE` apart, by a panel of as many rows as they have values.
    ///
    /// # Safety
    /// AVX-512 F is there, and `rows` points to `count` such rows.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn tile_512(count: usize, rows: *const f32, panel: &[f32], sums: &mut Sums) {
        // SAFETY: as the caller promises.
        unsafe {
            by_rows!(of_512, count, (rows, panel, sums), [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
        }
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn of_512<const ROWS: usize>(rows: *const f32, panel: &[f32], sums: &mut Sums) {
        let mut tile = [[_mm512_setzero_ps(); 2]; ROWS];
        for (at, line) in panel.chunks_exact(PANEL).enumerate() {
            // SAFETY: a line has 32 values; every row has as many as the panel has lines.
            unsafe {
                let (left, right) = (_mm512_loadu_ps(line.as_ptr()), _mm512_loadu_ps(line.as_ptr().add(16)));
                for (row, sums) in tile.iter_mut().enumerate() {
                    let value = _mm512_set1_ps(*rows.add(row * STRIDE + at));
                    sums[0] = _mm512_fmadd_ps(value, left, sums[0]);
                    sums[1] = _mm512_fmadd_ps(value, right, sums[1]);
                }
            }
        }
        for (tile, sums) in tile.iter().zip(sums) {
            // SAFETY: a row of sums has 32 values.
            unsafe {
                _mm512_storeu_ps(sums.as_mut_ptr(), tile[0]);
                _mm512_storeu_ps(sums.as_mut_ptr().add(16), tile[1]);
            }
        }
    }

    /// As [`tile_512`], of 1 to 6 rows.
    ///
    /// # Safety
    /// AVX2 and FMA are there, and `rows` points to `count` such rows.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn tile_256(count: usize, rows: *const f32, panel: &[f32], sums: &mut Sums) {
        // SAFETY: as the caller promises.
        unsafe {
            by_rows!(of_256, count, (rows, panel, sums), [1 2 3 4 5 6]);
        }
    }

    /// The two halves of the panel one after the other: 12 registers hold sums.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn of_256<const ROWS: usize>(rows: *const f32, panel: &[f32], sums: &mut Sums) {
        for half in [0, PANEL / 2] {
            let mut tile = [[_mm256_setzero_ps(); 2]; ROWS];
            for (at, line) in panel.chunks_exact(PANEL).enumerate() {
                // SAFETY: a line has 32 values; every row has as many as the panel has lines.
                unsafe {
                    let start = line.as_ptr().add(half);
                    let (left, right) = (_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(8)));
                    for (row, sums) in tile.iter_mut().enumerate() {
                        let value = _mm256_set1_ps(*rows.add(row * STRIDE + at));
                        sums[0] = _mm256_fmadd_ps(value, left, sums[0]);
                        sums[1] = _mm256_fmadd_ps(value, right, sums[1]);
                    }
                }
            }
            for (tile, sums) in tile.iter().zip(sums.iter_mut()) {
                // SAFETY: a row of sums has 32 values.
                unsafe {
                    _mm256_storeu_ps(sums.as_mut_ptr().add(half), tile[0]);
                    _mm256_storeu_ps(sums.as_mut_ptr().add(half + 8), tile[1]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers that look random, -1 to 1.
    fn noise(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// Both kernels, on one thread and on two, against sums in f64.
    fn check(rows: usize, depth: usize, columns: usize) {
        let (a, b) = (noise(rows * depth, 1), noise(depth * columns, 2));
        let (bias, residual) = (noise(columns, 3), noise(rows * columns, 4));
        let Some(best) = Processor::detect() else { return };
        let panels = Panels::new(&b, depth, columns);
        for (processor, threads) in [(best, 1), (best, 2), (Processor::Avx2, 1)] {
            let mut got = vec![f32::NAN; rows * columns];
            let finish = Finish {
                bias: Some(&bias),
                activation: Some(Activation::Relu),
                residual: Some(Rows::new(&residual, (rows, columns), columns)),
            };
            let target = Target::new(&mut got, (rows, columns), columns);
            multiply(processor, Rows::new(&a, (rows, depth), depth), &panels, target, finish, threads);
            for (at, got) in got.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let product = |k: usize| f64::from(a[row * depth + k]) * f64::from(b[k * columns + column]);
                let sum = (0..depth).map(product).sum::<f64>() + f64::from(bias[column]);
                let expected = sum.max(0.0) + f64::from(residual[at]);
                let bound = 1e-6 * (depth as f64).sqrt().max(4.0);
                assert!((f64::from(*got) - expected).abs() < bound, "{row}, {column}: {got} for {expected}");
            }
        }
    }

    #[test]
    fn products_of_the_shapes_of_towers_are_right() {
        check(1, 1, 1);
        check(50, 64, 48);
        check(50, 3072, 33);
        check(117, 800, 100);
        check(14, 769, 32);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn products_of_any_shape_are_right(rows in 1_usize..130, depth in 1_usize..100, columns in 1_usize..100) {
            check(rows, depth, columns);
        }
    }
}
