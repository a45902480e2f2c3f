//! Products of f32 rows with packed panels.
//!
//! Blocks of rows are copied into the L2 cache, and each panel passes over a block. Tiles of sums, a few rows by one
//! panel, stay in registers (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008; here one
//! side is packed at load).

use std::cell::RefCell;

use rayon::prelude::*;

use super::Cores;
use super::blocking::{self, Ahead, Blocks, Piece, even, parts};
use super::elementwise::Moments;
use super::finish::{Finish, Sums, TilePosition};
use super::lanes::{Lanes, Work};
use super::matrix::{Aligned, PANEL, Panels, Target};
use super::norm::Input;
use super::tiles::Tile;

/// The largest depth of a block: one of its panels, the next panel and the rows fit into the L2 cache.
const DEPTH: usize = 1024;
/// Values from one copied row to the next. Padded, so that the rows of a tile do not compete for one set of the L1
/// cache.
const STRIDE: usize = DEPTH + 16;
/// The most rows of a tile in vector registers.
pub(super) const TILE: usize = 14;
/// Rows of a block: their copies take 455 KiB.
const BLOCK: usize = 8 * TILE;

/// Writes `input * panels` with the epilogue `finish` to all of `target`, on `cores.threads` threads of the current
/// pool.
///
/// # Panics
/// If the shapes do not fit, or a row has no values.
pub(super) fn multiply(cores: Cores, input: Input<'_>, panels: &Panels, target: Target, finish: Finish<'_>) {
    let Cores { processor, threads } = cores;
    let rows = input.rows();
    assert_eq!((rows.columns, rows.rows, panels.columns), (panels.depth, target.rows, target.columns));
    assert!(panels.depth > 0);
    let product = Product { input, panels, target, finish };
    let parts = parts(rows.rows, panels.count(), threads, Blocks { most: BLOCK, step: 1 });
    let run = |part| {
        BLOCK_ROWS.with_borrow_mut(|block| {
            block.reserve(BLOCK * STRIDE);
            processor.run(PartOf { product: &product, part, block: block.values_mut() });
        });
    };
    match threads {
        0 | 1 => parts.into_iter().for_each(run),
        _ => parts.into_par_iter().for_each(run),
    }
}

struct Product<'a> {
    input: Input<'a>,
    panels: &'a Panels,
    target: Target,
    finish: Finish<'a>,
}

thread_local! {
    /// Copies of the rows of a block.
    static BLOCK_ROWS: RefCell<Aligned<f32>> = RefCell::new(Aligned::zeros(0));
}

struct PartOf<'a> {
    product: &'a Product<'a>,
    part: Piece,
    /// Buffer for the copied rows.
    block: &'a mut [f32],
}

impl Work for PartOf<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let PartOf { product: Product { input, panels, target, finish }, part, block } = self;
        let (first, last) = part.rows;
        let tiles = even(last - first, (last - first).div_ceil(L::TILE));
        let depths = even(panels.depth, panels.depth.div_ceil(DEPTH));
        let mut moments = [Moments::default(); BLOCK];
        let mut sums = Tile::ZEROS;
        // SAFETY: the processor has the instructions of `L`, as the caller promises. The block has `STRIDE` values
        // for each row of a tile; one value per row of the panel is copied. The caller of `multiply` holds the
        // target, and no other part has these rows and panels.
        unsafe {
            input.measure::<L>(part.rows.0..part.rows.1, &mut moments);
            for (at, (from, to)) in depths.iter().enumerate() {
                let copies = (first..last).zip(&moments).zip(block.chunks_exact_mut(STRIDE));
                for ((row, moments), copy) in copies {
                    input.read::<L>(row, *from..*to, *moments, &mut copy[..to - from]);
                }
                for panel in part.panels.0..part.panels.1 {
                    let next = blocking::after(part, panel, &depths, at);
                    let next = next.map_or(&[][..], |(panel, (from, to))| panels.rows(panel, from, to));
                    let values = panels.rows(panel, *from, *to);
                    for (tile, (top, bottom)) in tiles.iter().enumerate() {
                        let place = TilePosition {
                            row: first + top,
                            rows: bottom - top,
                            panel,
                            is_first: *from == 0,
                            is_last: *to == panels.depth,
                        };
                        let epilogue = finish.of(*target, place);
                        epilogue.prefetch::<L>(epilogue.rows());
                        let factors = Factors {
                            rows: block[top * STRIDE..].as_ptr(),
                            stride: STRIDE,
                            panel: values,
                            into: sums.0.as_mut_ptr().cast(),
                            across: PANEL,
                            ahead: Ahead::share(next, tile, tiles.len()),
                        };
                        factors.multiply::<L>(place.rows);
                        epilogue.store::<L>(&FloatSums(&sums), epilogue.rows());
                    }
                }
            }
        }
    }
}

/// A tile of sums that are f32.
#[derive(Clone, Copy)]
pub(super) struct FloatSums<'a>(pub(super) &'a Tile);

impl Sums for FloatSums<'_> {
    #[inline(always)]
    unsafe fn plus<L: Lanes>(&self, row: usize, column: usize, others: L) -> L {
        // SAFETY: as the caller promises.
        unsafe { L::load(self.0.at(row, column).cast()).plus(others) }
    }
}

/// A few rows and the panel that multiplies them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Factors<'a> {
    /// Rows with as many values as the panel has rows.
    pub(super) rows: *const f32,
    /// Values from one row to the next.
    pub(super) stride: usize,
    pub(super) panel: &'a [f32],
    /// Destination of the sums: [`PANEL`] per row.
    pub(super) into: *mut f32,
    /// Values from one row of sums to the next.
    pub(super) across: usize,
    pub(super) ahead: Ahead<'a>,
}

impl Factors<'_> {
    /// Multiplies `count` rows, 1 to [`Lanes::TILE`].
    ///
    /// # Safety
    /// The processor has the instructions of `L`; `count` rows exist, and there is room for their sums.
    #[inline(always)]
    pub(super) unsafe fn multiply<L: Lanes>(self, count: usize) {
        macro_rules! by_rows {
            ($($count:literal)+) => {
                match count {
                    // SAFETY: as the caller promises.
                    $($count if $count <= L::TILE => unsafe { L::run(OfRows::<$count>(self)) },)+
                    _ => unreachable!("a tile has as many rows as registers allow"),
                }
            };
        }
        by_rows!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
    }
}

/// Factors with the number of rows known at compile time.
struct OfRows<'a, const ROWS: usize>(Factors<'a>);

impl<const ROWS: usize> Work for OfRows<'_, ROWS> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Factors { rows, stride, panel, into, across, ahead } = self.0;
        // With narrow registers, one half of the panel after the other.
        let (lines, halves) = (panel.len() / PANEL, PANEL / (2 * L::COUNT));
        let mut ahead = ahead.spread(lines * halves);
        for (half, from) in (0..PANEL).step_by(2 * L::COUNT).enumerate() {
            // SAFETY: as the caller promises; a line of the panel has `PANEL` values.
            unsafe {
                let mut sums = [[L::splat(0.0); 2]; ROWS];
                for (at, line) in panel.chunks_exact(PANEL).enumerate() {
                    ahead.fetch::<L>(half * lines + at);
                    let line = line.as_ptr().add(from);
                    let (left, right) = (L::load(line), L::load(line.add(L::COUNT)));
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let value = L::splat(*rows.add(row * stride + at));
                        sums[0] = value.times_plus(left, sums[0]);
                        sums[1] = value.times_plus(right, sums[1]);
                    }
                }
                for (row, sums) in sums.into_iter().enumerate() {
                    let into = into.add(row * across + from);
                    sums[0].store(into);
                    sums[1].store(into.add(L::COUNT));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Processor;
    use super::super::elementwise::Activation;
    use super::super::matrix::{Rows, filled};
    use super::*;

    /// Pseudo-random numbers, -1 to 1.
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

    /// Compares both kernels, on one thread and on two, with sums in f64.
    fn check(rows: usize, depth: usize, columns: usize) {
        let (a, b) = (noise(rows * depth, 1), noise(depth * columns, 2));
        let (bias, residual) = (noise(columns, 3), noise(rows * columns, 4));
        let factor = noise(rows * columns, 5);
        let Some(best) = Processor::detect() else { return };
        let panels = Panels::new(&b, depth, columns);
        let processors = Processor::all().into_iter().map(|it| (it, 1));
        for (processor, threads) in processors.chain([(best, 2)]) {
            let finish = Finish {
                bias: Some(&bias),
                activation: Some(Activation::Relu),
                factor: Some(Rows::new(&factor, rows, columns, columns)),
                residual: Some(Rows::new(&residual, rows, columns, columns)),
            };
            let input = Input::Plain(Rows::new(&a, rows, depth, depth));
            let got = filled(rows, columns, |target| {
                multiply(Cores { processor, threads }, input, &panels, target, finish);
            });
            for (at, got) in got.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let product = |k: usize| f64::from(a[row * depth + k]) * f64::from(b[k * columns + column]);
                let sum = (0..depth).map(product).sum::<f64>() + f64::from(bias[column]);
                let expected = sum.max(0.0) * f64::from(factor[at]) + f64::from(residual[at]);
                let bound = 2e-6 * (depth as f64).sqrt().max(4.0);
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
        check(14, 1025, 32);
        check(3, 2049, 70);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn products_of_any_shape_are_right(rows in 1_usize..130, depth in 1_usize..100, columns in 1_usize..100) {
            check(rows, depth, columns);
        }
    }
}
